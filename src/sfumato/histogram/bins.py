"""Bins as a user writes them: a number, edges, or a width; for one axis, for all, or by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias, TypeGuard, cast

from sfumato.domain import EdgesAxis, Interval, LatticeAxis, as_number, grid_axis
from sfumato.errors import UsageError, shown
from sfumato.limits import MOST_NUMBERS
from sfumato.numbers import Exactly, positive

Edges: TypeAlias = Sequence[float | str]
AxisBins: TypeAlias = int | Edges
Bins: TypeAlias = int | Sequence[AxisBins | float | str] | Mapping[str, AxisBins | None] | None
"""Bins as a question holds them: for all its Interval axes, for each in turn, or by name."""
Width: TypeAlias = float | Mapping[str, float] | None
DEFAULT_BINS = 10
MICROSECONDS = 10**6
MOST_EDGES = (
    2**20
)  # that are computed and stored one by one, where a width does not divide its axis


def plain_bins(bins: object) -> Bins:
    """Bring bins into the one form that files give back: numbers of bins as integers, edges as tuples of floats or ISO text.

    A flat list may hold edges or a number of bins per axis, and only the domain tells, so its integers stay as they are.
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


def by_axis(bins: Bins, intervals: list[str]) -> dict[str, AxisBins | None]:
    """Say which bins each Interval axis gets."""
    if isinstance(bins, Mapping):
        check_names("bins", bins, intervals)
        return dict(bins)
    _check_any("bins", bins, intervals)
    if bins is None or isinstance(bins, int):
        return dict.fromkeys(intervals, bins)
    if len(intervals) == 1 and not any(isinstance(entry, tuple) for entry in bins):
        return {intervals[0]: cast("Edges", bins)}
    if len(bins) != len(intervals):
        asked = f"bins with {len(bins)} entries"
        raise UsageError(
            asked,
            f"the question has {len(intervals)} Interval axes",
            "Give one entry per Interval axis, or a dict by name",
        )
    return dict(zip(intervals, cast("Sequence[AxisBins]", bins), strict=True))


def widths_by_axis(width: Width, intervals: list[str]) -> dict[str, float | None]:
    """Say which width each Interval axis gets."""
    if isinstance(width, Mapping):
        check_names("width", width, intervals)
        return dict(width)
    _check_any("width", width, intervals)
    return dict.fromkeys(intervals, width)


def _check_any(what: str, given: object, intervals: list[str]) -> None:
    """Refuse bins or a width where no axis takes any."""
    if given is not None and not intervals:
        raise UsageError(
            what,
            "the question has no Interval axis, and labels and keys have no bins",
            f"Leave {what} out",
        )


def check_names(what: str, given: Mapping[str, object], intervals: list[str]) -> None:
    """Refuse a dict that names an axis which the question does not have, or has no bins of."""
    for name in given:
        if name not in intervals:
            raise UsageError(
                f"{what} for {name!r}",
                "the question has no Interval axis of that name",
                f"Give {what} for its Interval axes only",
            )


def binned(name: str, axis: Interval, bins: AxisBins | None, width: float | None) -> LatticeAxis:
    """Lay the bins of one axis."""
    if width is not None:
        if bins is not None:
            raise UsageError(
                f"bins and width for {name!r}",
                "either of them says where the bins lie",
                "Leave one of them out",
            )
        return _of_width(name, axis, width)
    if bins is not None and not isinstance(bins, int):
        return _edges_axis(name, axis, bins)
    if bins is not None and bins < 2:
        raise UsageError(
            f"bins = {shown(bins)} for {name!r}",
            "a histogram has at least 2 bins",
            "Choose a larger number",
        )
    if bins is not None and bins > MOST_NUMBERS:
        raise UsageError(
            f"bins = {shown(bins)} for {name!r}",
            f"the limit is {MOST_NUMBERS:,} cells",
            "Take fewer bins",
        )
    return grid_axis(name, axis, bins if bins is not None else axis.natural_cells or DEFAULT_BINS)


def _of_width(name: str, axis: Interval, width: float) -> LatticeAxis:
    """Bins of one width from the lower bound on; the last one is narrower where they do not fill the axis."""
    low, high = (Fraction(str(end)) for end in axis.numbers)
    each = Fraction(str(width)) * (MICROSECONDS if axis.time == "microsecond" else 1)
    number = math.ceil((high - low) / each)
    if number < 2:
        raise UsageError(
            f"width = {width} for {name!r}",
            "a histogram has at least 2 bins",
            "Choose a smaller width",
        )
    even = low + number * each == high
    most = MOST_NUMBERS if even else MOST_EDGES
    if number > most:
        raise UsageError(
            f"width = {width} for {name!r}",
            f"that makes more than {most:,} bins",
            "Choose a larger width",
        )
    if even:
        return grid_axis(name, axis, number, snap=True)
    edges = tuple(float(low + i * each) for i in range(number))
    return EdgesAxis(
        name, (*edges, float(high)), axis.time, axis.stand_in, axis.stride, axis.numbers[0]
    )


def _edges_axis(name: str, axis: Interval, edges: Edges) -> EdgesAxis:
    numbers = tuple(as_number(edge, axis.time, f"an edge of {name!r}") for edge in edges)
    if len(numbers) < 3:
        raise UsageError(
            f"{len(numbers)} edges for {name!r}",
            "a histogram has at least 2 bins",
            "Give at least three edges",
        )
    if not all(math.isfinite(edge) for edge in numbers) or any(
        b <= a for a, b in pairwise(numbers)
    ):
        raise UsageError(
            f"edges for {name!r}",
            "edges must be finite and increase",
            "Sort them, and name each once",
        )
    low, high = axis.numbers
    if numbers[0] < low or numbers[-1] > high:
        raise UsageError(
            f"edges for {name!r}",
            "they leave the public bounds of the axis",
            "Keep them inside the Interval, or widen it",
        )
    return EdgesAxis(name, numbers, axis.time, axis.stand_in, axis.stride, low)


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
    return tuple(
        _as_double(edge) if isinstance(edge, int) else edge for edge in map(_plain_edge, edges)
    )


def _as_double(edge: int) -> float:
    try:
        return float(edge)
    except OverflowError:
        return math.inf  # which no axis has


def _plain_edge(edge: object) -> float | str:
    plain: object = edge.item() if hasattr(edge, "item") else edge
    if isinstance(plain, float) and plain.is_integer() and abs(plain) < 2**53:
        return int(plain)
    # What is neither a number nor a date is refused when the bins are laid, where the axis has a name.
    return cast("float | str", plain.isoformat() if hasattr(plain, "isoformat") else plain)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)
