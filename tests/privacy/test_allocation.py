"""Shares of a budget: exact sums, and the vectors of the literature."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import UsageError
from sfumato.privacy.allocation import Shares, levels, of_units, share, tree_levels
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP, compose

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


@pytest.mark.parametrize("cost", [PureDP("0.7"), ZCDP("0.123")], ids=str)
@pytest.mark.parametrize("depth", [0, 1, 4])
@pytest.mark.parametrize("allocation", ["geometric", "custom"])
def test_no_path_of_a_tree_spends_more_than_the_cost(cost, depth, allocation):
    weights = "geometric" if allocation == "geometric" else list(range(1, depth + 2))
    shares = Shares(release=3, partition=2, threshold=1)
    spent = tree_levels(cost, shares, weights, depth=depth, fanout=4)
    assert of_units(cost, spent.total) == cost
    assert (len(spent.threshold), len(spent.partition)) == (depth + 1, depth)
    # Of six parts one is for counting nodes and two for choosing; cells have at least the rest.
    assert abs(sum(spent.threshold) - spent.total / 6) < 1
    assert not depth or abs(sum(spent.partition) - spent.total / 3) < 1
    if allocation == "custom" and depth == 4:
        assert spent.partition[3] == pytest.approx(4 * spent.partition[0], rel=1e-6)
        assert spent.threshold[4] == pytest.approx(5 * spent.threshold[0], rel=1e-6)
    without = tree_levels(cost, Shares(partition=0), weights, depth=depth, fanout=4)
    assert without.partition == [0] * depth


def test_shares_that_make_no_sense():
    assert Shares().weights == [1, 0, 1]
    assert Shares(release="0.5", partition=2, threshold=0).weights == [Fraction(1, 2), 2, 0]
    for wrong in ({"release": 0}, {"release": -1}, {"partition": -1}, {"threshold": "-0.5"}):
        with pytest.raises(UsageError, match="no share is negative"):
            Shares(**wrong)
