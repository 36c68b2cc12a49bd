"""The law of a weighted sum of independent noise: half-widths that hold, and are nearly tight.

S = sum of w_i Z_i has the characteristic function phi(t) = product of phi_i(w_i t), which is known.
Its law need not have a density, and its weights no common lattice. So a small U is added, a sum of
``m`` uniform variables that never exceeds ``h``, whose characteristic function falls like t^-m.

Holds because
    *Smoothing.* abs(S) <= abs(S + U) + h, so P(abs(S) > x + h) <= P(abs(S + U) > x).
    *Inversion.* On a circle of length L the density of S + U has the Fourier coefficients phi(t_j)
    phi_U(t_j), t_j = 2 pi j / L. The mass of [-x, x] there is 2 x / L plus the sum over j >= 1 of
    4 phi(t_j) phi_U(t_j) sin(t_j x) / (t_j L). It exceeds the mass on the line by at most
    P(abs(S + U) > L - x), which Chernoff's bound makes a small share of alpha.
    *Truncation.* abs(phi_U(t)) <= (m / (h t))^m, so what is left out beyond j = J is at most
    (2 / (pi m)) (m L / (2 pi h J))^m. ``h`` is chosen such that this is a small share of alpha too.
    *Small weights.* Draws that hold 10^-6 of the variance are left out of the sum. Chernoff's bound
    on them is added to the half-width.

Many sums are computed at once, a row each. All of it is computed from the laws alone, after the
release; nothing here draws or spends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.mechanisms.bounded_noise import CountLaw, TruncatedLaplace, farthest
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.mechanisms.sums import exact_half_width, half_widths, spread

FREQUENCIES = 2048
"""How many Fourier coefficients are used for many sums; for a few of them, FINER times as many."""

FEW = 32
FINER = 8

STEPS = 4
"""How many points of the circle there are for each coefficient: half-widths are rounded up to one.
"""

AT_ONCE = 2**20
"""How many Fourier coefficients are in memory at a time."""

SHARE = 2e-3
"""The share of alpha that each of the approximations may get wrong."""

SMALL = 1e-6
"""The share of the variance that is left to Chernoff's bound."""

WIDE = 2**14
"""Up to this half-width, the law of a sum of integers is computed point by point."""

MOST_SUMS = 1200
"""Of how many different sums the law is computed; for more of them, Chernoff's bound serves."""

FAINT = 1e-9
"""Below this alpha, rounding of the sums would show: Chernoff's bound serves."""

ROUNDING = 1e-12
"""Of a sum of so many sines in doubles."""

NOTHING = -50.0
"""The logarithm of a Fourier coefficient below which all of them add less than rounding."""


