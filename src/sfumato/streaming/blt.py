"""Buffered linear Toeplitz matrices: within one percent of the square root, in constant memory.

A(x) = 1 + sum of omega_i x / (1 - theta_i x) = product of (1 - zeta_i x) / (1 - theta_i x) needs d
buffers a step:

    out_t = in_t + sum of omega_i u_i        u_i <- theta_i u_i + in_t

Its partner, with which it makes running totals, is A(x)^-1 / (1 - x), with the poles 1 = zeta_0 >
zeta_1 > ... and weights beta_i. Toeplitz matrices commute, so either may be the strategy C and the
other the decoder B. A counter publishes A x + z and estimates totals with the partner. An
aggregator gives the noise A z, and its strategy is the partner, whose sensitivity is a little
smaller when persons come back.

The poles are kept in the order 1 > theta_1 > zeta_1 > theta_2 > ... > zeta_d > 0. Zeros and poles
that interlace make every omega_i and beta_i positive. Both columns are then non-negative and
decreasing, which the sensitivity needs.

The parameters minimise the product of the sums of squared coefficients of both columns over one
horizon, which is the squared sensitivity times the largest variance. Both sums run over pairs of
poles, with a geometric series for each, so a value costs O(d^2) for any horizon. The gradient comes
from complex steps of 1e-30 and is exact to rounding. The search starts from logits of the poles
that are spread evenly, like a quadrature of the arcsine law of which (1 - x)^(-1/2) is the
integral. How good the result is, is measured and not assumed: ``BLT.loss``.

Source: Dvijotham, McMahan, Pillutla, Steinke, Thakurta, *Efficient and Near-Optimal Noise
Generation for Streaming DP*, FOCS 2024; McMahan, Xu, Zhang, *A Hassle-free Algorithm for Strong
Differential Privacy in Federated Learning*, EMNLP 2024.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import msgspec
import numpy as np

from sfumato.basics.numbers import Array
from sfumato.errors import UsageError
from sfumato.streaming.toeplitz import check_horizon

# The largest loss against the square root with which the fewest buffers are chosen.
WITHIN = 0.01
MOST_BUFFERS = 12
# The relative rise of a squared sensitivity that covers the rounding of ``BLT.decoder``.
ROUNDING = 1e-6
# The step of complex-step derivatives.
_STEP = 1e-30
# Binary places of fixed-point powers.
_FIXED = 256


class BLT(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of a buffered linear Toeplitz matrix for running totals over a horizon.

    Attributes
    ----------
    horizon : int
    theta : tuple of float, of length d
        The decay of each buffer, in (0, 1), in descending order. The numbers are exact, and exact
        in single precision.
    omega : tuple of float, of length d
        The weight of each buffer, above 0. The numbers are exact, and exact in single precision.
    zeta : tuple of float, of length d + 1
        The poles of the partner in descending order; the first is 1.
    beta : tuple of float, of length d + 1
        The weights of the partner's running sums; they add up to 1.

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
        """Return the best parameters for a horizon of up to 10^7 steps, in well under a second.

        Parameters
        ----------
        horizon : int
        buffers : int, optional
            From 1 to 12. None: the fewest whose loss against the square-root factorisation is below
            1%.
        """
        horizon = check_horizon(horizon)
        if buffers is None:
            return _fewest(horizon)
        whole = isinstance(buffers, int) and not isinstance(buffers, bool)
        if not whole or not 1 <= buffers <= MOST_BUFFERS:
            raise UsageError(
                f"buffers = {buffers!r}",
                f"it must be a whole number from 1 to {MOST_BUFFERS}",
                "Choose 4 or 5, or leave it out",
            )
        return _optimal(horizon, buffers)

    def coefficients(self, horizon: int | None = None) -> Array:
        """Return the first column of the buffered matrix: a float64 ndarray of shape (horizon,).

        The relative error is below (d + 6) 2^-52.
        """
        n = self.horizon if horizon is None else check_horizon(horizon)
        return np.concatenate([[1.0], _powers(self.omega, self.theta, n - 1)])

    def decoder(self, horizon: int | None = None) -> Array:
        """Return the first column of the partner: a float64 ndarray of shape (horizon,).

        It is right to 1e-9.
        """
        n = self.horizon if horizon is None else check_horizon(horizon)
        return _powers(self.beta, self.zeta, n)

    def squared_norm(self, horizon: int | None = None) -> Fraction:
        """Return an upper bound of the sum of squared ``coefficients``, at most 2^-50 above it.

        This is the squared sensitivity of one participation. It is computed in exact rationals,
        except for (theta_i theta_j)^(T-1), which integers of 256 binary places bound from below.
        """
        n = self.horizon if horizon is None else check_horizon(horizon)
        theta = [Fraction(x) for x in self.theta]
        omega = [Fraction(x) for x in self.omega]
        total = Fraction(1)
        for a, weight_a in zip(theta, omega, strict=True):
            for b, weight_b in zip(theta, omega, strict=True):
                series = (1 - _power_below(a * b, n - 1)) / (1 - a * b)
                total += weight_a * weight_b * series
        return Fraction(math.ceil(total * 2**52), 2**52)

    def loss(self) -> float:
        """Return the loss against the square-root factorisation.

        It is the ratio of both products of largest variance and squared sensitivity, minus 1.
        """
        gaps = 1 - np.array(self.zeta)
        variance = float(_sum_of_squares(np.array(self.beta), gaps, self.horizon))
        return variance * float(self.squared_norm()) / root_norm(self.horizon) ** 2 - 1


def root_norm(horizon: int) -> float:
    """Return f_0^2 + ... + f_(T-1)^2 of the square-root factorisation.

    Beyond 10^4 terms the expansion of the tail is used.

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
    """Return the antidifference of f_k^2 at n, up to a constant.

    f_k^2 = 1/(pi k) (1 - 1/(4k) + 1/(32 k^2) + ...).
    """
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
    """Search for theta and omega, round them, and return them with their partner."""
    from scipy.optimize import minimize

    low = -math.log(horizon + 1)
    high = 1.5
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
    # Rounded to single precision before the partner is computed: buffers may be held in single
    # precision, and parameters that were rounded later would be those of another matrix.
    omega = (theta * _residues(gaps[0::2], gaps[1::2])).astype(np.float32).astype(np.float64)
    theta = theta.astype(np.float32).astype(np.float64)
    zeta = np.concatenate([[0.0], _zeros(1 - theta, omega)])
    beta = _residues(zeta, 1 - theta)
    return BLT(
        horizon=horizon,
        theta=tuple(theta.tolist()),
        omega=tuple(omega.tolist()),
        zeta=tuple((1 - zeta).tolist()),
        beta=tuple(beta.tolist()),
    )


