"""The releases of a mean, of a sum and of a variance: which statistic is ``values``."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sfumato.aggregates.intervals import Bounds
from sfumato.aggregates.release import AggregateRelease
from sfumato.aggregates.value_sums import ValueSums
from sfumato.basics.numbers import Array


class MeanRelease(
    AggregateRelease,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="mean-release",
    forbid_unknown_fields=True,
):
    """The mean of a value in each group; see ``AggregateRelease`` for its attributes.

    ``values`` are means: a float64 ndarray with one dimension per axis; NaN where not known.

    >>> import numpy as np, sfumato as sf
    >>> domain = sf.Domain(age=sf.Interval(0, 100), stay=sf.Interval(0, 30, step=1))
    >>> stays = np.array([[31.0, 2], [35.0, 4], [64.0, 9]])
    >>> src = sf.source(stays, domain, name="stays")
    >>> release = sf.Publisher(src, budget="1").release(sf.Mean("stay"), epsilon="1")
    >>> release.values.shape, release.heading
    ((), 'Mean of stay')
    >>> release.sums.shape, release.counts.shape  # the mean is their quotient
    ((), ())
    """

    noun: ClassVar[str] = "mean"
    amounts: ClassVar[frozenset[str]] = AggregateRelease.amounts - {"low", "high"}

    def _values_of(self, sums: ValueSums) -> Array:
        return sums.means

    def _interval_of(self, sums: ValueSums, alpha: float) -> Bounds:
        return sums.mean_interval(alpha)

    def _is_informative(self, sums: ValueSums, low: Array, high: Array) -> Array:
        return np.asarray((low > sums.scale.lower) | (high < sums.clips))


class SumRelease(
    AggregateRelease,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="sum-release",
    forbid_unknown_fields=True,
):
    """The sum of a value in each group; see ``AggregateRelease`` for its attributes.

    ``values`` are sums: a float64 ndarray with one dimension per axis.

    >>> import numpy as np, sfumato as sf
    >>> domain = sf.Domain(age=sf.Interval(0, 100), stay=sf.Interval(0, 30, step=1))
    >>> stays = np.array([[31.0, 2], [35.0, 4], [64.0, 9]])
    >>> src = sf.source(stays, domain, name="stays")
    >>> release = sf.Publisher(src, budget="1").release(sf.Sum("stay"), epsilon="1")
    >>> release.values.shape, release.heading
    ((), 'Sum of stay')
    >>> low, high = release.interval(confidence="0.95")
    >>> bool(low < release.values < high)
    True
    """

    noun: ClassVar[str] = "sum"

    def _values_of(self, sums: ValueSums) -> Array:
        return sums.sums

    def _interval_of(self, sums: ValueSums, alpha: float) -> Bounds:
        return sums.sum_interval(alpha)

    def _is_informative(self, sums: ValueSums, low: Array, high: Array) -> Array:
        return np.ones(low.shape, bool)

    def _is_of_rows(self, sums: ValueSums, alpha: float) -> Array:
        return np.ones(sums.counts.shape, bool)  # the sum over no rows is 0


class VarianceRelease(
    AggregateRelease,
    frozen=True,
    kw_only=True,
    eq=False,
    tag="variance-release",
    forbid_unknown_fields=True,
):
    """The variance of a value in each group; see ``AggregateRelease`` for its attributes.

    ``values`` are variances: a float64 ndarray with one dimension per axis; NaN where not known.

    >>> import numpy as np, sfumato as sf
    >>> domain = sf.Domain(age=sf.Interval(0, 100), stay=sf.Interval(0, 30, step=1))
    >>> stays = np.array([[31.0, 2], [35.0, 4], [64.0, 9]])
    >>> src = sf.source(stays, domain, name="stays")
    >>> release = sf.Publisher(src, budget="1").release(sf.Variance("stay"), epsilon="1")
    >>> release.values.shape, release.means.shape
    ((), ())
    """

    noun: ClassVar[str] = "variance"
    unit_form: ClassVar[str] = "{} squared"
    amounts: ClassVar[frozenset[str]] = AggregateRelease.amounts - {"low", "high"}

    def _values_of(self, sums: ValueSums) -> Array:
        return sums.variances

    def _interval_of(self, sums: ValueSums, alpha: float) -> Bounds:
        return sums.variance_interval(alpha)

    def _is_informative(self, sums: ValueSums, low: Array, high: Array) -> Array:
        return np.asarray((low > 0) | (high < sums.largest_variance))
