"""How many lie beyond each bin of a histogram, estimated from noisy counts of its bins.

The sum of the noisy counts from a bin on is exact but for its noise. Far out, where hardly anyone
is left, the sum is mostly noise: taken as it is, it would move every rule that looks at the far
end of a distribution. So the far sums follow a curve that is fitted to the counts, as far as the
noisy sums allow. This is post-processing: it reads published numbers only.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sfumato.arrays import Array

DETECTED = 3.0  # standard deviations above 0, up to which a sum may be noise alone
TAIL_SHARE = 0.6  # of all, unless the caller knows better
ABOVE = 0.5  # standard deviations by which the curve may exceed a noisy sum
FEWEST_BINS = 4  # that a curve of three parameters is fitted to
MOST_FITTED = 1024  # tables at a time
REWEIGHTINGS = 2  # rounds that reduce the influence of counts far from the curve

# The curves: exp(slope u - bend u^2) times a factor, u being the logarithm of the value. Without a
# bend it is a power law; a lognormal law has bend 1 / (2 sigma^2); a large bend is a sharp end.
SLOPES = np.linspace(-6, 3, 91)
BENDS = np.concatenate([[0.0], np.geomspace(1e-3, 100, 26)])


def numbers_beyond(
    noisy: Array,
    positions: Array,
    widths: Array,
    deviation: float,
    tail_share: float = TAIL_SHARE,
) -> Array:
    """Estimate how many lie beyond the lower end of each bin.

    Where the noisy sum from a bin on stands out from its noise, it is kept, made non-increasing.
    From the first bin on where it does not, the estimate follows a curve through the counts. The
    mass per unit of ``positions`` has a logarithm that is a concave quadratic. The curve may be at
    most half a standard deviation above the noisy sum, and is otherwise free: noise that happens
    to be large is not taken for people.

    Parameters
    ----------
    noisy : ndarray of shape (tables, bins) or (bins,)
        Noisy counts. Bins are in the order of their values.
    positions : float64 ndarray of shape (bins,)
        The logarithm of the middle of each bin, increasing.
    widths : float64 ndarray of shape (bins,)
        The length of each bin on the scale of ``positions``.
    deviation : float
        The standard deviation of the noise on each count.
    tail_share : float
        The curve is fitted to the bins from the one on beyond which no more than this share lies.

    Returns
    -------
    float64 ndarray like ``noisy``
        Non-negative, non-increasing along the bins.

    >>> noisy = np.array([50.0, 30, 9, 2, -1, 4, -3])
    >>> numbers_beyond(noisy, np.arange(7.0), np.ones(7), 2.0).round(1).tolist()
    [91.0, 41.0, 11.5, 2.0, 0.2, 0.0, 0.0]
    """
    counts = np.atleast_2d(np.asarray(noisy, dtype=float))
    n_bins = counts.shape[1]
    sums = _suffix_sums(counts)
    terms = np.arange(n_bins, 0, -1)
    deviations = deviation * np.sqrt(terms)
    detected = _first(sums <= DETECTED * deviations)
    beyond = _non_increasing(np.maximum(sums, 0), detected, 1 / terms)

    starts = _first(sums <= tail_share * sums[:, :1])
    starts = np.clip(starts, 0, max(n_bins - FEWEST_BINS, 0))
    below_noise = np.arange(n_bins) >= detected[:, None]
    for start in np.unique(starts).tolist():
        tables = np.flatnonzero(starts == start)
        u = positions[start:] - positions[start]
        highest = np.maximum(sums[tables, start:] + ABOVE * deviations[start:], 0)
        # A fit compares each table with every curve, so few tables are fitted at a time.
        batches = np.array_split(counts[tables, start:], 1 + len(tables) // MOST_FITTED)
        curve = np.concatenate([_fitted(batch, u, widths[start:], deviation) for batch in batches])
        estimate = np.minimum(_suffix_sums(curve), highest)
        kept = beyond[tables, start:]
        beyond[tables, start:] = np.where(below_noise[tables, start:], estimate, kept)
    return np.asarray(np.minimum.accumulate(beyond, axis=1)).reshape(np.shape(noisy))


def _suffix_sums(counts: Array) -> Array:
    """Sums from each bin on."""
    return np.asarray(np.cumsum(counts[:, ::-1], axis=1)[:, ::-1])


def _first(condition: Array) -> Array:
    """The first bin of each table with a condition; without such a bin, the number of bins."""
    found = condition.any(axis=1)
    return np.asarray(np.where(found, condition.argmax(axis=1), condition.shape[1]))


def _fitted(counts: Array, u: Array, widths: Array, deviation: float) -> Array:
    """The curve nearest to the counts of each table, out of a grid of slopes and bends.

    For each slope and bend the best factor has a closed form, so the best curve of the grid is
    found at once, without a start and without iterations that may not converge. Laplace noise has
    outliers: counts far from the curve get less weight, and the fit is repeated.
    """
    curves = _curves(tuple(u.tolist())) * widths
    every = np.arange(len(counts))
    weights = np.ones_like(counts)
    fitted = np.zeros_like(counts)
    for _ in range(REWEIGHTINGS + 1):
        products = np.maximum((weights * counts) @ curves.T, 0)
        squares = weights @ (curves**2).T
        best = (products**2 / squares).argmax(axis=1)  # the largest reduction of squared errors
        factors = products[every, best] / squares[every, best]
        fitted = factors[:, None] * curves[best]
        weights = 1 / np.sqrt(1 + ((counts - fitted) / deviation) ** 2)
    return fitted


@lru_cache(maxsize=64)
def _curves(u: tuple[float, ...]) -> Array:
    """The grid of curves at some positions: float64 ndarray of shape (curves, bins)."""
    at = np.array(u)
    slopes, bends = (each.reshape(-1, 1) for each in np.meshgrid(SLOPES, BENDS))
    exponents = slopes * at - bends * at**2
    # The factor of a curve is free, so each may be scaled such that no exponential overflows.
    return np.asarray(np.exp(exponents - exponents.max(axis=1, keepdims=True)))


def _non_increasing(sums: Array, detected: Array, weights: Array) -> Array:
    """Pool neighbouring sums that increase, among the detected bins of each table.

    The weights are the inverse variances: each pool becomes its weighted mean (isotonic least
    squares, Ayer et al. 1955).
    """
    pooled = sums.copy()
    rising = (np.diff(sums, axis=1) > 0) & (np.arange(1, sums.shape[1]) < detected[:, None])
    for table in np.flatnonzero(rising.any(axis=1)).tolist():
        means: list[float] = []
        pool_weights: list[float] = []
        sizes: list[int] = []
        last = detected[table]
        for value, weight in zip(sums[table, :last], weights[:last], strict=True):
            means.append(float(value))
            pool_weights.append(float(weight))
            sizes.append(1)
            while len(means) > 1 and means[-2] < means[-1]:
                size = sizes.pop()
                weight_of_last = pool_weights.pop()
                mean = means.pop()
                total = pool_weights[-1] + weight_of_last
                means[-1] = (means[-1] * pool_weights[-1] + mean * weight_of_last) / total
                pool_weights[-1] = total
                sizes[-1] += size
        pooled[table, :last] = np.repeat(means, sizes)
    return pooled
