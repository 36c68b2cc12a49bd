"""Counts of two axes across each other, with their sums on the edges, as offices print them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.answers.estimate import reach_text
from sfumato.basics import Array

# What a row or column of sums is called.
ALL = "all"


@dataclass(frozen=True)
class Widths:
    """The half-widths of a table's counts and sums, where they are equal.

    Attributes
    ----------
    inner, row_sums, column_sums, total : float or None
        Of the counts, the sums of rows (the last column), the sums of columns (the last row) and
        the sum of all. None where there are none of them.
    """

    inner: float | None
    row_sums: float | None
    column_sums: float | None
    total: float | None


@dataclass(frozen=True, eq=False)
class CrossTable:
    """One table of counts. Its last row, and its last column if it has several, are sums.

    Attributes
    ----------
    axes : tuple of str
        All axes of the table that it belongs to.
    within : str
        Which part of a third axis it is about, in words; "" if there is none.
    down, across : str
        The axes of its rows and columns; "" where there is none.
    rows, columns : tuple of str
        What they are called. Without a second axis there is one column.
    estimates, half_widths : float64 ndarray of shape (rows, columns)
        The counts, and how far the truth may be from each with 95% confidence.
    rounded : int64 ndarray of shape (rows, columns), or None
        Non-negative whole numbers next to them that add up; None where there are none.
    """

    axes: tuple[str, ...]
    within: str
    down: str
    across: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    estimates: Array
    half_widths: Array
    rounded: Array | None

    @property
    def title(self) -> str:
        """What it counts, in words."""
        shown = [axis for axis in self.axes if axis in (self.down, self.across)]
        counted = f"Number of rows by {' and '.join(shown)}" if shown else "Number of rows"
        return f"{counted}, {self.within}" if self.within else counted

    @property
    def rounded_widths(self) -> tuple[float, float] | None:
        """How far the truth is at most from each whole number, of counts and of sums.

        The truth lies in the interval of the estimate, and is at least 0. None without whole
        numbers.
        """
        if self.rounded is None:
            return None
        # The truth is a number of rows, so what an interval holds below 0 is left out.
        low = np.maximum(self.estimates - self.half_widths, 0)
        high = np.maximum(self.estimates + self.half_widths, 0)
        reach = np.maximum(self.rounded - low, high - self.rounded)
        is_sum = np.zeros(reach.shape, bool)
        is_sum[-1] |= self.has_column_sums
        is_sum[:, -1] |= self.has_row_sums
        return float(reach[~is_sum].max()), float(reach[is_sum].max(initial=0))

    @property
    def has_row_sums(self) -> bool:
        """Whether the last column holds sums."""
        return bool(self.across)

    @property
    def has_column_sums(self) -> bool:
        """Whether the last row holds sums."""
        return bool(self.down)

    @property
    def hatched(self) -> Array:
        """Whether each count may be 0: bool ndarray of shape (rows, columns)."""
        # What is known exactly, by public totals, is marked nowhere.
        is_known = self.half_widths == 0
        return np.asarray((self.estimates <= self.half_widths) & ~is_known)

    @property
    def widths(self) -> Widths | None:
        """The half-widths, if those of all counts are equal, and those of all sums of one kind."""
        half = self.half_widths
        rows = len(half) - self.has_column_sums
        columns = half.shape[1] - self.has_row_sums
        # Counts, sums of rows, sums of columns, that of all; a part that is not there is empty.
        halves = np.vsplit(half, [rows])
        parts = [part for block in halves for part in np.hsplit(block, [columns])]
        if not self.has_row_sums:
            # With one axis, the sum of its column is that of all.
            parts[2:] = reversed(parts[2:])
        widths = [_equal(part) for part in parts]
        if any(np.isnan(width) for width in widths if width is not None):
            return None
        return Widths(*widths)


def _equal(half: Array) -> float | None:
    """The one half-width of all; None of none, and NaN where they differ."""
    if not half.size:
        return None
    first = float(half.flat[0])
    return first if np.allclose(half, first, rtol=1e-9, atol=0) else float("nan")


def reading(table: CrossTable) -> str:
    """How to read a table, and how accurate it is."""
    rounded = table.rounded_widths
    widths = table.widths
    said = "each count is within " + (_reach(table.half_widths) if widths is None else "")
    if widths is not None:
        said = _widths(widths)
    if rounded is None:
        sentences = [f"Of the rows counted, {said} of the truth with 95% confidence."]
    else:
        counts, sums = map(_half, rounded)
        also = f" and each sum within {sums}" if table.has_column_sums else ""
        sentences = [
            "Rounded to whole numbers of at least 0 that add up.",
            f"Of the rows counted, each count is within {counts}{also} of the truth with 95% "
            f"confidence; before rounding, {said}.",
        ]
    if widths is None:
        sentences.append("Below each count is its range.")
    if bool(table.hatched.any()):
        sentences.append("A hatched count may be 0.")
    return " ".join(sentences)


def _widths(widths: Widths) -> str:
    """The half-widths in words: "each count is within ±20, each sum of a row within ±31"."""
    clauses = [f"each count is within {_half(widths.inner or 0)}"]
    named = [
        ("each sum of a row", widths.row_sums),
        ("each sum of a column", widths.column_sums),
        ("the sum of all", widths.total),
    ]
    clauses += [
        f"{what} within {_half(width)}" if width else f"{what} exact"
        for what, width in named
        if width is not None
    ]
    return ", ".join(clauses)


def _half(width: float) -> str:
    return _reach(np.array([width]))


def _reach(half: Array) -> str:
    return reach_text(half).replace("+-", "±")
