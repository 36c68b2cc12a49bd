"""The steps of a running total, declared beforehand.

If steps were opened by the rows that arrive, the steps that exist would show when somebody's rows
came. The steps of a calendar are public, and each is published whether or not rows lie in it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from sfumato.basics import ExplainedStruct
from sfumato.domain import iso_text, wall_clock
from sfumato.errors import UsageError

MOST_STEPS = 10**7
LONGEST_NAMES = 2**16
UNITS = {
    "min": dt.timedelta(minutes=1),
    "h": dt.timedelta(hours=1),
    "d": dt.timedelta(days=1),
    "w": dt.timedelta(weeks=1),
}


class _Timing(NamedTuple):
    """A calendar's fields, parsed.

    Attributes
    ----------
    begins : datetime
        The beginning of the first step.
    months : int
        The length of a step in months; 0 where it is given by ``length``.
    length : timedelta
        The length of a step, where it is not one of months.
    by_date : bool
        Steps begin at midnight, so that their names are dates.
    """

    begins: dt.datetime
    months: int
    length: dt.timedelta
    by_date: bool

    def index_of(self, moment: dt.datetime) -> int:
        """Return the index of the step in which a moment lies; it may be outside the calendar."""
        if not self.months:
            # Floor division: a moment before the first step gets a negative index, and so no step.
            return (moment - self.begins) // self.length
        passed = 12 * (moment.year - self.begins.year) + moment.month - self.begins.month
        return passed // self.months

    def beginning(self, step_index: int) -> dt.datetime:
        """Return the beginning of a step; OverflowError or ValueError beyond the year 9999."""
        if not self.months:
            return self.begins + step_index * self.length
        years, month = divmod(self.begins.month - 1 + step_index * self.months, 12)
        return self.begins.replace(year=self.begins.year + years, month=month + 1)


class Calendar(
    ExplainedStruct,
    frozen=True,
    dict=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag="calendar",
):
    """The steps of a counter as equal lengths of time, from a first to a last one.

    Every step is published, whether or not rows lie in it. Rows before the first step and after the
    last one are not counted. The published steps therefore say nothing about anybody.

    Parameters
    ----------
    first, last : str, date or datetime
        ISO dates, or dates with a time: when the first step begins, and a moment in the last one.
    every : str
        The length of a step: a number and "min", "h", "d", "w" or "mo", as in "15min", "1h", "1d",
        "1w", "1mo".

    Raises
    ------
    UsageError
        If they are not dates in order, the length cannot be read, months do not begin on the first
        of a month, or there are more than 10^7 steps.

    Notes
    -----
    A step is named by its beginning, in ISO form. An offset from UTC is ignored.

    >>> year = Calendar("2013-01-01", "2013-12-31")
    >>> len(year), year.name(31), year.place("2013-02-01T17:05"), year.place("2014-01-01")
    (365, '2013-02-01', 31, None)
    >>> Calendar("2013-01-01", "2013-12-31", every="1mo").name(11)
    '2013-12-01'
    """

    first: str
    last: str
    every: str = "1d"

    def __post_init__(self) -> None:
        for end in ("first", "last"):
            msgspec.structs.force_setattr(self, end, iso_text(getattr(self, end)))
        begins = wall_clock(self.first)
        ends = wall_clock(self.last)
        if begins is None or ends is None:
            raise UsageError(
                "a calendar",
                "it does not begin and end with an ISO date",
                'Write sf.Calendar("2013-01-01", "2013-12-31")',
            )
        timing = _timing(begins, self.every)
        n_steps = timing.index_of(ends) + 1
        if not 1 <= n_steps <= MOST_STEPS:
            raise UsageError(
                "a calendar",
                f"it would have {n_steps:,} steps, and there are 1 to {MOST_STEPS:,}",
                "Put the last step after the first, or take longer steps",
            )
        # Kept beside the fields: a stream asks for the step of every row.
        self.__dict__["_timing"] = timing
        self.__dict__["_n_steps"] = n_steps

    @classmethod
    def of_length(cls, first: str, steps: int, every: str = "1d") -> Calendar:
        """Return the calendar that has this number of steps."""
        first_step = cls(first, first, every)
        if not 1 <= steps <= MOST_STEPS:
            raise UsageError(
                f"a calendar of {steps:,} steps",
                f"there are 1 to {MOST_STEPS:,}",
                "Choose such a number",
            )
        return cls(first, first_step._name(steps - 1), every)

    def __len__(self) -> int:
        return int(self.__dict__["_n_steps"])

    def name(self, step_index: int) -> str:
        """Return the name of a step, from 0 on: when it begins."""
        if not 0 <= step_index < len(self):
            raise UsageError(
                f"step {step_index + 1:,} of a calendar",
                f"it has {len(self):,}",
                "Open another stream with a later calendar",
            )
        return self._name(step_index)

    def place(self, entry: object) -> int | None:
        """Return the index of the step in which a date or time lies, from 0 on.

        None for an entry outside the calendar, and for one that is not a date or time.
        """
        moment = wall_clock(entry)
        if moment is None:
            return None
        step_index = self._index(moment)
        return step_index if 0 <= step_index < len(self) else None

    def over(self, now: dt.datetime) -> int:
        """Return how many steps are over at a moment of the same clock."""
        return min(max(self._index(now), 0), len(self))

    def _index(self, moment: dt.datetime) -> int:
        timing: _Timing = self.__dict__["_timing"]
        return timing.index_of(moment)

    def _name(self, step_index: int) -> str:
        timing: _Timing = self.__dict__["_timing"]
        try:
            beginning = timing.beginning(step_index)
        except (OverflowError, ValueError):
            pass
        else:
            if timing.by_date:
                return beginning.date().isoformat()
            return beginning.isoformat(timespec="minutes")
        raise UsageError(
            "a calendar", "it goes on beyond the year 9999", "Take fewer or shorter steps"
        )


class ListedSteps:
    """Steps that are listed by name.

    >>> ListedSteps(["mon", "tue"]).place("tue")
    1
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._indices = {name: step_index for step_index, name in enumerate(self._names)}
        repeated = len(self._indices) < len(self._names)
        if repeated or not 1 <= len(self._names) <= LONGEST_NAMES:
            raise UsageError(
                "a calendar",
                f"the names of its steps are none, more than {LONGEST_NAMES:,}, or repeat",
                "Give each step one name, or an sf.Calendar of dates",
            )

    def __len__(self) -> int:
        return len(self._names)

    def name(self, step_index: int) -> str:
        """Return the name of a step, from 0 on."""
        if not 0 <= step_index < len(self):
            raise UsageError(
                f"step {step_index + 1:,} of a calendar",
                f"it has {len(self):,}",
                "Open another stream with other steps",
            )
        return self._names[step_index]

    def place(self, entry: object) -> int | None:
        """Return the index of the step of this name, from 0 on; None where there is none."""
        plain = entry.item() if hasattr(entry, "item") else entry
        if isinstance(plain, bool) or not isinstance(plain, str | int | dt.date):
            return None
        return self._indices.get(str(iso_text(plain)).strip())

    def over(self, now: dt.datetime) -> int:
        """Return the number of all steps: names have no clock."""
        del now
        return len(self)


# Steps in order, each with a name; indices count from 0.
DeclaredSteps: TypeAlias = Calendar | ListedSteps


def _timing(begins: dt.datetime, every: object) -> _Timing:
    number, unit = _length(every)
    at_midnight = begins.time() == dt.time()
    if unit != "mo":
        by_date = unit not in ("min", "h") and at_midnight
        return _Timing(begins, 0, number * UNITS[unit], by_date)
    if begins.day != 1 or not at_midnight:
        raise UsageError(
            "a calendar of months",
            "its first month does not begin on a first",
            'Write "2013-01-01"',
        )
    return _Timing(begins, number, dt.timedelta(), by_date=True)


def _length(every: object) -> tuple[int, str]:
    match = re.fullmatch(r"([1-9]\d{0,5})(min|h|d|w|mo)", every if isinstance(every, str) else "")
    if match is None:
        raise UsageError(
            "a calendar",
            "the length of its steps is not a number and min, h, d, w or mo",
            'Write every="1d", "15min" or "1mo"',
        )
    return int(match[1]), match[2]
