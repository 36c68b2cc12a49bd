"""The band of an elder tree holds at all steps together, and is not wider than it need be."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from sfumato.basics.numbers import Array
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.questions.counters.question import half_widths
from sfumato.questions.counters.tree import ElderTree, _limits, _Nodes, band, radices_for
from sfumato.random import PublicSeed
from support.statistics import covers

TREES = [
    ElderTree(5, (), DiscreteLaplace(Fraction(3))),
    ElderTree(30, radices_for(30), DiscreteLaplace(Fraction(10))),
    ElderTree(60, (3, 5), DiscreteLaplace(Fraction(2))),
    ElderTree(365, radices_for(365), DiscreteLaplace(Fraction(700))),
]
RUNS = 4000


def _noise(tree: ElderTree) -> Array:
    """The noise of many runs at each step: int64 ndarray of shape (steps, runs)."""
    bits = PublicSeed(f"bands {tree.horizon}")
    known = {0: np.zeros(RUNS, np.int64)}
    for step in range(1, tree.horizon + 1):
        path = [0, *tree.path(step)]
        for elder, place in pairwise(path):
            if place not in known:
                known[place] = known[elder] + tree.law.sample(RUNS, bits)
    return np.array([known[step] for step in range(1, tree.horizon + 1)])


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: str(tree.horizon))
def test_it_holds_and_is_nearly_as_narrow_as_can_be(tree: ElderTree) -> None:
    half = band(tree, 1, tree.horizon, 0.05)
    reach = np.abs(_noise(tree)) / half[:, None]
    held = reach.max(axis=0) <= 1
    assert covers(int(held.sum()), RUNS, 0.95)
    # The width over the true quantile of the largest ratio. Few steps lie on few whole numbers.
    assert 1 / np.quantile(reach.max(axis=0), 0.95) <= 1.05
    # A band that is a tenth narrower does not hold.
    assert not covers(int((reach.max(axis=0) <= 0.9).sum()), RUNS, 0.95)


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: str(tree.horizon))
def test_it_is_narrower_than_the_union_bound(tree: ElderTree) -> None:
    union = tree.half_widths(1, tree.horizon, 0.05 / tree.horizon)
    half = half_widths(tree, 1, tree.horizon, 0.05, simultaneous=True)
    assert (half <= union).all()
    assert half.mean() < 0.93 * union.mean()
    some = half_widths(tree, 3, 5, 0.05, simultaneous=True)
    assert some.tolist() == half[2:5].tolist()


def test_the_probability_of_two_steps_is_the_exact_one() -> None:
    # Steps 1 and 2 of two, one draw after another: sums over all pairs of draws.
    tree = ElderTree(2, (), DiscreteLaplace(Fraction(3)))
    limits = np.array([0.0, 7.0, 9.0, 12.0])
    x = np.arange(-200, 201)
    mass = np.exp(-np.abs(x) / 3)
    mass /= mass.sum()
    first = np.abs(x) <= 7
    both = first[:, None] & (np.abs(np.add.outer(x, x)) <= 9)
    expected = float((np.outer(mass, mass) * both).sum())
    found = math.exp(_Nodes(tree, 3).log_probability(limits))
    assert found == pytest.approx(expected, abs=1e-8)


def test_categories_hold_together() -> None:
    one = ElderTree(30, (7,), DiscreteLaplace(Fraction(10)))
    three = ElderTree(30, (7,), DiscreteLaplace(Fraction(10)), cells=3)
    alpha = 1 - (1 - 0.05) ** (1 / 3)
    assert band(three, 1, 30, 0.05) == pytest.approx(band(one, 1, 30, alpha), rel=0.02)
    assert (band(three, 1, 30, 0.05) > band(one, 1, 30, 0.05)).all()


def test_where_the_law_is_not_computed_the_union_bound_serves() -> None:
    tree = TREES[1]
    for alpha, other in (
        (1e-7, tree),
        (0.05, ElderTree(30, (7,), DiscreteLaplace(Fraction(1, 3)))),
    ):
        union = other.half_widths(1, 30, alpha / 30)
        assert band(other, 1, 30, alpha).tolist() == union.tolist()
        assert _limits(other, alpha)[0] == 0
