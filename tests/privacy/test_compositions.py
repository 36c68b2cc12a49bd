"""Accounts add up by sums or by curves: what fits, what is left, how it is stored."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from sfumato.errors import UsageError
from sfumato.privacy.composition import (
    Composition,
    curves_of,
    opened_curves,
    stated_curves,
)
from sfumato.privacy.curves import Approximate, Event, Exponential, Laplace, Pure, Zcdp, worst_event
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP

COUNTS = [
    ("2", "laplace(1, 50)", 423, 100),
    ("5.21", "laplace(1, 10)", 100, 52),
    ("5.21", "2 laplace(1, 20)", 192, 52),
    ("7.85", "laplace(1, 10)", 200, 78),
]


@pytest.mark.parametrize(("epsilon", "text", "least", "by_sums"), COUNTS)
def test_many_small_counts_last_longer_by_curves(epsilon, text, least, by_sums):
    event = Event.read(text)
    total = ApproxDP(epsilon, "1e-6", composition="curves")
    curves = stated_curves(total)
    sums = Composition("approx", total.money)
    answers = curves.remaining_answers(curves.start, event.money, event)
    assert least <= answers <= least + 1
    assert sums.remaining_answers(sums.start, event.money, event) == by_sums
    last = tuple(answers * added for added in curves.adds(event.money, event))
    assert curves.fits(last)
    assert not curves.fits(curves.after(last, event.money, event))


def test_curves_are_read_back_from_their_terms():
    kept = stated_curves(ApproxDP("2", "1e-6", composition="curves"))
    assert curves_of(kept.terms) == kept
    assert stated_curves(ApproxDP("2", "1e-6")) is None


@pytest.mark.parametrize(
    "change", [("1536", "1024"), ("curves", "curve"), (",", ", "), ("[25,", "[26,"), ("]", ",1]")]
)
def test_no_other_terms_are_read(change):
    kept = opened_curves(Fraction(2), Fraction(1, 10**6))
    with pytest.raises(UsageError, match="not ones that this version knows"):
        curves_of(kept.terms.replace(*change, 1))


def test_deltas_stay_within_what_is_set_aside():
    kept = stated_curves(ApproxDP("2", "1e-6", "curves", "2e-7"))
    event = Event.read("approx(1/100, 1/10000000)")
    assert kept.remaining_answers(kept.start, event.money, event) == 2


def test_an_account_in_rho_widens_where_all_of_it_fits():
    assert stated_curves(ZCDP("0.5")) is None
    target = stated_curves(ZCDP("0.5", widens_to=ApproxDP("5.345", "1e-6", "curves", 0)))
    assert target.total == ApproxDP("5.345", "1e-6").money
    with pytest.raises(UsageError, match="would not fit"):
        stated_curves(ZCDP("0.5", widens_to=ApproxDP("5.222", "1e-6")))


def test_a_pure_account_widens_to_its_own_epsilon():
    assert stated_curves(PureDP("2", widens_to=ApproxDP("2", "1e-6"))).total[0] == 2 * 10**9


@pytest.mark.parametrize(
    "arguments",
    [
        ("2", "0", "curves"),
        ("2", "1e-6", "tight"),
        ("2", "1e-6", "sum", "1e-7"),
        ("2", "1e-6", "curves", "1e-6"),
    ],
)
def test_totals_that_cannot_be_are_refused(arguments):
    with pytest.raises(UsageError):
        ApproxDP(*arguments)


def test_the_largest_epsilon_that_fits_is_the_last():
    kept = opened_curves(Fraction(2), Fraction(1, 10**6))
    largest, aside = kept.left(kept.start)
    assert (largest, aside) == (2_000_000_851, kept.aside)
    for units in (largest, largest + 1):
        event = worst_event(PureDP(Fraction(units, 10**9)))
        assert kept.fits(kept.after(kept.start, event.money, event)) == (units == largest)


TERMS = st.one_of(
    st.builds(Pure, st.fractions("1/1000", 2, max_denominator=1000)),
    st.builds(Laplace, st.integers(1, 5), st.fractions(1, 100, max_denominator=10)),
    st.builds(Exponential, st.fractions("1/1000", 2, max_denominator=1000)),
    st.builds(Zcdp, st.fractions("1/1000", "1/10", max_denominator=1000)),
    st.builds(
        Approximate, st.fractions("1/1000", 1, max_denominator=1000), st.just(Fraction(1, 10**8))
    ),
)
TERM_LISTS = st.lists(TERMS, min_size=1, max_size=8)


@given(TERM_LISTS)
def test_what_fits_by_sums_fits_by_curves_where_deltas_fit_what_is_set_aside(terms):
    kept = opened_curves(Fraction(5), Fraction(1, 10**6))
    event = Event.of(*terms)
    epsilon, delta = event.money
    if not event.rho and epsilon <= kept.total[0] and delta <= kept.aside:
        assert kept.fits(kept.after(kept.start, event.money, event))


@given(TERM_LISTS)
def test_what_does_not_fit_never_fits_after_a_further_charge(terms):
    kept = opened_curves(Fraction(3), Fraction(1, 10**6))
    state = kept.start
    fitted = []
    for term in terms:
        event = Event.of(term)
        state = kept.after(state, event.money, event)
        fitted.append(kept.fits(state))
    assert fitted == sorted(fitted, reverse=True)


@given(TERM_LISTS)
def test_phi_is_above_every_value_of_its_quotient_and_close_to_the_largest(terms):
    kept = opened_curves(Fraction(1), Fraction(1, 10**6))
    event = Event.of(*terms)
    state = kept.after(kept.start, event.money, event)
    end = math.inf if state[2] else (state[0] - kept.total[0]) / 10**9
    if end <= 0:
        assert kept.log_phi(state) == -math.inf
        return
    excess = np.geomspace(1e-9, min(end, 4), 4000)
    epsilon = kept.total[0] / 10**9
    exponents = [
        math.log(weight / 1000) + (order / 1024 - 1) * (epsilon + excess - sum_ / 2**40)
        for order, weight, sum_ in zip(kept.orders, kept.weights, state[3:], strict=True)
    ]
    quotient = np.log(-np.expm1(-excess)) - logsumexp(exponents, axis=0)
    assert quotient.max() <= kept.log_phi(state) <= quotient.max() + 1e-3


@pytest.mark.parametrize("target", [ZCDP(1), PureDP(2), "5.4,1e-6"])
def test_an_account_is_widened_to_an_epsilon_and_a_delta_only(target: object) -> None:
    for measure in (PureDP, ZCDP):
        with pytest.raises(UsageError, match="is widened to an epsilon and a delta"):
            measure(1, widens_to=target)  # type: ignore[arg-type]