@dataclass(frozen=True)
class Weighted:
    """Independent draws of one law in many sums, each with a weight of its own.

    Attributes
    ----------
    law : DiscreteLaplace, DiscreteGaussian or TruncatedLaplace
    weights : float64 ndarray of shape (sums, k)
        Not negative.
    numbers : float64 ndarray of shape (sums, k)
        How many draws have each of the weights.
    """

    law: CountLaw
    weights: Array
    numbers: Array

    @classmethod
    def of(cls, law: CountLaw, weights: Array, numbers: Array | float = 1.0) -> Weighted:
        """Draws with weights of any sign: one sum, or a row for each sum.

        >>> from fractions import Fraction
        >>> Weighted.of(DiscreteLaplace(Fraction(2)), np.array([1.0, -0.5])).weights
        array([[1. , 0.5]])
        """
        size = np.atleast_2d(np.abs(np.asarray(weights, dtype=float)))
        return cls(law, size, np.broadcast_to(np.asarray(numbers, dtype=float), size.shape))

    @property
    def variances(self) -> Array:
        """What the draws of each weight add to the variance: float64 ndarray of shape (sums, k)."""
        return np.asarray(self.numbers * self.weights**2 * spread(self.law))

    def rows(self, start: int, stop: int) -> Weighted:
        """The draws of some of the sums."""
        return Weighted(self.law, self.weights[start:stop], self.numbers[start:stop])

    def times(self, factor: Array) -> Weighted:
        """The same draws with all weights of a sum multiplied."""
        return Weighted(self.law, self.weights * factor[:, None], self.numbers)

    def kept(self, where: Array) -> Weighted:
        """The same draws, without those that are not wanted."""
        return Weighted(self.law, np.where(where, self.weights, 0), self.numbers)

    def packed(self) -> Weighted:
        """The same draws, the largest weights first, those of equal weight together.

        Weights are rounded up to multiples of 2^-36, so none may exceed 1 by much.
        """
        lines = []
        for weights, numbers in zip(np.ceil(self.weights * 2.0**36), self.numbers, strict=True):
            distinct, back = np.unique(-weights[weights > 0], return_inverse=True)
            lines.append((-distinct / 2.0**36, np.bincount(back, numbers[weights > 0])))
        longest = max((len(weights) for weights, _ in lines), default=0)
        found = np.zeros((2, len(lines), longest))
        for row, (weights, numbers) in enumerate(lines):
            found[0, row, : len(weights)] = weights
            found[1, row, : len(weights)] = numbers
        return Weighted(self.law, found[0], found[1])

    @property
    def farthest(self) -> Array:
        """How far the draws can move each sum, at most: float64 ndarray of shape (sums,)."""
        if not isinstance(self.law, TruncatedLaplace):
            return np.where(self.weights.any(axis=1), np.inf, 0.0)
        return np.asarray((self.numbers * self.weights).sum(axis=1) * self.law.bound)

    def add_log_transform(self, angles: Array, logs: Array) -> None:
        """Add the logarithm of the size of the characteristic function of the draws.

        Where what there is has fallen below ``NOTHING``, nothing is added: no draw makes it larger.

        Parameters
        ----------
        angles : float64 ndarray of shape (sums, frequencies)
        logs : float64 ndarray like ``angles``
            What is added to.
        """
        every = logs.reshape(-1)
        left = np.flatnonzero(every > NOTHING)
        for at in np.flatnonzero(self.weights.any(axis=0)).tolist():
            weights, numbers = self.weights[:, at : at + 1], self.numbers[:, at : at + 1]
            if len(left) == len(every):
                logs += numbers * _log_transform(self.law, weights * angles)
            else:
                rows = left // angles.shape[1]
                of_one = _log_transform(self.law, weights[rows, 0] * angles.reshape(-1)[left])
                every[left] += numbers[rows, 0] * of_one
            left = left[every[left] > NOTHING]

    def sign(self, angles: Array) -> Array:
        """The sign of the characteristic function; only that of noise with a bound may change."""
        found = np.ones((1, 1))
        if isinstance(self.law, TruncatedLaplace):
            for at in np.flatnonzero(self.weights.any(axis=0)).tolist():
                of_one = np.sign(self.law.transform(self.weights[:, at : at + 1] * angles))
                found = np.asarray(found * np.where(self.numbers[:, at : at + 1] % 2, of_one, 1.0))
        return found


def weighted_half_widths(
    parts: Sequence[Weighted], alpha: float, *, of_many: bool = False
) -> Array:
    """For each sum a t with P(abs(S) > t) <= alpha, some hundredths above the least one.

    Parameters
    ----------
    parts : sequence of Weighted
        Which draws the sums are made of, each of the same number of sums.
    alpha : float in (0, 1)
    of_many : bool
        Whether these are some of many sums, for which there is no time to come nearer. Otherwise
        half-widths of a few sums are some thousandths above the least ones.

    Returns
    -------
    float64 ndarray of shape (sums,)

    >>> from fractions import Fraction
    >>> law = DiscreteLaplace(Fraction(100))
    >>> weighted_half_widths([Weighted.of(law, np.array([1.0, 0.5]))], 0.05).round(-1)
    array([330.])
    """
    largest = np.max([part.weights.max(axis=1, initial=0) for part in parts], axis=0)
    safe = np.where(largest > 0, largest, 1)
    # Bounds are for weights of at most 1.
    scaled = [part.times(1 / safe) for part in parts]
    found = _chernoff(scaled, alpha)
    if alpha >= FAINT:
        distinct, back = _distinct([part.packed() for part in scaled])
        if len(distinct[0].weights) <= MOST_SUMS:
            found = np.minimum(found, _by_inversions(distinct, alpha, of_many)[back])
    most = np.sum([part.farthest for part in parts], axis=0)
    return np.asarray(np.where(largest > 0, np.minimum(largest * found, most), 0))


