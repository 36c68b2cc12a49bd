"""Bounds and posteriors.

The paper's numbers, worlds by definition, and what must not change an answer.
"""

import itertools
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from risk import worlds
from sfumato import risk
from sfumato.errors import Infeasible
from sfumato.risk.choice import choose

SCHOOL = {"school_year": [1, 2, 3, 4], "absence_days": [1, 2, 3, 10]}
VECTORS = {
    ("mean", "school_year"): (
        0.833333333333,
        1,
        0.33788759009,
        0.52514968727,
        0.329178829301,
        0.377866841489,
    ),
    ("mean", "absence_days"): (
        2.833333333333,
        3,
        0.382939268769,
        0.431720119567,
        0.347697145962,
        0.361421320232,
    ),
    ("median", "school_year"): (
        1,
        1,
        0.405465108108,
        0.69314718056,
        0.311229665601,
        0.354661244392,
    ),
    ("median", "absence_days"): (
        4,
        1,
        1.62186043243,
        2.77258872224,
        0.265604686687,
        0.274161082268,
    ),
}
POSTERIORS = {
    "school_year": [0.3389883488, 0.4003158008, 0.1798734841, 0.0808223663],
    "absence_days": [0.6180237200, 0.1581699943, 0.1250078144, 0.0987984714],
}
NUMBERS = st.integers(-30, 30).map(float) | st.floats(-50, 50, allow_subnormal=False).map(
    lambda x: round(x, 6)
)


@st.composite
def settings(draw, least=3, most=9):
    universe = draw(st.lists(NUMBERS, min_size=least, max_size=most))
    return universe, draw(st.integers(2, len(universe) - 1)), draw(st.sampled_from(worlds.QUERIES))


def near(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("query", "column"), VECTORS)
def test_the_numbers_of_the_paper(query, column):
    wide, apart, loose, tight, tight_half, loose_half = VECTORS[query, column]
    ask = (SCHOOL[column], 3, query)
    assert risk.unbounded_sensitivity(*ask) == near(wide)
    assert risk.bounded_sensitivity(*ask) == near(apart)
    assert risk.upper_bound_epsilon(*ask, 1 / 3) == near(loose)
    assert risk.optimal_epsilon(*ask, risk=1 / 3, bound="loose") == near(loose)
    assert risk.optimal_epsilon(*ask, risk="1/3") == near(tight)
    assert risk.tighter_upper_bound_posterior(*ask, epsilon=0.5) == near(tight_half)
    assert risk.upper_bound_posterior(*ask, epsilon="0.5") == near(loose_half)


def test_the_posteriors_of_the_paper():
    posterior = risk.posterior_belief(SCHOOL, 3, "mean", result=2.20131, epsilon=2)
    prior = risk.prior_belief(SCHOOL, 3)
    for column, expected in POSTERIORS.items():
        assert posterior[column] == pytest.approx(expected, abs=1e-9)
    assert risk.confidence(prior, posterior) == {
        "school_year": near(0.1503158008),
        "absence_days": near(0.3680237200),
    }
    assert risk.disclosure_risk(posterior)["absence_days"] == near(0.6180237200)


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, pl.DataFrame, pa.table, dict], ids=["pandas", "polars", "arrow", "dict"]
)
def test_any_frame_gives_a_dict_by_column(frame):
    found = risk.optimal_epsilon(frame(SCHOOL), 3, "mean")
    assert found == {"school_year": near(0.52514968727), "absence_days": near(0.431720119567)}


def test_arguments_by_column():
    wide = risk.unbounded_sensitivity(SCHOOL, 3, "mean")
    assert risk.optimal_epsilon(SCHOOL, 3, "mean", sensitivity=wide) == risk.optimal_epsilon(
        SCHOOL, 3, "mean"
    )
    seen = risk.posterior_belief(
        SCHOOL, 3, "mean", {"school_year": 2.0, "absence_days": 2.20131}, 2
    )
    assert seen["absence_days"] == pytest.approx(POSTERIORS["absence_days"], abs=1e-9)


@given(settings(), st.floats(0.01, 20))
def test_the_tight_bound_by_definition(setting, epsilon):
    wide = risk.unbounded_sensitivity(*setting)
    assume(wide > 1e-3)
    assert risk.tighter_upper_bound_posterior(*setting, epsilon=epsilon) == near(
        worlds.tight(*setting, epsilon, wide)
    )
    assert (
        risk.tighter_upper_bound_posterior(*setting, epsilon=epsilon)
        <= risk.upper_bound_posterior(*setting, epsilon=epsilon) + 1e-12
    )


