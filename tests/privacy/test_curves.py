"""Events are read strictly, and their curves are those of the exact laws, rounded up."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from sfumato.errors import UsageError
from sfumato.privacy.curves import (
    CURVE_UNITS,
    ORDER_UNITS,
    Event,
    Exponential,
    Laplace,
    Pure,
    Zcdp,
    curve,
    stream_event,
    sum_of,
    worst_event,
)
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP

ORDERS = (1025, 1536, 2048, 6164, 12880, 49152, 262144)


@pytest.mark.parametrize(
    "text",
    [
        "pure(1/2)",
        "2 laplace(1, 20)",
        "stream(1/2, 1/1000000)",
        "approx(1/2, 1/1000000) + 7 exponential(3) + 2 laplace(5, 77/3) + zcdp(1/2)",
    ],
)
def test_an_event_is_read_back_from_its_text(text):
    assert str(Event.read(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pure(2/4)",
        "pure(0)",
        "pure(-1)",
        "pure(1.5)",
        "pure(01)",
        "1 pure(1)",
        "0 pure(1)",
        "pure(1) + pure(1)",
        "zcdp(1) + pure(1)",
        "pure(1)+zcdp(1)",
        " pure(1)",
        "pure(1)\n",
        "pure(1, 2)",
        "laplace(1/2, 3)",
        "laplace(3)",
        "laplace(1,3)",
        "approx(1, 0)",
        "approx(1, 1)",
        "gaussian(1)",
        "pure(１)",
        "pure(1/0)",
        "pure(10000000000)",
        "laplace(1, 1/100000000000)",
        "99999999999 pure(1)",
        "__class__(1)",
    ],
)
def test_no_other_text_is_an_event(text):
    with pytest.raises(UsageError, match="not the text of an event"):
        Event.read(text)


def test_amounts_of_an_event_are_the_charges_of_today():
    for cost in (PureDP("0.333333333"), ApproxDP("0.5", "1e-6")):
        assert worst_event(cost).money == cost.money
    both = worst_event(PureDP("0.5")) + worst_event(ZCDP("0.25"))
    assert both.money == PureDP("0.5").money
    assert both.rho_units == ZCDP("0.25").money[0]
    assert Event.of(Laplace(3, Fraction(30))).money == PureDP("0.1").money


def test_a_sum_of_very_many_kinds_costs_what_its_parts_cost():
    events = [Event.of(Laplace(1, Fraction(10 + k))) for k in range(300)]
    together = sum_of(events)
    assert len(together.terms) == 1
    assert together.epsilon == sum(event.epsilon for event in events)
    parts = zip(*(curve(event, ORDERS) for event in events), strict=True)
    assert all(w >= sum(p) for w, p in zip(curve(together, ORDERS), parts, strict=True))
    assert sum_of(events[:2]) == events[0] + events[1]


def _of_law(term, order):
    """The divergence by the sum over the exact law, apart from the formula: an mpmath number."""
    with mpmath.workdps(50):
        a = mpmath.mpf(order) / ORDER_UNITS
        q = mpmath.exp(-1 / (mpmath.mpf(term.scale.numerator) / term.scale.denominator))
        reach = int(130 / -mpmath.log(q)) + term.steps + 1
        mass = [(1 - q) / (1 + q) * q ** abs(y) for y in range(-reach, reach + term.steps + 1)]
        moved = [
            (1 - q) / (1 + q) * q ** abs(y - term.steps)
            for y in range(-reach, reach + term.steps + 1)
        ]
        total = mpmath.fsum(p**a * s ** (1 - a) for p, s in zip(mass, moved, strict=True))
        return mpmath.log(total) / (a - 1)


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(17, 3)])
@pytest.mark.parametrize("order", [1536, 2048, 12880])
def test_discrete_laplace_is_exact_and_rounded_up_by_less_than_two_units(steps, scale, order):
    term = Laplace(steps, scale)
    exact = _of_law(term, order) * CURVE_UNITS
    (units,) = curve(Event.of(term), (order,))
    assert exact - mpmath.mpf("1e-6") < units < exact + 2


@pytest.mark.parametrize("epsilon", ["0.000000001", "0.1", "2", "40"])
def test_one_step_of_laplace_is_randomised_response(epsilon):
    exact = Fraction(epsilon)
    laplace = curve(Event.of(Laplace(1, 1 / exact)), ORDERS)
    pure = curve(Event.of(Pure(exact)), ORDERS)
    assert all(abs(a - b) <= 1 for a, b in zip(laplace, pure, strict=True))


def test_no_curve_of_pure_privacy_passes_its_epsilon_or_randomised_response():
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(12)):
        worst = curve(Event.of(Pure(epsilon)), ORDERS)
        assert max(worst) <= epsilon * CURVE_UNITS + 1
        for term in (
            Laplace(4, 4 / epsilon),
            Exponential(epsilon),
            Laplace(10**9, 10**9 / epsilon),
        ):
            below = curve(Event.of(term), ORDERS)
            assert all(a <= b for a, b in zip(below, worst, strict=True))


def test_all_steps_in_one_cell_are_the_worst_split():
    for order in ORDERS:
        r = [0] + [curve(Event.of(Laplace(k, Fraction(7))), (order,))[0] for k in range(1, 13)]
        assert r == sorted(r)
        assert all(
            r[k] + r[m] <= r[k + m] + 2 for k in range(1, 7) for m in range(1, 7)
        )  # two roundings


def test_an_approximate_stream_gets_no_discount():
    for cost, text in (
        (ApproxDP("0.5", "1e-6"), "stream(1/2, 1/1000000)"),
        (PureDP("0.5"), "pure(1/2)"),
        (ZCDP("0.5"), "zcdp(1/2)"),
    ):
        assert str(stream_event(cost)) == text
    drawn = curve(stream_event(ApproxDP("0.5", "1e-6")), ORDERS)
    assert all(units >= CURVE_UNITS // 2 for units in drawn)


def test_rho_is_linear():
    (units,) = curve(Event.of(Zcdp(Fraction(1, 2))), (3 * ORDER_UNITS,))
    assert units == CURVE_UNITS * 3 // 2 + 1
