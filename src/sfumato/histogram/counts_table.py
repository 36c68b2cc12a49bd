"""Tables of noisy counts, and the statistics that follow from them without asking the data again.

A table knows its axes, its counts and the law of their noise, but no kind of question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self, TypeAlias

import msgspec
import numpy as np

from sfumato.answers.captions import Captions
from sfumato.answers.edges import cell_columns
from sfumato.answers.estimate import Estimate, error_probability
from sfumato.answers.question import AnyQuestion
from sfumato.answers.release import CountsRelease
from sfumato.arrays import Array
from sfumato.domain import named_axes
from sfumato.errors import UsageError, nearest
from sfumato.histogram import marginals, moments
from sfumato.label_axes import LabelAxis
from sfumato.lattice import EdgesAxis, GridAxis, Lattice
from sfumato.mechanisms.noise import Law
from sfumato.mechanisms.thresholds import KeyLaw, KeyNoise
from sfumato.numbers import Exactly, sidak

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

Numbers: TypeAlias = "float | Array"
PossibleRange: TypeAlias = Callable[[float, float], tuple[float, float]]
"""From the least and the largest value of an axis to the range that a statistic can have."""
Statistic: TypeAlias = Callable[[moments.BinnedCounts, float], tuple[float, float, float]]
"""From counts and a probability of error to a value and its interval."""


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
    law : DiscreteLaplace, DiscreteGaussian, TruncatedGeometric or ThresholdLaplace
        The noise on each count, independent of the others.

    Notes
    -----
    A key may be shown because of its own noisy count. Intervals of such keys hold *given that the
    key was shown* (see ``mechanisms.thresholds``). Near the threshold they extend far down, because
    little is known there.
    """

    question: AnyQuestion
    lattice: Lattice
    counts: Array
    law: Law | KeyLaw

    def __post_init__(self) -> None:
        if self.counts.shape != (self.lattice.size,):
            obstacle = "its number of counts is not its number of cells"
            raise UsageError("a histogram", obstacle, "Load a file that release.save wrote")

    @property
    def title(self) -> str:
        return self.question.title

    @property
    def noise(self) -> Law | None:
        """The law of the noise, if sums of counts have one.

        It is None where the noise decided which keys are shown: the others are missing from sums.
        """
        return None if isinstance(self.law, KeyNoise) else self.law

    @property
    def selection(self) -> KeyLaw | None:
        """How keys were selected. None: all cells were known beforehand."""
        return None

    @property
    def even(self) -> bool:
        """Whether bins were made to hold about equally many rows.

        The shape is then in the widths of the bins, so pictures show rows per width.
        """
        return False

    @property
    def values(self) -> Array:
        """Noisy counts: int64 ndarray with one dimension per axis."""
        return self.counts.reshape(self.lattice.shape)

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
        return super().accuracy(confidence, simultaneous)

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
        return super().interval(confidence, simultaneous)

    @staticmethod
    def _alpha(confidence: Exactly, simultaneous: bool, numbers: int) -> float:
        """The probability of error of each of so many numbers."""
        alpha = error_probability(confidence)
        return sidak(alpha, numbers) if simultaneous else alpha

    # --- tables -----------------------------------------------------------------------------------

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
        law = self._additive(what)
        sums, terms = marginals.marginal(self.values, self._axis_indices(axes))
        half = marginals.half_width(law, terms, self._alpha(confidence, simultaneous, sums.size))
        value = sums if sums.ndim else int(sums)
        return self._estimate(confidence, value, value - half, value + half)

    def consistent(self) -> Array:
        """The nearest table without negative counts: int64 ndarray like ``values``.

        It has the same total. Its cells are whole numbers, and its marginals are sums of its cells.
        It is biased upwards where counts are small, so it has no intervals. Compute with
        ``values``, and show this where readers expect a table without negative counts.
        """
        return marginals.nonnegative(self.values)

    def shares(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> Estimate:
        """Each cell's share of the total, with intervals within [0, 1]: arrays like ``values``."""
        law = self._additive("shares")
        alpha = self._alpha(confidence, simultaneous, self.lattice.size)
        return self._estimate(confidence, *moments.shares(self.values, law, alpha), possible=(0, 1))

    def rate(
        self, part: ArrayLike, among: ArrayLike | None = None, confidence: Exactly = "0.95"
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
        law = self._additive("a rate")
        shape = self.lattice.shape
        numerator = np.broadcast_to(np.asarray(part, bool), shape)
        denominator = np.ones(shape, bool)
        if among is not None:
            denominator = np.broadcast_to(np.asarray(among, bool), shape)
        if (numerator & ~denominator).any() or not numerator.any():
            obstacle = "the numerator has no cells, or some that the denominator lacks"
            raise UsageError("a rate", obstacle, "Choose cells among the others")
        cells = int(numerator.sum()), int((denominator & ~numerator).sum())
        part_sum = int(self.values[numerator].sum())
        whole_sum = int(self.values[denominator].sum())
        alpha = error_probability(confidence)
        estimate = moments.ratio(part_sum, whole_sum, cells, law, alpha)
        return self._estimate(confidence, *estimate, possible=(0, 1))

    # --- statistics along one axis ----------------------------------------------------------------

    def mean(self, axis: str | None = None, confidence: Exactly = "0.95") -> Estimate:
        """The mean along an Interval axis, with an interval for noise and binning together.

        On an axis of the labels False and True it is the share of rows that are true. Dates are in
        days, times in microseconds. On an axis with a step, values are steps: a bin of one step
        hides nothing (see ``histogram.moments``).

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

        def possible(low: float, high: float) -> tuple[float, float]:
            return low, high

        return self._moment(moments.mean, "a mean", axis, confidence, possible)

    def median(self, axis: str | None = None, confidence: Exactly = "0.95") -> Estimate:
        """The median along an Interval axis, with an interval for noise and binning together.

        It is interpolated among the values that its bin can hold. The interval's ends are values
        that bins can hold. Parameters and errors are those of ``mean``.
        """

        def possible(low: float, high: float) -> tuple[float, float]:
            return low, high

        return self._moment(moments.median, "a median", axis, confidence, possible)

    def variance(self, axis: str | None = None, confidence: Exactly = "0.95") -> Estimate:
        """The variance along an Interval axis, with an interval for noise and binning together.

        Parameters and errors are those of ``mean``.
        """

        def possible(low: float, high: float) -> tuple[float, float]:
            return 0, (high - low) ** 2 / 4  # Popoviciu's inequality

        return self._moment(moments.variance, "a variance", axis, confidence, possible)

    def herfindahl(self, axis: str | None = None, confidence: Exactly = "0.95") -> Estimate:
        """The Herfindahl index along an axis: the sum of squared shares.

        It is 1 if all rows are in one cell, and 1 / cells if all cells have equally many rows.

        Parameters
        ----------
        axis : str or None
            None: the only axis.
        confidence : number in (0, 1)
        """
        law = self._additive("a Herfindahl index")
        index = self._axis_index(axis)
        sums, terms = marginals.marginal(self.values, (index,))
        if not sums.size:
            raise UsageError("a Herfindahl index", "no key was shown", "Ask with a larger epsilon")
        estimate = moments.herfindahl(sums, law, terms, error_probability(confidence))
        return self._estimate(confidence, *estimate, possible=(1 / sums.size, 1))

    def _moment(
        self,
        statistic: Statistic,
        what: str,
        axis: str | None,
        confidence: Exactly,
        possible: PossibleRange,
    ) -> Estimate:
        law = self._additive(what)
        index = self._axis_index(axis)
        found = self.lattice.axes[index]
        truths = found.truths if isinstance(found, LabelAxis) else None
        sums, terms = marginals.marginal(self.values, (index,))
        if isinstance(found, GridAxis | EdgesAxis):
            bins = moments.BinnedCounts.of(found, sums, law, terms)
        elif truths is not None:
            # Cells of missing and of unlisted values are left out.
            bins = moments.BinnedCounts.of_truths(sums[list(truths)], law, terms)
        else:
            obstacle = "it has labels, which have no order"
            raise UsageError(f"{what} of {found.name!r}", obstacle, "Name an Interval axis")
        estimate = statistic(bins, error_probability(confidence))
        return self._estimate(confidence, *estimate, possible=possible(*bins.ends))

    def _estimate(
        self,
        confidence: Exactly,
        value: Numbers,
        low: Numbers,
        high: Numbers,
        *,
        possible: tuple[float, float] | None = None,
    ) -> Estimate:
        """An estimate that says what it is about.

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

    def _additive(self, what: str) -> Law:
        """The law of the noise, if sums of counts have one."""
        if self.noise is None:
            obstacle = (
                "keys that were not shown are missing from every sum, "
                "and those shown were helped by their noise"
            )
            remedy = (
                "Add another axis to the question: "
                "then all cells of the keys shown are counted anew"
            )
            raise UsageError(f"{what} over keys", obstacle, remedy)
        return self.noise

    def _axis_index(self, axis: str | None) -> int:
        """The index of the axis named, or of the only one."""
        if axis is None and len(self.lattice.axes) > 1:
            remedy = f"Name one of {', '.join(self.lattice.names)}"
            raise UsageError("a statistic", "the histogram has several axes", remedy)
        return self._axis_indices(axis or self.lattice.names[0])[0]

    def _axis_indices(self, axes: str | Sequence[str]) -> tuple[int, ...]:
        names = named_axes(axes)
        for name in names:
            if name not in self.lattice.names:
                hint = nearest(name, self.lattice.names)
                obstacle = f"the histogram has none of that name; {hint}"
                raise UsageError(f"axis {name!r}", obstacle, "Name one of its axes")
        return tuple(self.lattice.names.index(name) for name in dict.fromkeys(names))

    # --- forms ------------------------------------------------------------------------------------

    def cell_names(self, axis: str) -> list[str]:
        """Names of the cells along an axis: labels, or bins such as "18 to 65".

        The bins at the ends also hold what lies beyond them. Their names say so: "65 and above".
        """
        return self.lattice.axes[self._axis_indices(axis)[0]].cell_names()

    @property
    def label_columns(self) -> tuple[str, ...]:
        return self.lattice.names

    def to_frame(self) -> pa.Table:
        """One row per cell: the axes, count, low, high (95%).

        An axis of labels is one column, ``name``. An axis of bins is three: ``name`` says which
        values are in the bin, such as "65 and above"; ``name_lower`` and ``name_upper`` are its
        edges. The bins at the ends also hold what lies beyond them.
        """
        import pyarrow as pa

        low, high = self.interval()
        numbers = {"count": self.counts, "low": low.reshape(-1), "high": high.reshape(-1)}
        return pa.table(cell_columns(self.lattice) | numbers)

    def _named(self, captions: Captions) -> Self:
        return msgspec.structs.replace(self, lattice=captions.lattice(self.lattice))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the counts: bars with error bars for one axis, a heat map for two.

        Further axes are summed into the first two. Bins made by ``records`` are drawn by their rows
        per width.
        """
        from sfumato.charts import histograms, style

        return style.headed(histograms.draw(self.for_people(), ax), self, ax)
