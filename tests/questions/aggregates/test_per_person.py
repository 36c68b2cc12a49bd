"""Where the value of a person lies: beside fractions, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sfumato.answers.counts import PersonStatistic
from sfumato.domain.domain import Interval
from sfumato.errors import UsageError
from sfumato.questions.aggregates.values import PersonScale, common_unit, person_scale, rows_axis

AGES = Interval(0, 120, step=1)
COSTS = Interval(-5, 100, step=0.01)
INCOME = Interval(0, 10_000_000)


def scale(
    interval: Interval = AGES, statistic: PersonStatistic = "mean", clip: Any = None
) -> PersonScale:
    rows = rows_axis("x", interval)
    return person_scale("The question", rows, statistic, clip)


def located(found: PersonScale, points: int, values: list[float]) -> int:
    """The number of a person with rows of these values."""
    summed = found.summed(points, squares=False, knots=None)
    steps = found.rows.locate(np.array(values, float))
    return int(summed.numbers_of_persons(steps.sum(keepdims=True), np.array([len(values)]))[0])


@pytest.mark.parametrize(
    ("interval", "statistic", "clip", "most", "points"),
    [
        (AGES, "mean", None, 2**16, 120 * 546),
        (AGES, "mean", None, 100, 100),
        (AGES, "mean", (10, 20.5), 2**16, 21 * 3120),
        (INCOME, "mean", None, 2**16, 2**16),
        (COSTS, "sum", (0, 500), 2**31, 50_000),
        (COSTS, "sum", (0, 500), 2**12, 2**12),
        (Interval(0.5, 10.5, step=1), "sum", (0, 20), 2**31, 40),
    ],
)
def test_steps_are_as_fine_as_they_may_be(
    interval: Interval, statistic: PersonStatistic, clip: Any, most: int, points: int
) -> None:
    assert scale(interval, statistic, clip).points(most) == points


def test_means_lie_between_the_steps_of_rows() -> None:
    found = scale()
    points = found.points(2**16)
    steps_per_year = points // 120
    assert located(found, points, [31, 32]) == 63 * steps_per_year // 2
    assert located(found, points, [200, 120]) == points
    assert located(found, points, [-3.0]) == 0
    values = found.values(points)
    assert values.rounded
    assert values.rounding == 60 / points
    assert values.cut == ", each value rounded to the nearest step of 1"


def test_sums_on_their_own_steps_are_exact() -> None:
    found = scale(COSTS, "sum", (-1, 500))
    values = found.values(found.points(2**31))
    assert values.points == 50_100
    assert not values.rounded
    assert values.rounding == 0
    assert values.cut == ", each value rounded to the nearest step of 0.01"
    # -5 + 3.21 + 100, above -1.
    assert located(found, values.points, [-7.0, 3.21, 100.0]) == 9821 + 100
    assert located(found, values.points, [99.0] * 6) == values.points
    assert located(found, values.points, [-1.5]) == 0


def test_without_a_step_a_row_counts_as_the_nearest_of_many_points() -> None:
    found = scale(INCOME)
    values = found.values(2**16)
    assert values.rounding == pytest.approx(10_000_000 / 2**17 + 10_000_000 / 2**32)
    assert values.cut == ""
    for rows in ([0.0], [3.0, 9_999_999.0], [123_456.789] * 3):
        number = located(found, 2**16, rows)
        at = values.lower + values.width * number / values.points
        assert abs(at - np.mean(rows)) <= values.rounding


DECIMAL = st.integers(-4000, 4000).map(lambda hundredths: hundredths / 100)
STEP = st.sampled_from([0.01, 0.05, 0.25, 0.3, 1.0, 7.0])


@given(
    start=DECIMAL,
    step=STEP,
    cells=st.integers(2, 50),
    clip=st.none() | st.tuples(DECIMAL, DECIMAL),
    rows=st.lists(st.integers(0, 60), min_size=1, max_size=9),
    most=st.integers(1, 2**20),
)
def test_it_is_the_nearest_step_of_the_mean(
    start: float, step: float, cells: int, clip: Any, rows: list[int], most: int
) -> None:
    first, width = Fraction(str(start)), Fraction(str(step))
    lower, upper = (first, first + width * cells)
    if clip is not None:
        lower, upper = (Fraction(str(bound)) for bound in clip)
    assume(lower < upper)
    found = scale(Interval(start, float(first + width * cells), step=step), "mean", clip)
    points = found.points(most)
    assert 1 <= points <= most
    number = located(found, points, [float(first + width * row) for row in rows])
    mean = first + width * Fraction(sum(min(row, cells) for row in rows), len(rows))
    nearest = math.floor((mean - lower) / (upper - lower) * points + Fraction(1, 2))
    assert number == min(max(nearest, 0), points)


def test_a_common_unit_divides_all() -> None:
    assert common_unit(Fraction(1, 2), Fraction(3, 4)) == Fraction(1, 4)


@pytest.mark.parametrize(
    ("interval", "clip", "obstacle"),
    [
        (COSTS, None, "those of a row"),
        (INCOME, (0, 500), "has no step"),
        (COSTS, (0, 0.505), r"multiple of 0\.01"),
        (Interval(0.5, 10.5, step=1), (0.25, 9), r"multiple of 0\.5"),
        (COSTS, 500, "no lower bound"),
        (COSTS, (7, 7), "below the upper one"),
    ],
)
def test_sums_that_cannot_be_exact_are_refused(
    interval: Interval, clip: Any, obstacle: str
) -> None:
    with pytest.raises(UsageError, match=obstacle):
        scale(interval, "sum", clip)
