"""What a step may bring: counts, clamped values, labels, persons. Read into integers before anything is written.

Every row becomes an integer by a fixed map that looks at no other row. What is out of bounds is clamped, and what has a missing
value (None or NaN) or a label that is not listed is dropped, silently, as everywhere: a refusal would be an answer that nobody
paid for. An increment of the wrong kind is refused, with a message that quotes no value.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from numbers import Real
from typing import SupportsFloat, SupportsIndex, TypeAlias, TypeGuard

import numpy as np

from sfumato.domain import Interval, Label
from sfumato.errors import DataError, UsageError

Row: TypeAlias = tuple[int, int]
"""A category, by its position, and a whole number of grains."""
MISSING = ("NAType", "NaTType")  # how pandas, which is not imported here, calls its missing values
DROPPED: Row = (-1, 0)
"""What stands for a row that does not count."""

LATTICE = 2**16
LARGEST_COUNT = 2**53
LONGEST_EVENT = 1024


def grain_of(value: int | Interval) -> Fraction:
    """The unit in which values are counted: 1, the largest of which the Interval's lattice has multiples only, or 2^-16 of its width."""
    if not isinstance(value, Interval):
        return Fraction(1)
    low, high = (Fraction(str(end)) for end in value.numbers)
    if value.step is None:
        return (high - low) / LATTICE
    step = Fraction(str(value.step))
    below = low.denominator * step.denominator
    return Fraction(math.gcd(int(low * below), int(step * below)), below)


def bounds_of(value: int | Interval, grain: Fraction) -> tuple[int, int]:
    """The least and the largest number of grains that one row can bring."""
    if not isinstance(value, Interval):
        return 0, 1
    low, high = (Fraction(str(end)) / grain for end in value.numbers)
    if max(abs(low), abs(high)) > LARGEST_COUNT:
        raise UsageError(
            f"values from {value.lower} to {value.upper}",
            "they would be counted in more than 2^53 units",
            "Give bounds nearer to nought, or a step that divides the lower one",
        )
    return math.ceil(low), math.floor(high)


class Reader:
    """Reads increments of one counter.

    Parameters
    ----------
    value : 1 or Interval
    grain : Fraction
        In which values are counted.
    labels : tuple of labels, or None
    other : bool
        The last label takes every value that is not listed.
    """

    def __init__(
        self, value: int | Interval, grain: Fraction, labels: tuple[Label, ...] | None, other: bool
    ) -> None:
        self.value, self.labels = value, labels
        listed = () if labels is None else labels[:-1] if other else labels
        self._cells = {_key(label): i for i, label in enumerate(listed)}
        self._unlisted = len(listed) if other else None
        self._grain, self._bounds = float(grain), bounds_of(value, grain)

    @property
    def cells(self) -> int:
        """How many categories there are."""
        return 1 if self.labels is None else len(self.labels)

    def rows(self, increment: object) -> list[Row]:
        """Read one step's increment; several counts of one category may be one row here.

        Parameters
        ----------
        increment : int, number, label, dict, or sequence
            Without categories: how many events, or for sums one value or several. With categories: a dict from label to number of
            events (or to one value or several), a sequence of labels, or a sequence of (label, value) pairs.

        Raises
        ------
        UsageError
            If it is of another kind, or a count is negative.
        DataError
            If a value is a text or another thing that can be no number.
        """
        if self.labels is None:
            return [_row(0, amount) for amount in self._amounts(increment)]
        if isinstance(increment, Mapping):
            pairs = [
                (label, amount)
                for label, given in increment.items()
                for amount in self._amounts(given)
            ]
            return self._placed(pairs)
        return self.each(increment)

    def each(self, increment: object, number: int | None = None) -> list[Row]:
        """Read one row per person. A dropped row stands as (-1, 0)."""
        if self.labels is None and not isinstance(self.value, Interval):
            count = self._count(increment)
            _check_persons(count, number)  # before a list of that length is made
            return [(0, 1)] * count
        rows = (
            [_row(0, amount) for amount in self._amounts(increment)]
            if self.labels is None
            else self._placed(self._labelled(increment))
        )
        _check_persons(len(rows), number)
        return rows

    def _labelled(self, increment: object) -> list[tuple[object, int | None]]:
        if isinstance(increment, str):
            increment = [increment]
        if not _is_list(increment):
            raise _wrong("an increment by category is a dict, or a list with a label for each row")
        if not isinstance(self.value, Interval):
            return [(label, 1) for label in _plain(increment)]
        rows = list(increment)
        pairs = [row for row in rows if isinstance(row, tuple | list) and len(row) == 2]
        if len(pairs) != len(rows):
            raise _wrong("a list of rows by category holds pairs of label and value")
        amounts = self._amounts([value for _, value in pairs])
        return [(label, amount) for (label, _), amount in zip(pairs, amounts, strict=True)]

    def _placed(self, pairs: Sequence[tuple[object, int | None]]) -> list[Row]:
        found = []
        for label, amount in pairs:
            missing = label is None or (isinstance(label, float) and math.isnan(label))
            try:
                cell = None if missing else self._cells.get(_key(label), self._unlisted)
            except TypeError:
                raise _wrong("a label is a text, an integer or a boolean") from None
            found.append(DROPPED if cell is None else _row(cell, amount))
        return found

    def _amounts(self, given: object) -> list[int | None]:
        """Whole numbers of grains: one count, or one value or several; None for a missing one."""
        return self._grains(given) if isinstance(self.value, Interval) else [self._count(given)]

    def _count(self, given: object) -> int:
        try:
            count = (
                -1
                if isinstance(given, bool) or not isinstance(given, int | SupportsIndex)
                else operator.index(given)
            )
        except TypeError:
            count = -1
        if not 0 <= count <= LARGEST_COUNT:
            raise _wrong("a number of events is a whole number from 0 to 2^53")
        return count

    def _grains(self, given: object) -> list[int | None]:
        array = np.array(
            [_float(value) for value in (_plain(given) if _is_list(given) else [given])]
        )
        missing = np.isnan(array)
        with np.errstate(over="ignore"):
            grains = (
                np.rint(np.where(missing, 0, array) / self._grain)
                .clip(*self._bounds)
                .astype(np.int64)
            )
        return [
            None if lost else grain
            for grain, lost in zip(grains.tolist(), missing.tolist(), strict=True)
        ]


