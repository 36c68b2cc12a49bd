"""Buffered linear Toeplitz matrices: the square-root factorisation within one percent, in constant memory.

A(x) = 1 + sum of omega_i x / (1 - theta_i x) = product of (1 - zeta_i x) / (1 - theta_i x) needs d buffers a step:

    out_t = in_t + sum of omega_i u_i        u_i <- theta_i u_i + in_t

and its partner, with which it makes running totals, is A(x)^-1 / (1 - x), with the poles 1 = zeta_0 > zeta_1 > ... and weights
beta_i. Toeplitz matrices commute, so either may be the strategy C and the other the decoder B. A counter publishes A x + z and reads
totals with the partner; an aggregator gives the noise A z, and its strategy is the partner (a little cheaper when persons come back).

The poles are kept in the order 1 > theta_1 > zeta_1 > theta_2 > ... > zeta_d > 0: zeros and poles that interlace make every omega_i and
beta_i positive, and thus both columns non-negative and falling, which the sensitivity needs.

The parameters minimise the product of both sums of squared coefficients over one horizon, the squared sensitivity times the largest
variance. Both are sums over pairs of poles of geometric series, so that a value costs O(d^2) for any horizon; its gradient comes from
complex steps of 1e-30, exact to rounding. The search starts from logits of the poles spread evenly, as a quadrature of the arcsine law
is that (1 - x)^(-1/2) is the integral of. How good the result is, is measured and not assumed: ``BLT.loss``.

Source: Dvijotham, McMahan, Pillutla, Steinke, Thakurta, *Efficient and Near-Optimal Noise Generation for Streaming DP*, FOCS 2024;
McMahan, Xu, Zhang, *A Hassle-free Algorithm for Strong Differential Privacy in Federated Learning*, EMNLP 2024.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import msgspec
import numpy as np

from sfumato.arrays import Array
from sfumato.errors import UsageError
from sfumato.streaming.toeplitz import check_horizon

WITHIN = 0.01
MOST_BUFFERS = 12
ROUNDING = 1e-6
_STEP = 1e-30
_FIXED = 256


class BLT(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of a buffered linear Toeplitz matrix for running totals over a horizon.

    Attributes
    ----------
    horizon : int
    theta : tuple of float, of length d
        Decay of each buffer, in (0, 1), falling. Meant exactly, and exact in single precision.
    omega : tuple of float, of length d
        What each buffer adds; positive, meant exactly, and exact in single precision.
    zeta : tuple of float, of length d + 1
        Poles of the partner: 1, then below.
    beta : tuple of float, of length d + 1
        Weights of its running sums; they add up to 1.

    >>> blt = BLT.for_horizon(1024)
    >>> len(blt.theta), blt.loss() < 0.01
    (3, True)
    """

    horizon: int
    theta: tuple[float, ...]
    omega: tuple[float, ...]
    zeta: tuple[float, ...]
    beta: tuple[float, ...]

    @staticmethod
    def for_horizon(horizon: int, buffers: int | None = None) -> BLT:
        """Optimise the parameters for a horizon of up to 10^7 steps, in well under a second.

        Parameters
        ----------
        horizon : int
        buffers : int, optional
            From 1 to 12. None: the fewest whose loss against the square-root factorisation is below 1 %.
        """
        horizon = check_horizon(horizon)
        if buffers is None:
            return _fewest(horizon)
        if (
            isinstance(buffers, bool)
            or not isinstance(buffers, int)
            or not 1 <= buffers <= MOST_BUFFERS
        ):
            raise UsageError(
                f"buffers = {buffers!r}",
                f"it must be a whole number from 1 to {MOST_BUFFERS}",
                "Choose 4 or 5, or leave it out",
            )
        return _optimal(horizon, buffers)

    def coefficients(self, horizon: int | None = None) -> Array:
        """The first column of the buffered matrix: float64 ndarray of shape (horizon,), relative error below (d + 6) 2^-52."""
        n = self.horizon if horizon is None else check_horizon(horizon)
        return np.concatenate([[1.0], _powers(self.omega, self.theta, n - 1)])

    def decoder(self, horizon: int | None = None) -> Array:
        """The first column of the partner: float64 ndarray of shape (horizon,), right to 1e-9."""
        return _powers(
            self.beta, self.zeta, self.horizon if horizon is None else check_horizon(horizon)
        )

    def squared_norm(self, horizon: int | None = None) -> Fraction:
        """An upper bound of the sum of squared ``coefficients``: the squared sensitivity of one participation; within 2^-50 of it.

        Exact rationals, but for (theta_i theta_j)^(T-1), which is bounded from below by integers of 256 places.
        """
        n = self.horizon if horizon is None else check_horizon(horizon)
        theta, omega = [Fraction(x) for x in self.theta], [Fraction(x) for x in self.omega]
        total = Fraction(1)
        for a, weight_a in zip(theta, omega, strict=True):
            for b, weight_b in zip(theta, omega, strict=True):
                total += weight_a * weight_b * (1 - _power_below(a * b, n - 1)) / (1 - a * b)
        return Fraction(math.ceil(total * 2**52), 2**52)

    def loss(self) -> float:
        """How much larger the product of largest variance and squared sensitivity is than that of the square root, minus 1."""
        variance = float(
            _sum_of_squares(np.array(self.beta), 1 - np.array(self.zeta), self.horizon)
        )
        return variance * float(self.squared_norm()) / root_norm(self.horizon) ** 2 - 1


