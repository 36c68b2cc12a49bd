"""Bins as a user writes them: a number, edges or a width, for one axis, for all, or by name.

The second part says before anything is paid which whole numbers lie in bins.

Ten bins from 0 to 12 are 1.2 wide. If the column has whole numbers only, two of these lie in the
bin from 6 to 7.2, and one in those beside it, so that the counts show a peak that is not in the
data. Bounds and bins tell this, and no row is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias, TypeGuard, cast

import msgspec
import numpy as np

from sfumato.answers import P
from sfumato.basics import MOST_NUMBERS, Exactly, positive, whole
from sfumato.domain import (
    BinsAndMissing,
    Domain,
    EdgesAxis,
    GridAxis,
    Interval,
    Lattice,
    LatticeAxis,
    grid_axis,
    iso_text,
)
from sfumato.errors import UsageError, printable, shown

# --- bins -----------------------------------------------------------------------------------------

Edges: TypeAlias = Sequence[float | str]
AxisBins: TypeAlias = int | Edges
# Bins as a question holds them: for all its Interval axes, for each in turn, or by name.
Bins: TypeAlias = int | Sequence[AxisBins | float | str] | Mapping[str, AxisBins | None] | None
# The width of bins as a question holds it: for all its Interval axes, or by name.
Width: TypeAlias = float | Mapping[str, float] | None
DEFAULT_BINS = 10


def plain_bins(bins: object) -> Bins:
    """Bring bins into the one form that files give back.

    Numbers of bins become integers. Edges become tuples of floats or ISO text. A flat list may hold
    edges, or a number of bins for each axis. Only the domain decides which, so its integers stay
    integers.
    """
    if isinstance(bins, Mapping):
        return {str(name): _plain_entry(entry) for name, entry in bins.items()}
    given: object = bins.tolist() if hasattr(bins, "tolist") else bins
    if not _is_list(given):
        return _plain_entry(given)
    return tuple(_plain_edges(entry) if _is_list(entry) else _plain_edge(entry) for entry in given)


def plain_width(width: Exactly | Mapping[str, Exactly] | None) -> Width:
    """Bring widths into the one form that files give back: a number, or a dict of numbers."""
    if isinstance(width, Mapping):
        return {str(name): _plain_number(entry) for name, entry in width.items()}
    return None if width is None else _plain_number(width)


def _plain_number(width: Exactly) -> float:
    exact = positive(width, "width")
    return int(exact) if exact.denominator == 1 else float(exact)


def plain_records(records: object, name: str) -> int | None:
    """Read a number of rows: a whole number from 1 to 10^15, or None."""
    if records is None:
        return None
    return whole(
        records,
        name,
        1,
        10**15,
        obstacle="it is a number of rows, from 1 to 10^15",
        remedy=f"Write {name}=1000",
    )


def by_axis(bins: Bins, intervals: list[str]) -> dict[str, AxisBins | None]:
    """Assign bins to each Interval axis.

    Raises
    ------
    UsageError
        If there are not as many entries as axes, or an entry has no axis.
    """
    if isinstance(bins, Mapping):
        check_names("bins", bins, intervals)
        return dict(bins)
    _check_intervals("bins", bins, intervals)
    if bins is None or isinstance(bins, int):
        return dict.fromkeys(intervals, bins)
    if len(intervals) == 1 and not any(isinstance(entry, tuple) for entry in bins):
        return {intervals[0]: cast("Edges", bins)}
    if len(bins) != len(intervals):
        raise UsageError(
            f"bins with {len(bins)} entries",
            f"the question has {len(intervals)} Interval axes",
            "Give one entry per Interval axis, or a dict by name",
        )
    return dict(zip(intervals, cast("Sequence[AxisBins]", bins), strict=True))


def widths_by_axis(width: Width, intervals: list[str]) -> dict[str, float | None]:
    """Assign a width to each Interval axis."""
    if isinstance(width, Mapping):
        check_names("width", width, intervals)
        return dict(width)
    _check_intervals("width", width, intervals)
    return dict.fromkeys(intervals, width)


def _check_intervals(what: str, given: object, intervals: list[str]) -> None:
    if given is not None and not intervals:
        raise UsageError(
            what,
            "the question has no Interval axis, and labels and keys have no bins",
            f"Leave {what} out",
        )


def check_names(what: str, given: Mapping[str, object], intervals: list[str]) -> None:
    """Refuse a dict that names anything but Interval axes of the question."""
    for name in given:
        if name not in intervals:
            raise UsageError(
                f"{what} for {name!r}",
                "the question has no Interval axis of that name",
                f"Give {what} for its Interval axes only",
            )


def binned_lattice(
    domain: Domain, names: Sequence[str], bins: Bins = None, width: Width = None
) -> Lattice:
    """Lay axes of a domain, and bins along those of them that are Interval axes.

    Raises
    ------
    UsageError
        As ``by_axis`` and ``binned``.
    """
    intervals = [name for name in names if name in domain.of_kind(Interval)]
    bins_of = by_axis(bins, intervals)
    widths_of = widths_by_axis(width, intervals)

    def lay_bins(name: str, axis: Interval) -> LatticeAxis:
        return binned(name, axis, bins_of.get(name), widths_of.get(name))

    axes = [domain[name].on_lattice(name, lay_bins) for name in names]
    return Lattice(tuple(axes))


def binned(name: str, axis: Interval, bins: AxisBins | None, width: float | None) -> LatticeAxis:
    """Lay the bins of one axis: by a width, by edges, by their number, or by default.

    The default is one bin for each step of the axis, or ten bins if it has no step.

    Raises
    ------
    UsageError
        If both bins and a width are given, or the bins are fewer than 2, too many, or not within
        the bounds of the axis.
    """
    if width is not None and bins is not None:
        raise UsageError(
            f"bins and width for {name!r}",
            "either of them says where the bins lie",
            "Leave one of them out",
        )
    if width is not None:
        return _axis_of_width(name, axis, width)
    if bins is None:
        return grid_axis(name, axis, axis.natural_cells or DEFAULT_BINS)
    if not isinstance(bins, int):
        return _axis_of_edges(name, axis, bins)
    request = f"bins = {shown(bins)} for {name!r}"
    if bins < 2:
        raise UsageError(request, "a histogram has at least 2 bins", "Choose a larger number")
    if bins > MOST_NUMBERS:
        raise UsageError(request, f"the limit is {MOST_NUMBERS:,} cells", "Take fewer bins")
    return grid_axis(name, axis, bins)


def _axis_of_width(name: str, axis: Interval, width: float) -> LatticeAxis:
    """Lay bins of one width from the lower bound on. The last bin may be narrower."""
    # Exact arithmetic: in floats, three bins of width 0.1 do not end at 0.3.
    low, high = (Fraction(str(end)) for end in axis.numbers)
    exact_width = Fraction(str(width)) * axis.scale.numbers_a_step
    number = math.ceil((high - low) / exact_width)
    request = f"width = {width} for {name!r}"
    if number < 2:
        raise UsageError(request, "a histogram has at least 2 bins", "Choose a smaller width")
    divides_the_axis = low + number * exact_width == high
    # Where a width does not divide its axis, edges are computed and stored one by one.
    most = MOST_NUMBERS if divides_the_axis else 2**20
    if number > most:
        raise UsageError(request, f"that makes more than {most:,} bins", "Choose a larger width")
    if divides_the_axis:
        return grid_axis(name, axis, number, snap=True)
    lower_edges = tuple(float(low + i * exact_width) for i in range(number))
    edges = (*lower_edges, float(high))
    return EdgesAxis(
        name, edges, axis.time, axis.stand_in, axis.stride, axis.numbers[0], axis.column
    )


def _axis_of_edges(name: str, axis: Interval, edges: Edges) -> EdgesAxis:
    numbers = tuple(axis.scale.coordinate(edge, f"an edge of {name!r}") for edge in edges)
    if len(numbers) < 3:
        raise UsageError(
            f"{len(numbers)} edges for {name!r}",
            "a histogram has at least 2 bins",
            "Give at least three edges",
        )
    if list(numbers) != sorted(set(numbers)) or not all(map(math.isfinite, numbers)):
        raise UsageError(
            f"edges for {name!r}",
            "edges must be finite and increase",
            "Sort them, and name each once",
        )
    low, high = axis.numbers
    if numbers[0] < low or numbers[-1] > high:
        beyond = edges[0] if numbers[0] < low else edges[-1]
        wrong, lower, upper = (
            edge if isinstance(edge, str) else f"{edge:.15g}"
            for edge in (beyond, axis.lower, axis.upper)
        )
        raise UsageError(
            f"edges for {name!r}",
            f"{wrong} lies beyond the public bounds of the axis, {lower} to {upper}",
            "Keep the edges within them, or declare wider bounds",
        )
    return EdgesAxis(name, numbers, axis.time, axis.stand_in, axis.stride, low, axis.column)


def _plain_entry(entry: object) -> AxisBins | None:
    plain: object = entry.tolist() if hasattr(entry, "tolist") else entry
    if _is_list(plain):
        return _plain_edges(plain)
    if plain is None or (isinstance(plain, int) and not isinstance(plain, bool)):
        return plain
    raise UsageError(
        f"bins of type {type(plain).__name__}",
        "bins are a number, a list of edges, or a dict of either by axis",
        "Write bins=20",
    )


def _plain_edges(edges: Sequence[object]) -> Edges:
    plain = [_plain_edge(edge) for edge in edges]
    return tuple(_as_double(edge) if isinstance(edge, int) else edge for edge in plain)


def _as_double(edge: int) -> float:
    try:
        return float(edge)
    except OverflowError:
        return math.inf  # refused later: no axis extends so far


def _plain_edge(edge: object) -> float | str:
    plain: object = edge.item() if hasattr(edge, "item") else edge
    # 50 and 50.0 take one form, so that equal questions have equal bytes.
    if isinstance(plain, float) and plain.is_integer() and abs(plain) < 2**53:
        return int(plain)
    # Anything but a number or a date is refused later, when the name of the axis is known.
    return cast("float | str", iso_text(plain))


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def rearranged(bins: Bins, axes: Sequence[str], intervals: Sequence[str]) -> Bins:
    """Return the same bins for axes in another order.

    Parameters
    ----------
    bins : as a histogram has them
    axes : sequence of str
        In the new order.
    intervals : sequence of str
        Those that have bins, in the order of now.
    """
    if not isinstance(bins, Sequence) or len(intervals) < 2:
        return bins
    # They are listed in the order of the axes.
    places = [intervals.index(name) for name in axes if name in intervals]
    return tuple(bins[place] for place in places)


# --- whole numbers in bins ------------------------------------------------------------------------

# Up to so many whole numbers may have a bin each.
SINGLE = 62


def with_whole_numbers(preview: P, lattice: Lattice) -> P:
    """A preview that says which whole numbers have bins, and where bins have unequally many."""
    sentences = tuple(
        sentence for axis in lattice.axes if (sentence := _single(axis) or _uneven(axis))
    )
    return msgspec.structs.replace(preview, whole_numbers=sentences) if sentences else preview


def uneven(lattice: Lattice) -> list[str]:
    """Return which axes have bins of more and of fewer whole numbers, a sentence each.

    >>> uneven(Lattice((GridAxis("age", 0, 120, cells=10),)))
    []
    """
    return [sentence for axis in lattice.axes if (sentence := _uneven(axis))]


def _single(axis: LatticeAxis) -> str:
    """Return what is said of an axis where each whole number has a bin; "" of others."""
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
    bins = axis.bins if isinstance(axis, BinsAndMissing) else axis
    if not isinstance(bins, GridAxis | EdgesAxis) or bins.time is not None:
        return ""
    low, high = bins.ends
    width = _width(bins)
    # Whoever takes narrower bins has no whole numbers; in wider ones, one more is at most a tenth
    # more.
    if width is None or width.denominator == 1 or not 0.1 < width < 10:
        return ""
    # From 0 to 1, or from -1 to 1, numbers are hardly whole ones.
    if low % 1 or high - low < 3:
        return ""
    return _unevenness(bins, int(width))


def _unevenness(bins: GridAxis | EdgesAxis, fewest: int) -> str:
    """Say that bins hold unequally many whole numbers, and what would mend it."""
    low, high = bins.ends
    unequal = f"some of its bins hold {fewest + 1} of them and others {fewest or 'none'}"
    peaks = "the counts would show peaks that are not in the data"
    remedy = "give the bins a whole width"
    name = printable(bins.name)
    if bins.whole_names():
        return f"{name} has whole numbers, and {unequal}: {peaks}; {remedy}"
    if isinstance(bins, GridAxis) and not high % 1 and bins.step is None:
        further = f", and {remedy}" if high - low >= SINGLE else ""
        remedy = f"declare step = 1 and upper = {high + 1:.0f}{further}"
    return f"if {name} has only whole numbers, {unequal}: {peaks}; then {remedy}"


def _width(axis: GridAxis | EdgesAxis) -> Fraction | None:
    """Return the width that the bins have, but for the last one; None where they differ."""
    if isinstance(axis, GridAxis):
        return (Fraction(str(axis.upper)) - Fraction(str(axis.lower))) / axis.cells
    first, second = axis.bounds[:2]
    inner = np.diff(axis.bounds[:-1])
    if not np.allclose(inner, inner[0], rtol=1e-9):
        return None
    return Fraction(str(second)) - Fraction(str(first))
