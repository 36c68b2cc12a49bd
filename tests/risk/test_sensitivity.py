"""Closed forms against the definition, at every distance."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from risk import worlds
from risk.test_bounds import NUMBERS
from sfumato import risk
from sfumato.errors import Infeasible
from sfumato.risk import sensitivity
from sfumato.risk.choice import choose
from sfumato.risk.universe import column_of, parse


@st.composite
def settings_with_distance(draw):
    universe = draw(st.lists(NUMBERS, min_size=3, max_size=9))
    size = draw(st.integers(2, len(universe) - 1))
    distance = draw(st.integers(1, min(size - 1, len(universe) - size)))
    at = st.integers(0, 100).map(lambda q: ("percentile", q))
    return universe, size, draw(st.sampled_from(worlds.QUERIES) | at), distance


def near(value):
    # A standard deviation of nearly equal records may be off by the root of a rounding error.
    return pytest.approx(value, rel=1e-9, abs=1e-7)


@given(settings_with_distance())
@example(([-100.0, 0.0, 0.0, 1.0, 5.0, 50.0], 3, "mean", 1))
@example(([-50.0, -5.0, -1.0, 0.0, 0.0, 100.0], 3, "mean", 1))
def test_closed_forms_are_the_definition(setting):
    assert risk.unbounded_sensitivity(*setting) == near(worlds.unbounded(*setting))
    assert risk.bounded_sensitivity(*setting) == near(worlds.bounded(*setting))


@given(st.lists(NUMBERS, min_size=3, max_size=9), st.sampled_from(["var", "std"]))
def test_spread_of_all_records_but_one(universe, query):
    x = np.sort(universe) - np.median(universe)
    reach = 1e-7 * max(1.0, float(np.abs(x).max()))
    expected = worlds.unbounded(universe, len(universe) - 1, query)
    assert sensitivity._spread_leave_one_out(x, parse(query)) == pytest.approx(
        expected, rel=1e-9, abs=reach
    )
    setting = (universe, len(universe) - 1, query)
    assert risk.unbounded_sensitivity(*setting) == near(worlds.unbounded(*setting))
    assert risk.bounded_sensitivity(*setting) == near(worlds.bounded(*setting))


@given(settings_with_distance())
@example(([0.0] * 8 + [-16.0], 2, "std", 1))
def test_the_range_of_the_worlds(setting):
    universe, size, query, _ = setting
    found = worlds.answers(universe, size, query)
    assert sensitivity.world_range(column_of(universe, size), parse(query)) == near(
        found.max() - found.min()
    )


@pytest.mark.parametrize("shift", [0, 1e4])
@pytest.mark.parametrize("outlier", [-16.0, 100.5])
@pytest.mark.parametrize("size", range(1, 9))
def test_the_range_of_deviations_does_not_round_a_small_one_away(size, outlier, shift):
    """Next to an outlier, a small variance is lost in the rounding of running sums of squares."""
    near_each_other = [0.0, 0.0, 1e-9, 1e-5, 2e-5, 3e-5, 1e-3, 2e-3]
    universe = [outlier + shift, *(x + shift for x in near_each_other)]
    found = worlds.answers(universe, size, "std")
    expected = found.max() - found.min()
    column = column_of(universe, size)
    assert sensitivity.world_range(column, parse("std")) == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("n", [101, 200])
def test_the_range_of_deviations_of_all_records_but_one_is_exact_for_equal_records(n):
    universe = [0.0] * (n - 1) + [-16.0]
    without_a_zero = 16 * math.sqrt(n - 2) / (n - 1)
    found = sensitivity.world_range(column_of(universe, n - 1), parse("std"))
    assert found == pytest.approx(without_a_zero, rel=1e-13)


@pytest.mark.parametrize("query", ["var", "std"])
@pytest.mark.parametrize("size", [3, 5, 8])
def test_spread_from_moments_is_set_by_set(query, size):
    universe = np.random.default_rng(5).normal(size=9)
    expected = worlds.unbounded(universe, size, query)
    column = column_of(universe, size)
    found = [
        sensitivity._from_moments(column.centred, parse(query), taken) for taken in (size, size + 1)
    ]
    assert max(found) == near(expected)


def test_spread_in_batches(monkeypatch):
    universe = np.random.default_rng(6).integers(0, 9, 12).astype(float)
    expected = worlds.unbounded(universe, 11, "var")
    monkeypatch.setattr(sensitivity, "BATCH", 5)
    monkeypatch.setattr(sensitivity, "FEW", 0)
    assert risk.unbounded_sensitivity(universe, 11, "var") == near(expected)


def test_spread_of_too_many_sets_is_refused():
    with pytest.raises(Infeasible, match="no closed form"):
        risk.unbounded_sensitivity(np.arange(200.0), 100, "std")
    with pytest.raises(Infeasible, match="no closed form"):
        risk.unbounded_sensitivity(np.arange(200.0), 100, "var", distance=2)
    with pytest.raises(Infeasible, match="no closed form"):
        risk.bounded_sensitivity(np.arange(200.0), 100, "std")


def test_universes_too_large_to_count_are_refused_or_bounded_at_once():
    universe = np.random.default_rng(9).normal(size=300_000)
    for query in ("mean", "var", "std", "sum"):
        choice = choose(universe, 150_000, query)
        assert not choice.exact
        assert choice.worlds == math.inf
        assert "about 10^90" in str(choice)
    with pytest.raises(Infeasible, match="about 10"):
        risk.optimal_epsilon(universe, 150_000, "mean")


def test_large_universes_have_closed_forms():
    universe = np.arange(100_000.0)
    assert risk.unbounded_sensitivity(universe, 50_000, "median") == near(
        _median_step(universe, 50_000)
    )
    assert risk.unbounded_sensitivity(universe, 50_000, "sum", distance=2) == 99_999 + 99_998
    assert math.isfinite(risk.unbounded_sensitivity(universe, 99_999, "std"))


def _median_step(universe, size):
    """The widest gap that one record can open.

    Ranks below the middle as low, those above as high, as can be.
    """
    n = len(universe)
    even = (
        universe[n - size + size // 2] - universe[size // 2 - 1]
    ) / 2  # T even: half of the middle gap
    odd = (universe[n - size - 1 + size // 2 + 1] - universe[size // 2]) / 2
    return max(even, odd)
