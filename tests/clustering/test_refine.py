"""Reach and number of steps, learnt from a partition that is paid for."""

import numpy as np
import pytest

from sfumato.clustering.refine import MOST_STEPS, Rough, course, described
from sfumato.clustering.space import HALF
from sfumato.mechanisms.noise import DiscreteGaussian
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit

CENTRES = np.array([[-0.5, -0.5], [0.5, 0.5]])
FAR = 2**40


def rough(rows, spread=0.05, stray=0.0):
    rng = np.random.default_rng(2)
    middles = np.concatenate(
        [centre + rng.normal(size=(500, 2)) * spread for centre in CENTRES]
        + [rng.uniform(-1, 1, (100, 2))]
    )
    weights = np.concatenate([np.full(1000, rows / 1000), np.full(100, stray * rows / 100)])
    return Rough(middles, np.full(middles.shape, 0.01), weights)


@pytest.mark.parametrize("cost", [PureDP(1), ZCDP("0.1")], ids=str)
def test_more_rows_allow_more_steps(cost):
    numbers = [len(course(rough(n), CENTRES, Unit(), cost, FAR).parts) for n in (100, 3000, 10**6)]
    assert numbers == sorted(numbers)
    assert numbers[-1] == MOST_STEPS
    parts = course(rough(10**6), CENTRES, Unit(), cost, FAR).parts
    assert sum(part.money[0] for part in parts) == cost.money[0]


def test_the_reach_follows_the_spread_and_shrinks_with_few_rows():
    near, far = (
        course(rough(10**5, spread), CENTRES, Unit(), PureDP(1), FAR).reach
        for spread in (0.02, 0.1)
    )
    assert near < far < HALF
    assert course(rough(50), CENTRES, Unit(), PureDP("0.01"), FAR).reach < near


def test_where_rows_are_many_strays_are_not_shortened():
    """They pull the centres that k-means without privacy would find."""
    few, many = (
        course(rough(n, stray=0.1), CENTRES, Unit(), PureDP(1), FAR).reach for n in (300, 10**8)
    )
    assert many > 2 * few


def test_no_reach_beyond_what_was_checked():
    assert course(rough(10**6, 0.1), CENTRES, Unit(), PureDP(1), 1000).reach <= 1000


@pytest.mark.parametrize("weights", [np.zeros(3), np.array([1e-9, 0, 0])])
def test_an_empty_picture_has_a_course(weights):
    empty = Rough(np.zeros((3, 2)), np.ones((3, 2)), weights)
    found = course(empty, CENTRES, Unit(), ZCDP(1), FAR)
    assert found.reach >= 1
    assert isinstance(found.laws[0], DiscreteGaussian)
    assert "in L2" in described(found)
