"""Periods of the calendar, and their numbers."""

from __future__ import annotations

import datetime as dt

import pytest

from sfumato.domain.times import FORMS, Part, period_number, period_of, period_text

ENDS: dict[Part, tuple[str, str]] = {
    "month": ("0001-01", "9999-12"),
    "week": ("0001-W01", "9999-W52"),
    "year": ("0001", "9999"),
}


@pytest.mark.parametrize("part", ENDS)
def test_numbers_of_periods_run_on_and_lead_back(part: Part) -> None:
    first, last = (period_number(part, end) for end in ENDS[part])
    assert first is not None
    assert last is not None
    for number in (*range(first, first + 200), *range(last - 200, last + 1)):
        assert period_number(part, period_text(part, number)) == number
    assert period_number(part, FORMS[part]) is not None


def test_weeks_are_those_of_iso_8601() -> None:
    day = dt.date(2015, 1, 1)
    for _ in range(4000):
        year, week, _ = day.isocalendar()
        number = period_number("week", f"{year}-W{week:02}")
        assert number == ((day - dt.date(1970, 1, 1)).days + 3) // 7
        assert period_of("week", day) == f"{year}-W{week:02}"
        day += dt.timedelta(days=1)


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("month", "2024-1"),
        ("month", "2024-00"),
        ("month", "0000-01"),
        ("week", "2024-W54"),
        ("week", "2024-01"),
        ("year", "24"),
        ("year", "0000"),
        ("year", "\u0662\u0660\u0662\u0664"),
    ],
)
def test_what_is_no_period(part: Part, text: str) -> None:
    assert period_number(part, text) is None
    assert period_of(part, text) is None
