"""The answer: noisy sums of each group, and the means, sums and variances that follow from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np

from sfumato.aggregates.basis import Basis
from sfumato.aggregates.intervals import (
    Bounds,
    mean_bounds,
    sum_half_width,
    sum_weights,
    variance_bounds,
)
from sfumato.aggregates.values import Values
from sfumato.answers.edges import cell_columns, cell_names
from sfumato.answers.estimate import error_probability
from sfumato.answers.release import Release
from sfumato.arrays import Array
from sfumato.domain import Lattice
from sfumato.errors import UsageError, printable
from sfumato.mechanisms.noise import Law
from sfumato.numbers import Exactly, sidak

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

Scaling: TypeAlias = Callable[[Array], Array]
CONFIDENCE = "0.95"


class AggregateRelease(Release, frozen=True, kw_only=True, eq=False):
    """Noisy sums over the rows of each group, and the statistics of a value that follow from them.

    Every statistic that the published sums allow is here, whichever was asked for: see ``counts``,
    ``sums``, ``means`` and ``variances``. A subclass says which of them is ``values``.

    Attributes
    ----------
    scale : Values
        The values that were added up.
    basis : Basis
        The functions of a value that were summed: see ``aggregates.basis``.
    lattice : Lattice
        The groups; without axes all rows are one group.
    released : int64 ndarray of shape (groups * k,)
        Noisy sums of the k functions; the functions run fastest.
    law : DiscreteLaplace or DiscreteGaussian
        Of the noise on each of them, independent.
    """

    scale: Values
    basis: Basis
    lattice: Lattice
    released: Array
    law: Law

    def __post_init__(self) -> None:
        expected = self.lattice.size * len(self.basis.weights)
        if self.released.shape != (expected,) or self.basis.points != self.scale.points:
            obstacle = "it has another number of sums than its groups need"
            raise UsageError("means", obstacle, "Load a file that release.save wrote")

    @property
    def title(self) -> str:
        by = " and ".join(map(printable, self.lattice.names))
        asked = f"{self.noun.capitalize()} of {printable(self.scale.name)}"
        return f"{asked} by {by}" if by else asked

    @property
    def about(self) -> str:
        """Which rows, and what of their values, it is about."""
        return f"{super().about}{self.scale.cut}"

    @property
    def unknowns(self) -> str:
        """How many groups are not known."""
        unknown = int(np.isnan(self.values).sum())
        many = "is" if unknown == 1 else "are"
        return f"{unknown:,} of {self.values.size:,} {many} not known." if unknown else ""

    # --- statistics ---------------------------------------------------------------------------------

    @property
    def counts(self) -> Array:
        """Noisy numbers of rows: float64 ndarray like ``values``."""
        return self._shaped(self._sums.sum(axis=1) / self.basis.unity)

    @property
    def sums(self) -> Array:
        """Noisy sums of the values: float64 ndarray like ``values``."""
        return self._shaped(self._sums @ self._sum_weights)

    @property
    def means(self) -> Array:
        """Noisy means: float64 ndarray like ``values``; NaN where not known."""
        total = self._sums.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = self._sums @ self.basis.weights / total
        return self._told(share, *self._usual_mean_bounds, 1.0, self._mean)

    @property
    def variances(self) -> Array:
        """Noisy variances, of n values about their mean: float64 ndarray like ``values``; NaN where not known.

        Raises
        ------
        UsageError
            If they do not follow from what was published: ask for ``sf.Variance``.
        """
        self._require_squares()
        total = self._sums.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = self._sums @ self.basis.weights / total
            found = self._sums @ self.basis.squares / total - share**2
        return self._told(found, *self._usual_variance_bounds, 0.25, self._variance)

    # --- intervals ----------------------------------------------------------------------------------

    def interval(
        self, confidence: Exactly = CONFIDENCE, simultaneous: bool = False
    ) -> tuple[Array, Array]:
        """Lower and upper ends of the intervals, each like ``values``.

        They hold at every number of rows, also for a group of none. Where nothing is known they are all
        that was possible beforehand.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            False: each interval holds with this confidence. True: all of this statistic hold together.
        """
        return self._interval(self._alpha(confidence, simultaneous))

    def accuracy(self, confidence: Exactly = CONFIDENCE, simultaneous: bool = False) -> Array:
        """How far the truth may lie from each value, to the further side.

        Where the value is not known, half of the width of its interval.
        """
        low, high = self.interval(confidence, simultaneous)
        values = self.values
        further = np.maximum(values - low, high - values)
        return np.asarray(np.where(np.isnan(values), (high - low) / 2, further))

    def drawn(self, confidence: Exactly = CONFIDENCE) -> tuple[Array, Array, Array]:
        """What a picture or a table shows: which groups are known, and their lower and upper ends.

        The more groups are left out as not known, the wider the others' intervals are, so that of those
        shown at most ``1 - confidence`` miss, on average (Benjamini, Yekutieli 2005: selecting the known ones
        would otherwise show those that the noise made look known).
        """
        known = ~np.isnan(self.values)
        low, high = self._interval(self._alpha(confidence))
        shown = 0
        # What is shown decides how wide its intervals are, and these decide what is shown: until both agree.
        while shown != known.sum():
            shown = known.sum()
            low, high = self._interval(self._alpha(confidence) * max(shown, 1) / max(known.size, 1))
            known &= self._says_something(low, high)
        return known, low, high

    def _says_something(self, low: Array, high: Array) -> Array:
        """Where an interval is not all that was possible beforehand."""
        raise NotImplementedError

    def _interval(self, alpha: float) -> tuple[Array, Array]:
        """Intervals of ``values`` that each miss with this probability."""
        raise NotImplementedError

    @cached_property
    def _usual_mean_bounds(self) -> Bounds:
        """Those that say what is known, which is asked for often."""
        return self._mean_bounds(self._alpha(CONFIDENCE))

    @cached_property
    def _usual_variance_bounds(self) -> Bounds:
        return self._variance_bounds(self._alpha(CONFIDENCE))

    def _mean_bounds(self, alpha: float) -> Bounds:
        low, high = mean_bounds(self._sums, self.basis, self.law, alpha)
        slack = self.scale.rounding / self.scale.width
        return np.maximum(low - slack, 0), np.minimum(high + slack, 1)

    def _variance_bounds(self, alpha: float) -> tuple[Array, Array]:
        """Rounding moves each value by at most h, and so the root of the variance by at most h."""
        low, high = variance_bounds(self._sums, self.basis, self.law, alpha)
        slack = self.scale.rounding / self.scale.width
        lowest = np.maximum(np.sqrt(low) - slack, 0) ** 2
        highest = np.minimum((np.sqrt(high) + slack) ** 2, 0.25)
        return lowest, highest

    def _sum_bounds(self, alpha: float) -> Bounds:
        rows = self._sums.sum(axis=1) / self.basis.unity
        half = sum_half_width(self.scale, self.basis, self.law, rows, alpha)
        found = self._sums @ self._sum_weights
        return found - half, found + half

    # --- forms --------------------------------------------------------------------------------------

    @property
    def group_names(self) -> list[str]:
        """A name for each group, the last axis running fastest."""
        if not self.lattice.axes:
            return ["all rows"]
        return [", ".join(names) for names in product(*map(cell_names, self.lattice.axes))]

    def numbers(self) -> tuple[int, ...]:
        """The published integers, in the order in which they were drawn."""
        return tuple(self.released.tolist())

    def to_frame(self) -> pa.Table:
        """One row per group: its axes, rows, the statistic, low, high (95%), known.

        ``low`` and ``high`` are those of ``drawn``; the statistic is null where it is not known.
        """
        import pyarrow as pa

        known, low, high = self.drawn()
        shown = known.reshape(-1)
        return pa.table(
            cell_columns(self.lattice)
            | {
                "rows": np.rint(self.counts.reshape(-1)).astype(np.int64),
                self.noun: pa.array(self.values.reshape(-1), mask=~shown),
                "low": low.reshape(-1),
                "high": high.reshape(-1),
                "known": shown,
            }
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """A point and an interval for each group; groups that are not known are left open."""
        from sfumato.charts import aggregates

        return aggregates.draw(self, ax)

    # --- from shares of the range to the value's own scale ----------------------------------------------

    @property
    def _sums(self) -> Array:
        return self.released.reshape(self.lattice.size, -1).astype(float)

    @property
    def _sum_weights(self) -> Array:
        return sum_weights(self.scale, self.basis)

    def _mean(self, share: Array) -> Array:
        return np.asarray(self.scale.lower + share * self.scale.width)

    def _variance(self, share: Array) -> Array:
        return np.asarray(share * self.scale.width**2)

    def _told(self, found: Array, low: Array, high: Array, most: float, scaled: Scaling) -> Array:
        """Estimates within their own bounds, on the value's scale; NaN where the bounds are all there is."""
        known = (low > 0) | (high < most)
        return self._shaped(np.where(known, scaled(np.clip(found, low, high)), np.nan))

    def _shaped(self, found: Array) -> Array:
        return np.asarray(found).reshape(self.lattice.shape)

    def _alpha(self, confidence: Exactly, simultaneous: bool = False) -> float:
        alpha = error_probability(confidence)
        return sidak(alpha, self.lattice.size) if simultaneous else alpha

    def _require_squares(self) -> None:
        if self.basis.name == "pair":
            obstacle = "only sums and numbers of rows were published"
            raise UsageError(f"{self.title}, variances", obstacle, "Ask for sf.Variance")


