"""Sums of independent noise: bounds on their tails and half-widths that hold, and their exact law.

All of it is computed from the laws alone, after the release; nothing here draws or spends. In the
order of the code:

* Sums of noise of several scales (``half_widths``, ``exact_half_width``): bounds on their tails,
  and their exact law.
* Weighted sums (``weighted_half_widths``, ``sum_half_width``): half-widths that hold, and are
  nearly tight.
* A contrast (``contrast_half_width``): the exact law of how far the noise on counts moves "rows
  below, less q of all rows".
* Weighted sums of draws of one law (``tails``, ``chernoff_half_widths``,
  ``gaussian_half_widths``): bounds that hold, by the coupling of a draw with a continuous one.

*Weighted sums.*

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

Many sums are computed at once, a row each.

*A contrast.* The counts are of disjoint cells, some below a place and the others above it. Each has
one draw of the same law. So the noise of (rows below - q * all rows) is (1 - q) X - q Y, where X is
the sum of the draws below and Y the sum of those above.

*Draws of one law.*

A draw Z of discrete noise is coupled with a draw X of the continuous law of the same scale such
that abs(Z - X) <= slack. So P(sum w Z >= x) is at most P(sum w X >= x - slack sum abs(w)).

*Laplace, scale b.* With u uniform, abs(X) = -b ln u, and abs(Z) = floor(-b ln u + c) (0 if
negative) with c = b ln(2 / (1 + exp(-1/b))). This c lies in (0, 1/2], since
P(abs(Z) >= k) = 2 exp(-k/b) / (1 + exp(-1/b)). Hence abs(abs(Z) - abs(X)) <= 1 - c. Both draws get
the same sign. The characteristic function of sum w X is the product of 1 / (1 + (w b t)^2), and its
tail is a sum of a few hundred sines (Davies 1973), with an error that is bounded below.

*Gaussian, sigma >= 1.* P(Z >= k) <= P(X >= k - 1) (Canonne, Kamath, Steinke 2020, Prop. 27).
P(abs(Z) >= k) >= P(abs(X) >= k) / (1 + 2 exp(-2 pi^2 sigma^2) + ..), from comparing the sum with
the integral. Hence abs(abs(Z) - abs(X)) <= 1 to nine digits, and 1.000001 is taken. In any case the
sum is subgaussian (Prop. 21).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import overload

import msgspec
import numpy as np

from sfumato.basics import Array, least_whole
from sfumato.mechanisms.bounded_noise import CountLaw, TruncatedLaplace, farthest
from sfumato.mechanisms.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    Law,
    bell,
    least_over_grid,
)

# --- noise of several scales ----------------------------------------------------------------------

# Stands for the variance of noise that is all but never there, where variances are divided.
LEAST_SPREAD = 1e-250

# The share of alpha that the circle of ``exact_half_width`` may get wrong.
OUTSIDE = 1e-9


def spread(law: CountLaw) -> float:
    """The variance that bounds of sums are made from: of Laplace noise its own, without a bound if
    it has one; of Gaussian noise sigma^2.
    """
    if isinstance(law, TruncatedLaplace):
        return law.without_bound.variance
    return law.variance if isinstance(law, DiscreteLaplace) else float(law.sigma_squared)


def half_widths(variances: Array, parts: Sequence[tuple[CountLaw, float]], alpha: float) -> Array:
    """Half-widths of weighted sums of independent draws of several laws, by a Chernoff bound.

    Parameters
    ----------
    variances : float64 ndarray
        Of each sum, by ``spread``.
    parts : sequence of (law, coefficient)
        A draw of the law enters with a coefficient of size at most this one, which is at most 1.
    alpha : float
        Two-sided: P(|sum| > half-width) <= alpha.

    Holds because: let c be the largest coefficient. E exp(tZ) = 1 / (1 - v (cosh t - 1)) for
    Laplace noise of variance v, and at most that for the part of it within a bound; with |a| <= c,
    cosh(a t) - 1 <= (a / c)^2 (cosh(c t) - 1) and -ln(1 - w s) <= -w ln(1 - s) for w in [0, 1]. So
    ln E exp(a t Z) <= a^2 v psi(t) with psi(t) = -ln(1 - v (cosh(c t) - 1)) / (v c^2). A Gaussian
    has psi(t) = t^2 / 2. The sum's log moment is at most its variance times the largest psi, and
    any t gives a valid bound. psi grows with v and with c, so each may be rounded up to what
    doubles can square.
    """
    variances = np.asarray(variances, dtype=float)
    # Variances and coefficients are rounded up so far that doubles can square them.
    laplace = [
        (max(spread(law), 1e-100), max(coefficient, 1e-50))
        for law, coefficient in parts
        if not isinstance(law, DiscreteGaussian) and spread(law) > 0 and coefficient > 0
    ]
    need = math.log(2 / alpha)
    if not laplace:
        return np.sqrt(2 * variances * need)
    # Every psi is finite below this t.
    last = min(_end(v) / coefficient for v, coefficient in laplace)
    near_last = 1 - np.geomspace(0.5, 1e-9, 160)
    t = last * np.concatenate([np.geomspace(1e-5, 0.5, 160), near_last])
    has_gaussian = any(isinstance(law, DiscreteGaussian) for law, _ in parts)
    psi = t**2 / 2 if has_gaussian else np.zeros_like(t)
    for variance, coefficient in laplace:
        # 2 sinh^2(x / 2) is cosh x - 1 without cancellation.
        cosh_less_one = 2 * np.sinh(coefficient * t / 2) ** 2
        s = np.minimum(variance * cosh_less_one, 1 - 1e-12)
        psi = np.maximum(psi, -np.log1p(-s) / (variance * coefficient**2))
    return least_over_grid(np.maximum(variances, 0), psi, t, need)


def _end(variance: float) -> float:
    """Where v (cosh t - 1) reaches 1."""
    # For large v the argument of acosh is 1 to all digits, and cosh t - 1 is t^2 / 2.
    return math.acosh(1 + 1 / variance) if variance < 1e12 else math.sqrt(2 / variance)


def exact_half_width(parts: Sequence[tuple[CountLaw, int]], alpha: float) -> int:
    """The smallest integer k with P(|sum| > k) <= alpha, for a sum of independent draws: ``number``
    of each law.

    The law of the sum is the inverse Fourier transform of the product of the characteristic
    functions, on a circle that is longer than the range which the sum leaves with probability 1e-9
    alpha; so it is exact to about 1e-9 of alpha and 1e-15. Where alpha is below that, it is a
    bound.

    >>> from fractions import Fraction
    >>> law = DiscreteLaplace(Fraction(10))
    >>> exact_half_width([(law, 1)], 0.05) == law.half_width(0.05)
    True
    """
    length = _circle(parts, alpha)
    # The sum is an integer: where it exceeds the bound rounded down, it exceeds the bound.
    bound = math.floor(_bound_of_sum(parts, alpha))
    if length > 2**24:
        # So wide that a step of the lattice does not show: the bound serves.
        return bound
    masses = _masses(parts, length)
    # The error of a transform is a share of the norm, spread over all points: a tail gathers at
    # most this much of it (Cauchy and Schwarz). It is added, so that no half-width is too small.
    # In doubles the share is several times below 2^-50.
    error = 2.0**-50 * math.sqrt(length) * float(np.linalg.norm(masses))
    if error > alpha:
        return bound
    # Tails are added up from the far end, so that they lose no digits to the mass in the middle.
    from_far = np.cumsum(masses[:0:-1])
    beyond = 2 * np.append(from_far[::-1], 0)
    is_rare = beyond + error <= alpha * (masses[0] + beyond[0])
    return min(int(np.argmax(is_rare)), bound)


def _circle(parts: Sequence[tuple[CountLaw, int]], alpha: float) -> int:
    """Return the points of a circle that the sum leaves with a small share of alpha."""
    reach = _bound_of_sum(parts, OUTSIDE * alpha)
    return 1 << max(4, math.ceil(math.log2(2 * reach + 4)))


def _bound_of_sum(parts: Sequence[tuple[CountLaw, int]], alpha: float) -> float:
    """A half-width of the sum of ``number`` draws of each law, by ``half_widths``."""
    variance = sum(number * spread(law) for law, number in parts)
    present = [(law, 1.0) for law, number in parts if number]
    return float(half_widths(np.array([variance]), present, alpha)[0])


def _masses(parts: Sequence[tuple[CountLaw, int]], length: int) -> Array:
    """Return the law of a sum on a circle of ``length`` points, at 0, 1, .., length / 2 - 1."""
    points = np.arange(length // 2 + 1)
    angles = 2 * np.pi * points / length
    log_transform = sum(number * _log_transform(law, angles) for law, number in parts)
    transform = np.exp(log_transform)
    for law, number in parts:
        if isinstance(law, TruncatedLaplace) and number % 2:
            transform *= np.sign(law.transform(angles))
    return np.maximum(np.fft.irfft(transform, length)[: length // 2], 0)


# --- weighted sums --------------------------------------------------------------------------------

FEW_SUMS = 32

# How many points of the circle there are for each coefficient: half-widths are rounded up to one.
STEPS = 4

# The share of alpha that each of the approximations may get wrong.
SHARE = 2e-3

# The logarithm of a Fourier coefficient below which all of them add less than rounding.
NOTHING = -50.0


class Weighted(msgspec.Struct, frozen=True):
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

    def rows(self, which: Array) -> Weighted:
        """The draws of some of the sums."""
        return Weighted(self.law, self.weights[which], self.numbers[which])

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
        # Up, never to the nearest: larger weights make a wider sum, and its half-width still holds.
        for weights, numbers in zip(np.ceil(self.weights * 2.0**36), self.numbers, strict=True):
            distinct, back = np.unique(-weights[weights > 0], return_inverse=True)
            lines.append((-distinct / 2.0**36, np.bincount(back, numbers[weights > 0])))
        longest = max((len(weights) for weights, _ in lines), default=0)
        packed = np.zeros((2, len(lines), longest))
        for row, (weights, numbers) in enumerate(lines):
            packed[0, row, : len(weights)] = weights
            packed[1, row, : len(weights)] = numbers
        return Weighted(self.law, packed[0], packed[1])

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
            weights = self.weights[:, at : at + 1]
            numbers = self.numbers[:, at : at + 1]
            if len(left) == len(every):
                logs += numbers * _log_transform(self.law, weights * angles)
            else:
                rows = left // angles.shape[1]
                of_one = _log_transform(self.law, weights[rows, 0] * angles.reshape(-1)[left])
                every[left] += numbers[rows, 0] * of_one
            left = left[every[left] > NOTHING]

    def sign(self, angles: Array) -> Array:
        """The sign of the characteristic function; only that of noise with a bound may change."""
        sign = np.ones((1, 1))
        if isinstance(self.law, TruncatedLaplace):
            for at in np.flatnonzero(self.weights.any(axis=0)).tolist():
                of_one = np.sign(self.law.transform(self.weights[:, at : at + 1] * angles))
                sign = np.asarray(sign * np.where(self.numbers[:, at : at + 1] % 2, of_one, 1.0))
        return sign


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
    half_widths = _chernoff(scaled, alpha)
    # Below this alpha the rounding of the sums would show: Chernoff's bound serves.
    if alpha >= 1e-9:
        distinct, back = _distinct([part.packed() for part in scaled])
        if len(distinct[0].weights) <= 1200:
            half_widths = np.minimum(half_widths, _by_inversions(distinct, alpha, of_many)[back])
    most = np.sum([part.farthest for part in parts], axis=0)
    half_widths = np.minimum(largest * half_widths, most)
    return np.where(largest > 0, half_widths, 0)


def _distinct(parts: list[Weighted]) -> tuple[list[Weighted], Array]:
    """The sums that differ beyond rounding, and which of them each sum is."""
    columns = [np.hstack([np.rint(part.weights * 2.0**34), part.numbers]) for part in parts]
    _, first, back = np.unique(np.hstack(columns), axis=0, return_index=True, return_inverse=True)
    # Of sums that are equal but for rounding, the one that is computed has the larger weights.
    slack = np.full(len(first), 1 + 2.0**-32)
    return [part.rows(first).times(slack) for part in parts], back.reshape(-1)


def _by_inversions(parts: list[Weighted], alpha: float, of_many: bool) -> Array:
    sums = len(parts[0].weights)
    # With more coefficients half-widths are nearer to the least ones.
    frequencies = 2048 * (1 if of_many or sums > FEW_SUMS else 8)
    # So many sums have 2^20 coefficients in memory at a time.
    step = max(1, 2**20 // frequencies)
    blocks = []
    for start in range(0, sums, step):
        block = np.arange(start, min(start + step, sums))
        rows = [part.rows(block) for part in parts]
        blocks.append(_by_inversion(rows, alpha, frequencies))
    return np.concatenate(blocks) if blocks else np.zeros(0)


def sum_half_width(law: CountLaw, draws: int, alpha: float) -> int:
    """An integer k with P(abs(S) > k) <= alpha for a sum of independent draws of one law.

    It is the least one where the law fits a short circle, and at most some hundredths more where
    noise is so wide that a step of the lattice does not show.

    >>> from fractions import Fraction
    >>> sum_half_width(DiscreteLaplace(Fraction(10)), 24, 0.05)
    136
    """
    if draws <= 1:
        return law.half_width(alpha) if draws else 0
    return _sum_half_width(law, draws, alpha)


@lru_cache(maxsize=1024)
def _sum_half_width(law: CountLaw, draws: int, alpha: float) -> int:
    numbers = np.array([float(draws)])
    half_width: float
    # On a circle that is not too long the law is computed point by point.
    if _circle([(law, draws)], alpha) <= 2**22:
        half_width = exact_half_width([(law, draws)], alpha)
    else:
        drawn = Weighted.of(law, np.ones(1), numbers)
        half_width = float(weighted_half_widths([drawn], alpha)[0])
    # All of these hold. The law seeks Chernoff's bound at other places, and may find less.
    by_law = float(law.sum_half_width(numbers, alpha)[0])
    return math.floor(min(half_width, by_law, farthest(law, draws), 2.0**62))


def _by_inversion(parts: list[Weighted], alpha: float, frequencies: int) -> Array:
    """Half-widths of sums whose largest weights are 1, by their characteristic functions."""
    large, small = _split(parts)
    bounds = _chernoff(large, alpha)
    # ``order`` uniform variables are added. Their sum reaches ``share`` of the circle, the least
    # one whose error is at most a small share of alpha.
    orders = np.arange(2, 31)
    powers = (2 / (np.pi * orders * (SHARE * alpha))) ** (1 / orders)
    shares = orders / (2 * np.pi * frequencies) * powers
    order = int(orders[np.argmin(shares)])
    share = float(shares.min())
    # Beyond ``outside`` lies a small share of alpha. A circle this long keeps it out of [-x, x]; it
    # is longer by twice the reach of the smoothing, which is a share of the length.
    outside = _chernoff(large, SHARE * alpha)
    length = (1.1 * (bounds + outside) + 1e-9) / (1 - 2 * share)
    reach = share * length
    masses = _central_masses(large, length, order, share, frequencies)
    # A sum of so many sines in doubles is off by less than 1e-12.
    least = 1 - alpha * (1 - 4 * SHARE)
    is_enough = masses >= least + 1e-12
    ends = np.argmax(is_enough, axis=1) * length / (STEPS * frequencies)
    half_widths = ends + reach + _chernoff(small, SHARE * alpha)
    # Where no point is enough, or only one beyond what Chernoff's bound says, infinity leaves the
    # choice to that bound.
    is_inside = is_enough.any(axis=1) & (ends <= bounds + reach)
    return np.where(is_inside, half_widths, np.inf)


def _central_masses(
    parts: list[Weighted], length: Array, order: int, share: float, frequencies: int
) -> Array:
    """The mass of [-x, x] of smoothed sums on circles of length L, at x = 0, L / points, ..."""
    points = STEPS * frequencies
    numbers = np.arange(1, frequencies + 1)
    angles = 2 * np.pi * numbers / length[:, None]
    logs = np.zeros_like(angles)
    for part in parts:
        part.add_log_transform(angles, logs)
    coefficients = np.zeros((len(angles), points))
    of_angles = coefficients[:, 1 : frequencies + 1]
    of_angles[:] = np.exp(logs) * 4 / (angles * length[:, None])
    for part in parts:
        of_angles *= part.sign(angles)
    reach = share * length
    of_angles *= np.sinc(angles * reach[:, None] / order / np.pi) ** order
    sines = -np.fft.rfft(coefficients, axis=1).imag
    x = np.arange(points // 2 + 1)
    return np.asarray(2 * x / points + sines)


def _split(parts: list[Weighted]) -> tuple[list[Weighted], list[Weighted]]:
    """The draws that make up the sums, and those with next to nothing of their variance."""
    variances = np.concatenate([part.variances for part in parts], axis=1)
    order = np.argsort(variances, axis=1, kind="stable")
    ascending = np.take_along_axis(variances, order, axis=1)
    # A millionth of the variance is left to Chernoff's bound.
    faint = 1e-6 * variances.sum(axis=1, keepdims=True)
    few = np.cumsum(ascending, axis=1) <= faint
    is_small = np.empty_like(few)
    np.put_along_axis(is_small, order, few, axis=1)
    ends = np.cumsum([part.weights.shape[1] for part in parts])[:-1]
    pairs = list(zip(parts, np.split(is_small, ends, axis=1), strict=True))
    return [part.kept(~mask) for part, mask in pairs], [part.kept(mask) for part, mask in pairs]


def _chernoff(parts: Sequence[Weighted], alpha: float) -> Array:
    """Half-widths of the sums by ``half_widths``; no weight exceeds 1."""
    variances = np.sum([part.variances.sum(axis=1) for part in parts], axis=0)
    laws = [(part.law, min(1.0, float(part.weights.max(initial=0)))) for part in parts]
    return half_widths(variances, laws, alpha)


def _log_transform(law: CountLaw, angles: Array) -> Array:
    """The logarithm of the size of the characteristic function of one draw."""
    if isinstance(law, TruncatedLaplace):
        return np.log(np.maximum(np.abs(law.transform(angles)), 1e-300))
    if isinstance(law, DiscreteLaplace):
        sines = np.sin(angles / 2) ** 2
        return -np.log1p(law.variance * 2 * sines)
    squared = float(law.sigma_squared)
    if squared < 1:
        mass = bell(13, squared)[1:]
        sums = np.ones_like(angles)
        for x, mass_of_x in enumerate(mass, 1):
            sums += 2 * mass_of_x * np.cos(x * angles)
        shares = sums / (1 + 2 * mass.sum())
        return np.asarray(np.log(np.maximum(shares, 1e-300)))
    # By Poisson's formula it is a sum of normal curves around the multiples of 2 pi. Those beyond
    # the two next ones are below 1e-60.
    turn = 2 * np.pi
    nearest = np.abs(angles - turn * np.rint(angles / turn))
    exponents = [-squared * (nearest + shift) ** 2 / 2 for shift in (0, -turn, turn)]
    whole = 1 + 2 * math.exp(-squared * turn**2 / 2)
    return np.asarray(np.logaddexp.reduce(exponents, axis=0) - math.log(whole))


# --- contrasts ------------------------------------------------------------------------------------

# Points of the law of a sum. Wider laws are bounded instead.
LONGEST = 2**20


@lru_cache(maxsize=2**14)
def contrast_half_width(law: Law, below: int, above: int, q: Fraction, alpha: float) -> int:
    """The smallest integer k with P(|(1 - q) X - q Y| > k) <= alpha.

    Parameters
    ----------
    law : DiscreteLaplace or DiscreteGaussian
        Of every draw.
    below, above : int
        How many independent draws X and Y add up.
    q : Fraction
        From 0 to 1: with 0 it is the law of X, with 1 that of Y.
    alpha : float

    Returns
    -------
    int
        Exact but for ``OUTSIDE``. Where the sums are wider than ``LONGEST``, a Chernoff bound,
        which may be larger.

    >>> law = DiscreteLaplace(Fraction(5))
    >>> contrast_half_width(law, 1, 0, Fraction(0), 0.05) == law.half_width(0.05)
    True
    >>> contrast_half_width(law, 2, 2, Fraction(1, 2), 0.05)
    14
    """
    of_x = float(1 - q) if below else 0.0
    of_y = float(q) if above else 0.0
    squares = below * of_x**2 + above * of_y**2
    variances = np.array([spread(law) * squares])
    bound = math.ceil(float(half_widths(variances, [(law, max(of_x, of_y))], alpha)[0]))
    x = sum_masses(law, below, OUTSIDE * alpha)
    y = sum_masses(law, above, OUTSIDE * alpha)
    if x is None or y is None:
        return bound
    # P(Y < k) for k = -reach, .., reach + 1.
    y_below = np.append(0, np.cumsum(y))
    reach_x = len(x) // 2
    reach_y = len(y) // 2
    at = (q.denominator - q.numerator) * np.arange(-reach_x, reach_x + 1)

    def inside(half: int) -> float:
        # (1 - q) x - q y is within the half-width for y from ``first`` to ``last``.
        room = q.denominator * half
        if not q:
            return float(x[np.abs(at) <= room].sum() * y_below[-1])
        first = -((room - at) // q.numerator)
        last = (at + room) // q.numerator
        high = y_below[np.clip(last + reach_y + 1, 0, len(y))]
        low = y_below[np.clip(first + reach_y, 0, len(y))]
        return float((x * np.maximum(high - low, 0)).sum())

    # The probability outside of a half-width falls as it grows.
    return least_whole(lambda half: inside(half) >= 1 - alpha, -1, bound)


@lru_cache(maxsize=2**10)
def sum_masses(law: Law, number: int, outside: float) -> Array | None:
    """The probabilities of the sum of ``number`` draws at -R, .., R; None where R is too large.

    R is such that the sum lies farther away with a probability of at most ``outside``.
    """
    # A sum of nothing, or of draws that are never anything but 0, is 0.
    if not number or not law.variance:
        return np.ones(1)
    reach = math.ceil(_bound_of_sum([(law, number)], outside))
    if 2 * reach + 1 > LONGEST:
        return None
    length = 1 << (2 * reach + 1).bit_length()
    masses = _masses([(law, number)], length)[: reach + 1]
    return np.concatenate([masses[:0:-1], masses])


# --- draws of one law -----------------------------------------------------------------------------

GAUSSIAN_SLACK = 1.000001


@overload
def coupling_slack(law: DiscreteLaplace) -> float: ...
@overload
def coupling_slack(law: Law) -> float | None: ...
def coupling_slack(law: Law) -> float | None:
    """Bound how far a draw and its continuous twin are apart; None where no bound is known."""
    if isinstance(law, DiscreteLaplace):
        scale = float(law.scale)
        # 1 - c of the coupling above, written so that a large scale loses no digits.
        log_both = math.log1p(math.exp(-1 / scale))
        return 1 - scale * (math.log(2) - log_both)
    return None if law.sigma_squared < 1 else GAUSSIAN_SLACK


def chernoff_half_widths(law: Law, weights: Array, alpha: float) -> Array:
    """Bound abs(sum_j w_j Z_j) at any alpha, for any number of independent draws.

    Parameters
    ----------
    law : DiscreteLaplace or DiscreteGaussian
    weights : float64 ndarray of shape (..., k)
    alpha : float
        Two-sided: P(abs(sum) > half-width) <= alpha.

    Returns
    -------
    float64 ndarray of shape (...)
    """
    sizes = np.abs(np.asarray(weights, dtype=float))
    largest = sizes.max(axis=-1)
    safe = np.where(largest > 0, largest, 1.0)
    effective = ((sizes / safe[..., None]) ** 2).sum(axis=-1)
    return np.asarray(largest * law.sum_half_width(effective, alpha))


def gaussian_half_widths(
    law: DiscreteGaussian, squares: Array, sizes: Array, alpha: float
) -> Array:
    """Bound abs(sum_j w_j Z_j) more closely, for Gaussian noise.

    Parameters
    ----------
    law : DiscreteGaussian
    squares, sizes : float64 ndarrays of one shape
        Of each sum, the sum of w_j^2 and that of abs(w_j).
    alpha : float
        Two-sided: P(abs(sum) > half-width) <= alpha.

    Returns
    -------
    float64 ndarray of that shape
    """
    slack = coupling_slack(law)
    if slack is None:
        return law.sum_half_width(squares, alpha)
    from scipy.special import ndtri

    normal = -float(ndtri(alpha / 2)) * law.sigma
    return normal * np.sqrt(squares) + slack * sizes


PERIOD = 20.0  # standard deviations after which the sum of sines repeats itself
N_SINES = 320
# Of the sum of sines. Cut off after T = N_SINES 2 pi / PERIOD = 100, it misses less than
# 1 / (pi T^2), since the characteristic function is at most 1 / (1 + t^2 / 2) where the variance is
# 1. Its repetition adds at most the tail beyond 12 standard deviations, less than 10^-6.
ERROR = 1 / (math.pi * (2 * math.pi * N_SINES / PERIOD) ** 2) + 1e-6
LEAST_ALPHA = 50 * ERROR  # below it, Chernoff's bound is the narrower one
SUMS_AT_ONCE = 2048  # sums whose sines are held in memory together


def tails(law: Law, weights: Array, at: Array) -> Array:
    """Bound P(sum_j w_j Z_j >= x) from above, for independent draws Z_j.

    Parameters
    ----------
    law : DiscreteLaplace or DiscreteGaussian
    weights : float64 ndarray of shape (sums, k)
    at : float64 ndarray of shape (sums,)
        The x of each sum. At 0 or below nothing is bounded, and 1 is returned.

    Returns
    -------
    float64 ndarray of shape (sums,)
    """
    sizes = np.abs(np.asarray(weights, float))
    norms = np.sqrt((sizes**2).sum(axis=1))
    safe = np.where(norms > 0, norms, 1.0)
    if isinstance(law, DiscreteLaplace):
        bounds = _laplace(law, sizes, safe, at)
    else:
        from scipy.special import ndtr

        deviations = law.sigma * safe
        # The sum is subgaussian.
        bounds = np.exp(-((at / deviations) ** 2) / 2)
        slack = coupling_slack(law)
        if slack is not None:
            coupled = ndtr((slack * sizes.sum(axis=1) - at) / deviations)
            bounds = np.minimum(bounds, coupled)
    # A sum without weights is 0: it never reaches a positive number.
    bounds = np.where(norms > 0, bounds, 0.0)
    return np.where(at > 0, bounds, 1.0)


def _laplace(law: DiscreteLaplace, sizes: Array, norms: Array, at: Array) -> Array:
    scale = float(law.scale)
    deviations = math.sqrt(2) * scale * norms
    slack = coupling_slack(law) * sizes.sum(axis=1)
    standard = (at - slack) / deviations
    shares = (scale * sizes / deviations[:, None]) ** 2
    # Tails of sums of continuous Laplace draws, whose variances add up to 1, with the error.
    numbers = np.arange(N_SINES) + 0.5
    times = 2 * math.pi / PERIOD * numbers
    bounds = np.ones(len(sizes))
    for start in range(0, len(sizes), SUMS_AT_ONCE):
        some = slice(start, start + SUMS_AT_ONCE)
        inverse = np.ones((len(shares[some]), N_SINES))
        for column in shares[some].T:
            inverse *= 1 + column[:, None] * times**2
        # A tail beyond 8 standard deviations is bounded by the one there.
        x = np.minimum(standard[some], 8.0)
        terms = np.sin(x[:, None] * times) / (inverse * math.pi * numbers)
        tail = np.clip(0.5 - terms.sum(axis=1), 0, 1) + ERROR
        bounds[some] = np.where(standard[some] > 0, np.minimum(tail, 1), 1.0)
    return bounds
