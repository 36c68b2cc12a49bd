"""Bins of dates that a plan begins with: weeks, months or years, where days would be too many."""

from __future__ import annotations

import datetime

from sfumato.cli.toml_text import toml_value
from sfumato.domain.domain import Axis, Interval

MOST_DAYS = 62
"""Up to so many days each of them has a bin of its own."""

MOST_WEEKS_IN_DAYS = 186
"""Up to so many days bins are weeks."""

MOST_MONTHS_IN_DAYS = 3660
"""Up to so many days bins are months; beyond, years."""

WEEKS = "width = 7   # days in each bin; without this line every day has one"
EDGES = "bins = [    # by {each}; in place of them, width = 7 counts by week\n{edges}\n]"
A_LINE = 5


def date_bins(axis: Axis) -> str:
    """The lines of a question that divide an axis of dates; "" where its steps are right.

    >>> date_bins(Interval("2026-01-01", "2026-04-11", step=1))
    'width = 7   # days in each bin; without this line every day has one'
    """
    if not isinstance(axis, Interval) or axis.step != 1:
        return ""
    try:
        first = datetime.date.fromisoformat(str(axis.lower))
        end = datetime.date.fromisoformat(str(axis.upper))
    except ValueError:  # numbers, or times
        return ""
    days = (end - first).days
    if days <= MOST_DAYS:
        return ""
    if days <= MOST_WEEKS_IN_DAYS:
        return WEEKS
    is_by_month = days <= MOST_MONTHS_IN_DAYS
    edges = [first.isoformat(), *_between(first, end, range(1, 13) if is_by_month else [1])]
    edges.append(end.isoformat())
    lines = [edges[start : start + A_LINE] for start in range(0, len(edges), A_LINE)]
    text = "\n".join(f"  {toml_value(line)[1:-1]}," for line in lines)
    return EDGES.format(each="month" if is_by_month else "year", edges=text)


def _between(first: datetime.date, end: datetime.date, months: range | list[int]) -> list[str]:
    """The first days of some months of each year, strictly between two dates."""
    every = (
        datetime.date(year, month, 1)
        for year in range(first.year, end.year + 1)
        for month in months
    )
    return [day.isoformat() for day in every if first < day < end]
