"""Four thousand ages of three kinds, counted."""

from __future__ import annotations

import numpy as np

import sfumato as sf
from sfumato.domain.cube import Cube

DOMAIN = sf.Domain(age=sf.Interval(0, 100), kind=sf.Categories(["a", "b", "c"]))
DRAW = np.random.default_rng(7)
AGES = np.clip(DRAW.gamma(3, 12, 4000), 0, 100)
KINDS = DRAW.choice(3, 4000, p=[0.7, 0.25, 0.05])
QUESTION = sf.Histogram(["age", "kind"], bins=20)
LATTICE = QUESTION.needs(DOMAIN).lattice
CUBE = Cube.of_cells(LATTICE, np.stack([LATTICE.axes[0].locate(AGES.copy()), KINDS], axis=1))  # type: ignore[union-attr]
RUNS = 60
