"""The choice of a clip after the noise was added, for ``clip="auto"``.

A value is the sum of the knots, weighted by its hats, and so is the value clipped at a knot, with
all knots beyond that one replaced by it. So the clipped sum at every knot is linear in the sums
that were published, and choosing among them is post-processing: it costs nothing.

*Spans.* Noise of knots where nobody is makes estimates worse. So an estimate takes the knots of a
*span* only: those from a first one to a last one.

*Which choice.* Counts are drawn that fit the noisy sums (``histogram.posterior``). Each draw has a
true mean (or sum), an expected squared error of every clip, and a best clip, which would be taken
if the counts were known beforehand. A draw counts the more, the smaller the error of its best clip.
The choice has the least sum of two parts: the squared distance of its estimate from the mean of the
draws, and half of the expected squared error of its clip. The first makes estimates accurate. The
second lets the clip, and the interval about it, be one that fits the draws, too.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec
import numpy as np

from sfumato.basics import Array
from sfumato.mechanisms import Law
from sfumato.questions.aggregates.values import Basis
from sfumato.questions.histogram.posterior import Prior, drawn_tables

# Chosen on other columns than most of those that docs/evidence/gains/chosen_clips.md reports.
PRIOR = Prior(begins=0.15, ends=0.15, resumes=0.005, scale=0.5, drift=-0.3, spread=0.05, draws=150)
TINY = 2.0**-40  # in which shares of the range are stored


class Spans(msgspec.Struct, frozen=True, forbid_unknown_fields=True, eq=False):
    """The knots that each group's estimate takes, and what its clip takes away.

    All arrays have the shape (groups,).

    Attributes
    ----------
    first, last : int64 ndarray
        The first and the last knot; the clip is between them.
    taken : int64 ndarray
        By how much the clip lowers a group's mean, as the noisy sums suggest: in ``TINY`` of the
        range of the value.
    """

    first: Array
    last: Array
    taken: Array

    def of_groups(self, groups: Array) -> Spans:
        """Return the spans of some groups, by a mask or by their indices."""
        return Spans(self.first[groups], self.last[groups], self.taken[groups])

    def fit(self, clips: Array) -> bool:
        """Tell whether every clip lies in the span of its group, as in all that were chosen."""
        if not self.first.shape == self.last.shape == self.taken.shape == clips.shape:
            return False
        within = (self.first >= 0) & (self.first < clips) & (self.last >= clips)
        return bool((within & (self.taken >= 0)).all())

    def hold(self, n_knots: int) -> Array:
        """Tell which knots each span holds: bool ndarray of shape (groups, n_knots)."""
        knots = np.arange(n_knots)
        return np.asarray((self.first[:, None] <= knots) & (knots <= self.last[:, None]))


def clipped_weights(basis: Basis, clip: int) -> Array:
    """Give weights that give the value clipped at a knot, over R: float64 ndarray of shape (k,)."""
    weights = basis.weights
    return np.asarray(np.minimum(weights, weights[clip]))


def chosen_clips(sums: Array, basis: Basis, law: Law, centre: float | None) -> tuple[Array, Spans]:
    """Choose a clip and a span for each group, from the published sums alone.

    Parameters
    ----------
    sums : float64 ndarray of shape (groups, k)
        The published sums of hats.
    centre : float or None
        What sums are measured from, in units of the range: the value 0. None for means.

    Returns
    -------
    clips : int64 ndarray of shape (groups,)
        An index of ``basis.knots`` for each group, at least 1.
    spans : Spans
    """
    clips, spans = _choices(basis.size)
    chosen = np.empty(len(sums), np.int64)
    taken = np.empty(len(sums), np.int64)
    for groups, counts in drawn_tables(sums, law, basis.unity, PRIOR):
        estimates = _estimates(sums[groups] / basis.unity, clips, spans, basis.weights, centre)
        draws = _Draws(counts, basis, law, centre)
        best = draws.errors(estimates, clips).argmin(axis=1)
        chosen[groups] = best
        taken[groups] = np.rint(draws.taken_from_means(clips[best]) / TINY)
    of_choices = spans.of_groups(chosen)
    return clips[chosen], Spans(of_choices.first, of_choices.last, taken)


@lru_cache(maxsize=32)
def _choices(n_knots: int) -> tuple[Array, Spans]:
    """All clips, each with all of its spans."""
    last_knot = n_knots - 1
    # So many steps from the clip to the last knot of a span, and from its first knot to the clip.
    triples = {
        (clip, max(clip - down, 0), min(clip + up, last_knot))
        for clip in range(1, n_knots)
        for up in (0, 1, last_knot)
        for down in (1, 2, 3, 5, last_knot)
    }
    # The widest spans first: of equal estimates, the first is taken.
    ordered = sorted(triples, key=lambda triple: (triple[1] - triple[2], triple))
    clips, first, last = np.array(ordered).T
    return clips, Spans(first, last, np.zeros_like(first))


def _estimates(
    counts: Array, clips: Array, spans: Spans, weights: Array, centre: float | None
) -> Array:
    """Return what each choice leads to: float64 ndarray of shape (groups, choices).

    It is NaN for a mean over no rows, or fewer.
    """
    held = spans.hold(len(weights)).astype(float)
    clipped = np.minimum(weights, weights[clips][:, None])
    if centre is not None:
        return np.asarray(counts @ (held * (clipped - centre)).T)
    rows = counts @ held.T
    with np.errstate(divide="ignore", invalid="ignore"):
        means = counts @ (held * clipped).T / rows
    return np.where(rows > 0, means, np.nan)


class _Draws:
    """Of each draw: the true statistic at every clip, and the error of the best clip.

    Parameters
    ----------
    counts : float64 ndarray of shape (groups, draws, k)
    """

    def __init__(self, counts: Array, basis: Basis, law: Law, centre: float | None) -> None:
        weights = basis.weights
        variance = law.variance / basis.unity**2
        n_rows = counts.sum(axis=2)[:, :, None]
        self._rows = np.maximum(n_rows, 1.0)
        sums = counts @ np.minimum(weights[:, None], weights)
        if centre is None:
            self._per_row = self._rows
            self.at_clips = sums / self._rows
            noise = variance * (self.at_clips**2 + (weights - self.at_clips) ** 2) / self._rows**2
            # No mean is further than that from the middle between the bounds.
            noise = np.minimum(noise, weights**2 / 4)
        else:
            self._per_row = np.ones_like(self._rows)
            self.at_clips = sums - centre * n_rows
            noise = variance * (centre**2 + (weights - centre) ** 2)
        self.truths = self.at_clips[:, :, -1]
        # What the clip takes away, and the noise on what is left.
        self._clip_errors = (self.truths[:, :, None] - self.at_clips) ** 2 + noise
        best = self._clip_errors[:, :, 1:].min(axis=2)
        is_empty = n_rows[:, :, 0] == 0
        self._may_be_empty = is_empty.mean(axis=1) > 0.5 if centre is None else slice(0)
        # Where nobody is, there is nothing that an estimate could be near to.
        weights_of_draws = np.where(is_empty, 1e-12, 1 / best)
        self._weights = weights_of_draws / weights_of_draws.sum(axis=1, keepdims=True)

    def errors(self, estimates: Array, clips: Array) -> Array:
        """Return how far estimates are from the draws: float64 ndarray like ``estimates``.

        A constant is left out: the spread of the draws about their middle.
        """
        middle = (self._weights * self.truths).sum(axis=1, keepdims=True)
        of_clips = np.einsum("gd,gdk->gk", self._weights, self._clip_errors)
        # The squared error of the clip has half the weight of that of the estimate.
        errors = (estimates - middle) ** 2 + 0.5 * of_clips[:, clips]
        errors[np.isnan(errors)] = np.inf
        # Of a group that may well be empty there is no mean: nothing is clipped, nothing is known.
        errors[self._may_be_empty] = clips != clips.max()
        return np.asarray(errors)

    def taken_from_means(self, clips: Array) -> Array:
        """Return by how much a clip for each group lowers its mean: float64 ndarray (groups,)."""
        taken = (self.truths[:, :, None] - self.at_clips) * (self._per_row / self._rows)
        of_draws = np.take_along_axis(taken, clips[:, None, None], axis=2)[:, :, 0]
        return np.asarray(np.maximum((self._weights * of_draws).sum(axis=1), 0.0))
