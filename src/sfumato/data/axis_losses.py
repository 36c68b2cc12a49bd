"""Count what each axis of a table loses: missing values, clamped numbers, unlisted labels.

All of it is true of the data, and serves ``sfumato check`` only.
"""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from sfumato.basics.numbers import Array
from sfumato.data.calendar_cells import calendar_cells
from sfumato.data.columns import dictionary_of, numbers, values_of
from sfumato.data.findings import AxisCheck, Unmatched
from sfumato.domain.lattice import (
    BinsAndMissing,
    EdgesAxis,
    GridAxis,
    KeyAxis,
    LabelAxis,
    LatticeAxis,
)

MOST_LABELS = 10_000
"""How many unlisted labels of an axis are counted exactly."""

SHOWN = 5
_LABEL_LENGTH = 60


class AxisLosses(Protocol):
    """What one axis loses."""

    def add(self, column: pa.Array) -> Array:
        """Count a column; say which rows have a cell: bool ndarray of shape (rows,)."""

    def result(self, unparsed: int, not_utf8: int) -> AxisCheck:
        """Give the counts, with the fields that did not parse and those that are not UTF-8."""


def losses_of(axis: LatticeAxis) -> AxisLosses:
    """Start to count for an axis."""
    if isinstance(axis, BinsAndMissing):
        return _NumberLosses(axis.bins, has_cell=True)
    if isinstance(axis, LabelAxis):
        return _LabelLosses(axis) if axis.calendar is msgspec.UNSET else _CalendarLosses(axis)
    return _KeyLosses(axis) if isinstance(axis, KeyAxis) else _NumberLosses(axis)


class _NumberLosses:
    def __init__(self, axis: GridAxis | EdgesAxis, *, has_cell: bool = False) -> None:
        self._axis = axis
        self._keeps_missing = has_cell or axis.missing is not None
        self._lower, self._upper = axis.ends
        # The last value of an axis with a step is one step below its upper bound.
        self._stepped = isinstance(axis, GridAxis) and axis.step is not None
        self._missing = 0
        self._below = 0
        self._above = 0

    def add(self, column: pa.Array) -> Array:
        values = numbers(column, self._axis.time)
        missing = np.isnan(values)
        self._missing += int(missing.sum())
        self._below += int((values < self._lower).sum())
        is_above = values >= self._upper if self._stepped else values > self._upper
        self._above += int(is_above.sum())
        return np.ones(len(values), bool) if self._keeps_missing else ~missing

    def result(self, unparsed: int, not_utf8: int) -> AxisCheck:
        return AxisCheck(
            self._axis.name,
            missing=self._missing,
            unparsed=unparsed,
            not_utf8=not_utf8,
            below=self._below,
            above=self._above,
            edges=isinstance(self._axis, EdgesAxis),
            stepped=self._stepped,
        )


class _LabelLosses:
    def __init__(self, axis: LabelAxis) -> None:
        self._axis = axis
        self._missing = 0
        self._unmatched = 0
        self._seen = Counter[str]()
        self._exact = True

    def add(self, column: pa.Array) -> Array:
        encoded = dictionary_of(column)
        if pt.is_null(encoded.type):
            self._missing += len(column)
            return np.full(len(column), self._axis.missing)
        values = [None if _is_nan(value) else value for value in values_of(encoded.dictionary)]
        cells = self._axis.lookup(values)
        # Null in the indices is one more entry, after those of the dictionary.
        indices = encoded.indices.cast(pa.int64()).fill_null(len(values)).to_numpy()
        n_rows = np.bincount(indices, minlength=len(values) + 1)
        is_missing = np.append([value is None for value in values], True)
        self._missing += int(n_rows[is_missing].sum())
        self._add_unlisted(values, cells, n_rows)
        return np.asarray(np.append(cells, self._axis.missing_cell)[indices] >= 0)

    def _add_unlisted(self, values: list[object], cells: Array, n_rows: Array) -> None:
        """Count the rows of each label that is not listed."""
        present = np.array([value is not None for value in values], bool)
        is_listed = (cells >= 0) & (cells < self._axis.n_listed)
        for index in np.flatnonzero(present & ~is_listed & (n_rows[:-1] > 0)):
            self._seen[str(values[index])[:_LABEL_LENGTH]] += int(n_rows[index])
            self._unmatched += int(n_rows[index])
        # Memory is bounded: the rarer half is forgotten, and the counts become lower bounds.
        if len(self._seen) > 2 * MOST_LABELS:
            self._seen = Counter(dict(self._seen.most_common(MOST_LABELS)))
            self._exact = False

    def result(self, unparsed: int, not_utf8: int) -> AxisCheck:
        listed = [str(label) for label in self._axis.listed]
        labels = [
            Unmatched(label, n_rows, _nearest(label, listed))
            for label, n_rows in self._seen.most_common(SHOWN)
        ]
        return AxisCheck(
            self._axis.name,
            missing=self._missing,
            unparsed=unparsed,
            not_utf8=not_utf8,
            unmatched=self._unmatched,
            labels=tuple(labels),
            exact=self._exact,
        )


class _CalendarLosses:
    def __init__(self, axis: LabelAxis) -> None:
        self._axis = axis
        # A cell of its own for each of the two, so that they can be told apart.
        self._apart = msgspec.structs.replace(
            axis,
            labels=(*axis.labels[: axis.n_listed], "other", "missing"),
            other=True,
            missing=True,
        )
        self._missing = 0
        self._outside = 0

    def add(self, column: pa.Array) -> Array:
        cells = calendar_cells(column, self._apart)
        outside = cells == self._apart.unlisted_cell
        missing = cells == self._apart.missing_cell
        self._outside += int(outside.sum())
        self._missing += int(missing.sum())
        dropped = np.zeros(len(cells), bool)
        if not self._axis.other:
            dropped |= outside
        if not self._axis.missing:
            dropped |= missing
        return np.asarray(~dropped)

    def result(self, unparsed: int, not_utf8: int) -> AxisCheck:
        return AxisCheck(
            self._axis.name,
            missing=self._missing,
            unparsed=unparsed,
            not_utf8=not_utf8,
            unmatched=self._outside,
            span=True,
        )


class _KeyLosses:
    def __init__(self, axis: KeyAxis) -> None:
        self._axis = axis
        self._missing = 0

    def add(self, column: pa.Array) -> Array:
        is_present: Array = column.is_valid().to_numpy(zero_copy_only=False)
        self._missing += int((~is_present).sum())
        return is_present

    def result(self, unparsed: int, not_utf8: int) -> AxisCheck:
        return AxisCheck(
            self._axis.name, missing=self._missing, unparsed=unparsed, not_utf8=not_utf8
        )


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _nearest(label: str, listed: Sequence[str]) -> str | None:
    """The listed label that is likely meant: equal but for case and blanks, or nearly equal."""
    for candidate in listed:
        if candidate.strip().casefold() == label.strip().casefold():
            return candidate
    close = difflib.get_close_matches(label, listed, n=1)
    return close[0] if close else None