class MeanRelease(
    AggregateRelease,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="mean-release",
    forbid_unknown_fields=True,
):
    """The mean of a value in each group of rows; see ``AggregateRelease`` for its attributes."""

    noun: ClassVar[str] = "mean"

    @property
    def values(self) -> Array:
        """The mean of each group: float64 ndarray with one dimension per axis; NaN where not known."""
        return self.means

    def _interval(self, alpha: float) -> tuple[Array, Array]:
        low, high = self._mean_bounds(alpha)
        return self._shaped(self._mean(low)), self._shaped(self._mean(high))

    def _says_something(self, low: Array, high: Array) -> Array:
        return np.asarray((low > self.scale.lower) | (high < self.scale.upper))


class SumRelease(
    AggregateRelease,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="sum-release",
    forbid_unknown_fields=True,
):
    """The sum of a value in each group of rows; see ``AggregateRelease`` for its attributes."""

    noun: ClassVar[str] = "sum"

    @property
    def values(self) -> Array:
        """The sum of each group: float64 ndarray with one dimension per axis."""
        return self.sums

    def _interval(self, alpha: float) -> tuple[Array, Array]:
        low, high = self._sum_bounds(alpha)
        return self._shaped(low), self._shaped(high)

    def _says_something(self, low: Array, high: Array) -> Array:
        return np.ones(low.shape, bool)


class VarianceRelease(
    AggregateRelease,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="variance-release",
    forbid_unknown_fields=True,
):
    """The variance of a value in each group of rows; see ``AggregateRelease`` for its attributes."""

    noun: ClassVar[str] = "variance"

    @property
    def values(self) -> Array:
        """The variance of each group: float64 ndarray with one dimension per axis; NaN where not known."""
        return self.variances

    def _interval(self, alpha: float) -> tuple[Array, Array]:
        low, high = self._variance_bounds(alpha)
        return self._shaped(self._variance(low)), self._shaped(self._variance(high))

    def _says_something(self, low: Array, high: Array) -> Array:
        return np.asarray((low > 0) | (high < self._variance(np.array(0.25))))
