"""Which whole numbers lie in bins, said before anything is paid.

Ten bins from 0 to 12 are 1.2 wide. If the column has whole numbers only, two of these lie in the
bin from 6 to 7.2, and one in those beside it, so that the counts show a peak that is not in the
data. Bounds and bins tell this, and no row is read.
"""

from __future__ import annotations

from fractions import Fraction

import msgspec
import numpy as np

from sfumato.answers.preview import P
from sfumato.domain.lattice import BinsAndMissing, EdgesAxis, GridAxis, Lattice, LatticeAxis
from sfumato.errors import printable

WIDEST = 10
"""In wider bins, one number more is at most a tenth more."""

NARROWEST = 0.1
"""Whoever takes narrower bins has no whole numbers."""

FEWEST = 3
"""From 0 to 1, or from -1 to 1, numbers are hardly whole ones."""

SINGLE = 62
"""Up to so many whole numbers may have a bin each."""


def with_whole_numbers(preview: P, lattice: Lattice) -> P:
    """A preview that says which whole numbers have bins, and where bins have unequally many."""
    found = tuple(each for axis in lattice.axes if (each := _single(axis) or _uneven(axis)))
    return msgspec.structs.replace(preview, whole_numbers=found) if found else preview


def uneven(lattice: Lattice) -> list[str]:
    """Which axes have bins of more and of fewer whole numbers, a sentence each.

    >>> uneven(Lattice((GridAxis("age", 0, 120, cells=10),)))
    []
    """
    return [each for axis in lattice.axes if (each := _uneven(axis))]


def _single(axis: LatticeAxis) -> str:
    """What is said of an axis where each whole number has a bin; "" of others."""
    bins = axis.bins if isinstance(axis, BinsAndMissing) else axis
    if not isinstance(bins, GridAxis) or _width(bins) != 1 or not bins.whole_names():
        return ""
    low, high = bins.ends
    return (
        f"{printable(bins.name)} has a bin for each whole number from {low:.0f} (and below) "
        f"to {high - 1:.0f} (and above)"
    )


def _uneven(axis: LatticeAxis) -> str:
    """What is said of the bins of one axis; "" where they hold equally many numbers, or nearly."""
    if isinstance(axis, BinsAndMissing):
        return _uneven(axis.bins)
    if not isinstance(axis, GridAxis | EdgesAxis) or axis.time is not None:
        return ""
    low, high = axis.ends
    width = _width(axis)
    is_near = width is None or width.denominator == 1 or not NARROWEST < width < WIDEST
    if is_near or low % 1 or high - low < FEWEST:
        return ""
    fewer = int(width or 0)
    bins = f"some of its bins hold {fewer + 1} of them and others {fewer or 'none'}"
    peaks = "the counts would show peaks that are not in the data"
    name = printable(axis.name)
    if axis.whole_names():
        return f"{name} has whole numbers, and {bins}: {peaks}; give the bins a whole width"
    remedy = "give the bins a whole width"
    if isinstance(axis, GridAxis) and not high % 1 and axis.step is None:
        further = f", and {remedy}" if high - low >= SINGLE else ""
        remedy = f"declare step = 1 and upper = {high + 1:.0f}{further}"
    return f"if {name} has only whole numbers, {bins}: {peaks}; then {remedy}"


def _width(axis: GridAxis | EdgesAxis) -> Fraction | None:
    """The width that the bins have, but for the last one; None where they differ."""
    if isinstance(axis, GridAxis):
        return (Fraction(str(axis.upper)) - Fraction(str(axis.lower))) / axis.cells
    first, second = axis.bounds[:2]
    inner = np.diff(axis.bounds[:-1])
    if not np.allclose(inner, inner[0], rtol=1e-9):
        return None
    return Fraction(str(second)) - Fraction(str(first))