def _distinct(parts: list[Weighted]) -> tuple[list[Weighted], Array]:
    """The sums that differ beyond rounding, and which of them each sum is."""
    columns = [np.hstack([np.rint(part.weights * 2.0**34), part.numbers]) for part in parts]
    _, first, back = np.unique(np.hstack(columns), axis=0, return_index=True, return_inverse=True)
    chosen = [Weighted(part.law, part.weights[first], part.numbers[first]) for part in parts]
    # Of sums that are equal but for rounding, the one that is computed has the larger weights.
    slack = np.full(len(first), 1 + 2.0**-32)
    return [part.times(slack) for part in chosen], back.reshape(-1)


def _by_inversions(parts: list[Weighted], alpha: float, of_many: bool) -> Array:
    """``_by_inversion``, some sums at a time."""
    sums = len(parts[0].weights)
    # With more coefficients half-widths are nearer to the least ones.
    frequencies = FREQUENCIES * (1 if of_many or sums > FEW else FINER)
    step = max(1, AT_ONCE // frequencies)
    found = [
        _by_inversion([part.rows(start, start + step) for part in parts], alpha, frequencies)
        for start in range(0, sums, step)
    ]
    return np.concatenate(found) if found else np.zeros(0)


def sum_half_width(law: CountLaw, draws: int, alpha: float) -> int:
    """An integer k with P(abs(S) > k) <= alpha for a sum of independent draws of one law.

    It is the least one where the law fits a short circle, and at most some hundredths more where
    noise is so wide that a step of the lattice does not show.

    >>> from fractions import Fraction
    >>> sum_half_width(DiscreteLaplace(Fraction(10)), 24, 0.05)
    136
    """
    if draws == 1:
        return law.half_width(alpha)
    return _sum_half_width(law, draws, alpha)


@lru_cache(maxsize=1024)
def _sum_half_width(law: CountLaw, draws: int, alpha: float) -> int:
    most = min(farthest(law, draws), 2.0**62)
    bound = half_widths(np.array([draws * spread(law)]), [(law, 1.0)], alpha)[0]
    if alpha >= FAINT and bound < WIDE:
        return min(exact_half_width([(law, draws)], alpha), math.floor(most))
    found = weighted_half_widths([Weighted.of(law, np.ones(1), np.array([float(draws)]))], alpha)
    return math.floor(float(found[0]))


def _by_inversion(parts: list[Weighted], alpha: float, frequencies: int) -> Array:
    """Half-widths of sums whose largest weights are 1, by their characteristic functions."""
    points = STEPS * frequencies
    large, small = _split(parts)
    beyond = _chernoff(small, SHARE * alpha)
    widest = _chernoff(large, alpha)
    # Beyond ``far`` lies a small share of alpha; a circle this long keeps it out of [-x, x].
    far = _chernoff(large, SHARE * alpha)
    inner = 1.1 * (widest + far) + 1e-9
    order, share = _smoothing(SHARE * alpha, frequencies)
    # The circle is longer than ``inner`` by twice the reach, which is a share of its length.
    length = inner / (1 - 2 * share)
    reach = share * length
    angles = 2 * np.pi * np.arange(1, frequencies + 1) / length[:, None]
    logs = np.zeros_like(angles)
    for part in large:
        part.add_log_transform(angles, logs)
    coefficients = np.zeros((len(angles), points))
    coefficients[:, 1 : frequencies + 1] = np.exp(logs) * 4 / (angles * length[:, None])
    for part in large:
        coefficients[:, 1 : frequencies + 1] *= part.sign(angles)
    coefficients[:, 1 : frequencies + 1] *= (
        np.sinc(angles * reach[:, None] / order / np.pi) ** order
    )
    # The mass of [-x, x] at x = 0, L / points, 2 L / points, ...
    sines = -np.fft.rfft(coefficients, axis=1).imag
    steps = np.arange(points // 2 + 1)
    mass = 2 * steps / points + sines
    is_enough = mass >= 1 - alpha * (1 - 4 * SHARE) + ROUNDING
    at = np.argmax(is_enough, axis=1)
    found = at * length / points + reach + beyond
    is_inside = is_enough.any(axis=1) & (at * length / points <= widest + reach)
    return np.asarray(np.where(is_inside, found, np.inf))


def _split(parts: list[Weighted]) -> tuple[list[Weighted], list[Weighted]]:
    """The draws that make up the sums, and those with next to nothing of their variance."""
    variances = np.concatenate([part.variances for part in parts], axis=1)
    order = np.argsort(variances, axis=1, kind="stable")
    ascending = np.take_along_axis(variances, order, axis=1)
    few = np.cumsum(ascending, axis=1) <= SMALL * variances.sum(axis=1, keepdims=True)
    is_small = np.empty_like(few)
    np.put_along_axis(is_small, order, few, axis=1)
    ends = np.cumsum([part.weights.shape[1] for part in parts])[:-1]
    masks = np.split(is_small, ends, axis=1)
    pairs = list(zip(parts, masks, strict=True))
    return [part.kept(~mask) for part, mask in pairs], [part.kept(mask) for part, mask in pairs]


def _smoothing(error: float, frequencies: int) -> tuple[int, float]:
    """How many uniform variables are added, and which share of the circle their sum can reach."""
    orders = np.arange(2, 31)
    shares = orders / (2 * np.pi * frequencies) * (2 / (np.pi * orders * error)) ** (1 / orders)
    best = int(np.argmin(shares))
    return int(orders[best]), float(shares[best])


def _chernoff(parts: Sequence[Weighted], alpha: float) -> Array:
    """Half-widths of the sums by ``sums.half_widths``; no weight exceeds 1."""
    variances = np.sum([part.variances.sum(axis=1) for part in parts], axis=0)
    laws = [(part.law, min(1.0, float(part.weights.max(initial=0)))) for part in parts]
    return half_widths(variances, laws, alpha)


def _log_transform(law: CountLaw, angles: Array) -> Array:
    """The logarithm of the size of the characteristic function of one draw."""
    if isinstance(law, TruncatedLaplace):
        return np.asarray(np.log(np.maximum(np.abs(law.transform(angles)), 1e-300)))
    if isinstance(law, DiscreteLaplace):
        return np.asarray(-np.log1p(law.variance * 2 * np.sin(angles / 2) ** 2))
    squared = float(law.sigma_squared)
    if squared < 1:
        mass = np.exp(-(np.arange(1, 13) ** 2) / (2 * squared))
        found = np.ones_like(angles)
        for x in range(1, 13):
            found += 2 * mass[x - 1] * np.cos(x * angles)
        return np.asarray(np.log(np.maximum(found / (1 + 2 * mass.sum()), 1e-300)))
    # By Poisson's formula it is a sum of normal curves around the multiples of 2 pi. Those beyond
    # the two next ones are below 1e-60.
    nearest = np.abs(angles - 2 * np.pi * np.rint(angles / (2 * np.pi)))
    exponents = [-squared * (nearest + shift) ** 2 / 2 for shift in (0, -2 * np.pi, 2 * np.pi)]
    whole = 1 + 2 * math.exp(-squared * (2 * np.pi) ** 2 / 2)
    return np.asarray(np.logaddexp.reduce(exponents, axis=0) - math.log(whole))
