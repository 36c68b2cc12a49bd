"""Increments of a counter: counts, values, labels and persons, read into integers.

Every row becomes an integer by a fixed map that looks at no other row. Values beyond the bounds are
clamped. Rows with a missing value (None or NaN), or with a label that is not listed, are dropped.
Both happen silently, since a refusal would be an answer that nobody paid for. An increment of the
wrong kind is refused, with a message that quotes no value.
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

from sfumato.domain import Interval, Label, iso_text
from sfumato.errors import DataError, UsageError

# A category, by its index, and a whole number of units of the resolution.
Row: TypeAlias = tuple[int, int]

# Stands for a row that is not counted.
DROPPED: Row = (-1, 0)

LARGEST_COUNT = 2**53


def resolution_of(interval: Interval | None) -> Fraction:
    """Return the resolution of the fixed-point encoding of a counter's values.

    It is 1 for events, which have no Interval. For an Interval with a step it is the greatest
    common divisor of the lower bound and the step, so that the values on the step's lattice are
    encoded exactly. For any other Interval it is 2^-16 of the width.
    """
    if interval is None:
        return Fraction(1)
    # Read as decimals: 0.1 is a tenth, so that the lattice of the step has a short unit.
    low, high = (Fraction(str(end)) for end in interval.numbers)
    if interval.step is None:
        return (high - low) / 2**16
    step = Fraction(str(interval.step))
    denominator = low.denominator * step.denominator
    return Fraction(math.gcd(int(low * denominator), int(step * denominator)), denominator)


def row_bounds(interval: Interval | None, resolution: Fraction) -> tuple[int, int]:
    """Return the least and the largest value of one row, in units of the resolution."""
    if interval is None:
        return 0, 1
    low, high = (Fraction(str(end)) / resolution for end in interval.numbers)
    if max(abs(low), abs(high)) > LARGEST_COUNT:
        raise UsageError(
            f"values from {interval.lower} to {interval.upper}",
            "they would be counted in more than 2^53 units",
            "Give bounds nearer to zero, or a step that divides the lower one",
        )
    # Rounded inwards, so that no row counts more than the bounds allow.
    return math.ceil(low), math.floor(high)


class IncrementReader:
    """Reads the increments of one counter into rows.

    Parameters
    ----------
    interval : Interval or None
        The bounds of the values that are added up; None where events are counted.
    resolution : Fraction
        The unit in which values are counted.
    labels : tuple of labels, or None
    other : bool
        The last label takes every value that is not listed.
    """

    def __init__(
        self,
        interval: Interval | None,
        resolution: Fraction,
        labels: tuple[Label, ...] | None,
        other: bool,
    ) -> None:
        self._adds_values = interval is not None
        self.labels = labels
        listed: tuple[Label, ...] = () if labels is None else labels
        if other:
            listed = listed[:-1]
        self._cells = {_key(label): cell for cell, label in enumerate(listed)}
        self._unlisted = len(listed) if other else None
        self._resolution = float(resolution)
        self._bounds = row_bounds(interval, resolution)

    @property
    def cells(self) -> int:
        """The number of categories."""
        return 1 if self.labels is None else len(self.labels)

    def rows(self, increment: object) -> list[Row]:
        """Read one step's increment; several events of one category may become one row.

        Parameters
        ----------
        increment : int, number, label, dict, or sequence
            Without categories: the number of events, or for sums one value or several. With
            categories: a dict from label to a number of events (or to one value or several), a
            sequence of labels, or a sequence of (label, value) pairs.

        Raises
        ------
        UsageError
            If it is of another kind, or a count is negative.
        DataError
            If a value is a text or another thing that cannot be a number.
        """
        if self.labels is None:
            return [_row(0, amount) for amount in self._amounts(increment)]
        if not isinstance(increment, Mapping):
            return self.each(increment)
        pairs = []
        for label, given in increment.items():
            pairs += [(label, amount) for amount in self._amounts(given)]
        return self._labelled_rows(pairs)

    def each(self, increment: object, n_persons: int | None = None) -> list[Row]:
        """Read one row per person; a dropped row stands as (-1, 0), so that rows keep their order.

        Raises
        ------
        UsageError
            If ``n_persons`` is given and there is another number of rows, or as ``rows`` does.
        DataError
            As ``rows`` does.
        """
        if self.labels is None and not self._adds_values:
            count = self._count(increment)
            # Checked first, so that a wrong count does not make a list of that length.
            _check_persons(count, n_persons)
            return [(0, 1)] * count
        if self.labels is None:
            rows = [_row(0, amount) for amount in self._amounts(increment)]
        else:
            rows = self._labelled_rows(self._labelled_amounts(increment))
        _check_persons(len(rows), n_persons)
        return rows

    def _labelled_amounts(self, increment: object) -> list[tuple[object, int | None]]:
        if isinstance(increment, str):
            increment = [increment]
        if not _is_list(increment):
            raise _wrong("an increment by category is a dict, or a list with a label for each row")
        if not self._adds_values:
            return [(label, 1) for label in _plain(increment)]
        rows = list(increment)
        pairs = [row for row in rows if isinstance(row, tuple | list) and len(row) == 2]
        if len(pairs) != len(rows):
            raise _wrong("a list of rows by category holds pairs of label and value")
        amounts = self._amounts([value for _, value in pairs])
        return [(label, amount) for (label, _), amount in zip(pairs, amounts, strict=True)]

    def _labelled_rows(self, pairs: Sequence[tuple[object, int | None]]) -> list[Row]:
        rows = []
        for label, amount in pairs:
            missing = label is None or (isinstance(label, float) and math.isnan(label))
            try:
                cell = None if missing else self._cells.get(_key(label), self._unlisted)
            except TypeError:
                raise _wrong("a label is a text, an integer or a boolean") from None
            rows.append(DROPPED if cell is None else _row(cell, amount))
        return rows

    def _amounts(self, given: object) -> list[int | None]:
        """Read one count, or one value or several, clamped to the bounds and rounded to the
        resolution; None is missing.
        """
        if not self._adds_values:
            return [self._count(given)]
        values = _plain(given) if _is_list(given) else [given]
        array = np.array([_float(value) for value in values])
        missing = np.isnan(array)
        # Large values overflow to infinity, which is clamped like any other.
        with np.errstate(over="ignore"):
            rounded = np.rint(np.where(missing, 0, array) / self._resolution)
        # Clamped before the cast, since infinity is no integer.
        units = rounded.clip(*self._bounds).astype(np.int64)
        pairs = zip(units.tolist(), missing.tolist(), strict=True)
        return [None if is_missing else unit for unit, is_missing in pairs]

    def _count(self, given: object) -> int:
        count = _integer(given)
        if count is None or not 0 <= count <= LARGEST_COUNT:
            raise _wrong("a number of events is a whole number from 0 to 2^53")
        return count


def _row(cell: int, amount: int | None) -> Row:
    """Return a row of a category; one without a value is dropped."""
    return DROPPED if amount is None else (cell, amount)


def _integer(value: object) -> int | None:
    """Return an integer as Python's own; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | SupportsIndex):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def _float(value: object) -> float:
    """Convert a value to a double; NaN for a missing one, and for one that no double stands for."""
    # The types of missing values in pandas, which is not imported here.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
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
    except OverflowError:
        # A whole number or a ratio beyond the range of doubles: it is clamped.
        if not isinstance(value, Real):
            return math.nan
        return -math.inf if value < 0 else math.inf


