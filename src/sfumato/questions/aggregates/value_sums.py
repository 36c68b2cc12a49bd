"""The noisy sums of one value over the rows of each group, and the statistics that follow.

At the end stand the clauses and sentences about means and sums: whose values they are of, and
where these are cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Self

import msgspec
import numpy as np
from msgspec import UNSET

from sfumato.basics import Array, number
from sfumato.errors import UsageError, not_saved, printable
from sfumato.mechanisms import Law, chernoff_half_widths, noise_sums
from sfumato.questions.aggregates.clips import TINY, Spans
from sfumato.questions.aggregates.intervals import (
    Bounds,
    clipped_mean_bounds,
    clipped_sum_half_width,
    mean_bounds,
    most_taken_from_means,
    most_taken_from_sums,
    sum_half_width,
    sum_weights,
    variance_bounds,
)
from sfumato.questions.aggregates.values import Basis, Values

# --- sums -----------------------------------------------------------------------------------------

USUAL_ALPHA = 0.05  # at which a statistic counts as known or not


class ValueSums(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True, eq=False):
    """Noisy sums of the functions of one value over the rows of each group.

    All arrays have the shape (groups,), unless they say otherwise.

    Attributes
    ----------
    scale : Values
        The values that were added up.
    basis : Basis
        The functions of a value that were summed: see ``aggregates.values``.
    released : int64 ndarray of shape (groups * k,)
        Noisy sums of the k functions; the functions run fastest.
    law : DiscreteLaplace or DiscreteGaussian
        The noise on each of them, independent of the others.
    knot_indices : int64 ndarray of shape (groups,)
        The knot at which each group's values are clipped; unset unless ``clip="auto"``.
    spans : Spans
        The knots that each group's estimate takes, with ``clip="auto"``; unset in answers of
        version 0.2.0, whose estimates take all knots.
    """

    scale: Values
    basis: Basis
    released: Array
    law: Law
    knot_indices: Array | msgspec.UnsetType = msgspec.UNSET
    spans: Spans | msgspec.UnsetType = msgspec.UNSET

    def arranged(self, shape: Sequence[int], order: Sequence[int]) -> Self:
        """Return the same sums, with the axes of the groups in another order.

        Parameters
        ----------
        shape : sequence of int
            The numbers of cells along the axes of the groups.
        order : sequence of int
            The axes of now, in the order to come.
        """
        groups = np.arange(math.prod(shape)).reshape(shape)
        return self.of_groups(groups.transpose(order).ravel())

    def named(self, name: str) -> Self:
        """Return the same sums, of a value of another name."""
        return msgspec.structs.replace(self, scale=msgspec.structs.replace(self.scale, name=name))

    def require_groups(self, n_groups: int) -> None:
        """Refuse sums that do not fit their groups, as an edited file may hold them.

        Raises
        ------
        UsageError
        """
        expected = (n_groups * self.basis.size,)
        if self.released.shape != expected or self.basis.points != self.scale.points:
            raise not_saved("means", "its number of sums is not the number that its groups need")
        if not self._clips_fit(n_groups):
            raise not_saved("means", "its clips are not knots of its sums")

    def _clips_fit(self, n_groups: int) -> bool:
        """Whether hats come with one clip for each group, and other sums without clips."""
        if self.knot_indices is msgspec.UNSET or self.basis.name != "hats":
            no_clips = self.knot_indices is msgspec.UNSET and self.spans is msgspec.UNSET
            return no_clips and self.basis.name != "hats"
        # A clip at knot 0 would make all values equal, and no release has one.
        within = (self.knot_indices >= 1) & (self.knot_indices < self.basis.size)
        if self.knot_indices.shape != (n_groups,) or not within.all():
            return False
        return self.spans is msgspec.UNSET or self.spans.fit(self.knot_indices)

    def of_groups(self, groups: Array) -> Self:
        """Return the sums of some groups, by a mask or by their indices."""
        knots = self.knot_indices
        return msgspec.structs.replace(
            self,
            released=self.released.reshape(-1, self.basis.size)[groups].ravel(),
            knot_indices=knots if knots is msgspec.UNSET else knots[groups],
            spans=self.spans if self.spans is UNSET else self.spans.of_groups(groups),
        )

    # --- statistics -------------------------------------------------------------------------------

    @property
    def counts(self) -> Array:
        """Noisy numbers of rows."""
        return np.asarray(self.sums_of_functions.sum(axis=1) / self.basis.unity)

    def has_rows(self, alpha: float) -> Array:
        """Where the number of rows can be told from 0: bool ndarray."""
        half = noise_sums.sum_half_width(self.law, self.basis.size, alpha)
        return np.asarray(self.sums_of_functions.sum(axis=1) > half)

    @property
    def sums(self) -> Array:
        """Noisy sums of the values; with spans, within their intervals of 95%."""
        if self.spans is UNSET:
            return self._sums_of_all_knots
        weights = sum_weights(self.scale, self.basis, self._weights)
        low, high = self.sum_interval(USUAL_ALPHA)
        return np.asarray(np.clip((self._taken_sums * weights).sum(axis=1), low, high))

    @property
    def _sums_of_all_knots(self) -> Array:
        """Noisy sums without bias, about which the intervals lie."""
        weights = sum_weights(self.scale, self.basis, self._weights)
        return np.asarray((self.sums_of_functions * weights).sum(axis=1))

    @property
    def means(self) -> Array:
        """Noisy means; NaN where not known."""
        total = self._taken_sums.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (self._taken_sums * self._weights).sum(axis=1) / total
        return _known_estimates(share, self._usual_mean_bounds, self._highest, self._mean)

    @property
    def variances(self) -> Array:
        """Noisy variances; NaN where not known.

        Raises
        ------
        UsageError
            If the published sums do not have them.
        """
        if self.basis.name != "quadratic":
            raise UsageError(
                f"variances of {printable(self.scale.name)}",
                "only sums and numbers of rows were published",
                "Ask for sf.Variance",
            )
        sums = self.sums_of_functions
        total = sums.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = sums @ self.basis.weights / total
            variance = sums @ self.basis.squares / total - share**2
        return _known_estimates(variance, self._usual_variance_bounds, 0.25, self._variance)

    # --- intervals, each of which misses with probability alpha -----------------------------------

    def mean_interval(self, alpha: float) -> Bounds:
        """Return intervals of the means."""
        low, high = self._mean_bounds(alpha)
        return self._mean(low), self._mean(high)

    def sum_interval(self, alpha: float) -> Bounds:
        """Return intervals of the sums."""
        rows = self.counts
        if self.clip_indices is None:
            half_width = sum_half_width(self.scale, self.basis, self.law, rows, alpha)
        else:
            half_width = clipped_sum_half_width(
                self.scale, self.basis, self.law, rows, self.clip_indices, alpha
            )
        sums = self._sums_of_all_knots
        return sums - half_width, sums + half_width

    def variance_interval(self, alpha: float) -> Bounds:
        """Return intervals of the variances."""
        low, high = self._variance_bounds(alpha)
        return self._variance(low), self._variance(high)

    # --- clips that were chosen from the noisy sums -----------------------------------------------

    @property
    def clip_indices(self) -> Array | None:
        """The index of each group's knot; None where the bounds are fixed."""
        return None if self.knot_indices is msgspec.UNSET else self.knot_indices

    @property
    def clips(self) -> Array:
        """The value to which those of each group are clipped."""
        return self._mean(self._highest)

    @property
    def is_unclipped(self) -> bool:
        """Whether every group's clip is the upper bound, and the answer knows to say so."""
        return self.spans is not UNSET and bool((self._highest >= 1).all())

    @property
    def next_knots(self) -> Array:
        """The knot above each clip, where there is one; its distance from the bound is twice that.

        Raises
        ------
        TypeError
            If no clip was chosen.
        """
        if self.clip_indices is None:
            raise TypeError("no clip was chosen")
        following = np.minimum(self.clip_indices + 1, self.basis.size - 1)
        return self._mean(np.minimum(self.basis.weights[following], 1.0))

    def above(self, alpha: float) -> Array:
        """Return upper bounds of the numbers of rows beyond the next knots: int64 ndarray."""
        if self.clip_indices is None:
            return np.zeros(len(self.sums_of_functions), np.int64)
        n_knots = self.basis.size
        beyond = np.arange(n_knots) > self.clip_indices[:, None]
        # One-sided, and for all clips at once, since the noise may have led to any of them.
        of_clip = 2 * alpha / (n_knots - 1)
        half_widths = chernoff_half_widths(self.law, beyond.astype(float), of_clip)
        most = (self.sums_of_functions * beyond).sum(axis=1) + half_widths
        return np.asarray(np.floor(np.maximum(most / self.basis.unity, 0)), dtype=np.int64)

    def taken_from_means(self, alpha: float) -> tuple[Array, Array]:
        """Return by how much each clip lowers a mean: about, as estimated, and at most.

        They are NaN in answers that do not say, and the second where nothing is known.
        """
        if self.spans is UNSET or self.clip_indices is None:
            unknown = np.full(len(self.sums_of_functions), np.nan)
            return unknown, unknown
        most = most_taken_from_means(
            self.sums_of_functions, self.basis, self.law, self.clip_indices, alpha
        )
        is_known = (most < 1 - self._highest) | (self._highest >= 1)
        most = most * self.scale.width + np.where(self._highest < 1, self.scale.rounding, 0)
        about = np.minimum(self.spans.taken * TINY * self.scale.width, most)
        return about, np.where(is_known, most, np.nan)

    def taken_from_sums(self, alpha: float) -> tuple[Array, Array]:
        """Return by how much each clip lowers a sum: about, as estimated, and at most."""
        if self.spans is UNSET or self.clip_indices is None:
            unknown = np.full(len(self.sums_of_functions), np.nan)
            return unknown, unknown
        most = self.scale.width * most_taken_from_sums(
            self.sums_of_functions, self.basis, self.law, self.clip_indices, alpha
        )
        rows = np.maximum(self.counts, 0)
        most = most + np.where(self._highest < 1, rows * self.scale.rounding, 0)
        return np.minimum(self.spans.taken * TINY * self.scale.width * rows, most), most

    # --- from shares of the range to the value's own scale ----------------------------------------

    @cached_property
    def sums_of_functions(self) -> Array:
        """The published sums: float64 ndarray of shape (groups, k)."""
        return self.released.reshape(-1, self.basis.size).astype(float)

    @property
    def _taken_sums(self) -> Array:
        """The published sums that estimates take, and 0 for all others: like the published sums."""
        if self.spans is UNSET:
            return self.sums_of_functions
        return np.where(self.spans.hold(self.basis.size), self.sums_of_functions, 0.0)

    @property
    def _weights(self) -> Array:
        """Weights that give the value of each group, over R: of shape (k,) or (groups, k)."""
        weights = self.basis.weights
        if self.clip_indices is None:
            return weights
        return np.minimum(weights, weights[self.clip_indices][:, None])

    @property
    def _highest(self) -> Array:
        """The largest mean that is possible in each group, as a share of the range."""
        if self.clip_indices is None:
            return np.ones(len(self.sums_of_functions))
        # The last knot may lie beyond the upper bound.
        return np.minimum(self.basis.weights[self.clip_indices], 1.0)

    @cached_property
    def _usual_mean_bounds(self) -> Bounds:
        """The bounds that decide which means are known: computed once, and used often."""
        return self._mean_bounds(USUAL_ALPHA)

    @cached_property
    def _usual_variance_bounds(self) -> Bounds:
        return self._variance_bounds(USUAL_ALPHA)

    def _mean_bounds(self, alpha: float) -> Bounds:
        """Return bounds of the means, as shares of the range.

        Rounding moves each value, and so the mean, by at most the slack.
        """
        sums = self.sums_of_functions
        if self.clip_indices is None:
            low, high = mean_bounds(sums, self.basis, self.law, alpha)
        else:
            low, high = clipped_mean_bounds(sums, self.basis, self.law, self.clip_indices, alpha)
        slack = self.scale.rounding / self.scale.width
        return np.maximum(low - slack, 0), np.minimum(high + slack, self._highest)

    def _variance_bounds(self, alpha: float) -> Bounds:
        """Return bounds of the variances, as shares of the squared range.

        Rounding moves each value by at most the slack, and so does it move the standard deviation.
        """
        low, high = variance_bounds(self.sums_of_functions, self.basis, self.law, alpha)
        slack = self.scale.rounding / self.scale.width
        lowest = np.maximum(np.sqrt(low) - slack, 0) ** 2
        highest = np.minimum((np.sqrt(high) + slack) ** 2, 0.25)
        return lowest, highest

    def _mean(self, share: Array) -> Array:
        return self.scale.lower + share * self.scale.width

    def _variance(self, share: Array) -> Array:
        return share * self.scale.width**2


