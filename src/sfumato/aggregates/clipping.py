"""A clip that is chosen after the noise was added: ``clip="auto"``.

A value is the sum of the knots, weighted by its hats, and so is the value clipped at a knot, with
all knots beyond that one replaced by it. So the clipped sum at every knot is linear in the sums
that were published, and choosing among them is post-processing: it costs nothing.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.aggregates.basis import Basis
from sfumato.basics.numbers import Array
from sfumato.histogram.tail import numbers_beyond
from sfumato.mechanisms.noise import Law


def clipped_weights(basis: Basis, clip: int) -> Array:
    """Weights that give the value clipped at a knot, over R: float64 ndarray of shape (k,)."""
    weights = basis.weights
    return np.asarray(np.minimum(weights, weights[clip]))


def chosen_clips(sums: Array, basis: Basis, law: Law, centre: float | None) -> Array:
    """Choose a clip for each group: the one with the smallest estimated error.

    The squared error of a clip is the square of what clipping takes away, plus the variance of the
    noise. Both are estimated from the published sums alone.

    Parameters
    ----------
    sums : float64 ndarray of shape (groups, k)
        The published sums of hats.
    centre : float or None
        What the weights of the noise are measured from, in units of the range: None for means,
        whose noise is measured from the mean itself; the value 0 for sums.

    Returns
    -------
    int64 ndarray of shape (groups,)
        An index of ``basis.knots``, at least 1.
    """
    knots = basis.weights
    deviation = math.sqrt(law.variance) / basis.unity
    # Knots are a factor of two apart, so hats are as wide as each other on a logarithmic scale.
    positions = math.log(2) * np.arange(len(knots))
    beyond = numbers_beyond(sums / basis.unity, positions, np.ones(len(knots)), deviation)
    rows = np.maximum(sums.sum(axis=1) / basis.unity, 1.0)

    # Clipping at knot c takes the gap to each knot above it from all who lie beyond that knot.
    taken_by_gap = np.diff(knots) * beyond[:, 1:]
    suffix_sums = np.cumsum(taken_by_gap[:, ::-1], axis=1)[:, ::-1]
    taken = np.concatenate([suffix_sums, np.zeros((len(sums), 1))], axis=1)
    # The mean at clip c is what lies below: the gaps up to c, each for all beyond its upper knot.
    below = np.cumsum(taken_by_gap, axis=1) / np.maximum(beyond[:, :1], 1.0)
    means = np.concatenate([np.zeros((len(sums), 1)), below], axis=1)
    centres = np.minimum(means, knots) if centre is None else np.full_like(means, centre)

    spread = _spread(basis, centres)
    errors = (taken / rows[:, None]) ** 2 + deviation**2 * spread / rows[:, None] ** 2
    # A clip at the lower bound would make all values equal.
    return 1 + np.asarray(errors[:, 1:].argmin(axis=1))


def _spread(basis: Basis, centres: Array) -> Array:
    """How much noise each clip lets through: the squares of the weights' distances from a centre.

    Parameters
    ----------
    centres : float64 ndarray of shape (groups, k)
        Of each clip.

    Returns
    -------
    float64 ndarray of shape (groups, k)
    """
    spread = np.empty_like(centres)
    # Clip by clip: all distances at once would take k times the memory.
    for clip in range(basis.size):
        distances = clipped_weights(basis, clip) - centres[:, clip, None]
        spread[:, clip] = (distances**2).sum(axis=1)
    return spread
