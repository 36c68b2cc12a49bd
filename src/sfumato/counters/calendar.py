"""Which steps a running total has, declared beforehand: so that it does not show which of them anybody's rows lie in."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Protocol

import msgspec

from sfumato.errors import UsageError

MOST_STEPS = 10**7
LONGEST_NAMES = 2**16
UNITS = {
    "min": dt.timedelta(minutes=1),
    "h": dt.timedelta(hours=1),
    "d": dt.timedelta(days=1),
    "w": dt.timedelta(weeks=1),
}


class Steps(Protocol):
    """Steps in order, each with a name. What is no step of theirs has no place."""

    def __len__(self) -> int: ...

    def name(self, place: int) -> str:
        """The name of a step, from 0 on."""

    def place(self, entry: object) -> int | None:
        """The step in which an entry lies."""

    def over(self, now: dt.datetime) -> int:
        """How many steps are over at a moment."""


class Calendar(
    msgspec.Struct,
    frozen=True,
    dict=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag="calendar",
):
    """Steps of equal length in time, from a first to a last one: ``Counter(Calendar("2013-01-01", "2013-12-31"))``.

    Every step is published, whether or not rows lie in it; rows before the first and after the last count nowhere. So the
    published steps say nothing of anybody.

    Parameters
    ----------
    first, last : str, date or datetime
        ISO dates, or dates with a time: when the first step begins, and a moment in the last one.
    every : str
        How long a step is: a number and "min", "h", "d", "w" or "mo", as in "15min", "1h", "1d", "1w", "1mo".

    Raises
    ------
    UsageError
        If they are no dates in order, the length is none, months do not begin on a first, or there are more than 10^7 steps.

    Notes
    -----
    A step is named by its beginning, in ISO form. Entries are read as they are written: an offset from UTC is passed over.

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
            moment: object = getattr(self, end)
            if isinstance(moment, dt.date):
                msgspec.structs.force_setattr(self, end, moment.isoformat())
        begins, ends = _moment(self.first), _moment(self.last)
        if begins is None or ends is None:
            raise UsageError(
                "a calendar",
                "it does not begin and end with an ISO date",
                'Write sf.Calendar("2013-01-01", "2013-12-31")',
            )
        number, unit = _length(self.every)
        if unit == "mo" and (begins.day, begins.time()) != (1, dt.time()):
            raise UsageError(
                "a calendar of months",
                "its first month does not begin on a first",
                'Write "2013-01-01"',
            )
        # Kept beside the fields: a stream asks for a step's place with every row.
        self.__dict__["_begins"], self.__dict__["_step"] = (
            begins,
            number if unit == "mo" else number * UNITS[unit],
        )
        self.__dict__["_plain"] = unit not in ("min", "h") and begins.time() == dt.time()
        steps = self._since(ends) + 1
        if not 1 <= steps <= MOST_STEPS:
            remedy = "Put the last step after the first, or take longer steps"
            raise UsageError(
                "a calendar",
                f"it would have {steps:,} steps, and there are 1 to {MOST_STEPS:,}",
                remedy,
            )
        self.__dict__["_steps"] = steps

    @classmethod
    def of_length(cls, first: str, steps: int, every: str = "1d") -> Calendar:
        """The calendar with so many steps."""
        one = cls(first, first, every)
        if not 1 <= steps <= MOST_STEPS:
            raise UsageError(
                f"a calendar of {steps:,} steps",
                f"there are 1 to {MOST_STEPS:,}",
                "Choose such a number",
            )
        return cls(first, one._name(steps - 1), every)

    def __len__(self) -> int:
        return int(self.__dict__["_steps"])

    def name(self, place: int) -> str:
        """The name of a step, from 0 on: when it begins."""
        if not 0 <= place < len(self):
            raise UsageError(
                f"step {place + 1:,} of a calendar",
                f"it has {len(self):,}",
                "Open another stream with a later calendar",
            )
        return self._name(place)

    def place(self, entry: object) -> int | None:
        """The step in which a date, a time or a text that says one lies; None for any other entry, and outside the calendar."""
        moment = _moment(entry)
        if moment is None:
            return None
        step = self._since(moment)
        return step if 0 <= step < len(self) else None

    def over(self, now: dt.datetime) -> int:
        """How many steps are over at a moment of the same clock."""
        return min(max(self._since(now), 0), len(self))

    def _since(self, moment: dt.datetime) -> int:
        """In which step a moment lies, counted from the first one, which may be outside the calendar."""
        begins, step = self.__dict__["_begins"], self.__dict__["_step"]
        if isinstance(step, int):
            return int((12 * (moment.year - begins.year) + moment.month - begins.month) // step)
        return int((moment - begins) // step)

    def _name(self, place: int) -> str:
        begins, step = self.__dict__["_begins"], self.__dict__["_step"]
        try:
            if isinstance(step, int):
                years, month = divmod(begins.month - 1 + place * step, 12)
                moment = begins.replace(year=begins.year + years, month=month + 1)
            else:
                moment = begins + place * step
        except (OverflowError, ValueError):
            moment = None
        if moment is None:
            raise UsageError(
                "a calendar", "it goes on beyond the year 9999", "Take fewer or shorter steps"
            )
        return str(
            moment.date().isoformat()
            if self.__dict__["_plain"]
            else moment.isoformat(timespec="minutes")
        )


class Listed:
    """Steps that are listed by name.

    >>> Listed(["mon", "tue"]).place("tue")
    1
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._places = {name: place for place, name in enumerate(self._names)}
        if (
            not self._names
            or len(self._names) > LONGEST_NAMES
            or len(self._places) < len(self._names)
        ):
            obstacle = f"the names of its steps are none, more than {LONGEST_NAMES:,}, or repeat"
            raise UsageError(
                "a calendar", obstacle, "Give each step one name, or an sf.Calendar of dates"
            )

    def __len__(self) -> int:
        return len(self._names)

    def name(self, place: int) -> str:
        """The name of a step, from 0 on."""
        if not 0 <= place < len(self):
            raise UsageError(
                f"step {place + 1:,} of a calendar",
                f"it has {len(self):,}",
                "Open another stream with other steps",
            )
        return self._names[place]

    def place(self, entry: object) -> int | None:
        """The step of this name."""
        plain = entry.item() if hasattr(entry, "item") else entry
        if isinstance(plain, bool) or not isinstance(plain, str | int | dt.date):
            return None
        return self._places.get(
            plain.isoformat() if isinstance(plain, dt.date) else str(plain).strip()
        )

    def over(self, now: dt.datetime) -> int:
        """All of them: names have no clock."""
        del now
        return len(self)


def _moment(entry: object) -> dt.datetime | None:
    """A date or time as written; None where it is none."""
    plain = entry.item() if hasattr(entry, "item") else entry
    if isinstance(plain, str):
        try:
            plain = dt.datetime.fromisoformat(plain.strip())
        except ValueError:
            return None
    if isinstance(plain, dt.datetime):
        return plain.replace(tzinfo=None)
    return dt.datetime.combine(plain, dt.time()) if isinstance(plain, dt.date) else None


def _length(every: object) -> tuple[int, str]:
    found = re.fullmatch(r"([1-9]\d{0,5})(min|h|d|w|mo)", every) if isinstance(every, str) else None
    if found is None:
        raise UsageError(
            "a calendar",
            "the length of its steps is not a number and min, h, d, w or mo",
            'Write every="1d", "15min" or "1mo"',
        )
    return int(found[1]), found[2]