def _known_estimates(
    shares: Array, bounds: Bounds, most: Array | float, scaled: Callable[[Array], Array]
) -> Array:
    """Bring estimates within their bounds, and to the value's scale; NaN where not known.

    An estimate is not known if its bounds are 0 and ``most``, which is all that is possible.
    """
    low, high = bounds
    known = (low > 0) | (high < most)
    return np.where(known, scaled(np.clip(shares, low, high)), np.nan)


# --- clauses and sentences ------------------------------------------------------------------------


def of_each_person(scale: Values) -> str:
    """Return a clause on what the value of a person is; "" for values of rows."""
    if scale.persons is UNSET:
        return ""
    clause = f", each by the {scale.persons.statistic} of their values"
    if scale.persons.statistic == "mean":
        return clause
    # The bounds of a row's value are in the domain; those of a sum are nowhere else.
    return f"{clause}, clipped to {scale.lower:,.6g} to {scale.upper:,.6g}"


def clipped(tables: Sequence[ValueSums]) -> str:
    """Return a clause on the clips that were chosen, of each value; "" if nothing is clipped."""
    if all(sums.is_unclipped for sums in tables):
        return ""
    clips = []
    for sums in tables:
        least = f"{sums.clips.min():,.6g}"
        most = f"{sums.clips.max():,.6g}"
        clips.append(most if least == most else f"{least} to {most} by group")
    return f", each clipped to at most {' and '.join(clips)}"