@given(settings(most=7), st.data())
def test_any_prior(setting, data):
    universe, size, query = setting
    number = math.comb(len(universe), size)
    raw = np.array(
        data.draw(st.lists(st.integers(0, 9), min_size=number, max_size=number).filter(any)), float
    )
    prior = raw / raw.sum()
    epsilon = 1.5
    wide = risk.unbounded_sensitivity(*setting)
    assume(wide > 1e-3)
    bound = risk.tighter_upper_bound_posterior(*setting, epsilon=epsilon, prior=prior)
    assert bound == near(worlds.tight(universe, size, query, epsilon, wide, prior))
    assert bound <= risk.upper_bound_posterior(*setting, epsilon=epsilon, prior=prior) + 1e-12
    assert risk.tighter_upper_bound_posterior(*setting, epsilon=0, prior=prior) == near(prior.max())
    posteriors = [
        risk.posterior_belief(*setting, answer, epsilon, prior=prior)
        for answer in worlds.answers(universe, size, query)
    ]
    assert risk.disclosure_risk(np.array(posteriors)) == near(bound)


@given(settings(most=7), st.floats(-60, 60), st.floats(0.1, 5))
def test_no_output_beats_the_tight_bound(setting, result, epsilon):
    posterior = risk.posterior_belief(*setting, result, epsilon)
    assert posterior.sum() == near(1)
    assert risk.disclosure_risk(posterior) <= risk.tighter_upper_bound_posterior(
        *setting, epsilon=epsilon
    ) * (1 + 1e-9)


@given(settings(), st.randoms(), st.integers(-20, 20), st.sampled_from([0.25, 2.0, 8.0]))
def test_order_shift_and_scale_change_nothing(setting, random, shift, scale):
    universe, size, query = setting
    moved = random.sample(universe, len(universe))
    if query not in ("sum", "count"):
        moved = [x + shift for x in moved]
    moved = [x * scale for x in moved]
    wide = risk.unbounded_sensitivity(*setting)
    assume(wide > 1e-3)
    assert risk.tighter_upper_bound_posterior(moved, size, query, epsilon=1) == near(
        risk.tighter_upper_bound_posterior(*setting, epsilon=1)
    )


def _solved(setting, limit):
    try:
        return risk.optimal_epsilon(*setting, risk=limit)
    except Infeasible:
        assert limit < 1 / math.comb(len(setting[0]), setting[1]) * (1 + 1e-9)
        return None


@given(settings(), st.floats(0.02, 0.98))
def test_the_optimal_epsilon_is_within_and_no_larger_one_is(setting, limit):
    epsilon = _solved(setting, limit)
    if epsilon is None or epsilon == 0:
        return
    if epsilon == math.inf:
        assert risk.tighter_upper_bound_posterior(*setting, epsilon=1e9) <= limit * (1 + 1e-9)
        return
    assert risk.tighter_upper_bound_posterior(*setting, epsilon=epsilon) <= limit
    assert risk.tighter_upper_bound_posterior(*setting, epsilon=epsilon * (1 + 1e-9)) > limit
    assert risk.upper_bound_epsilon(*setting, risk=limit) <= epsilon * (1 + 1e-9)


def test_records_of_equal_value_are_different_records():
    doubled = [1, 1, 2, 2]
    assert risk.prior_belief(doubled, 3).tolist() == [0.25] * 4
    assert risk.tighter_upper_bound_posterior(doubled, 3, "mean", epsilon=1e6) == near(0.5)
    assert risk.optimal_epsilon(doubled, 3, "mean", risk=0.5) == math.inf
    assert risk.optimal_epsilon(doubled, 3, "mean", risk=0.49) < math.inf


def test_the_last_world_counts():
    for order in itertools.permutations([1, 2, 3, 10]):
        assert risk.tighter_upper_bound_posterior(list(order), 3, "mean", epsilon=0.5) == near(
            0.347697145962
        )


