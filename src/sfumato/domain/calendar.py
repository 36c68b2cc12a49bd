"""Public axes that are derived from a column of dates or times: no copy of the data is made.

A time with a zone is an instant: it is read on the clocks of ``timezone``, with daylight saving. A
time without a zone, and a date, is local already, and stays as it is. Values that are missing, that
are no date or time, or that lie outside the years 1 to 9999 count as missing.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from sfumato.domain.categories import Listed, check_column
from sfumato.domain.lattice import Label
from sfumato.domain.times import (
    FORMS,
    LABELS,
    CalendarField,
    Part,
    check_zone,
    period_number,
    period_of,
    period_text,
)
from sfumato.errors import BoundsRequired, UsageError, shown

MOST_PERIODS = 10_000


class _Derived(
    Listed, frozen=True, omit_defaults=True, repr_omit_defaults=True, forbid_unknown_fields=True
):
    """An axis of labels that are fields of the calendar."""

    _part: ClassVar[Part]

    @property
    def timezone(self) -> str | None:
        """The zone in which instants are read; None: UTC."""
        return None

    @property
    def _asked(self) -> str:
        return f"{type(self).__name__}({shown(self.column)})"

    @property
    def calendar(self) -> CalendarField:
        return CalendarField(self._part, self.timezone)

    @property
    def listed(self) -> tuple[Label, ...]:
        return LABELS[self._part]

    def _check(self) -> None:
        if self.column is None:
            raise UsageError(
                self._asked,
                "it is derived from a column, and none is named",
                f'Write {type(self).__name__}("date"), with the name of the column',
            )
        check_column(self._asked, self.column)
        stated = f"{self._asked[:-1]}, timezone={shown(self.timezone)})"
        check_zone(stated, self.timezone)
        self._check_labels(self._asked)


class _Spanned(_Derived, frozen=True):
    """One of them that may also be a span of periods, one after another."""

    column: str | None = None
    first: int | str | None = None
    last: int | str | None = None
    timezone: str | None = None
    other: str | None = None
    missing: str | None = None

    def __post_init__(self) -> None:
        self._check_span()
        self._check()

    @property
    def _ends(self) -> tuple[str, str] | None:
        if self.first is None or self.last is None:
            return None
        return str(self.first), str(self.last)

    @property
    def calendar(self) -> CalendarField:
        first = None if self._ends is None else self._ends[0]
        return CalendarField(self._part, self.timezone, first)

    @property
    def listed(self) -> tuple[Label, ...]:
        if self._ends is None:
            return LABELS[self._part]
        first, last = (period_number(self._part, end) for end in self._ends)
        if first is None or last is None:
            return ()
        return tuple(period_text(self._part, number) for number in range(first, last + 1))

    def _check_span(self) -> None:
        """Bring the ends into the form that files hold, and refuse what is no span."""
        example = FORMS[self._part]
        remedy = f'Write first="{example}" and last="{example[:-1]}9"'
        stated = f"{self._asked[:-1]}, first={shown(self.first)}, last={shown(self.last)})"
        if (self.first is None) != (self.last is None):
            raise UsageError(stated, "a span has a first and a last period", remedy)
        numbers: list[int] = []
        for end in ("first", "last"):
            if getattr(self, end) is None:
                return
            text = period_of(self._part, getattr(self, end))
            number = None if text is None else period_number(self._part, text)
            if number is None:
                obstacle = f"{end} is no {self._part} of the years 1 to 9999"
                raise UsageError(stated, obstacle, remedy)
            numbers.append(number)
            plain = int(str(text)) if self._part == "year" else text
            msgspec.structs.force_setattr(self, end, plain)
        first, last = numbers
        if last < first:
            raise UsageError(stated, "the last period comes before the first", "Swap them")
        if last - first >= MOST_PERIODS:
            obstacle = f"it has more than {MOST_PERIODS:,} periods"
            raise UsageError(stated, obstacle, "Choose a shorter span, or longer periods")


class Month(_Spanned, frozen=True, tag="month"):
    """The month of a date or time: January to December, or the months of a span.

    Parameters
    ----------
    column : str
        The column of dates or times.
    first, last : str, date or None
        The first and the last month of a span, such as "2024-01" and "2024-12". They must be
        public, and are never read off the data. Rows outside are dropped, unless ``other`` is
        given. None: the twelve months, whatever the year.
    timezone : str or None
        The time zone of the IANA database, such as "Europe/Berlin", in which instants are read;
        None: UTC. Dates, and times without a zone, are local already.
    other : str or None
        The label under which rows outside a span are counted; None drops them.
    missing : str or None
        The label under which rows without a date are counted; None drops them.

    Raises
    ------
    UsageError
        If the column is not named, there is no such time zone, or the span is none.

    >>> Month("date").all_labels[:2], Month("date", "2023-12", "2024-02").all_labels
    (('January', 'February'), ('2023-12', '2024-01', '2024-02'))
    """

    _part: ClassVar[Part] = "month"


class Week(_Spanned, frozen=True, tag="week"):
    """The week of a date or time by ISO 8601: 1 to 53, or the weeks of a span.

    A week begins on a Monday, and belongs to the year that has its Thursday: 2021-01-03 lies in
    week 53 of 2020.

    Parameters
    ----------
    column : str
        The column of dates or times.
    first, last : str, date or None
        The first and the last week of a span, such as "2024-W01" and "2024-W52"; public, as for
        ``Month``. None: weeks 1 to 53, whatever the year.
    timezone, other, missing : str or None
        As for ``Month``.

    Raises
    ------
    UsageError
        As for ``Month``.

    >>> Week("date", "2020-W52", "2021-W01").all_labels
    ('2020-W52', '2020-W53', '2021-W01')
    """

    _part: ClassVar[Part] = "week"


class Year(_Spanned, frozen=True, tag="year"):
    """The year of a date or time: one of a public span.

    Parameters
    ----------
    column : str
        The column of dates or times.
    first, last : int, str or date
        The first and the last year, such as 2019 and 2024; public, as for ``Month``.
    timezone, other, missing : str or None
        As for ``Month``.

    Raises
    ------
    BoundsRequired
        If the first or the last year is missing. It is a UsageError.
    UsageError
        As for ``Month``.

    >>> Year("date", 2023, 2025).all_labels
    (2023, 2024, 2025)
    """

    def __post_init__(self) -> None:
        if self.first is None or self.last is None:
            raise BoundsRequired(
                self._asked,
                "years have no first and no last one, and none is read off the data",
                'Write Year("date", 2019, 2024)',
            )
        super().__post_init__()

    _part: ClassVar[Part] = "year"

    @property
    def _ends(self) -> tuple[str, str] | None:
        return f"{self.first:04}", f"{self.last:04}"

    @property
    def listed(self) -> tuple[Label, ...]:
        return tuple(int(str(label)) for label in super().listed)


class _Recurring(_Derived, frozen=True):
    """One of them that recurs within a week or a day."""

    column: str | None = None
    timezone: str | None = None
    missing: str | None = None

    def __post_init__(self) -> None:
        self._check()


class Weekday(_Recurring, frozen=True, tag="weekday"):
    """The weekday of a date or time: Monday to Sunday.

    Parameters
    ----------
    column : str
        The column of dates or times.
    timezone, missing : str or None
        As for ``Month``.

    Raises
    ------
    UsageError
        If the column is not named, or there is no such time zone.

    >>> Weekday("when", timezone="Europe/Berlin").all_labels[0]
    'Monday'
    """

    _part: ClassVar[Part] = "weekday"


class Hour(_Recurring, frozen=True, tag="hour"):
    """The hour of a time on local clocks: 0 to 23.

    Where clocks are put back, the hour that they show twice is one hour here.

    Parameters
    ----------
    column : str
        The column of times. A column of the type of dates is refused: dates have no hour.
    timezone, missing : str or None
        As for ``Month``.

    Raises
    ------
    UsageError
        As for ``Weekday``.

    >>> len(Hour("when", timezone="America/New_York").all_labels)
    24
    """

    _part: ClassVar[Part] = "hour"
