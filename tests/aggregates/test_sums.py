"""True sums are exact, and cut where int64 would overflow."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from aggregates.wards import DOMAIN
from sfumato.aggregates.sums import LARGEST_SUM
from sfumato.aggregates.values import COARSE_STEPS
from sfumato.cube import Cube
from sfumato.random.bits import current
from sfumato.testing import deterministic


def test_a_sum_of_more_than_2_to_the_62_is_cut_and_nothing_raises() -> None:
    question = sf.Variance("wage")
    lattice = question.needs(DOMAIN).lattice
    counts = np.zeros(lattice.size, np.int64)
    counts[-1] = 2**40
    with deterministic(5):
        release = question.answer(Cube(lattice, counts), sf.Unit(), sf.PureDP(1), current())
    assert abs(int(release.released[2]) - LARGEST_SUM) < 2**40
    counts[-1] = LARGEST_SUM // (COARSE_STEPS**2) - 1
    with deterministic(5):
        release = question.answer(Cube(lattice, counts), sf.Unit(), sf.PureDP(1), current())
    assert float(release.values) == pytest.approx(0, abs=1e-3)
    assert float(release.means) == pytest.approx(150)
