"""Range sums over a line of counts."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.audit.likelihoods import pure_loss
from sfumato.audit.runs import Published
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.streaming import (
    TreeRangeSumQuery,
)

ORDERS = [1 + x / 10 for x in range(1, 100)] + list(range(12, 64))


@pytest.mark.parametrize(("size", "arity"), [(1, 2), (2, 2), (7, 2), (16, 4), (17, 4), (10, 3)])
def test_ranges_are_covered_by_few_nodes_and_exactly(size: int, arity: int) -> None:
    counts = np.arange(1, size + 1) ** 2
    noisy = TreeRangeSumQuery(arity).noisy_tree(counts, ZCDP(10**6))  # next to no noise
    for start in range(size + 1):
        for stop in range(start, size + 1):
            nodes = noisy.cover(start, stop)
            held = [
                i
                for layer, index in nodes
                for i in range(
                    *(arity ** (len(noisy.layers) - 1 - layer) * x for x in (index, index + 1))
                )
            ]
            assert sorted(held) == list(range(start, stop))
            assert len(nodes) <= 2 * (arity - 1) * len(noisy.layers)
            assert noisy.sum(start, stop).value == counts[start:stop].sum()


def test_ranges_of_nodes_hold_with_their_confidence() -> None:
    query = TreeRangeSumQuery(4, Unit(rows_per_person=2))
    counts = np.arange(64)
    held = 0
    for _ in range(400):
        estimate = query.noisy_tree(counts, PureDP("0.5")).sum(3, 50)
        held += estimate.low <= counts[3:50].sum() <= estimate.high
    # 95% of 400 are 380. Only intervals that hold less often would miss 370 with a probability of
    # 1e-2.
    assert held >= 370


@pytest.mark.parametrize(
    "unit", [Unit(), Unit(rows_per_person=2), Unit(neighbours="replace")], ids=str
)
def test_range_trees_spend_what_they_claim(unit: Unit) -> None:
    """Exact likelihood ratios of the whole noisy tree, over all small neighbours."""
    cost = PureDP("1")
    query = TreeRangeSumQuery(2, unit)

    def mechanism(rows, noise):  # type: ignore[no-untyped-def]
        cells = np.bincount(np.array([int(row[0]) for row in rows], dtype=int), minlength=4)
        numbers = np.concatenate(query.noisy_tree(cells, cost, noise).layers)
        return Published(tuple(numbers.tolist()), numbers.tolist())

    from sfumato.audit.runs import neighbours

    universe = ((0.0,), (1.0,), (3.0,))
    assert (
        pure_loss(mechanism, neighbours(universe, unit, others=1)).loss
        == pytest.approx(1.0, abs=1e-9)
        or unit.neighbours == "replace"
    )
    assert pure_loss(mechanism, neighbours(universe, unit, others=1)).loss <= 1 + 1e-9
