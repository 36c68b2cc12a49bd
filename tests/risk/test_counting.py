"""Worlds that are counted instead of listed, and kernels that are scanned instead of compared."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from risk import worlds as defined
from sfumato import risk
from sfumato.errors import Infeasible
from sfumato.risk import distinct_answers, subsets, world_answers
from sfumato.risk.distinct_answers import Answers
from sfumato.risk.queries import parse
from sfumato.risk.universe import column_of, log_choose

RATES = [0.0, 1e-6, 0.3, 7.0, 1e3, 1e9]


def _by_definition(values, log_weight, log_top, rate):
    exponents = log_weight - rate * np.abs(values[:, None] - values)
    gain = log_top - np.logaddexp.reduce(exponents, axis=1)
    return gain.max()


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("spread", [0.0, 3.0, 5000.0], ids=["plain", "weighted", "logs"])
@pytest.mark.parametrize("size", [2, 257, 1500])
def test_the_scan_is_the_sum(rate, spread, size):
    rng = np.random.default_rng(size)
    values = np.sort(rng.standard_cauchy(size))
    weight = spread * rng.random(size)
    for top in (None, weight - rng.random(size)):
        found = Answers(values, weight, top).worst(rate)
        expected = _by_definition(values, weight, 0.0 if top is None else top, rate)
        assert found.log_risk == pytest.approx(expected, rel=1e-12, abs=1e-11)
        assert _by_definition(
            values, weight, 0.0 if top is None else top, rate
        ) - found.log_risk == pytest.approx(0, abs=1e-11)


def test_one_answer_and_its_slope():
    answers = Answers(np.array([0.0, 1.0, 3.0]), np.log([1.0, 2.0, 1.0]))
    value, slope = answers.one(0, 0.5)
    step = 1e-6
    assert value == pytest.approx(math.log(1 + 2 * math.exp(-0.5) + math.exp(-1.5)))
    assert slope == pytest.approx(
        (answers.one(0, 0.5 + step)[0] - answers.one(0, 0.5 - step)[0]) / 2 / step, rel=1e-6
    )


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


@given(
    st.lists(st.integers(-9, 9).map(lambda x: x / 10), min_size=3, max_size=9), st.integers(1, 8)
)
def test_sums_on_a_lattice(universe, size):
    size = min(size, len(universe) - 1)
    found, logs = subsets.lattice_sums(np.sort(universe), size)
    expected = Counter(np.round(defined.answers(universe, size, "sum"), 9).tolist())
    assert found == pytest.approx(sorted(expected), abs=1e-9)
    assert logs == pytest.approx(np.log([expected[v] for v in sorted(expected)]))


def test_records_off_any_lattice_are_not_counted():
    assert subsets.lattice_sums(np.sort(np.random.default_rng(1).normal(size=8)), 4) is None


@pytest.mark.parametrize("query", ["sum", "mean", "var", "std"])
def test_two_halves_make_all_subsets(query):
    universe = np.sort(np.random.default_rng(2).normal(size=11))
    for size in (1, 4, 6, 10):
        found = np.sort(subsets.split_in_half(universe, size, parse(query)))
        assert found == pytest.approx(np.sort(defined.answers(universe, size, query)), abs=1e-12)


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


def test_24_choose_12_is_exact():
    universe = np.random.default_rng(5).integers(0, 30, 24)
    assert risk.choose(universe, 12, "mean").exact
    found = world_answers.distinct_answers(column_of(universe, 12), parse("sum"))
    assert round(float(np.exp(found.log_weight).sum())) == math.comb(24, 12)
    halves = world_answers.collapse(
        subsets.split_in_half(np.sort(universe).astype(float), 12, parse("sum")), 1e-9
    )
    assert halves.values == pytest.approx(found.values)
    assert halves.log_weight == pytest.approx(found.log_weight)


@settings(max_examples=20)
@given(st.integers(2, 3000), st.data())
def test_order_statistics_count_every_world(n, data):
    size = data.draw(st.integers(1, n - 1))
    found = world_answers.distinct_answers(column_of(np.arange(n), size), parse(("percentile", 0)))
    assert found.log_total == pytest.approx(log_choose(n, size), rel=1e-9, abs=1e-9)


def test_weights_too_large_for_a_float():
    universe = np.arange(20_000.0)
    epsilon = risk.optimal_epsilon(universe, 10_001, ("percentile", 0))
    assert (
        risk.tighter_upper_bound_posterior(universe, 10_001, ("percentile", 0), epsilon=epsilon)
        <= 1 / 3
    )
    assert (
        risk.tighter_upper_bound_posterior(
            universe, 10_001, ("percentile", 0), epsilon=epsilon * (1 + 1e-9)
        )
        > 1 / 3
    )


def test_too_many_worlds_are_refused_and_bounded_from_one_side():
    universe = np.random.default_rng(6).normal(size=200)
    with pytest.raises(Infeasible, match=r"10\^59 worlds"):
        risk.optimal_epsilon(universe, 100, "mean")
    with pytest.raises(Infeasible, match="at most"):
        risk.posterior_belief(universe, 100, "mean", 0.0, 1)
    choice = risk.choose(universe, 100, "mean")
    assert not choice.exact
    assert (
        choice.epsilon
        == choice.upper_bound
        == risk.optimal_epsilon(universe, 100, "mean", bound="loose")
    )
    assert any("safe side" in note for note in choice.caveats)


def test_a_search_takes_few_scans(monkeypatch):
    scans = []
    whole = distinct_answers.Answers.worst
    monkeypatch.setattr(
        distinct_answers.Answers,
        "worst",
        lambda self, rate: scans.append(rate) or whole(self, rate),
    )
    rng = np.random.default_rng(7)
    for universe, query in itertools.product(
        (rng.normal(size=20_000), np.arange(20_000.0), rng.standard_cauchy(20_000)), ("mean", "var")
    ):
        scans.clear()
        risk.optimal_epsilon(universe, 19_999, query)
        assert len(scans) <= 12
