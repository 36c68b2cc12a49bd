"""Ranks of edges: quantiles over a common denominator, and counts that are not shown."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.errors import UsageError
from sfumato.mechanisms.selection import Ranks, common_denominator

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


@pytest.mark.parametrize(
    "at",
    [
        [0],
        [1],
        [Fraction(-1, 2)],
        [HALF, HALF],
        [HALF, THIRD],
        [],
        [HALF, HALF + Fraction(1, 10**12)],
    ],
)
def test_what_is_no_quantile_is_refused(at):
    with pytest.raises(UsageError, match="quantiles"):
        common_denominator([Fraction(q) for q in at])


def test_quantiles_share_a_denominator():
    assert common_denominator([Fraction(1, 7), Fraction(1, 3)]) == ((3, 7), 21)
    numerators, whole = common_denominator([Fraction(1, 4_000_037), Fraction(1, 3)])
    assert whole == 2**22
    assert numerators[1] == round(2**22 / 3)


@pytest.mark.parametrize(("lower", "upper"), [(0, 10), (2, 7), (6, 9), (9, 10)])
def test_ranks_of_some_edges_are_those_among_all_rows(lower, upper):
    counts = np.array([2, 0, 1, 0, 0, 5, 0, 0, 3])
    ranks = Ranks.of_cells(np.flatnonzero(counts), counts[counts > 0], lower, upper)
    edges = np.arange(lower, upper)
    assert ranks.edges == len(edges) == ranks.widths.sum()
    assert ranks.total == 11
    assert ranks.below[ranks.group(edges)].tolist() == [counts[:edge].sum() for edge in edges]


def test_ranks_show_no_count():
    import pickle

    ranks = Ranks.of_counts(np.array([918_273_645, 0]))
    assert "918" not in repr(ranks)
    with pytest.raises(UsageError):
        pickle.dumps(ranks)
    with pytest.raises(UsageError, match="none to choose"):
        Ranks.of_counts(np.array([1, 2]), 2, 2)
    dense, listed = (
        Ranks.of_counts(np.array([1, 0, 2, 0])),
        Ranks.of_cells(np.array([0, 1, 2]), np.array([1, 0, 2]), 0, 5),
    )
    assert dense.below.tolist() == listed.below.tolist()
    assert dense.first.tolist() == listed.first.tolist()