def test_all_equal_and_count_say_nothing():
    for universe, query in (([5, 5, 5, 5], "mean"), ([1, 2, 3, 4], "count"), ([5.0] * 4, "std")):
        assert risk.optimal_epsilon(universe, 3, query) == math.inf
        assert risk.upper_bound_epsilon(universe, 3, query) == math.inf
        assert risk.upper_bound_posterior(universe, 3, query, epsilon=9) == near(0.25)
        assert risk.tighter_upper_bound_posterior(universe, 3, query, epsilon=9) == near(0.25)
        assert risk.posterior_belief(universe, 3, query, 3.0, 2) == pytest.approx([0.25] * 4)


@pytest.mark.parametrize("query", worlds.QUERIES, ids=str)
@pytest.mark.parametrize(
    "universe",
    [
        [-1e140, 1e140, 1e139, 1.0],
        [1e-100, 0, 0, -1e-100],
        [1, 1 + 1e-16, 1 + 2e-16, 1 + 1e-15],
        [2**62, 2**62 + 1, 3, 4],
    ],
)
def test_extreme_universes_leave_no_nan(universe, query):
    for limit in (0.26, 1 / 3, 1 - 1e-12):
        assert risk.optimal_epsilon(universe, 3, query, limit) >= 0
        assert choose(universe, 3, query, limit).loose_curve[-1] <= 1
    for result, epsilon in ((1.5, 2), (1e308, 1e9), (-1e-300, 0)):
        assert risk.posterior_belief(universe, 3, query, result, epsilon).sum() == pytest.approx(1)
    assert risk.tighter_upper_bound_posterior(universe, 3, query, epsilon=1e9) <= 1


def test_worlds_that_are_ruled_out_stay_so():
    for prior in ([1, 0, 0, 0], [0, 0, 0.5, 0.5], [1e-320, 1 - 1e-320, 0, 0]):
        beliefs = risk.posterior_belief([1, 2, 3, 4], 3, "mean", 2.2, 2, prior=prior)
        assert (beliefs[np.asarray(prior) == 0] == 0).all()
        assert beliefs.sum() == pytest.approx(1)
    assert risk.optimal_epsilon([1, 2, 3, 4], 3, "mean", 0.6, prior=[0, 0, 0.5, 0.5]) > 0


def test_a_risk_equal_to_the_prior_allows_only_silence():
    assert risk.optimal_epsilon([1, 2, 3, 4], 3, "mean", risk=0.25) == 0
    assert risk.upper_bound_epsilon([1, 2, 3], 2, "mean", risk=1 / 3) == 0


@pytest.mark.parametrize("bound", ["tight", "loose"])
def test_infeasible_says_by_how_much(bound):
    with pytest.raises(Infeasible, match=r"at least 0\.25, which is 0\.05 more"):
        risk.optimal_epsilon([1, 2, 3, 4], 3, "mean", risk=0.2, bound=bound)


def _attack(epsilon, rounds, seed=7):
    """Whoever sees an answer beyond all worlds names the world at that end.

    Right as often as the bound says, no oftener.
    """
    rng = np.random.default_rng(seed)
    universe = [1, 2, 3, 10]
    found = worlds.answers(universe, 3, "mean")
    truth = rng.integers(0, 4, rounds)
    seen = found[truth] + rng.laplace(
        0, risk.unbounded_sensitivity(universe, 3, "mean") / epsilon, rounds
    )
    low = seen <= found.min()
    return int((truth[low] == found.argmin()).sum()), int(low.sum())


def _check_attack(rounds):
    from scipy.stats import binom

    epsilon = risk.optimal_epsilon([1, 2, 3, 10], 3, "mean", risk=1 / 3)
    right, tries = _attack(epsilon, rounds)
    assert 1e-9 < binom.cdf(right, tries, 1 / 3) < 1 - 1e-9
    bolder = _attack(2.5 * epsilon, rounds)
    assert (
        binom.sf(bolder[0], bolder[1], 1 / 3) < 1e-9
    )  # the test has the power to see a bound that is too high
    return {
        "epsilon": epsilon,
        "named": tries,
        "right": right,
        "share": right / tries,
        "at 2.5 epsilon": bolder[0] / bolder[1],
    }


def test_a_simulated_attacker_reaches_the_bound_and_not_more():
    _check_attack(20_000)


@pytest.mark.deep
def test_a_patient_attacker_too(evidence):
    evidence("risk-attacker", {"rounds": 100_000, "requirement": 1 / 3} | _check_attack(100_000))
