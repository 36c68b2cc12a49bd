"""Where noise on fine steps could not be drawn, steps are coarser: decided from the cost alone."""

from __future__ import annotations

from fractions import Fraction

import pytest

import sfumato as sf
from questions.aggregates.wards import DOMAIN, TABLE
from sfumato.errors import InternalError
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.questions.aggregates.encoding import LARGEST_SUM, encoding_on, value_encoding
from sfumato.questions.aggregates.values import MOST_STEPS, MOST_STEPS_SQUARED, BasisName

WIDE = sf.Interval(0, 10**9)
STEPPED = sf.Interval(0, 10**6, step=1)
MANY_ROWS = 10**9


def test_where_noise_would_be_too_large_values_are_rounded_more(publisher: sf.Publisher) -> None:
    release = publisher.release(sf.Variance("wage"), epsilon="0.00001")
    assert 1 <= release.scale.points < MOST_STEPS_SQUARED
    assert release.scale.rounded
    assert float(release.law.scale) <= 2**48
    many = sf.source(TABLE, DOMAIN, rows_per_person=400, name="wards")
    finest = sf.Publisher(many, budget=1).release(sf.Variance("age"), epsilon="0.00000001")
    assert finest.scale.rounded
    assert finest.scale.points < 120


@pytest.mark.parametrize("functions", ["pair", "quadratic", "hats"])
@pytest.mark.parametrize("interval", [WIDE, STEPPED], ids=["wide", "stepped"])
@pytest.mark.parametrize("scale", [1, 2**18, 2**40])
def test_an_encoding_has_noise_that_can_be_drawn_and_sums_that_fit(
    functions: BasisName, interval: sf.Interval, scale: int
) -> None:
    count_noise = DiscreteLaplace(Fraction(scale))
    encoding = value_encoding("a mean", "x", interval, functions, count_noise)
    axis = encoding.summed.axis
    assert encoding_on(axis, functions, count_noise) == encoding
    assert encoding.basis.points == axis.size - 1
    assert encoding.law.scale == scale * encoding.basis.unity <= 2**48
    assert MANY_ROWS * encoding.basis.unity < LARGEST_SUM


def test_values_have_as_many_steps_as_fit() -> None:
    def points(interval: sf.Interval, functions: BasisName) -> int:
        return value_encoding("a mean", "x", interval, functions).basis.points

    assert points(WIDE, "pair") == points(WIDE, "hats") == MOST_STEPS == 2**31
    assert points(WIDE, "quadratic") == MOST_STEPS_SQUARED == 2**16
    assert points(STEPPED, "pair") == 10**6
    # The squares of 10^6 steps, of 10^9 rows, pass 2^62.
    assert points(STEPPED, "quadratic") == MOST_STEPS_SQUARED


def test_sums_counted_for_a_larger_cost_are_not_answered_at_a_smaller_one() -> None:
    encoding = value_encoding("a mean", "x", WIDE, "pair", DiscreteLaplace(Fraction(1)))
    with pytest.raises(InternalError, match="too fine for this cost"):
        encoding_on(encoding.summed.axis, "pair", DiscreteLaplace(Fraction(2**20)))


def test_what_is_counted_depends_on_the_cost_only_where_noise_is_large() -> None:
    question = sf.Mean("wage", by="ward")
    unit = sf.Unit()
    finest = question.needs(DOMAIN)
    assert question.needs_at(DOMAIN, unit, sf.PureDP("1")) == finest
    coarse = question.needs_at(DOMAIN, unit, sf.PureDP("0.000001"))
    assert coarse.sums[0].axis.size < finest.sums[0].axis.size
    assert coarse.lattice == finest.lattice
