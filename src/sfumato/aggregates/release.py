"""Releases of means, sums and variances: noisy sums of each group, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import msgspec
import numpy as np

from sfumato.aggregates.basis import Basis
from sfumato.aggregates.intervals import (
    Bounds,
    clipped_mean_bounds,
    clipped_sum_half_width,
    mean_bounds,
    sum_half_width,
    sum_weights,
    variance_bounds,
)
from sfumato.aggregates.tails import chernoff_half_widths
from sfumato.aggregates.values import Values
from sfumato.answers.edges import cell_columns
from sfumato.answers.estimate import error_probability
from sfumato.answers.release import Release
from sfumato.arrays import Array
from sfumato.errors import UsageError, printable
from sfumato.lattice import Lattice
from sfumato.mechanisms.noise import Law
from sfumato.numbers import Exactly, sidak

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes

Scaling: TypeAlias = Callable[[Array], Array]
"""From shares of the value's range, or of its square, to the value's own scale."""
CONFIDENCE = "0.95"  # at which a statistic counts as known or not


class AggregateRelease(Release, frozen=True, kw_only=True, eq=False):
    """Noisy sums over the rows of each group, and the statistics of a value that follow from them.

    A release has every statistic that its sums allow, whichever was asked for: ``counts``,
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
        The noise on each of them, independent of the others.
    knot_indices : int64 ndarray of shape (groups,)
        The knot at which each group's values are clipped; unset unless ``clip="auto"``.
    """

    scale: Values
    basis: Basis
    lattice: Lattice
    released: Array
    law: Law
    knot_indices: Array | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        expected = self.lattice.size * self.basis.size
        if self.released.shape != (expected,) or self.basis.points != self.scale.points:
            obstacle = "its number of sums is not the number that its groups need"
            raise UsageError("means", obstacle, "Load a file that release.save wrote")
        if not self._clips_fit:
            obstacle = "its clips are not knots of its sums"
            raise UsageError("means", obstacle, "Load a file that release.save wrote")

    @property
    def _clips_fit(self) -> bool:
        """Whether hats come with one clip for each group, and other sums without clips."""
        if self.knot_indices is msgspec.UNSET or self.basis.name != "hats":
            return self.knot_indices is msgspec.UNSET and self.basis.name != "hats"
        within = (self.knot_indices >= 1) & (self.knot_indices < self.basis.size)
        return self.knot_indices.shape == (self.lattice.size,) and bool(within.all())

    @property
    def title(self) -> str:
        by = " and ".join(map(printable, self.lattice.names))
        asked = f"{self.noun.capitalize()} of {printable(self.scale.name)}"
        if self._clips is None:
            return f"{asked} by {by}" if by else asked
        return f"{asked}, each clipped, by {by}" if by else f"{asked}{self._clipped}"

    @property
    def about(self) -> str:
        """Which rows the answer is about, and how their values were read."""
        return f"{super().about}{self.scale.cut}{self._clipped}"

    @property
    def unknowns(self) -> str:
        """Sentences on how many rows lie above a clip and how many groups are not known."""
        unknown = int(np.isnan(self.values).sum())
        many = "is" if unknown == 1 else "are"
        said = f"{unknown:,} of {self.values.size:,} {many} not known." if unknown else ""
        return f"{self._above_clip} {said}".strip()

    # --- clips that were chosen from the noisy sums
    # ----------------------------------------------

    @property
    def clips(self) -> Array:
        """The value to which those of each group are clipped: float64 ndarray like ``values``.

        It is the upper bound unless the clip was chosen, with ``clip="auto"``.
        """
        indices = self._clips
        if indices is None:
            return np.full(self.lattice.shape, self.scale.upper)
        return self._shaped(self._knot_values[indices])

    @property
    def above(self) -> Array:
        """At most how many rows lie above the knot next to each clip.

        An int64 ndarray like ``values``. Each number holds with 95% confidence. The next knot is
        twice as far from the lower bound as the clip. Where no clip was chosen there are none.
        """
        indices = self._clips
        if indices is None:
            return np.zeros(self.lattice.shape, np.int64)
        n_knots = self.basis.size
        beyond = np.arange(n_knots) > indices[:, None]
        # One-sided, and for all clips at once, since the noise may have led to any of them.
        alpha = 2 * self._alpha(CONFIDENCE) / (n_knots - 1)
        half_widths = chernoff_half_widths(self.law, beyond.astype(float), alpha)
        most = ((self._sums * beyond).sum(axis=1) + half_widths) / self.basis.unity
        return self._shaped(np.floor(np.maximum(most, 0)).astype(np.int64))

    @property
    def _clips(self) -> Array | None:
        """The index of each group's knot; None where the bounds are fixed."""
        return None if self.knot_indices is msgspec.UNSET else self.knot_indices

    @property
    def _knot_values(self) -> Array:
        """The knots, on the value's scale. The last may lie beyond the upper bound."""
        return self._mean(np.minimum(self.basis.weights, 1.0))

    @property
    def _clipped(self) -> str:
        """A clause for reports: to what values are clipped."""
        if self._clips is None:
            return ""
        least = f"{self.clips.min():,.6g}"
        most = f"{self.clips.max():,.6g}"
        if least == most:
            return f", each clipped to at most {most}"
        return f", each clipped to at most {least} to {most} by group"

    @property
    def _above_clip(self) -> str:
        """A sentence on how many rows lie above the clip, if there is one group."""
        if self._clips is None or self.lattice.axes:
            return ""
        rows = max(round(float(self.counts)), 0)
        next_knot = self._knot_values[min(int(self._clips[0]) + 1, self.basis.size - 1)]
        most = int(self.above)
        if most >= rows:
            return f"How many rows lie above {next_knot:,.6g} is not known."
        return f"At most {most:,} of {rows:,} rows lie above {next_knot:,.6g}."

    # --- statistics
    # ---------------------------------------------------------------------------------

    @property
    def counts(self) -> Array:
        """Noisy numbers of rows: float64 ndarray like ``values``."""
        return self._shaped(self._sums.sum(axis=1) / self.basis.unity)

    @property
    def sums(self) -> Array:
        """Noisy sums of the values: float64 ndarray like ``values``."""
        return self._shaped(self._noisy_sums)

    @property
    def means(self) -> Array:
        """Noisy means: float64 ndarray like ``values``; NaN where not known."""
        total = self._sums.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (self._sums * self._weights).sum(axis=1) / total
        return self._known_estimates(share, self._usual_mean_bounds, self._highest, self._mean)

    @property
    def variances(self) -> Array:
        """Noisy variances: float64 ndarray like ``values``; NaN where not known.

        The variance of n values divides their squared deviations from the mean by n.

        Raises
        ------
        UsageError
            If the published sums do not have them: ask for ``sf.Variance``.
        """
        self._require_squares()
        total = self._sums.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = self._sums @ self.basis.weights / total
            variance = self._sums @ self.basis.squares / total - share**2
        return self._known_estimates(variance, self._usual_variance_bounds, 0.25, self._variance)

    # --- intervals
    # ----------------------------------------------------------------------------------

    def interval(
        self, confidence: Exactly = CONFIDENCE, simultaneous: bool = False
    ) -> tuple[Array, Array]:
        """Lower and upper ends of the intervals, each like ``values``.

        They hold at every number of rows, also for a group of none. Where nothing is known they are
        all that was possible beforehand.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            False: each interval holds with this confidence. True: all of them hold together.
        """
        return self._interval(self._alpha(confidence, simultaneous))

    def accuracy(self, confidence: Exactly = CONFIDENCE, simultaneous: bool = False) -> Array:
        """The largest distance of the truth from each value, within the interval.

        Where the value is not known, it is half of the width of the interval.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            False: each interval holds with this confidence. True: all of them hold together.
        """
        low, high = self.interval(confidence, simultaneous)
        values = self.values
        further = np.maximum(values - low, high - values)
        return np.asarray(np.where(np.isnan(values), (high - low) / 2, further))

    def drawn(self, confidence: Exactly = CONFIDENCE) -> tuple[Array, Array, Array]:
        """What pictures and tables show: which groups are known, and the ends of their intervals.

        Some groups look known only because of their noise. So the more groups are left out as not
        known, the wider are the intervals of the others. On average at most ``1 - confidence`` of
        the intervals shown miss the truth (Benjamini, Yekutieli 2005: the false coverage rate).

        Returns
        -------
        known : bool ndarray like ``values``
        low, high : float64 ndarrays like ``values``
        """
        known = ~np.isnan(self.values)
        low, high = self._interval(self._alpha(confidence))
        n_shown = 0
        # The number of groups shown decides how wide their intervals are. Wider intervals may leave
        # out more groups. Groups are only ever left out, so this ends.
        while n_shown != known.sum():
            n_shown = known.sum()
            alpha = self._alpha(confidence) * max(n_shown, 1) / max(known.size, 1)
            low, high = self._interval(alpha)
            known &= self._is_informative(low, high)
        return known, low, high

    def _is_informative(self, low: Array, high: Array) -> Array:
        """Where an interval is not all that was possible beforehand."""
        raise NotImplementedError

    def _interval(self, alpha: float) -> tuple[Array, Array]:
        """Intervals of ``values`` that each miss with this probability."""
        raise NotImplementedError

    @cached_property
    def _usual_mean_bounds(self) -> Bounds:
        """The bounds that decide which means are known: computed once, and used often."""
        return self._mean_bounds(self._alpha(CONFIDENCE))

    @cached_property
    def _usual_variance_bounds(self) -> Bounds:
        """The bounds that decide which variances are known."""
        return self._variance_bounds(self._alpha(CONFIDENCE))

    def _mean_bounds(self, alpha: float) -> Bounds:
        """Bounds of the means, as shares of the range.

        Rounding moves each value, and so the mean, by at most the slack.
        """
        if self._clips is None:
            low, high = mean_bounds(self._sums, self.basis, self.law, alpha)
        else:
            low, high = clipped_mean_bounds(self._sums, self.basis, self.law, self._clips, alpha)
        slack = self.scale.rounding / self.scale.width
        return np.maximum(low - slack, 0), np.minimum(high + slack, self._highest)

    def _variance_bounds(self, alpha: float) -> Bounds:
        """Bounds of the variances, as shares of the squared range.

        Rounding moves each value by at most the slack, and so does it move the standard deviation.
        """
        low, high = variance_bounds(self._sums, self.basis, self.law, alpha)
        slack = self.scale.rounding / self.scale.width
        lowest = np.maximum(np.sqrt(low) - slack, 0) ** 2
        highest = np.minimum((np.sqrt(high) + slack) ** 2, 0.25)
        return lowest, highest

    def _sum_bounds(self, alpha: float) -> Bounds:
        """Bounds of the sums, on the scale of the value."""
        rows = self._sums.sum(axis=1) / self.basis.unity
        if self._clips is None:
            half_width = sum_half_width(self.scale, self.basis, self.law, rows, alpha)
        else:
            half_width = clipped_sum_half_width(
                self.scale, self.basis, self.law, rows, self._clips, alpha
            )
        sums = self._noisy_sums
        return sums - half_width, sums + half_width

    # --- forms
    # --------------------------------------------------------------------------------------

    @property
    def group_names(self) -> list[str]:
        """A name for each group, the last axis running fastest."""
        if not self.lattice.axes:
            return ["all rows"]
        names_by_axis = [axis.cell_names() for axis in self.lattice.axes]
        return [", ".join(names) for names in product(*names_by_axis)]

    def numbers(self) -> tuple[int, ...]:
        """The published integers, in the order in which they were drawn."""
        return tuple(self.released.tolist())

    def to_frame(self) -> pa.Table:
        """One row per group: its axes, rows, the statistic, low, high (95%), known.

        ``low`` and ``high`` are those of ``drawn``; the statistic is null where it is not known. A
        clip that was chosen adds the columns ``clip`` and ``above``.
        """
        import pyarrow as pa

        known, low, high = self.drawn()
        shown = known.reshape(-1)
        numbers = {
            "rows": np.rint(self.counts.reshape(-1)).astype(np.int64),
            self.noun: pa.array(self.values.reshape(-1), mask=~shown),
            "low": low.reshape(-1),
            "high": high.reshape(-1),
            "known": shown,
        }
        if self._clips is not None:
            numbers["clip"] = self.clips.reshape(-1)
            numbers["above"] = self.above.reshape(-1)
        return pa.table(cell_columns(self.lattice) | numbers)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a point and an interval for each group, and hatch the groups that are not known."""
        from sfumato.charts import aggregates

        return aggregates.draw(self, ax)

    # --- from shares of the range to the value's own scale
    # ----------------------------------------------

    @property
    def _sums(self) -> Array:
        """The published sums: float64 ndarray of shape (groups, k)."""
        return self.released.reshape(self.lattice.size, -1).astype(float)

    @property
    def _weights(self) -> Array:
        """Weights that give the value of each group, over R: of shape (k,) or (groups, k)."""
        if self._clips is None:
            return self.basis.weights
        weights = self.basis.weights
        return np.asarray(np.minimum(weights, weights[self._clips][:, None]))

    @property
    def _highest(self) -> Array:
        """The largest mean that is possible in each group, as a share of the range."""
        if self._clips is None:
            return np.ones(self.lattice.size)
        return np.asarray(np.minimum(self.basis.weights[self._clips], 1.0))

    @property
    def _noisy_sums(self) -> Array:
        """The sum of each group: float64 ndarray of shape (groups,)."""
        weights = sum_weights(self.scale, self.basis, self._weights)
        return np.asarray((self._sums * weights).sum(axis=1))

    def _mean(self, share: Array) -> Array:
        return np.asarray(self.scale.lower + share * self.scale.width)

    def _variance(self, share: Array) -> Array:
        return np.asarray(share * self.scale.width**2)

    def _known_estimates(
        self, shares: Array, bounds: Bounds, most: Array | float, scaled: Scaling
    ) -> Array:
        """Bring estimates within their bounds, and to the value's scale; NaN where not known.

        An estimate is not known if its bounds are 0 and ``most``, which is all that is possible.
        """
        low, high = bounds
        known = (low > 0) | (high < most)
        return self._shaped(np.where(known, scaled(np.clip(shares, low, high)), np.nan))

    def _shaped(self, found: Array) -> Array:
        return np.asarray(found).reshape(self.lattice.shape)

    def _alpha(self, confidence: Exactly, simultaneous: bool = False) -> float:
        alpha = error_probability(confidence)
        return sidak(alpha, self.lattice.size) if simultaneous else alpha

    def _require_squares(self) -> None:
        if self.basis.name != "quadratic":
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
    """The mean of a value in each group; see ``AggregateRelease`` for its attributes."""

    noun: ClassVar[str] = "mean"

    @property
    def values(self) -> Array:
        """Means: float64 ndarray with one dimension per axis; NaN where not known."""
        return self.means

    def _interval(self, alpha: float) -> tuple[Array, Array]:
        low, high = self._mean_bounds(alpha)
        return self._shaped(self._mean(low)), self._shaped(self._mean(high))

    def _is_informative(self, low: Array, high: Array) -> Array:
        return np.asarray((low > self.scale.lower) | (high < self.clips))


class SumRelease(
    AggregateRelease,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="sum-release",
    forbid_unknown_fields=True,
):
    """The sum of a value in each group; see ``AggregateRelease`` for its attributes."""

    noun: ClassVar[str] = "sum"

    @property
    def values(self) -> Array:
        """The sum of each group: float64 ndarray with one dimension per axis."""
        return self.sums

    def _interval(self, alpha: float) -> tuple[Array, Array]:
        low, high = self._sum_bounds(alpha)
        return self._shaped(low), self._shaped(high)

    def _is_informative(self, low: Array, high: Array) -> Array:
        return np.ones(low.shape, bool)


class VarianceRelease(
    AggregateRelease,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="variance-release",
    forbid_unknown_fields=True,
):
    """The variance of a value in each group; see ``AggregateRelease`` for its attributes."""

    noun: ClassVar[str] = "variance"

    @property
    def values(self) -> Array:
        """Variances: float64 ndarray with one dimension per axis; NaN where not known."""
        return self.variances

    def _interval(self, alpha: float) -> tuple[Array, Array]:
        low, high = self._variance_bounds(alpha)
        return self._shaped(self._variance(low)), self._shaped(self._variance(high))

    def _is_informative(self, low: Array, high: Array) -> Array:
        return np.asarray((low > 0) | (high < self._variance(np.array(0.25))))
