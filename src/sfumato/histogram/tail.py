"""How many lie beyond each bin of a histogram, estimated from noisy counts of its bins.

The sum of the noisy counts from a bin on is exact but for its noise. Far out, where hardly anyone
is left, the sum is mostly noise: taken as it is, it would move every rule that looks at the far
end of a distribution. So the far sums follow a curve that is fitted to the counts, as far as the
noisy sums allow. This is post-processing: it reads published numbers only.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sfumato.basics.numbers import Array

DETECTED = 3.0  # standard deviations above 0, up to which a sum may be noise alone
TAIL_SHARE = 0.6  # of all, unless the caller knows better
ABOVE = 0.5  # standard deviations by which the curve may exceed a noisy sum
FEWEST_BINS = 4  # that a curve of three parameters is fitted to
TABLES_AT_ONCE = 32  # that are compared with all curves: what is computed stays in the cache
# Below about so many multiplications, linear algebra libraries start no threads. Threads would
# cost more time than they save on products as narrow as these.
MULTIPLIED_AT_ONCE = 2**18
LEAST_CURVES_AT_ONCE = 64
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
        curve = _fitted(counts[tables, start:], u, widths[start:], deviation)
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
    grid = _Grid(curves, min(len(counts), TABLES_AT_ONCE))
    fitted = np.zeros_like(counts)
    for start in range(0, len(counts), TABLES_AT_ONCE):
        some = counts[start : start + TABLES_AT_ONCE]
        weights = np.ones_like(some)
        for _ in range(REWEIGHTINGS + 1):
            best, factors = grid.nearest(some, weights)
            curve = factors[:, None] * curves[best]
            weights = 1 / np.sqrt(1 + ((some - curve) / deviation) ** 2)
        fitted[start : start + TABLES_AT_ONCE] = curve
    return fitted


class _Grid:
    """The curves to compare tables with, and room for what is computed of each pair of both.

    Parameters
    ----------
    curves : float64 ndarray of shape (curves, bins)
    most_tables : int
        How many tables are compared at a time, at most.
    """

    def __init__(self, curves: Array, most_tables: int) -> None:
        n_curves, n_bins = curves.shape
        together = MULTIPLIED_AT_ONCE // max(1, most_tables * n_bins)
        together = max(LEAST_CURVES_AT_ONCE, together)
        self._parts = [slice(start, start + together) for start in range(0, n_curves, together)]
        columns = [curves[part].T for part in self._parts]
        self._values = [np.ascontiguousarray(each) for each in columns]
        self._squares = [each**2 for each in self._values]
        # New arrays of this size would cost as much time as the arithmetic.
        self._gains = np.empty((most_tables, n_curves))
        self._factors = np.empty((most_tables, n_curves))

    def nearest(self, counts: Array, weights: Array) -> tuple[Array, Array]:
        """Find the curve, times a factor, with the least weighted squared error to each table.

        Parameters
        ----------
        counts, weights : float64 ndarrays of shape (tables, bins)

        Returns
        -------
        best : int64 ndarray of shape (tables,)
            Which curve it is.
        factors : float64 ndarray of shape (tables,)
            Non-negative.
        """
        products = self._gains[: len(counts)]
        squares = self._factors[: len(counts)]
        weighted = weights * counts
        for part, values, squared in zip(self._parts, self._values, self._squares, strict=True):
            np.matmul(weighted, values, out=products[:, part])
            np.matmul(weights, squared, out=squares[:, part])
        np.maximum(products, 0, out=products)
        factors = np.divide(products, squares, out=squares)
        # A curve reduces the squared error by the product times its best factor.
        gains = np.multiply(products, factors, out=products)
        best = gains.argmax(axis=1)
        return best, factors[np.arange(len(counts)), best]


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
