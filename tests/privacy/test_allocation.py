"""Shares of a budget: exact sums, and the vectors of the literature."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import UsageError
from sfumato.privacy.allocation import levels, of_units, share
from sfumato.privacy.composition import compose
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP

GEOMETRIC = {
    0: 28627657615,
    1: 36068588439,
    9: 229021260923,
}  # of epsilon 1 over ten levels, fan-out 2, in units of 1e-12


def test_geometric_levels():
    shares = levels(10**12, 9, allocation="geometric")
    assert sum(shares) == 10**12
    assert all(abs(shares[i] - units) <= 1 for i, units in GEOMETRIC.items() if i < 9)
    assert (
        abs(shares[9] - GEOMETRIC[9]) <= 10
    )  # the last level takes what the others' flooring left


@given(
    st.integers(0, 10**12),
    st.integers(0, 20),
    st.sampled_from(["uniform", "geometric", "linear"]),
    st.integers(2, 9),
)
def test_levels_add_up_and_never_fall(total, height, allocation, fanout):
    shares = levels(total, height, allocation=allocation, fanout=fanout)
    assert len(shares) == height + 1
    assert sum(shares) == total
    assert all(a <= b + 1 for a, b in pairwise(shares))


def test_custom_levels():
    assert levels(10, 1, allocation=[1, "4"]) == [2, 8]
    for wrong in (
        {"allocation": [1]},
        {"allocation": "square"},
        {"allocation": [-1, 2]},
        {"allocation": "uniform", "fanout": 1},
    ):
        with pytest.raises(UsageError):
            levels(10, 1, **wrong)
    with pytest.raises(UsageError):
        levels(10, -1, allocation="uniform")


MEASURES = st.builds(PureDP, st.integers(1000, 10**10).map(lambda n: Fraction(n, 10**9)))
MEASURES |= st.builds(ZCDP, st.integers(1000, 10**10).map(lambda n: Fraction(n, 10**12)))
MEASURES |= st.just(ApproxDP("0.7", "1e-6"))


@given(MEASURES, st.lists(st.integers(1, 20).map(Fraction), min_size=1, max_size=6))
def test_parts_add_up_to_the_cost_exactly(cost, weights):
    assert compose(share(cost, weights)) == cost


@pytest.mark.parametrize("cost", [PureDP("1e-9"), ZCDP("1e-12")], ids=str)
def test_a_share_of_no_unit_names_the_cost_that_was_asked(cost):
    for divide in (lambda: of_units(cost, 0), lambda: share(cost, [Fraction(1), Fraction(1)])):
        with pytest.raises(UsageError, match=f"a share of {cost}"):
            divide()
