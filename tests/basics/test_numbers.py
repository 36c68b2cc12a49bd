"""Numbers at the edge are exact, and rounding never favours the spender."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.basics.numbers import (
    decimal,
    fraction,
    positive,
    probability,
    split,
    units_down,
    units_up,
)
from sfumato.errors import UsageError


@pytest.mark.parametrize(
    "value",
    [0.1, "0.1", Decimal("0.1"), Fraction(1, 10), "1/10", "1e-1", np.float64(0.1), np.float32(0.1)],
)
def test_a_tenth_is_a_tenth(value):
    assert fraction(value, "epsilon") == Fraction(1, 10)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_read_as_its_shortest_decimal(value):
    exact = fraction(value, "x")
    assert float(exact) == value
    assert exact == Fraction(repr(value))


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        "abc",
        "",
        "nan",
        "inf",
        "1/0",
        True,
        False,
        None,
        [1],
        1j,
        Decimal("NaN"),
        Decimal("Infinity"),
        np.bool_(True),
    ],
    ids=repr,
)
def test_what_is_no_number_is_refused(value):
    with pytest.raises(UsageError) as refused:
        fraction(value, "epsilon")
    assert refused.value.asked.startswith("epsilon")
    assert refused.value.remedy


@pytest.mark.parametrize("value", [0, -1, "-0.5", 0.0])
def test_positive(value):
    with pytest.raises(UsageError, match="above 0"):
        positive(value, "epsilon")


@pytest.mark.parametrize("value", [0, 1, "1.5", -1])
def test_probability(value):
    with pytest.raises(UsageError, match="strictly between"):
        probability(value, "confidence")


def test_costs_round_up_and_limits_down():
    assert (units_up(Fraction(1, 3), 10), units_down(Fraction(1, 3), 10)) == (4, 3)
    assert units_up(Fraction(3, 10), 10) == units_down(Fraction(3, 10), 10) == 3
    assert units_up(1 + Fraction(1, 10**17), 10**9) == 10**9 + 1


@given(st.integers(0, 10**20), st.lists(st.fractions(0, 100), min_size=1, max_size=8).filter(any))
def test_shares_add_up_to_the_last_unit(total, weights):
    shares = split(total, weights)
    assert sum(shares) == total
    assert all(
        share >= 0 and (weight > 0 or share == 0)
        for share, weight in zip(shares, weights, strict=True)
    )
    assert all(
        abs(share - total * weight / sum(weights)) <= len(weights)
        for share, weight in zip(shares, weights, strict=True)
    )


@pytest.mark.parametrize(
    "weights", [[], [Fraction(0)], [Fraction(1), Fraction(-1)], [Fraction(2), Fraction(-1)]]
)
def test_shares_that_make_no_sense(weights):
    with pytest.raises(UsageError):
        split(10, weights)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1, 10), "0.1"),
        (Fraction(1, 3), "0.333333"),
        (Fraction(3), "3"),
        (Fraction(1, 10**9), "1e-09"),
        (Fraction(-1, 4), "-0.25"),
    ],
)
def test_printing(value, text):
    assert decimal(value) == text


@given(st.fractions(-(10**6), 10**6))
def test_printing_is_right_to_six_digits(value):
    assert float(decimal(value)) == pytest.approx(float(value), rel=1e-5, abs=1e-300)