def _zeros(gaps: Array, omega: Array) -> Array:
    """Return one minus each zero, in ascending order."""
    # By Sylvester's determinant identity they are the eigenvalues of
    # diag(gaps) + sqrt(omega) sqrt(omega)^T.
    root = np.sqrt(omega)
    return np.asarray(np.linalg.eigvalsh(np.diag(gaps) + np.outer(root, root)))


def _objective(x: Array, horizon: int) -> tuple[float, Array]:
    """Return the logarithm of the product of both sums, and its gradient.

    Each row is x with a complex step in one coordinate.
    """
    steps = x + 1j * _STEP * np.eye(len(x))
    gaps = _gaps(steps)
    theta = gaps[..., 0::2]
    zeta = gaps[..., 1::2]
    omega = (1 - theta) * _residues(theta, zeta)
    strategy = 1 + _sum_of_squares(omega, theta, horizon - 1)
    poles = np.concatenate([np.zeros_like(zeta[..., :1]), zeta], axis=-1)
    partner = _sum_of_squares(_residues(poles, theta), poles, horizon)
    value = np.log(strategy) + np.log(partner)
    return float(value[0].real), value.imag / _STEP


def _gaps(x: Array) -> Array:
    """Return one minus each pole, in ascending order.

    Their logits start at x_0 and grow by exp(x_1), exp(x_2), ..., so that they stay in order.
    """
    growth = np.concatenate([x[..., :1], np.exp(x[..., 1:])], axis=-1)
    logits = np.cumsum(growth, axis=-1)
    return np.asarray(1 / (1 + np.exp(-logits)))


def _residues(poles: Array, zeros: Array) -> Array:
    """Return A_i of the partial fractions A_i / (1 - p_i x).

    Poles and zeros are given as one minus themselves, so that differences near 1 lose no digits.
    """
    values = 1 - poles[..., :, None]
    to_zeros = (zeros[..., None, :] - poles[..., :, None]) / values
    to_poles = (poles[..., None, :] - poles[..., :, None]) / values
    # A pole is not compared with itself: the diagonal, which is 0, becomes a factor of 1.
    above = np.prod(to_zeros, axis=-1)
    below = np.prod(to_poles + np.eye(poles.shape[-1]), axis=-1)
    return np.asarray(above / below)


def _sum_of_squares(weights: Array, gaps: Array, terms: int) -> Array:
    """Return the sum over k < terms of (sum of w_i p_i^k)^2, with p_i = 1 - gap_i."""
    one = gaps[..., :, None]
    other = gaps[..., None, :]
    # 1 - p_i p_j, which is 0 for a pair of poles at 1: its series then has ``terms`` ones.
    together = one + other - one * other
    at_one = together == 0
    logs = terms * (np.log1p(-one) + np.log1p(-other))
    series = np.where(at_one, terms, -np.expm1(logs) / np.where(at_one, 1, together))
    pairs = weights[..., :, None] * weights[..., None, :]
    return np.asarray(np.sum(pairs * series, axis=(-1, -2)))


def _powers(weights: tuple[float, ...], poles: tuple[float, ...], terms: int) -> Array:
    """Return the sum of w_i p_i^k for each k < terms."""
    # p^k = p^(block a) p^b, since a power by itself is slow where it underflows.
    block = 4096
    few = np.arange(min(block, terms))
    many = block * np.arange(-(-terms // block))
    found = np.zeros((len(many), len(few)))
    for weight, pole in zip(weights, poles, strict=True):
        found += np.multiply.outer(weight * np.power(pole, many), np.power(pole, few))
    return found.ravel()[:terms]


def _power_below(base: Fraction, exponent: int) -> Fraction:
    """Return a lower bound of base^exponent for 0 <= base < 1.

    It is found by repeated squaring of fixed-point numbers, each rounded down.
    """
    square = (base.numerator << _FIXED) // base.denominator
    found = 1 << _FIXED
    while exponent:
        if exponent & 1:
            found = found * square >> _FIXED
        square = square * square >> _FIXED
        exponent >>= 1
    return Fraction(found, 1 << _FIXED)
