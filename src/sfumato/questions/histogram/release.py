"""Tables of noisy counts, and the statistics that follow from them without asking the data again.

In the order of the code: marginals of a table, and the nearest table without negative counts; and
noisy counts over cells, with the sums, shares and statistics that follow from them
(``CountsTable``). A table knows its axes, its counts and the law of their noise, but no kind of
question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar, Self, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from sfumato.answers import (
    AnyQuestion,
    Axes,
    Captions,
    CountsRelease,
    Estimate,
    cell_columns,
    drawn,
    error_probability,
)
from sfumato.basics import Array, Exactly, largest_remainders, sidak, table_of
from sfumato.domain import EdgesAxis, GridAxis, LabelAxis, Lattice, named_axes
from sfumato.errors import UsageError, require_fitting
from sfumato.mechanisms import CountLaw, KeyLaw, KeyNoise, TruncatedLaplace
from sfumato.questions.histogram import statistics
from sfumato.questions.histogram.ranges import (
    CountedCells,
    Sums,
    Wanted,
    require_axes,
    whole_between,
)
from sfumato.questions.histogram.strategies import (
    RangeAnswers,
    cell_half_widths,
    laid_along,
    total_half_widths,
)
from sfumato.questions.histogram.table_noise import IndependentNoise, RangeNoise, TableNoise

# --- marginals ------------------------------------------------------------------------------------


def marginal(values: Array, keep: tuple[int, ...]) -> Array:
    """Sum a table over all axes that are not kept.

    Parameters
    ----------
    values : int64 ndarray
    keep : tuple of int
        The axes that are kept, in the order in which the sums have them.

    Returns
    -------
    int64 ndarray
    """
    rest = tuple(i for i in range(values.ndim) if i not in keep)
    sums = values.sum(axis=rest)
    # ``sums`` has the kept axes in the order of the table.
    ascending = sorted(keep)
    return np.asarray(np.transpose(sums, [ascending.index(i) for i in keep]))


def nonnegative(values: Array) -> Array:
    """Find the nearest table of counts of at least 0 with the same total.

    The counts are projected onto the simplex of the noisy total (Held, Wolfe, Crowder 1974), and
    the largest remainders are then rounded up. So cells are whole numbers, and every marginal is
    the sum of its cells. A negative total becomes 0.

    Returns
    -------
    int64 ndarray like ``values``
    """
    flat = values.ravel().astype(float)
    total = max(0, int(values.sum()))
    if not total:
        return np.zeros_like(values)
    ordered = np.sort(flat)[::-1]
    # excess[k] must be taken from each of the k + 1 largest counts, if only these stay above 0.
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    active = int(np.flatnonzero(ordered > excess)[-1])
    projected = np.maximum(flat - excess[active], 0)
    return largest_remainders(projected, total).reshape(values.shape)


# --- tables ---------------------------------------------------------------------------------------

Numbers: TypeAlias = "float | Array"


class CountsTable(CountsRelease, frozen=True, kw_only=True, eq=False):
    """Noisy counts over the cells of ``lattice``. A subclass has the question that was asked.

    Attributes
    ----------
    question : Question
    lattice : Lattice
        An axis of keys has the keys that were shown as labels, sorted.
    counts : int64 ndarray of shape (cells,)
        The last axis runs fastest. Counts may be negative: clipping them at 0 would bias them, and
        their intervals would hold less often than they say.
    law : DiscreteLaplace, DiscreteGaussian, TruncatedLaplace, or the law that selected keys
        The noise on each count, independent of the others; with noisy sums of bins, that on the
        first of these.
    selection : TruncatedGeometric, ThresholdLaplace, ThresholdGaussian or None
        How keys were selected. None: all cells were known beforehand.
    rows : int or None
        The noisy number of rows that decided how many bins there are. None: there was none.
    paid : RangeAnswers, optional
        The noisy sums of bins that the counts follow from, if there are any.

    Notes
    -----
    A key may be shown because of its own noisy count. Intervals of such keys hold *given that the
    key was shown* (see ``mechanisms.thresholds``). Near the threshold they extend far down, because
    little is known there.
    """

    _in_details: ClassVar[frozenset[str]] = frozenset({"cell_names", "kept", "lattice", "law"})

    question: AnyQuestion
    lattice: Lattice
    counts: Array
    law: CountLaw | KeyLaw
    selection: KeyLaw | None = None
    rows: int | None = None
    # Absent from files unless sums of bins were counted.
    paid: RangeAnswers | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        require_fitting(
            self.counts.shape == (self.lattice.size,),
            "a histogram",
            "its number of counts is not its number of cells",
        )
        require_fitting(
            self.paid is msgspec.UNSET or self.paid.fits(self.lattice.shape),
            "a histogram",
            "its noisy sums are not those of its bins",
        )

    @property
    def title(self) -> str:
        return self.question.title

    @property
    def noise(self) -> CountLaw | None:
        """The law of the noise, if sums of counts have one.

        It is None where the noise decided which keys are shown: the others are missing from sums.
        And it is None where counts follow from noisy sums of bins: their errors depend on one
        another.
        """
        if isinstance(self.law, KeyNoise) or self.paid_ranges is not None:
            return None
        return self.law

    @property
    def even(self) -> bool:
        """Whether bins were made to hold about equally many rows.

        The shape is then in the widths of the bins, so pictures show rows per width.
        """
        return False

    @property
    def paid_ranges(self) -> RangeAnswers | None:
        """The noisy sums of bins from which the counts follow. None: each has noise of its own."""
        return None if self.paid is msgspec.UNSET else self.paid

    def numbers(self) -> tuple[int, ...]:
        """The noisy number of rows, if it was paid for, then the counts, or sums of bins."""
        if self.paid_ranges is not None:
            return self.paid_ranges.drawn(self.lattice.shape)
        if self.rows is None:
            return super().numbers()
        return (self.rows, *super().numbers())

    @property
    def values(self) -> Array:
        """Noisy counts: int64 ndarray with one dimension per axis."""
        return self.counts.reshape(self.lattice.shape)

    @cached_property
    def _estimates(self) -> Array:
        """The counts before they were rounded, which sums and statistics start from."""
        if self.paid_ranges is None:
            return self.values
        answers = self.paid_ranges
        cumulated = answers.cumulated(self.lattice.shape)
        return np.asarray(np.diff(cumulated, axis=answers.axis, prepend=0))

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> Array:
        """Half-widths of the intervals, like ``values``; for selected keys, their longer sides.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            False: each interval holds with this confidence. True: all of them hold together.
        """
        if isinstance(self.law, KeyNoise):
            alpha = self._alpha(confidence, simultaneous, self.lattice.size)
            return self.law.widths(self.values, alpha)
        if self.paid_ranges is not None:
            # A count lies within 1 of its estimate, and an error is a whole number.
            half = np.floor(self._half_widths(confidence, simultaneous) + 1)
            return np.asarray(half.astype(np.int64))
        return super().accuracy(confidence, simultaneous)

    def _half_widths(self, confidence: Exactly, simultaneous: bool) -> Array:
        answers = self.paid_ranges
        assert answers is not None
        alpha = self._alpha(confidence, simultaneous, self.lattice.size)
        half = cell_half_widths(answers.strategy, alpha)
        laid = laid_along(half, answers.axis, len(self.lattice.axes))
        return np.asarray(np.broadcast_to(laid, self.lattice.shape))

    def interval(
        self, confidence: Exactly = "0.95", simultaneous: bool = False
    ) -> tuple[Array, Array]:
        """Lower and upper ends of the intervals, each like ``values``.

        Intervals of selected keys hold given that the keys were shown.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            False: each interval holds with this confidence. True: all of them hold together.
        """
        if isinstance(self.law, KeyNoise):
            alpha = self._alpha(confidence, simultaneous, self.lattice.size)
            return self.law.interval(self.values, alpha)
        if self.paid_ranges is not None:
            half = self._half_widths(confidence, simultaneous)
            _, low, high = whole_between(self.values, self._estimates, half)
            return low, high
        return super().interval(confidence, simultaneous)

    def _alpha(self, confidence: Exactly, simultaneous: bool, numbers: int) -> float:
        """Return the probability of error of each of so many numbers."""
        alpha = error_probability(confidence)
        if not simultaneous:
            return alpha
        # Estimates from sums of bins depend on one another, so Bonferroni's correction applies.
        return sidak(alpha, numbers) if self.paid_ranges is None else alpha / numbers

    # --- sums and shares --------------------------------------------------------------------------

    def total(self, confidence: Exactly = "0.95") -> Estimate:
        """The number of all rows counted, with an interval."""
        return self.marginal((), confidence)

    def marginal(
        self,
        axes: str | Sequence[str],
        confidence: Exactly = "0.95",
        simultaneous: bool = False,
        *,
        what: str = "a marginal",
    ) -> Estimate:
        """Counts over some of the axes, summed over the others.

        Marginals are sums of the released cells, so they agree with each other and with the total.
        Over an axis of keys they are sums over the keys that were shown.

        Parameters
        ----------
        axes : str or list of str
            The axes that are kept. The arrays have one dimension for each, in this order.
        confidence : number in (0, 1)
        simultaneous : bool
            False: each interval holds with this confidence. True: all of them hold together.
        what : str
            What an error says was asked for.

        Raises
        ------
        UsageError
            If an axis is unknown, or keys were selected by their own counts: those not shown are
            missing from every sum.
        """
        noise = self._additive(what)
        keep = self._axis_indices(axes)
        sums = marginal(self.values, keep)
        half = noise.sum_half_widths(keep, self._alpha(confidence, simultaneous, sums.size))
        whole = whole_between(sums, marginal(self._estimates, keep), np.asarray(half))
        return self._whole_estimate(confidence, whole, sums.shape)

    def count(
        self, *, confidence: Exactly = "0.95", simultaneous: bool = False, **ranges: Wanted
    ) -> Estimate:
        """How many rows lie in a range of bins? With an interval for the noise of the whole range.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            True: the intervals of all given ranges hold together (Bonferroni).
        **ranges : axis=(lower, upper), or axis=label
            For an Interval axis two edges of its bins: scalars, or arrays of shape (n,). For an
            axis of labels one label or a list of them. Other axes are taken whole. The bins at the
            ends also hold what lies beyond them.

        Returns
        -------
        Estimate
            Of integers, or of int64 ndarrays of shape (n,).

        Raises
        ------
        UsageError
            If an axis or a label is unknown, an end is no edge of the bins, ranges are given along
            several Interval axes, or keys were selected by their own counts.
        """
        cells = self._cells("a range")
        sums, shape = cells.between(ranges, error_probability(confidence), simultaneous)
        return self._whole_estimate(confidence, sums, shape)

    def cumulative(
        self, axis: str | None = None, confidence: Exactly = "0.95", simultaneous: bool = False
    ) -> Estimate:
        """How many rows lie in a bin or below? Running totals along an Interval axis.

        Parameters
        ----------
        axis : str or None
            None: the only axis.
        confidence : number in (0, 1)
        simultaneous : bool
            True: the intervals are a band that holds everywhere at once (Bonferroni).

        Returns
        -------
        Estimate
            Of int64 ndarrays like ``values``, without the cell of missing values.

        Raises
        ------
        UsageError
            As ``mean``.
        """
        cells = self._cells("running totals")
        sums = cells.cumulated(self._axis_index(axis), error_probability(confidence), simultaneous)
        return self._whole_estimate(confidence, sums, sums[0].shape)

    def _cells(self, what: str) -> CountedCells:
        return CountedCells(self.lattice, self.values, self._estimates, self._additive(what))

    def consistent(self) -> Array:
        """The nearest table without negative counts: int64 ndarray like ``values``.

        It has the same total. Its cells are whole numbers, and its marginals are sums of its cells.
        It is biased upwards where counts are small, so it has no intervals. Compute with
        ``values``, and show this where readers expect a table without negative counts.
        """
        return nonnegative(self.values)

    def shares(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> Estimate:
        """Each cell's share of the total, with intervals within [0, 1]: arrays like ``values``."""
        noise = self._additive("shares")
        alpha = self._alpha(confidence, simultaneous, self.lattice.size)
        estimate = statistics.shares(self._estimates, noise, alpha)
        return self._estimate(confidence, *estimate, possible=(0, 1))

    def rate(
        self,
        part: np.typing.ArrayLike,
        among: np.typing.ArrayLike | None = None,
        confidence: Exactly = "0.95",
    ) -> Estimate:
        """What share of some cells' rows lies in certain of them? The interval is within [0, 1].

        Parameters
        ----------
        part : bool ndarray like ``values``, or anything that broadcasts to it
            The cells of the numerator.
        among : as ``part``, or None
            The cells of the denominator, which include those of the numerator. None: all cells.
        confidence : number in (0, 1)

        Raises
        ------
        UsageError
            If the numerator has no cells, or some that the denominator lacks.
        """
        noise = self._additive("a rate")
        shape = self.lattice.shape
        numerator = np.broadcast_to(np.asarray(part, bool), shape)
        denominator = np.ones(shape, bool)
        if among is not None:
            denominator = np.broadcast_to(np.asarray(among, bool), shape)
        if (numerator & ~denominator).any() or not numerator.any():
            raise UsageError(
                "a rate",
                "the numerator has no cells, or some that the denominator lacks",
                "Choose cells among the others",
            )
        part_sum = float(self._estimates[numerator].sum())
        whole_sum = float(self._estimates[denominator].sum())
        pencil = noise.part_pencil(numerator, denominator, error_probability(confidence))
        estimate = statistics.ratio(part_sum, whole_sum, pencil)
        return self._estimate(confidence, *estimate, possible=(0, 1))

    def _whole_estimate(self, confidence: Exactly, sums: Sums, shape: tuple[int, ...]) -> Estimate:
        """Return sums as an estimate of arrays of a shape; of integers, if it has no dimension."""
        if shape:
            return self._estimate(confidence, *(end.reshape(shape) for end in sums))
        return self._estimate(confidence, *(end.item() for end in sums))

    def _estimate(
        self,
        confidence: Exactly,
        value: Numbers,
        low: Numbers,
        high: Numbers,
        *,
        possible: tuple[float, float] | None = None,
    ) -> Estimate:
        """Return an estimate that says what it is about.

        It is not known where its interval is all that was possible beforehand.
        """
        about = self.guarantee.unit.counted
        confident = 1 - error_probability(confidence)
        if possible is None:
            return Estimate(value, low, high, confident, about)
        known = ~((np.asarray(low) <= possible[0]) & (np.asarray(high) >= possible[1]))
        return Estimate(
            value, low, high, confident, about, known if np.ndim(known) else bool(known)
        )

    def _additive(self, what: str) -> TableNoise:
        if isinstance(self.law, KeyNoise):
            raise UsageError(
                f"{what} over keys",
                "keys that were not shown are missing from every sum, "
                "and those shown were helped by their noise",
                "Add another axis to the question: "
                "then all cells of the keys shown are counted anew",
            )
        if self.paid_ranges is not None:
            return RangeNoise(self.paid_ranges, self.lattice.shape)
        return IndependentNoise(self.law, self.lattice.shape)

    def _axis_index(self, axis: str | None) -> int:
        if axis is None and len(self.lattice.axes) > 1:
            raise UsageError(
                "a statistic",
                "the histogram has several axes",
                f"Name one of {', '.join(self.lattice.names)}",
            )
        return self._axis_indices(axis or self.lattice.names[0])[0]

    def _axis_indices(self, axes: str | Sequence[str]) -> tuple[int, ...]:
        names = named_axes(axes)
        require_axes(self.lattice, names)
        return tuple(self.lattice.names.index(name) for name in dict.fromkeys(names))

    # --- statistics along one axis ----------------------------------------------------------------

    def mean(self, axis: str | None = None, confidence: Exactly = "0.95") -> Estimate:
        """The mean along an Interval axis, with an interval for noise and binning together.

        On an axis of the labels False and True it is the share of rows that are true. Dates are in
        days, times in microseconds. On an axis with a step, values are steps: a bin of one step
        hides nothing (see ``histogram.statistics``).

        Parameters
        ----------
        axis : str or None
            None: the only axis.
        confidence : number in (0, 1)

        Raises
        ------
        UsageError
            If the axis is unknown, not named among several, or one of keys or of other labels.
        """
        bins = self._bins(axis, "a mean")
        estimate = statistics.mean(bins, error_probability(confidence))
        return self._estimate(confidence, *estimate, possible=bins.ends)

    def median(self, axis: str | None = None, confidence: Exactly = "0.95") -> Estimate:
        """The median along an Interval axis, with an interval for noise and binning together.

        It is interpolated among the values that its bin can hold. The interval's ends are values
        that bins can hold. Parameters and errors are those of ``mean``.
        """
        bins = self._bins(axis, "a median")
        estimate = statistics.median(bins, error_probability(confidence))
        return self._estimate(confidence, *estimate, possible=bins.ends)

    def variance(self, axis: str | None = None, confidence: Exactly = "0.95") -> Estimate:
        """The variance along an Interval axis, with an interval for noise and binning together.

        Parameters and errors are those of ``mean``.
        """
        bins = self._bins(axis, "a variance")
        estimate = statistics.variance(bins, error_probability(confidence))
        low, high = bins.ends
        # No values within these bounds have a larger variance (Popoviciu's inequality).
        return self._estimate(confidence, *estimate, possible=(0, (high - low) ** 2 / 4))

    def herfindahl(self, axis: str | None = None, confidence: Exactly = "0.95") -> Estimate:
        """The Herfindahl index along an axis: the sum of squared shares.

        It is 1 if all rows are in one cell, and 1 / cells if all cells have equally many rows.

        Parameters
        ----------
        axis : str or None
            None: the only axis.
        confidence : number in (0, 1)
        """
        noise = self._additive("a Herfindahl index")
        index = self._axis_index(axis)
        sums = marginal(self._estimates, (index,))
        if not sums.size:
            raise UsageError("a Herfindahl index", "no key was shown", "Ask with a larger epsilon")
        estimate = statistics.herfindahl(sums, noise, index, error_probability(confidence))
        return self._estimate(confidence, *estimate, possible=(1 / sums.size, 1))

    def _bins(self, axis: str | None, what: str) -> statistics.BinnedCounts:
        """Return the counts along an axis, with the values that its cells can hold."""
        noise = self._additive(what)
        index = self._axis_index(axis)
        chosen = self.lattice.axes[index]
        sums = marginal(self._estimates, (index,))
        if isinstance(chosen, GridAxis | EdgesAxis):
            return statistics.BinnedCounts.of(chosen, sums, noise, index)
        truths = chosen.truths if isinstance(chosen, LabelAxis) else None
        if truths is None:
            raise UsageError(
                f"{what} of {chosen.name!r}",
                "it has labels, which have no order",
                "Name an Interval axis",
            )
        # Cells of missing and of unlisted values are left out.
        of_truths = sums[list(truths)]
        values = np.array([0.0, 1.0])
        return statistics.BinnedCounts(values, values, of_truths, noise, index, step=1.0)

    # --- forms ------------------------------------------------------------------------------------

    def cell_names(self, axis: str) -> list[str]:
        """Names of the cells along an axis: labels, or bins such as "18 to 65".

        The bins at the ends also hold what lies beyond them. Their names say so: "65 and above".
        """
        return self.lattice.axes[self._axis_indices(axis)[0]].cell_names()

    @property
    def facts(self) -> tuple[str, ...]:
        """How far off a count is at most, or how accurate ranges are if the noise is for them."""
        if isinstance(self.law, TruncatedLaplace):
            return (
                f"The noise has a bound: of {self.about}, each count is never more than "
                f"{self.law.bound:,} off.",
            )
        answers = self.paid_ranges
        if answers is None:
            return ()
        cells = answers.strategy.cells
        groups = self.lattice.size // cells
        single, every = (
            math.floor(float(total_half_widths(answers.strategy, alpha).max()))
            for alpha in (0.05, 0.05 / (cells * groups))
        )
        return (
            f"The noise was made for ranges of bins: of {self.about}, a total up to any one bin is "
            f"within +-{single:,} of the truth with 95% confidence; all {cells * groups:,} such "
            f"totals at once within +-{every:,}.",
        )

    @property
    def label_columns(self) -> tuple[str, ...]:
        return self.lattice.names

    def to_frame(self) -> pa.Table:
        """One row per cell: the axes, count, low, high (95%).

        An axis of labels is one column, ``name``. An axis of bins is three: ``name`` says which
        values are in the bin, such as "65 and above"; ``name_lower`` and ``name_upper`` are its
        edges. The bins at the ends also hold what lies beyond them.
        """

        low, high = self.interval()
        numbers = {"count": self.counts, "low": low.ravel(), "high": high.ravel()}
        return table_of(cell_columns(self.lattice) | numbers)

    def _named(self, captions: Captions) -> Self:
        return msgspec.structs.replace(self, lattice=captions.lattice(self.lattice))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the counts: bars with error bars for one axis, a heat map for two.

        Further axes are summed into the first two. Bins made by ``records`` are drawn by their rows
        per width. Counts asked with ``workload="ranges"`` are drawn as running totals with bands.
        """
        kind = "histograms" if self.paid_ranges is None else "cumulative"
        return drawn(f"{kind}.draw", self, ax)
