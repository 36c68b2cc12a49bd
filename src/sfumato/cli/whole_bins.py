"""Axes of whole numbers, and the bins that a plan begins with on them.

Bins that hold different numbers of whole numbers would show peaks that are not in the data.
"""

from __future__ import annotations

from typing import TypeGuard

import msgspec

from sfumato.cli.toml_text import toml_value
from sfumato.domain.domain import Axis, Interval
from sfumato.errors import UsageError
from sfumato.questions.histogram.bins import DEFAULT_BINS

MOST_SINGLE = 62
"""Up to so many whole numbers each of them has a bin of its own."""

MOST_BINS = 25
"""How many bins there are at most where several numbers share one."""

LEAST_BINS = 5
"""How many bins of a whole width there are at least, unless the axis is shorter."""

EVEN = "bins = {bins}   # each {width} wide; take this line out where you write step = 1"
WIDTH = "width = {width}   # whole numbers in a bin; without this line each has its own"
EDGES = "bins = [    # {width} whole numbers each; those at the ends may differ\n{edges}\n]"
A_LINE = 10


def whole_axis(axis: Axis) -> Axis:
    """The axis of a column of whole numbers: bounds without a step become each number between them.

    The upper bound of an axis with a step lies a step above the last number. Other axes stay as
    they are.

    >>> whole_axis(Interval(0, 12)) == Interval(0, 13, step=1)
    True
    """
    if not _has_whole_bounds(axis) or axis.step is not None:
        return axis
    try:
        return msgspec.structs.replace(axis, upper=int(axis.upper) + 1, step=1)
    except UsageError:  # so many numbers that no lattice has a point for each
        return axis


def whole_bins(axis: Axis) -> str:
    """The lines of a question that divide an axis of whole numbers; "" where each has its bin.

    >>> whole_bins(Interval(0, 12, step=1)), whole_bins(Interval(15, 100, step=1))[:9]
    ('', 'width = 5')
    """
    if not _has_whole_bounds(axis) or axis.step != 1:
        return ""
    start, end = int(axis.lower), int(axis.upper)
    if end - start <= MOST_SINGLE:
        return ""
    width = _round_width(end - start)
    if (end - start) % width == 0:
        return WIDTH.format(width=width)
    edges = list(range(-(-start // width) * width, end, width))
    # What is left at an end has a bin of its own where it is half a bin at least.
    if edges[0] - start >= width / 2:
        edges.insert(0, start)
    if end - edges[-1] >= width / 2:
        edges.append(end)
    edges[0], edges[-1] = start, end
    lines = [edges[at : at + A_LINE] for at in range(0, len(edges), A_LINE)]
    text = "\n".join(f"  {toml_value(line)[1:-1]}," for line in lines)
    return EDGES.format(width=width, edges=text)


def even_bins(axis: Axis) -> str:
    """The line of a question by which an axis between whole bounds has bins of a whole width.

    A column whose type is not known may have whole numbers only, and the ten bins of an axis
    without a step would hold different numbers of these. "" where ten do not, or no number does.

    >>> even_bins(Interval(0, 12))[:9], even_bins(Interval(0, 100)), even_bins(Interval(0, 101))
    ('bins = 12', '', '')
    """
    if not _has_whole_bounds(axis) or axis.step is not None:
        return ""
    numbers = int(axis.upper) - int(axis.lower)
    if numbers % DEFAULT_BINS == 0:
        return ""
    fitting = [bins for bins in range(LEAST_BINS, MOST_BINS + 1) if numbers % bins == 0]
    if not fitting and numbers > MOST_SINGLE:
        return ""
    bins = max(fitting, default=numbers)
    return EVEN.format(bins=bins, width=numbers // bins)


def whole_comment(axis: Axis, kind: str) -> str:
    """What stands above an axis in a plan: which whole numbers it has, or how it would have them.

    Parameters
    ----------
    axis : Axis
    kind : str
        What the schema says of the column; "unknown" where it says nothing.
    """
    if not _has_whole_bounds(axis):
        return ""
    start, end = int(axis.lower), int(axis.upper)
    if axis.step == 1:
        return f"The whole numbers {start} to {end - 1}; those beyond count as the nearest:"
    if axis.step is None and kind == "unknown":
        return f"For whole numbers alone write upper = {end + 1}, step = 1:"
    return ""


def _has_whole_bounds(axis: Axis) -> TypeGuard[Interval]:
    if not isinstance(axis, Interval):
        return False
    return isinstance(axis.lower, int) and isinstance(axis.upper, int)


def _round_width(numbers: int) -> int:
    """The least of 1, 2, 5, 10, 20, ... with which there are few bins."""
    power = 1
    while True:
        for digit in (1, 2, 5):
            if numbers <= MOST_BINS * digit * power:
                return digit * power
        power *= 10
