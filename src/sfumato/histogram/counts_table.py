"""Tables of noisy counts, and the statistics that follow from them without asking the data again.

A table knows its axes, its counts and the law of their noise, but no kind of question.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Self, TypeAlias

import msgspec

from sfumato.answers.captions import Captions
from sfumato.answers.estimate import Estimate, error_probability
from sfumato.answers.frames import cell_columns
from sfumato.basics.numbers import Exactly
from sfumato.domain.axes import LabelAxis
from sfumato.domain.lattice import EdgesAxis, GridAxis
from sfumato.errors import UsageError
from sfumato.histogram import marginals, moments
from sfumato.histogram.range_counts import RangeErrors
from sfumato.histogram.summed_counts import SummedCounts
from sfumato.mechanisms.bounded_noise import TruncatedLaplace

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

PossibleRange: TypeAlias = Callable[[float, float], tuple[float, float]]
"""From the least and the largest value of an axis to the range that a statistic can have."""
Statistic: TypeAlias = Callable[[moments.BinnedCounts, float], tuple[float, float, float]]
"""From counts and a probability of error to a value and its interval."""


class CountsTable(SummedCounts, frozen=True, kw_only=True, eq=False):
    """Noisy counts over the cells of ``lattice``, and statistics along its axes.

    A subclass has the question that was asked. Attributes are those of ``SummedCounts``.
    """

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
        noise = self._additive("a Herfindahl index")
        index = self._axis_index(axis)
        sums = marginals.marginal(self._estimates, (index,))
        if not sums.size:
            raise UsageError("a Herfindahl index", "no key was shown", "Ask with a larger epsilon")
        estimate = moments.herfindahl(sums, noise, index, error_probability(confidence))
        return self._estimate(confidence, *estimate, possible=(1 / sums.size, 1))

    def _moment(
        self,
        statistic: Statistic,
        what: str,
        axis: str | None,
        confidence: Exactly,
        possible: PossibleRange,
    ) -> Estimate:
        noise = self._additive(what)
        index = self._axis_index(axis)
        found = self.lattice.axes[index]
        truths = found.truths if isinstance(found, LabelAxis) else None
        sums = marginals.marginal(self._estimates, (index,))
        if isinstance(found, GridAxis | EdgesAxis):
            bins = moments.BinnedCounts.of(found, sums, noise, index)
        elif truths is not None:
            # Cells of missing and of unlisted values are left out.
            bins = moments.BinnedCounts.of_truths(sums[list(truths)], noise, index)
        else:
            obstacle = "it has labels, which have no order"
            raise UsageError(f"{what} of {found.name!r}", obstacle, "Name an Interval axis")
        estimate = statistic(bins, error_probability(confidence))
        return self._estimate(confidence, *estimate, possible=possible(*bins.ends))

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
        errors = RangeErrors(answers.strategy)
        cells = answers.strategy.cells
        groups = self.lattice.size // cells
        each, every = (
            math.floor(float(errors.cumulated(alpha).max()))
            for alpha in (0.05, 0.05 / (cells * groups))
        )
        return (
            f"The noise was made for ranges of bins: of {self.about}, a total up to any one bin is "
            f"within +-{each:,} of the truth with 95% confidence; all {cells * groups:,} such "
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
        import pyarrow as pa

        low, high = self.interval()
        numbers = {"count": self.counts, "low": low.reshape(-1), "high": high.reshape(-1)}
        return pa.table(cell_columns(self.lattice) | numbers)

    def _named(self, captions: Captions) -> Self:
        return msgspec.structs.replace(self, lattice=captions.lattice(self.lattice))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the counts: bars with error bars for one axis, a heat map for two.

        Further axes are summed into the first two. Bins made by ``records`` are drawn by their rows
        per width. Counts asked with ``workload="ranges"`` are drawn as running totals with bands.
        """
        from sfumato.charts import cumulative, histograms, style

        if self.paid_ranges is not None:
            return style.headed(cumulative.draw(self.for_people(), ax), self, ax)
        return style.headed(histograms.draw(self.for_people(), ax), self, ax)
