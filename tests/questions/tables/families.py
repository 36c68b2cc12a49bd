"""Families of real tables that agree, for tests of what comes after the noise."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from sfumato.questions.tables.levels import Levels, Margin, Nesting, common


def tree(sizes: Sequence[int], seed: int = 1) -> Levels:
    """An axis of nested levels of these sizes; cells have unequally many children."""
    rng = np.random.default_rng(seed)
    fanouts = [(sizes[0],)]
    for lower, size in itertools.pairwise(sizes):
        more = rng.integers(0, lower, size - lower)
        fanouts.append(tuple((1 + np.bincount(more, minlength=lower)).tolist()))
    return Levels(tuple(fanouts))


def finest(nesting: Nesting) -> Margin:
    """The table of all axes at their finest levels."""
    return tuple(axis.depth for axis in nesting.axes)


def pairs(axes: int) -> list[Margin]:
    """All tables of two of so many plain axes."""
    return [
        tuple(int(axis in pair) for axis in range(axes))
        for pair in itertools.combinations(range(axes), 2)
    ]


def noisy_family(
    nesting: Nesting,
    tables: Sequence[Margin],
    *,
    mean: float = 3,
    noise: float = 5,
    shift: float = 0,
    seed: int = 0,
) -> dict[Margin, np.ndarray]:
    """Margins of one noisy table: they agree, are fractions, and some are negative.

    Each cell of the table over all axes has the given mean, plus the shift.
    """
    rng = np.random.default_rng(seed)
    full = finest(nesting)
    shape = nesting.shape(full)
    counts = rng.poisson(rng.gamma(0.3, max(mean, 1e-9) / 0.3, shape)).astype(float)
    counts += shift + noise * rng.normal(size=shape)
    return {table: nesting.margin(counts, full, table) for table in tables}


def assert_adds_up(found: Mapping[Margin, np.ndarray], nesting: Nesting) -> None:
    """Whole numbers of at least 0, equal in every common margin of every two tables."""
    for values in found.values():
        assert values.dtype == np.int64
        assert values.min() >= 0
    for one, other in itertools.combinations(found, 2):
        shared = common(one, other)
        np.testing.assert_array_equal(
            nesting.margin(found[one], one, shared), nesting.margin(found[other], other, shared)
        )