def _row(cell: int, amount: int | None) -> Row:
    """A row of a category; one without a value is dropped."""
    return DROPPED if amount is None else (cell, amount)


def _float(value: object) -> float:
    """A value as a double; NaN for a missing one, and for what has no place among doubles."""
    if value is None or type(value).__name__ in MISSING:
        return math.nan
    if isinstance(value, bool | str | bytes) or not isinstance(value, SupportsFloat):
        raise DataError(
            "an increment",
            "a value is of a type that is no number",
            "Give numbers, and None or NaN for missing ones",
        )
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
    except OverflowError:  # whole numbers and ratios beyond doubles
        if not isinstance(value, Real):
            return math.nan
        return -math.inf if value < 0 else math.inf


def event_text(event: object) -> str:
    """The name of an event as text; "" for None. Dates and times are written in ISO form."""
    if event is None:
        return ""
    if isinstance(event, dt.date):
        return event.isoformat()
    plain = event.item() if hasattr(event, "item") else event
    if isinstance(plain, int) and not isinstance(plain, bool):
        return str(plain)
    if isinstance(plain, dt.date):
        return plain.isoformat()
    if (
        not isinstance(plain, str)
        or not plain
        or len(plain) > LONGEST_EVENT
        or "\0" in plain
        or not plain.isprintable()
    ):
        remedy = 'Name steps as in event="2026-11-21", or leave it out'
        raise UsageError(
            f"an event of type {type(event).__name__}",
            "an event is a short text, a whole number or a date",
            remedy,
        )
    return plain


def precedes(one: str, other: str) -> bool:
    """Whether an event comes before another: whole numbers by size, anything else as text, so that ISO dates sort as dates do."""
    if all(text.removeprefix("-").isdecimal() and text.isascii() for text in (one, other)):
        return int(one) < int(other)
    return one < other


def _is_list(value: object) -> TypeGuard[Iterable[object]]:
    return (
        isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)
    ) or getattr(value, "ndim", 0) == 1


def _plain(values: Iterable[object]) -> list[object]:
    return list(values.tolist()) if hasattr(values, "tolist") else list(values)


def _key(label: object) -> object:
    """Tell True from 1, but not numpy's 1 from Python's."""
    plain = label.item() if hasattr(label, "item") else label
    return (bool, plain) if isinstance(plain, bool) else plain


def _check_persons(rows: int, persons: int | None) -> None:
    if persons is not None and rows != persons:
        raise UsageError(
            "persons",
            "there is not one for each row of the increment",
            "Give one person per row, in the same order",
        )


def _wrong(obstacle: str) -> UsageError:
    return UsageError(
        "an increment",
        obstacle,
        "Look at the counter's value and by, and bring the increment into that form",
    )