def root_norm(horizon: int) -> float:
    """f_0^2 + ... + f_(T-1)^2 of the square-root factorisation; beyond 10^4 terms by the expansion of the tail.

    >>> round(root_norm(2), 6), round(root_norm(2**20), 4)
    (1.25, 5.479)
    """
    n = min(horizon, 10**4)
    k = np.arange(1, n, dtype=np.float64)
    f = np.concatenate([[1.0], np.cumprod(1 - 0.5 / k)])
    found = float(np.dot(f, f))
    if horizon > n:
        found += _tail(horizon) - _tail(n)
    return found


def _tail(n: int) -> float:
    """The antidifference of f_k^2 = 1/(pi k) (1 - 1/(4k) + 1/(32 k^2) + ...), at n, up to a constant."""
    return (math.log(n) - 1 / (4 * n) + 5 / (192 * n * n)) / math.pi


@lru_cache(maxsize=64)
def _fewest(horizon: int) -> BLT:
    for buffers in range(1, MOST_BUFFERS):
        found = _optimal(horizon, buffers)
        if found.loss() < WITHIN:
            return found
    return _optimal(horizon, MOST_BUFFERS)


@lru_cache(maxsize=64)
def _optimal(horizon: int, buffers: int) -> BLT:
    """Search, round theta and omega, and find the partner of what they then are."""
    from scipy.optimize import minimize

    low, high = -math.log(horizon + 1), 1.5
    start = np.full(2 * buffers, math.log((high - low) / max(2 * buffers - 1, 1)))
    start[0] = low
    found = minimize(
        _objective,
        start,
        args=(horizon,),
        jac=True,
        method="BFGS",
        options={"gtol": 1e-7, "maxiter": 1000},
    )
    gaps = _gaps(found.x)
    theta = 1 - gaps[0::2]
    # In single precision, since buffers may be kept in it: rounded later they would be those of another matrix.
    omega = (theta * _residues(gaps[0::2], gaps[1::2])).astype(np.float32).astype(np.float64)
    theta = theta.astype(np.float32).astype(np.float64)
    zeta = np.concatenate([[0.0], _zeros(1 - theta, omega)])
    beta = _residues(zeta, 1 - theta)
    return BLT(horizon, *(tuple(map(float, found)) for found in (theta, omega, 1 - zeta, beta)))


def _zeros(gaps: Array, omega: Array) -> Array:
    """One minus each zero, rising: the eigenvalues of diag(gaps) + sqrt(omega) sqrt(omega)^T, by Sylvester's determinant identity."""
    root = np.sqrt(omega)
    return np.asarray(np.linalg.eigvalsh(np.diag(gaps) + np.outer(root, root)))


def _objective(x: Array, horizon: int) -> tuple[float, Array]:
    """The logarithm of the product of both sums, and its gradient by complex steps, one a row."""
    steps = x + 1j * _STEP * np.eye(len(x))
    gaps = _gaps(steps)
    theta, zeta = gaps[..., 0::2], gaps[..., 1::2]
    omega = (1 - theta) * _residues(theta, zeta)
    strategy = 1 + _sum_of_squares(omega, theta, horizon - 1)
    poles = np.concatenate([np.zeros_like(zeta[..., :1]), zeta], axis=-1)
    value = np.log(strategy) + np.log(_sum_of_squares(_residues(poles, theta), poles, horizon))
    return float(value[0].real), value.imag / _STEP


def _gaps(x: Array) -> Array:
    """One minus each pole, rising: logits that start at x_0 and grow by exp(x_1), exp(x_2), ..."""
    logits = np.cumsum(np.concatenate([x[..., :1], np.exp(x[..., 1:])], axis=-1), axis=-1)
    return np.asarray(1 / (1 + np.exp(-logits)))


def _residues(poles: Array, zeros: Array) -> Array:
    """A_i of the sum of A_i / (1 - p_i x), from one minus poles and zeros: differences near 1 lose nothing."""
    values = 1 - poles[..., :, None]
    above = np.prod((zeros[..., None, :] - poles[..., :, None]) / values, axis=-1)
    below = np.prod(
        (poles[..., None, :] - poles[..., :, None]) / values + np.eye(poles.shape[-1]), axis=-1
    )
    return np.asarray(above / below)


def _sum_of_squares(weights: Array, gaps: Array, terms: int) -> Array:
    """Sum over k < terms of (sum of w_i p_i^k)^2, p_i = 1 - gap_i, from geometric series over pairs."""
    one, other = gaps[..., :, None], gaps[..., None, :]
    together = one + other - one * other
    certain = together == 0
    logs = terms * (np.log1p(-one) + np.log1p(-other))
    series = np.where(certain, terms, -np.expm1(logs) / np.where(certain, 1, together))
    return np.asarray(np.sum(weights[..., :, None] * weights[..., None, :] * series, axis=(-1, -2)))


def _powers(weights: tuple[float, ...], poles: tuple[float, ...], terms: int) -> Array:
    """Sum of w_i p_i^k for k < terms; p^k = p^(block a) p^b, since a power by itself is slow where it underflows."""
    block = 4096
    few, many = np.arange(min(block, terms)), block * np.arange(-(-terms // block))
    found = np.zeros((len(many), len(few)))
    for weight, pole in zip(weights, poles, strict=True):
        found += np.multiply.outer(weight * np.power(pole, many), np.power(pole, few))
    return found.ravel()[:terms]


def _power_below(base: Fraction, exponent: int) -> Fraction:
    """A lower bound of base^exponent, 0 <= base < 1, by repeated squaring of integers that round down."""
    square, found = (base.numerator << _FIXED) // base.denominator, 1 << _FIXED
    while exponent:
        if exponent & 1:
            found = found * square >> _FIXED
        square = square * square >> _FIXED
        exponent >>= 1
    return Fraction(found, 1 << _FIXED)