def above_clip(tables: Sequence[ValueSums], alpha: float, counted: str) -> str:
    """Sentences on how many values of the only group lie above the clips of each value.

    Parameters
    ----------
    tables : sequence of ValueSums
        Of one group.
    alpha : float
        With which probability each number may be too small.
    counted : str
        What has a value, such as "rows".
    """
    sentences = []
    for sums in tables:
        if sums.is_unclipped:
            continue
        above = int(sums.above(alpha)[0])
        n_values = max(round(float(sums.counts[0])), 0)
        what = counted
        if len(tables) > 1:
            what = f"{counted.removesuffix(',')} of {printable(sums.scale.name)}"
        next_knot = f"{sums.next_knots[0]:,.6g}"
        if above >= n_values:
            sentences.append(f"How many {what} lie above {next_knot} is not known.")
        else:
            sentences.append(f"At most {above:,} of {n_values:,} {what} lie above {next_knot}.")
    return " ".join(sentences)


def lowered_by(sums: ValueSums, about: Array, at_most: Array, noun: str, n_values: int) -> str:
    """Say whether the values are clipped, and by how much that lowers a mean or a sum.

    Parameters
    ----------
    about, at_most : float64 ndarrays of shape (groups,)
        As estimated, and with 95% confidence; NaN where that is not known.
    noun : str
        What is lowered, such as "mean".
    n_values : int
        How many values the answer is about: the only one needs no name.
    """
    name = "" if n_values == 1 else f" of {printable(sums.scale.name)}"
    if sums.is_unclipped:
        return f"No value{name} is clipped below the upper bound."
    if len(about) > 1:
        noun = f"{noun}s"
    unknown = int(np.isnan(at_most).sum())
    estimated = number(float(f"{about.max():.3g}"))
    least = number(float(f"{about.min():.3g}"))
    if least != estimated:
        estimated = f"{least} to {estimated}"
    lowers = f"Clipping lowers the {noun}{name} by about {estimated}, as estimated"
    if unknown == len(at_most):
        return f"{lowers}; by how much at most is not known."
    most = number(_rounded_up(float(np.nanmax(at_most))))
    in_groups = f", and in {unknown:,} groups it is not known" if unknown else ""
    return f"{lowers}, and by at most {most} with 95% confidence{in_groups}."


def _rounded_up(most: float) -> float:
    """Round up to three digits, so that what is said holds too."""
    if most <= 0:
        return 0.0
    digit = 10.0 ** (math.floor(math.log10(most)) - 2)
    return float(f"{math.ceil(most / digit) * digit:.3g}")
