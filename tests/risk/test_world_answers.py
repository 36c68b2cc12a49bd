"""The answers of all worlds, counted and listed."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from risk import worlds as defined
from sfumato import risk
from sfumato.errors import Infeasible
from sfumato.risk import distinct_answers as world_answers
from sfumato.risk import sensitivity as subsets
from sfumato.risk.choice import choose
from sfumato.risk.universe import column_of, log_choose, parse


def _counted(universe, size, query):
    """Distinct answers by definition, rounded so that orders of addition agree."""
    found = Counter(np.round(defined.answers(universe, size, query), 9).tolist())
    values = np.array(sorted(found))
    return values - values[0], np.log([found[v] for v in sorted(found)])


@given(
    st.lists(st.integers(-9, 9).map(float), min_size=3, max_size=9),
    st.integers(1, 8),
    st.sampled_from([q for q in defined.QUERIES if q != "count"]),
)
def test_counts_are_those_of_the_list(universe, size, query):
    size = min(size, len(universe) - 1)
    found = world_answers.distinct_answers(column_of(universe, size), parse(query))
    values, logs = _counted(universe, size, query)
    assert found.values - found.values[0] == pytest.approx(values, abs=1e-8)
    assert found.log_weight == pytest.approx(logs, abs=1e-9)


@pytest.mark.parametrize(
    "query", ["mean", "sum", "var", "std", "median", ("percentile", 33), "count"]
)
def test_one_left_out_in_the_order_of_combinations(monkeypatch, query):
    universe = np.random.default_rng(3).integers(0, 50, 12).astype(float)
    column = column_of(universe, 11)
    expected = world_answers.listed_answers(column, parse(query))
    monkeypatch.setattr(world_answers, "MOST_LISTED", 5)
    assert world_answers.listed_answers(column, parse(query)) == pytest.approx(expected, abs=1e-9)
    assert expected == pytest.approx(defined.answers(universe, 11, query))


@pytest.mark.parametrize("query", ["mean", "median", "sum", "var", "std", ("percentile", 40)])
def test_one_left_out_of_many(query):
    universe = np.random.default_rng(4).normal(size=700)
    wide = risk.unbounded_sensitivity(universe, 699, query)
    for epsilon in (0.1, 3.0, 40.0):
        expected = defined.tight(universe, 699, query, epsilon, wide)
        assert risk.tighter_upper_bound_posterior(
            universe, 699, query, epsilon=epsilon
        ) == pytest.approx(expected, rel=1e-9)


def test_all_but_two_are_made_from_pairs():
    universe = np.sort(np.random.default_rng(8).normal(size=60))
    for query in ("mean", "var"):
        found = np.sort(subsets.split_in_half(universe, 58, parse(query)))
        assert found == pytest.approx(np.sort(defined.answers(universe, 58, query)), abs=1e-12)


@pytest.mark.parametrize("query", ["mean", "sum", "var", "std"])
def test_many_records_do_not_melt_together(query):
    universe = np.random.default_rng(9).normal(size=1_000_000)
    found = world_answers.distinct_answers(column_of(universe, 999_999), parse(query))
    assert len(found.values) > 999_900


@pytest.mark.parametrize("query", ["mean", "var", "std", "median", "sum"])
@pytest.mark.parametrize("size", [6, 300])
def test_a_uniform_prior_is_no_prior(query, size):
    universe = np.random.default_rng(10).normal(size=size + 1) * 1e-12
    uniform = risk.prior_belief(universe, size)
    expected = risk.tighter_upper_bound_posterior(universe, size, query, epsilon=3)
    assert risk.tighter_upper_bound_posterior(
        universe, size, query, epsilon=3, prior=uniform
    ) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=20)
@given(st.integers(2, 3000), st.data())
def test_order_statistics_count_every_world(n, data):
    size = data.draw(st.integers(1, n - 1))
    found = world_answers.distinct_answers(column_of(np.arange(n), size), parse(("percentile", 0)))
    assert found.log_total == pytest.approx(log_choose(n, size), rel=1e-9, abs=1e-9)


def test_too_many_worlds_are_refused_and_bounded_from_one_side():
    universe = np.random.default_rng(6).normal(size=200)
    with pytest.raises(Infeasible, match=r"10\^59 worlds"):
        risk.optimal_epsilon(universe, 100, "mean")
    with pytest.raises(Infeasible, match="at most"):
        risk.posterior_belief(universe, 100, "mean", 0.0, 1)
    choice = choose(universe, 100, "mean")
    assert not choice.exact
    assert (
        choice.epsilon
        == choice.upper_bound
        == risk.optimal_epsilon(universe, 100, "mean", bound="loose")
    )
    assert any("safe side" in note for note in choice.caveats)
