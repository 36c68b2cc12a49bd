"""Tables of noisy counts, and what can be made of them without asking the data again. They know no question."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sfumato.answers.edges import cell_columns, cell_names
from sfumato.answers.estimate import Estimate, error_probability
from sfumato.answers.question import AnyQuestion
from sfumato.answers.release import CountsRelease
from sfumato.arrays import Array
from sfumato.domain import (
    EdgesAxis,
    GridAxis,
    Lattice,
    named_axes,
)
from sfumato.errors import UsageError, nearest
from sfumato.histogram import moments, tables
from sfumato.mechanisms.noise import Law
from sfumato.mechanisms.thresholds import KeyLaw, KeyNoise
from sfumato.numbers import Exactly, sidak

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

Numbers: TypeAlias = "float | Array"
Possible: TypeAlias = Callable[[float, float], tuple[float, float]]
Statistic: TypeAlias = Callable[[moments.Bins, float], tuple[float, float, float]]
"""From bins and a probability of error to a value and its interval."""


class CountsTable(CountsRelease, frozen=True, kw_only=True, eq=False):
    """Noisy counts over the cells of ``lattice``. A subclass says by its own ``question`` what was asked.

    Attributes
    ----------
    question : Question
    lattice : Lattice
        Where an axis is one of keys, its labels are the keys that were shown, sorted.
    counts : int64 ndarray of shape (cells,)
        The last axis runs fastest. Counts may be negative: clipping would bias them and cost their
        intervals coverage.
    law : DiscreteLaplace, DiscreteGaussian, TruncatedGeometric or ThresholdLaplace
        Of the noise on each count, independent.

    Notes
    -----
    Intervals of keys that were selected by their own noisy count hold *given that the key was
    shown* (see ``mechanisms.thresholds``): near the threshold they reach far down, because little
    is known there.
    """

    question: AnyQuestion
    lattice: Lattice
    counts: Array
    law: Law | KeyLaw

    def __post_init__(self) -> None:
        if self.counts.shape != (self.lattice.size,):
            raise UsageError(
                "a histogram",
                "it has another number of counts than of cells",
                "Load a file that release.save wrote",
            )

    @property
    def title(self) -> str:
        return self.question.title

    @property
    def noise(self) -> Law | None:
        """The law of the noise; None where it decided which keys are here: those not shown are missing from every sum."""
        return None if isinstance(self.law, KeyNoise) else self.law

    @property
    def selection(self) -> KeyLaw | None:
        """How keys were selected; None where all cells were known beforehand."""
        return None

    @property
    def even(self) -> bool:
        """Whether bins were made to hold about equally many rows: then their widths tell the shape, and pictures show rows per width."""
        return False

    @property
    def values(self) -> Array:
        """Noisy counts: int64 ndarray with one dimension per axis."""
        return self.counts.reshape(self.lattice.shape)

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> Array:
        """Half-widths like ``values``; of selected keys, how far the longer side of each interval reaches."""
        if isinstance(self.law, KeyNoise):
            return self.law.widths(
                self.values, self._alpha(confidence, simultaneous, self.lattice.size)
            )
        return super().accuracy(confidence, simultaneous)

    def interval(
        self, confidence: Exactly = "0.95", simultaneous: bool = False
    ) -> tuple[Array, Array]:
        """Lower and upper ends of the intervals, each like ``values``; of selected keys, given that they were shown."""
        if isinstance(self.law, KeyNoise):
            return self.law.interval(
                self.values, self._alpha(confidence, simultaneous, self.lattice.size)
            )
        return super().interval(confidence, simultaneous)

    @staticmethod
    def _alpha(confidence: Exactly, simultaneous: bool, numbers: int) -> float:
        alpha = error_probability(confidence)
        return sidak(alpha, numbers) if simultaneous else alpha

    # --- tables -----------------------------------------------------------------------------------

    def total(self, confidence: Exactly = "0.95") -> Estimate:
        """All rows counted, with an interval."""
        return self.marginal((), confidence)

    def marginal(
        self,
        axes: str | Sequence[str],
        confidence: Exactly = "0.95",
        simultaneous: bool = False,
        *,
        what: str = "a marginal",
    ) -> Estimate:
        """Counts over some of the axes, the others added up: arrays with one dimension per axis named.

        Marginals are sums of the released cells, so they agree with each other and with the total.
        Over an axis of keys they are sums over the keys that were shown.

        Raises
        ------
        UsageError
            If an axis is unknown, or keys were selected by their own counts: those not shown are
            missing from every sum.
        """
        law = self._additive(what)
        sums, terms = tables.marginal(self.values, self._places(axes))
        half = tables.half_width(law, terms, self._alpha(confidence, simultaneous, sums.size))
        value = sums if sums.ndim else int(sums)
        return self._estimate(confidence, value, value - half, value + half)

    def consistent(self) -> Array:
        """The nearest table without negative counts: int64 ndarray like ``values``, with the same total.

        Its cells are whole, and its marginals are sums of its cells. No intervals: this is biased
        upwards where counts are small. Use ``values`` to compute, and this where a table must look
        like one.
        """
        return tables.nonnegative(self.values)

    def shares(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> Estimate:
        """Normalised counts: each cell's part of the total, arrays like ``values``, with intervals within [0, 1]."""
        law = self._additive("shares")
        alpha = self._alpha(confidence, simultaneous, self.lattice.size)
        return self._estimate(confidence, *moments.shares(self.values, law, alpha), possible=(0, 1))

    def rate(
        self, part: ArrayLike, among: ArrayLike | None = None, confidence: Exactly = "0.95"
    ) -> Estimate:
        """What part of some cells' rows lies in others of them, with an interval within [0, 1].

        Parameters
        ----------
        part, among : bool ndarray like ``values``, or anything that broadcasts to it
            Cells of the numerator, and of the denominator, which holds them; None: all cells.
        """
        law, shape = self._additive("a rate"), self.lattice.shape
        chosen = np.broadcast_to(np.asarray(part, bool), shape)
        held = (
            np.ones(shape, bool)
            if among is None
            else np.broadcast_to(np.asarray(among, bool), shape)
        )
        if (chosen & ~held).any() or not chosen.any():
            raise UsageError(
                "a rate",
                "the numerator has no cells, or some that the denominator lacks",
                "Choose cells among the others",
            )
        cells = int(chosen.sum()), int((held & ~chosen).sum())
        sums = int(self.values[chosen].sum()), int(self.values[held].sum())
        found = moments.ratio(*sums, cells, law, error_probability(confidence))
        return self._estimate(confidence, *found, possible=(0, 1))

    # --- statistics along one axis ----------------------------------------------------------------

    def mean(self, axis: str | None = None, confidence: Exactly = "0.95") -> Estimate:
        """The mean along an Interval axis, and an interval for noise and binning together; days or microseconds for times.

        On an axis with a step the values are its steps: a bin of one step hides nothing (see
        ``histogram.moments``).
        """
        return self._moment(moments.mean, "a mean", axis, confidence, lambda low, high: (low, high))

    def median(self, axis: str | None = None, confidence: Exactly = "0.95") -> Estimate:
        """The median along an Interval axis, interpolated among the values that its bin can hold; the interval's ends are such values."""
        return self._moment(
            moments.median, "a median", axis, confidence, lambda low, high: (low, high)
        )

    def variance(self, axis: str | None = None, confidence: Exactly = "0.95") -> Estimate:
        """The variance along an Interval axis, and an interval for noise and binning together."""
        return self._moment(
            moments.variance,
            "a variance",
            axis,
            confidence,
            lambda low, high: (0, (high - low) ** 2 / 4),
        )

    def herfindahl(self, axis: str | None = None, confidence: Exactly = "0.95") -> Estimate:
        """The Herfindahl index along an axis, the sum of squared shares: 1 if all rows are in one cell, 1 / cells if even."""
        law, place = self._additive("a Herfindahl index"), self._place(axis)
        sums, terms = tables.marginal(self.values, (place,))
        if not sums.size:
            raise UsageError("a Herfindahl index", "no key was shown", "Ask with a larger epsilon")
        found = moments.herfindahl(sums, law, terms, error_probability(confidence))
        return self._estimate(confidence, *found, possible=(1 / sums.size, 1))

    def _moment(
        self,
        statistic: Statistic,
        what: str,
        axis: str | None,
        confidence: Exactly,
        possible: Possible,
    ) -> Estimate:
        law, place = self._additive(what), self._place(axis)
        found = self.lattice.axes[place]
        if not isinstance(found, GridAxis | EdgesAxis):
            raise UsageError(
                f"{what} of {found.name!r}",
                "it has labels, which have no order",
                "Name an Interval axis",
            )
        sums, terms = tables.marginal(self.values, (place,))
        bins = moments.Bins.of(found, sums, law, terms)
        ends = possible(*bins.ends)
        return self._estimate(
            confidence, *statistic(bins, error_probability(confidence)), possible=ends
        )

    def _estimate(
        self,
        confidence: Exactly,
        value: Numbers,
        low: Numbers,
        high: Numbers,
        *,
        possible: tuple[float, float] | None = None,
    ) -> Estimate:
        """An estimate that says what it is of; not known where its interval is all that was possible beforehand."""
        about = self.guarantee.unit.counted
        confident = 1 - error_probability(confidence)
        if possible is None:
            return Estimate(value, low, high, confident, about)
        known = ~((np.asarray(low) <= possible[0]) & (np.asarray(high) >= possible[1]))
        return Estimate(
            value, low, high, confident, about, known if np.ndim(known) else bool(known)
        )

    def _additive(self, what: str) -> Law:
        """The law of the noise, where sums of counts have one."""
        if self.noise is None:
            raise UsageError(
                f"{what} over keys",
                "keys that were not shown are missing from every sum, and those shown were helped by their noise",
                "Add another axis to the question: then all cells of the keys shown are counted anew",
            )
        return self.noise

    def _place(self, axis: str | None) -> int:
        if axis is None and len(self.lattice.axes) > 1:
            raise UsageError(
                "a statistic",
                "the histogram has several axes",
                f"Name one of {', '.join(self.lattice.names)}",
            )
        return self._places(axis or self.lattice.names[0])[0]

    def _places(self, axes: str | Sequence[str]) -> tuple[int, ...]:
        names = named_axes(axes)
        for name in names:
            if name not in self.lattice.names:
                asked = f"axis {name!r}"
                raise UsageError(
                    asked,
                    f"the histogram has none of that name; {nearest(name, self.lattice.names)}",
                    "Name one of its axes",
                )
        return tuple(self.lattice.names.index(name) for name in dict.fromkeys(names))

    # --- forms ------------------------------------------------------------------------------------

    def cell_names(self, axis: str) -> list[str]:
        """Names of the cells along an axis: labels, or "a to b"; the bins at the ends are open, since they hold what lies beyond."""
        return cell_names(self.lattice.axes[self._places(axis)[0]])

    def to_frame(self) -> pa.Table:
        """One row per cell: the axes, count, low, high (95%).

        An axis of labels is one column, ``name``. An axis of bins is three: ``name`` says which
        values are in the bin, such as "65 and above"; ``name_lower`` and ``name_upper`` are its
        edges, which the bins at the ends reach beyond.
        """
        import pyarrow as pa

        low, high = self.interval()
        numbers = {"count": self.counts, "low": low.reshape(-1), "high": high.reshape(-1)}
        return pa.table(cell_columns(self.lattice) | numbers)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Bars with error bars for one axis, a table of shades for two; more axes are summed into the first two.

        Bins by records are drawn by their rows per width.
        """
        from sfumato.charts import histograms

        return histograms.draw(self, ax)
