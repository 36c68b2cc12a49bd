"""Which values are added up: public bounds, clips, and the lattice that values are rounded to."""

from __future__ import annotations

import math
from typing import Literal, SupportsFloat, TypeAlias

import msgspec
import numpy as np

from sfumato.arrays import Array
from sfumato.domain import Interval, grid_axis
from sfumato.errors import UsageError, shown
from sfumato.lattice import GridAxis

Clip: TypeAlias = float | tuple[float, float] | Literal["auto"] | None
"""Narrower public bounds: an upper bound, a lower and an upper one, one to be chosen, or none."""

MOST_STEPS = 2**20  # of a value axis: each group is counted in as many cells
COARSE_STEPS = 2**16  # laid over an axis that declares no step, or more than MOST_STEPS
FINE_STEPS = 2**19  # instead of these, where a clip far below the upper bound may be chosen


class Values(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The values that are added up: the lattice lower, lower + (upper - lower) / points, .., upper.

    Attributes
    ----------
    name : str
        The axis.
    lower, upper : float
        The first and the last lattice value. Values beyond them count as these.
    points : int
        The number of steps between the two.
    rounded : bool
        Whether values between two lattice values occur. They count as the nearest one.
    """

    name: str
    lower: float
    upper: float
    points: int
    rounded: bool

    @property
    def width(self) -> float:
        """The distance between the bounds."""
        return self.upper - self.lower

    @property
    def cut(self) -> str:
        """A clause for reports: on an axis with a step, values between two steps are cut."""
        if self.rounded:
            return ""
        return f", each value cut to its step of {self.width / self.points:g}"

    @property
    def rounding(self) -> float:
        """The largest distance between a value and the lattice value that it counts as."""
        return self.width / self.points / 2 if self.rounded else 0.0


def plain_clip(clip: object) -> Clip:
    """Read a clip as the user wrote it: a number, a pair of numbers, or "auto".

    Raises
    ------
    UsageError
        If it is neither, or a number is not finite.
    """
    if clip is None:
        return None
    if clip == "auto":
        return "auto"
    is_pair = isinstance(clip, list | tuple)
    bounds = clip if isinstance(clip, list | tuple) else [clip]
    numbers = [
        float(bound)
        for bound in bounds
        if isinstance(bound, SupportsFloat) and not isinstance(bound, bool | str)
    ]
    all_numbers = len(numbers) == len(bounds) and all(map(math.isfinite, numbers))
    if not all_numbers or len(bounds) not in (1, 2):
        obstacle = "it is neither a number nor a pair of numbers"
        remedy = 'Write clip=200, clip=(0, 200) or clip="auto"'
        raise UsageError("a clip", obstacle, remedy)
    return (numbers[0], numbers[-1]) if is_pair else numbers[0]


def clipped(title: str, axis: Interval, clip: float | tuple[float, float]) -> Interval:
    """Narrow an axis to a clip.

    Raises
    ------
    UsageError
        If the clip does not lie within the bounds of the axis.
    """
    lower, upper = axis.numbers
    # The upper bound of an axis with a step does not occur: its last value is one step below.
    last = upper if axis.stride is None else upper - axis.stride
    low, high = (lower, clip) if isinstance(clip, int | float) else clip
    if not lower <= low < high <= last:
        obstacle = f"it does not lie within the bounds, {lower:g} to {last:g}"
        remedy = "Choose a clip within them, or declare wider bounds"
        raise UsageError(f"{title}, clip = {shown(clip)}", obstacle, remedy)
    if axis.stride is None:
        return Interval(low, high)
    return Interval(low, high + axis.stride, step=axis.step)


def value_axis(title: str, name: str, interval: Interval, steps: int = COARSE_STEPS) -> GridAxis:
    """Lay the cells in which the values of an axis are counted.

    An axis with a step has one cell for each step. Any other axis has two cells for each of
    ``steps``: so each value lies in a cell that belongs to its nearest step.
    """
    natural = interval.natural_cells
    if natural is not None and natural < 2:
        raise UsageError(title, f"{name!r} has only one value", "Declare wider bounds")
    if natural is not None and natural <= MOST_STEPS:
        return grid_axis(name, interval, natural)
    return grid_axis(name, interval, 2 * steps)


def axis_steps(axis: GridAxis) -> tuple[int, bool]:
    """Count the steps from the first to the last value, and say whether values are rounded."""
    cells_are_steps = (
        axis.step is not None and round((axis.upper - axis.lower) / axis.step) == axis.cells
    )
    return (axis.cells - 1, False) if cells_are_steps else (axis.cells // 2, True)


def nearest_steps(axis: GridAxis, points: int) -> Array:
    """Find the lattice value 0..points nearest to each cell: int64 ndarray of shape (cells,)."""
    steps, rounded = axis_steps(axis)
    cells = np.arange(axis.cells, dtype=np.int64)
    if rounded:
        # The first half of a step's cells lies nearest to its lower end, the rest to its upper end.
        cells_per_step = axis.cells // points
        return (cells + cells_per_step // 2) // cells_per_step
    # Integer rounding of cells * points / steps to the nearest whole number.
    return (2 * cells * points + steps) // (2 * steps)
