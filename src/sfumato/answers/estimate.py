"""A number with an interval, and how such numbers are printed and said in words.

As many digits of an estimate are printed as its interval leaves to it. An estimate is a double of
some sixteen digits, and its interval says that two or three of them mean something. Where people
read numbers, in text and CSV, two digits of the half-width are kept and the estimate has the same
(JCGM 100:2008, 7.2.6). The ends of intervals are rounded outwards, so that what is printed holds
with the confidence that is stated. What programs read has all digits.

Every sentence on accuracy says half-widths in the words that are found here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sfumato.basics import (
    Array,
    Exactly,
    ExplainedStruct,
    array_of,
    is_valid,
    ndarray_of,
    probability,
)
from sfumato.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

LEAST = Fraction(1, 10**9)  # the smallest probability of error that intervals are computed for


class Estimate(ExplainedStruct, frozen=True):
    """A number, or an array of them, with an interval.

    The truth lies in [low, high] with probability ``confidence``.

    Attributes
    ----------
    value, low, high : number or ndarray
    confidence : float
    about : str
        What the truth is of: "the rows counted", with their limit where persons have one.
    known : bool, or ndarray like ``value``
        False where the interval is all that was possible before anything was counted: the value
        then says nothing.

    >>> from sfumato import Estimate
    >>> total = Estimate(value=1203, low=1188, high=1218, confidence=0.95)
    >>> total
    Estimate(value=1203, low=1188, high=1218, confidence=0.95, about='the rows counted', known=True)
    >>> total.low <= 1200 <= total.high
    True
    """

    value: float | Array
    low: float | Array
    high: float | Array
    confidence: float
    about: str = "the rows counted"
    known: bool | Array = True

    def __str__(self) -> str:
        at = f"at {self.confidence:.0%} confidence, of {self.about}"
        if np.ndim(self.value):
            unknown = int(np.size(self.known) - np.count_nonzero(self.known))
            return f"{np.size(self.value)} estimates {at}" + (
                f"; {unknown} of them not known" if unknown else ""
            )
        value, low, high = map(_shown, (self.value, self.low, self.high))
        return f"{value if self.known else 'not known'} ({low} to {high} {at})"


def _shown(number: float | Array) -> str:
    """Print one number shortly: large ones and whole ones without decimals."""
    plain: float = number.item() if isinstance(number, np.ndarray) else number
    return f"{plain:,.0f}" if abs(plain) >= 1000 or plain == int(plain) else f"{plain:.4g}"


def error_probability(confidence: Exactly) -> float:
    """Read a confidence such as 0.95 as the probability of error, 0.05.

    Parameters
    ----------
    confidence : number in (0, 1)

    Returns
    -------
    float

    >>> from sfumato.extending import error_probability
    >>> error_probability("0.95")
    0.05
    """
    alpha = 1 - probability(confidence, "confidence")
    if not LEAST <= alpha <= 1 - LEAST:
        raise UsageError(
            "confidence",
            "it is too close to 0 or 1 for an interval that says anything",
            "Choose a confidence such as 0.95",
        )
    return float(alpha)


# How many digits of the half-width are kept.
DIGITS = 2

# Of the last digit: an end that is so near to a number of few digits is that number.
NEARLY = 1e-6


def to_meaningful_digits(table: pa.Table, spare: int = 0) -> pa.Table:
    """A table whose estimates have the digits that their intervals leave to them.

    Parameters
    ----------
    table : pyarrow.Table
        As ``to_frame`` gives it: an estimate is a column of floats before ``low`` and ``high``, or
        beside ``NAME_low`` and ``NAME_high`` or ``NAME_error``. Other columns stay as they are.
    spare : int
        How many further digits are kept.

    >>> import pyarrow as pa
    >>> raw = pa.table({"mean": [2.76260, None], "low": [1.79725, 0.0], "high": [3.69751, 6.68]})
    >>> to_meaningful_digits(raw).to_pydict()
    {'mean': [2.76, None], 'low': [1.79, 0.0], 'high': [3.7, 6.68]}
    >>> raw = pa.table({"count": [34.85], "low": [18.3], "high": [51.4]})
    >>> to_meaningful_digits(raw).to_pylist()
    [{'count': 35, 'low': 18, 'high': 52}]
    """
    for value, low, high in _intervals(table):
        names = [name for name in (value, low, high) if name is not None]
        columns = {name: ndarray_of(table[name]).astype(float) for name in names}
        width = columns[high] if low is None else (columns[high] - columns[low]) / 2
        decimals = _decimals(width, spare)
        if decimals is None:
            continue
        for name, numbers in columns.items():
            missing = ~is_valid(table[name])
            column = _in_decimals(numbers, missing, decimals, down=name == low, up=name == high)
            table = table.set_column(table.column_names.index(name), name, column)
    return table


def _intervals(table: pa.Table) -> Iterator[tuple[str, str | None, str]]:
    """The estimates of a table, each with the columns of its interval, or of its half-width."""
    import pyarrow as pa

    names = table.column_names
    floats = {field.name for field in table.schema if pa.types.is_floating(field.type)}
    for at, name in enumerate(names):
        if name not in floats:
            continue
        ends = [(f"{name}_low", f"{name}_high"), (None, f"{name}_error")]
        ends += [("low", "high")] if names[at + 1 : at + 2] == ["low"] else []
        ends += [(name, "cell_high")] if name == "cell_low" else []
        for low, high in ends:
            if high in floats and (low is None or low in floats):
                yield name, low, high
                break


def _decimals(half_widths: Array, spare: int) -> int | None:
    """How many decimals the smallest half-width has; None if it has none, as of exact numbers."""
    positive = half_widths[np.isfinite(half_widths) & (half_widths > 0)]
    if not positive.size:
        return None
    decimals = DIGITS + spare - 1 - math.floor(math.log10(positive.min()))
    # Numbers are never rounded to tens: readers expect a count to be a whole number.
    return max(decimals, 0) if decimals <= 12 else None


def _in_decimals(
    numbers: Array, missing: Array, decimals: int, *, down: bool, up: bool
) -> pa.Array:
    """Round numbers, except where they are missing; without decimals they become integers."""
    steps = numbers * 10.0**decimals
    if down:
        steps = np.floor(steps + NEARLY)
    elif up:
        steps = np.ceil(steps - NEARLY)
    # Adding 0 makes 0 of a negative one.
    rounded = np.round(np.round(steps) / 10.0**decimals, decimals) + 0.0
    known = np.where(missing, 0.0, rounded)
    # From 2^53 on doubles do not tell whole numbers apart, so the column stays one of doubles.
    is_whole = decimals == 0 and bool((np.abs(known) < 2**53).all())
    return array_of(known.astype(np.int64) if is_whole else known, missing)


def reach_text(half: Array) -> str:
    """Print half-widths: one, or the smallest and the largest.

    >>> reach_text(np.array([3.843, 4.689])), reach_text(np.array([2.0, 2.0]))
    ('+-3.9 to +-4.7', '+-2')
    """
    ends = (half_width_text(np.nanmin(half)), half_width_text(np.nanmax(half)))
    return " to ".join(f"+-{end}" for end in dict.fromkeys(ends))


def half_width_text(half: float) -> str:
    """Print a half-width in two digits, rounded up; whole numbers have all of theirs.

    Holds because: an interval that is wider contains the truth as often at least.

    >>> half_width_text(0.4634), half_width_text(14.65), half_width_text(1234)
    ('0.47', '15', '1,234')
    """
    if not 0 < half < 10:
        return f"{half:,.0f}" if half == round(half) else f"{math.ceil(half - NEARLY):,}"
    last = Decimal(1).scaleb(math.floor(math.log10(half)) - DIGITS + 1)
    steps = math.ceil(half / float(last) - NEARLY)
    return f"{float(steps * last):.12g}"