def event_text(event: object) -> str:
    """Return the name of an event as text; "" for None. Dates and times are in ISO form."""
    if event is None:
        return ""
    plain = event.item() if hasattr(event, "item") else event
    if isinstance(plain, int) and not isinstance(plain, bool):
        return str(plain)
    if isinstance(plain, dt.date):
        return str(iso_text(plain))
    if isinstance(plain, str) and 0 < len(plain) <= 1024 and plain.isprintable():
        return plain
    raise UsageError(
        f"an event of type {type(event).__name__}",
        "an event is a short text, a whole number or a date",
        'Name steps as in event="2026-11-21", or leave it out',
    )


def precedes(event: str, other: str) -> bool:
    """Tell whether an event comes before another.

    Whole numbers are compared by size, anything else as text; ISO dates then sort as dates do.
    """
    if all(text.removeprefix("-").isdecimal() and text.isascii() for text in (event, other)):
        return int(event) < int(other)
    return event < other


def _is_list(value: object) -> TypeGuard[Iterable[object]]:
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return True
    return getattr(value, "ndim", 0) == 1


def _plain(values: Iterable[object]) -> list[object]:
    return list(values.tolist()) if hasattr(values, "tolist") else list(values)


def _key(label: object) -> object:
    """Return a key under which True and 1 differ, and numpy's 1 and Python's are the same."""
    plain = label.item() if hasattr(label, "item") else label
    return (bool, plain) if isinstance(plain, bool) else plain


def _check_persons(n_rows: int, n_persons: int | None) -> None:
    if n_persons is not None and n_rows != n_persons:
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
