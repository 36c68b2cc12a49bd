"""Clip radius and number of steps, chosen from a partition that is paid for."""

import numpy as np
import pytest

from sfumato.mechanisms.noise import DiscreteGaussian
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.clustering.error import NoisyCells
from sfumato.questions.clustering.lloyd import HALF
from sfumato.questions.clustering.methods import MOST_STEPS, describe, schedule_steps

CENTRES = np.array([[-0.5, -0.5], [0.5, 0.5]])
FAR = 2**40


def weighted(middles, halves, weights):
    """Cells without noise, and the rows that they are taken to hold."""
    counts = weights.astype(int)
    return NoisyCells(middles, halves, counts, np.zeros(len(counts))), weights


def cells(rows, spread=0.05, stray=0.0):
    rng = np.random.default_rng(2)
    middles = np.concatenate(
        [centre + rng.normal(size=(500, 2)) * spread for centre in CENTRES]
        + [rng.uniform(-1, 1, (100, 2))]
    )
    weights = np.concatenate([np.full(1000, rows / 1000), np.full(100, stray * rows / 100)])
    return weighted(middles, np.full(middles.shape, 0.01), weights)


@pytest.mark.parametrize("cost", [PureDP(1), ZCDP("0.1")], ids=str)
def test_more_rows_allow_more_steps(cost):
    numbers = [
        len(schedule_steps(*cells(n), CENTRES, Unit(), cost, FAR).costs) for n in (100, 3000, 10**6)
    ]
    assert numbers == sorted(numbers)
    assert numbers[-1] == MOST_STEPS
    parts = schedule_steps(*cells(10**6), CENTRES, Unit(), cost, FAR).costs
    assert sum(part.money[0] for part in parts) == cost.money[0]


def test_the_clip_radius_follows_the_spread_and_shrinks_with_few_rows():
    near, far = (
        schedule_steps(*cells(10**5, spread), CENTRES, Unit(), PureDP(1), FAR).clip_radius
        for spread in (0.02, 0.1)
    )
    assert near < far < HALF
    assert schedule_steps(*cells(50), CENTRES, Unit(), PureDP("0.01"), FAR).clip_radius < near


def test_where_rows_are_many_strays_are_not_clipped():
    """They pull the centres that k-means without privacy would find."""
    few, many = (
        schedule_steps(*cells(n, stray=0.1), CENTRES, Unit(), PureDP(1), FAR).clip_radius
        for n in (300, 10**8)
    )
    assert many > 2 * few


def test_no_radius_beyond_what_was_checked():
    assert schedule_steps(*cells(10**6, 0.1), CENTRES, Unit(), PureDP(1), 1000).clip_radius <= 1000


@pytest.mark.parametrize("weights", [np.zeros(3), np.array([1e-9, 0, 0])])
def test_an_empty_picture_has_a_schedule(weights):
    empty = weighted(np.zeros((3, 2)), np.ones((3, 2)), weights)
    found = schedule_steps(*empty, CENTRES, Unit(), ZCDP(1), FAR)
    assert found.clip_radius >= 1
    assert isinstance(found.laws[0], DiscreteGaussian)
    assert "in L2" in describe(found)
