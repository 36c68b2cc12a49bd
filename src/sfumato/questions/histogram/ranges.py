"""Ranges of bins and running totals of a table of counts, with intervals.

The second part is ``workload="ranges"``: what may be asked, and its preview.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from sfumato.answers import Preview, error_probability
from sfumato.basics import Array, Exactly
from sfumato.domain import BinsAndMissing, EdgesAxis, GridAxis, LabelAxis, Lattice, LatticeAxis
from sfumato.errors import UsageError, nearest, shown
from sfumato.mechanisms import Law, sum_half_width
from sfumato.questions.histogram.strategies import (
    MOST_CELLS,
    Strategy,
    laid_along,
    range_half_widths,
    sum_half_widths,
    sum_variances,
)
from sfumato.questions.histogram.table_noise import TableNoise

# --- ranges of counts -----------------------------------------------------------------------------

# Two ends among the edges of an Interval axis, or arrays of them; or one or more labels.
Wanted: TypeAlias = "tuple[ArrayLike, ArrayLike] | Sequence[ArrayLike] | str | int | bool"


# Sums of cells: what the counts add up to, and between which whole numbers the truth lies.
Sums: TypeAlias = tuple[Array, Array, Array]


class CountedCells(msgspec.Struct, frozen=True):
    """Counts of cells, and how far sums of them are from the truth.

    Attributes
    ----------
    lattice : Lattice
    values : int64 ndarray with a dimension for each axis
        The counts that are shown.
    estimates : ndarray like ``values``
        The same before they were rounded.
    noise : TableNoise
    """

    lattice: Lattice
    values: Array
    estimates: Array
    noise: TableNoise

    def between(
        self, ranges: Mapping[str, Wanted], alpha: float, simultaneous: bool
    ) -> tuple[Sums, tuple[int, ...]]:
        """Add up the cells of ranges: the sums, flat, and the shape in which they were given.

        Parameters
        ----------
        ranges : mapping of axis name -> two ends, or labels
        alpha : float
            The probability of error of each sum, or of all of them together.
        simultaneous : bool
        """
        chosen = self._labels(ranges)
        axis = self._interval(ranges)
        if axis is None:
            along = self.noise.along
            starts = np.zeros(1, np.int64)
            stops = np.array([len(chosen[along])])
            shape: tuple[int, ...] = ()
        else:
            along = axis
            starts, stops, shape = bins_between(self.lattice.axes[axis], ranges)
        alpha_of_sum = alpha / len(starts) if simultaneous and len(starts) else alpha
        groups = np.ix_(*chosen)
        value, estimate = (
            _between(cells[groups], along, starts, stops) for cells in (self.values, self.estimates)
        )
        lines = math.prod(len(cells) for at, cells in enumerate(chosen) if at != along)
        half = self.noise.range_half_widths(starts, stops, lines, alpha_of_sum)
        return whole_between(value, estimate, half), shape

    def cumulated(self, axis: int, alpha: float, simultaneous: bool) -> Sums:
        """Running totals along an Interval axis, in the other axes cell by cell."""
        bins = np.arange(_bins_of(self.lattice.axes[axis]).size)
        value, estimate = (
            np.cumsum(np.take(cells, bins, axis=axis), axis=axis)
            for cells in (self.values, self.estimates)
        )
        half = self.noise.running_half_widths(alpha / value.size if simultaneous else alpha, bins)
        return whole_between(value, estimate, laid_along(half, axis, value.ndim))

    def _interval(self, ranges: Mapping[str, Wanted]) -> int | None:
        binned = [axis.name for axis in self.lattice.axes if not isinstance(axis, LabelAxis)]
        indices = [self.lattice.names.index(name) for name in ranges if name in binned]
        if len(indices) > 1:
            raise UsageError(
                "ranges along several axes",
                "ranges are counted along one Interval axis",
                "Name one of them",
            )
        return indices[0] if indices else None

    def _labels(self, ranges: Mapping[str, Wanted]) -> list[Array]:
        """Return which cells of each axis are added up: all but where labels are named."""
        require_axes(self.lattice, ranges)
        chosen = []
        for axis in self.lattice.axes:
            cells = np.arange(axis.size)
            if axis.name in ranges and isinstance(axis, LabelAxis):
                given = ranges[axis.name]
                labels = given if isinstance(given, list | tuple | set | frozenset) else [given]
                values: list[object] = list(axis.cell_values())
                for label in labels:
                    if label not in values:
                        raise UsageError(
                            f"{axis.name} = {shown(label)}",
                            "it is not among the labels",
                            "Name a label of the axis",
                        )
                cells = np.array(sorted({values.index(label) for label in labels}), np.int64)
            chosen.append(cells)
        return chosen


def require_axes(lattice: Lattice, names: Iterable[str]) -> None:
    """Refuse names that no axis of a histogram has."""
    for name in names:
        if name not in lattice.names:
            raise UsageError(
                f"axis {name!r}",
                f"the histogram has none of that name; {nearest(name, lattice.names)}",
                "Name one of its axes",
            )


def _between(cells: Array, along: int, starts: Array, stops: Array) -> Array:
    """Add up all cells from one place along an axis to another: ndarray like ``starts``."""
    others = tuple(axis for axis in range(cells.ndim) if axis != along)
    below = np.concatenate([[0], np.cumsum(cells.sum(axis=others))])
    return np.asarray(below[stops] - below[starts])


def whole_between(value: Array, estimate: Array, half: Array) -> Sums:
    """Return the whole numbers within a half-width of an estimate, and the number that is shown."""
    # The truth is a whole number, so the ends are rounded inwards. The slack is more than the
    # rounding of the estimate; one that is a whole number has none.
    slack = 1e-9 * (1 + np.abs(estimate)) if estimate.dtype.kind == "f" else 0
    low = np.ceil(estimate - half - slack).astype(np.int64)
    high = np.floor(estimate + half + slack).astype(np.int64)
    return value, np.minimum(low, value), np.maximum(high, value)


def _bins_of(axis: LatticeAxis) -> GridAxis | EdgesAxis:
    """Return the bins of an Interval axis, without the cell of missing values."""
    if isinstance(axis, BinsAndMissing):
        return axis.bins
    if isinstance(axis, GridAxis | EdgesAxis):
        return axis
    raise UsageError(
        f"ranges along {axis.name!r}", "it has labels, which have no order", "Name an Interval axis"
    )


def bins_between(
    axis: LatticeAxis, ranges: Mapping[str, Wanted]
) -> tuple[Array, Array, tuple[int, ...]]:
    """Return which bins lie between two edges: the first ones, those after the last, and the shape.

    Raises
    ------
    UsageError
        If an end is no edge of the bins.
    """
    bins = _bins_of(axis)
    given = ranges[axis.name]
    request = f"a range along {axis.name!r}"
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise UsageError(request, "it is not a pair of edges", f"Write {axis.name}=(lower, upper)")
    ends = [_edge_indices(bins, end, request) for end in given]
    try:
        lower, upper = np.broadcast_arrays(*ends)
    except ValueError:
        raise UsageError(
            request, "lower and upper ends differ in number", "Give as many of each"
        ) from None
    if (lower > upper).any():
        raise UsageError(request, "lower must not exceed upper", "Swap the ends")
    return lower.ravel(), upper.ravel(), lower.shape


def _edge_indices(bins: GridAxis | EdgesAxis, end: ArrayLike, request: str) -> Array:
    """Return the indices of ends among the edges: int64 ndarray like ``end``."""
    edges = bins.edges()
    given = np.asarray(end, dtype=object)
    numbers = [bins.scale.coordinate(value, bins.name) for value in given.ravel()]
    coordinates = np.array(numbers, dtype=float)
    distances = np.abs(coordinates[:, None] - edges)
    at = np.asarray(distances.argmin(axis=1))
    # So near an edge, as a share of the width of the axis, a number is that edge.
    off = np.abs(coordinates - edges[at]) > 1e-9 * (edges[-1] - edges[0])
    if off.any():
        near = bins.scale.text(edges[at[off]][:1])[0]
        raise UsageError(
            request,
            f"its ends must be edges of the bins; the nearest one is {near}",
            "Name edges, or ask for bins that have these",
        )
    return at.reshape(given.shape)


# --- a workload of ranges -------------------------------------------------------------------------

WITHOUT = "Leave workload out, or ask for a histogram of known bins of one Interval axis"


def ranged_axis(title: str, lattice: Lattice) -> int:
    """Return the index of the one axis along which ranges are counted.

    Raises
    ------
    UsageError
        If there is not exactly one Interval axis, an axis of keys, or there are too many bins.
    """
    request = f"{title} with workload = 'ranges'"
    if lattice.keyed or any(axis.has_keys for axis in lattice.axes):
        raise UsageError(request, "keys that are not shown are missing from every range", WITHOUT)
    indices = [at for at, axis in enumerate(lattice.axes) if not isinstance(axis, LabelAxis)]
    if len(indices) != 1:
        raise UsageError(
            request,
            f"ranges are counted along one Interval axis, and it has {len(indices)}",
            WITHOUT,
        )
    size = lattice.axes[indices[0]].size
    if size > MOST_CELLS:
        raise UsageError(
            request,
            f"it has {size:,} bins along the axis, and at most {MOST_CELLS:,} are possible",
            "Give fewer bins",
        )
    return indices[0]


class RangesPreview(Preview, frozen=True):
    """The preview of counts that follow from noisy sums of bins.

    Attributes
    ----------
    law : DiscreteLaplace or DiscreteGaussian
        The noise that each count would have by itself, for comparison.
    strategy : RangeTree or RangeMatrix
        Which sums of bins are counted, and their noise.
    rows : int or None
        As stated by the holder.
    """

    law: Law
    strategy: Strategy
    rows: int | None = None

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> int:
        """Half-width of the interval of each count, of the least accurate one.

        ``simultaneous``: all of them hold together (Bonferroni).
        """
        alpha = error_probability(confidence) / ((self.cells or 1) if simultaneous else 1)
        # The least accurate bin is one of those of the largest variances.
        coefficients = self.strategy.of_bins
        worst = np.argsort(-sum_variances(self.strategy, coefficients), kind="stable")[:12]
        half_widths = sum_half_widths(self.strategy, coefficients[worst], alpha)
        return int(np.floor(float(half_widths.max()) + 1))

    def of_range(self, bins: int, confidence: Exactly = "0.95") -> int:
        """Half-width of the interval of a range of so many bins, of the least accurate one.

        Parameters
        ----------
        bins : int
            From 1 to the number of bins along the axis.
        confidence : number in (0, 1)
        """
        alpha = error_probability(confidence)
        cells = self.strategy.cells
        if not 1 <= bins <= cells:
            raise UsageError(
                f"a range of {bins} bins",
                f"there are {cells:,} along the axis",
                f"Give a number up to {cells:,}",
            )
        # The least accurate one is that of the largest variance.
        starts = np.unique(np.linspace(0, cells - bins, 512).astype(np.int64))
        inside = np.arange(cells) - starts[:, None]
        weights = ((inside >= 0) & (inside < bins)).astype(float)
        variances = sum_variances(self.strategy, self.strategy.influence(weights))
        worst = starts[[int(np.argmax(variances))]]
        return int(np.floor(range_half_widths(self.strategy, worst, worst + bins, alpha)[0]))

    def lines(self) -> list[str]:
        """What is added to which sums, and how accurate counts and ranges would be."""
        half = max(1, self.strategy.cells // 2)
        of = f"of {self.unit.counted}"
        alone = sum_half_width(self.law, half, 0.05)
        return [
            f"adds {self.strategy}",
            f"{of}, each count is within +-{self.accuracy():,} of the truth with 95% confidence, "
            f"and a range of {half:,} bins within +-{self.of_range(half):,}",
            f"counted one by one, each count would be within +-{self.law.half_width(0.05):,}, and "
            f"such a range within +-{alone:,}",
        ]
