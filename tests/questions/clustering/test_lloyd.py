"""One step with noise: what it adds up, what it spends, how it splits the cost."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.runs import Scripted
from sfumato.errors import InternalError
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.clustering.lloyd import (
    Step,
    clip,
    full_radius,
    private_step,
    step_laws,
    steps_for,
)

UNITS = [
    Unit(rows_per_person=r, neighbours=relation)
    for r in (1, 3)
    for relation in ("add-remove", "replace")
]


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(("radius", "d"), [(1, 1), (1000, 2), (2**24, 20)])
def test_the_noise_spends_the_cost(unit, radius, d):
    """Every move of one person that matters costs at most the budget, and one costs all of it."""
    r = unit.rows_per_person
    sums, counts = step_laws(PureDP("0.7"), unit, radius, d)
    rows = r * (2 if unit.neighbours == "replace" else 1)  # as many rows come or go
    spent = rows * (Fraction(radius) / sums.scale + 1 / counts.scale)
    assert spent == Fraction(7, 10)
    sums, counts = step_laws(ZCDP("0.3"), unit, radius, d)
    s, c = Fraction(radius**2) / sums.sigma_squared, 1 / counts.sigma_squared
    moves = [s + c] if unit.neighbours == "add-remove" else [s + c, 4 * s, 2 * s + 2 * c]
    assert max(r**2 * move / 2 for move in moves) == Fraction(3, 10)


def test_the_split_is_the_papers():
    """Of a step's epsilon the count takes (4 d rho^2)^(1/3) for 1 of each sum.

    Common code of the field has these the wrong way round.
    """
    sums, counts = step_laws(PureDP(1), Unit(), 10, 10)
    assert float(sums.scale * counts.scale**-1) == pytest.approx(
        10 * (4 * 10 * 0.225**2) ** (1 / 3) / 10, rel=1e-6
    )
    assert float(1 / counts.scale) == pytest.approx(1.2651 / 11.2651, rel=1e-4)


def test_a_cost_with_delta_is_a_fault_of_ours():
    with pytest.raises(InternalError):
        step_laws(ApproxDP(1, "1e-6"), Unit(), 10, 2)


@pytest.mark.parametrize(("rows", "steps"), [(-5, 2), (0, 2), (1000, 2), (5000, 4), (10**12, 7)])
def test_how_many_steps(rows, steps):
    """A step takes 1134 rows at epsilon 1: sqrt(500 * 5^3 * (2 + 0.405^(1/3))^3) = 1134."""
    assert steps_for(rows, 5, 2, 1) == steps


@given(
    st.lists(
        st.lists(st.integers(-(2**21), 2**21), min_size=3, max_size=3), min_size=1, max_size=20
    ),
    st.integers(1, 2**22),
    st.booleans(),
)
def test_clipping_never_leaves_more_than_the_radius(rows, radius, euclidean):
    before = np.array(rows, dtype=np.int64)
    after = clip(before.copy(), radius, euclidean)
    for a, b in zip(before.tolist(), after.tolist(), strict=True):
        if euclidean:
            assert sum(x * x for x in b) <= radius**2
            near = sum(x * x for x in a) <= radius**2
        else:
            assert sum(map(abs, b)) <= radius
            near = sum(map(abs, a)) <= radius
        assert (
            a == b
            if near
            else all(abs(y) <= abs(x) and x * y >= 0 for x, y in zip(a, b, strict=True))
        )


def test_a_step_adds_up_what_it_says():
    rows = np.array([[10, 0], [12, 2], [-7, 1]]), np.array([3, 1, 2])
    centres = np.array([[9, 0], [-9, 0], [0, 500]])
    laws = DiscreteLaplace(Fraction(1)), DiscreteLaplace(Fraction(1))
    step = private_step(rows, centres, centres, 4, laws, Scripted())
    assert step.counts.tolist() == [4, 2, 0]
    assert step.sums.reshape(3, 2).tolist() == [
        [3 * 1 + 2, 0 + 1],
        [4, 2],
        [0, 0],
    ]  # (3, 2) is clipped to (2, 1)
    assert rows[0].tolist() == [[10, 0], [12, 2], [-7, 1]]


def test_a_group_that_cannot_be_told_from_nothing_keeps_its_centre():
    law = DiscreteLaplace(Fraction(10))
    step = Step(
        np.array([5, 5, -5, -5]),
        np.zeros(4, np.int64),
        100,
        np.array([4000, 0, 90, 90]),
        np.array([1000, 20]),
        law,
        law,
    )
    assert step.moved(np.array([100, 3])).tolist() == [[4, 0], [-5, -3]]


def test_the_full_radius_clips_nobody():
    extent = np.array([7, 0, 5])
    assert full_radius(extent, PureDP(1)) == 12
    assert full_radius(extent, ZCDP(1)) == math.isqrt(74) + 1
    assert full_radius(np.array([3, 4]), ZCDP(1)) == 5
    assert full_radius(np.zeros(2, np.int64), PureDP(1)) == 1


def test_the_standard_error_is_what_repeated_noise_shows():
    rng = np.random.default_rng(5)
    rows = rng.integers(-1000, 1000, (400, 2)), np.ones(400, np.int64)
    centres, laws = (
        np.array([[300, 0], [-300, 0]]),
        (DiscreteGaussian(Fraction(4000)), DiscreteGaussian(Fraction(9))),
    )
    from sfumato.random import current

    steps = [
        private_step(rows, centres, np.zeros_like(centres), 10**6, laws, current())
        for _ in range(2000)
    ]
    means = np.stack([step.sums.reshape(2, 2) / step.counts[:, None] for step in steps])
    assert np.allclose(means.std(axis=0), steps[0].standard_error(2), rtol=0.2)
