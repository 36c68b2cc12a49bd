"""The paper's sampler and the fast one agree."""

from __future__ import annotations

import numpy as np

from local.laws import fits, public_ball_probability, twin
from sfumato.local.bpm import BPM
from sfumato.random import PublicSeed, override

COUNT = 120_000


def test_both_samplers_agree_where_reports_fall() -> None:
    bpm, point = BPM(5, "0.6", 2), np.array([0.1, 0.7])
    with override(PublicSeed("agree")):
        maps = [
            cells_of(bpm.perturb(np.tile(point, (COUNT, 1)), method=method), bpm)
            for method in ("mixture", "two-stage")
        ]
    expected = exact_masses(bpm, point) * COUNT
    for counts in maps:
        assert fits(counts, expected)
    broken = cells_of(twin(bpm, point, COUNT, public_ball_probability(bpm), 5), bpm)
    assert not fits(broken, expected)


def cells_of(reports: np.ndarray, bpm: BPM, side: int = 8) -> np.ndarray:
    """Counts on a coarse lattice of side^d cells of the report space."""
    reach = float(bpm.L)
    index = ((reports + reach) / (1 + 2 * reach) * side).astype(int)
    return np.bincount(index @ side ** np.arange(bpm.dimension), minlength=side**bpm.dimension)


def exact_masses(bpm: BPM, point: np.ndarray, side: int = 8, density: object = None) -> np.ndarray:
    """Mass of each coarse cell, by the midpoint rule on a fine lattice."""
    reach, fine = float(bpm.L), 24
    axis = (np.arange(side * fine) + 0.5) / (side * fine) * (1 + 2 * reach) - reach
    grid = np.stack(np.meshgrid(*[axis] * bpm.dimension, indexing="ij"), axis=-1).reshape(
        -1, bpm.dimension
    )
    values = (density or bpm.density)(point, grid)
    counts = ((grid + reach) / (1 + 2 * reach) * side).astype(int) @ side ** np.arange(
        bpm.dimension
    )
    masses = np.bincount(counts, values, minlength=side**bpm.dimension)
    return masses / (fine * side) ** bpm.dimension * (1 + 2 * reach) ** bpm.dimension
