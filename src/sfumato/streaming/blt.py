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
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from operator import mul
from typing import Any

import msgspec
import numpy as np

from sfumato.errors import UsageError
from sfumato.streaming.aggregator import Aggregator, beyond, check_steps
from sfumato.streaming.generators import ValueGenerator
from sfumato.streaming.sensitivity import squared_sensitivity
from sfumato.streaming.toeplitz import check_horizon
from sfumato.streaming.values import WHOLE, combine, leaves, rebuilt, unlike

WITHIN = 0.01
MOST_BUFFERS = 12
ROUNDING = 1e-6
_STEP = 1e-30
_FIXED = 256


class BLT(msgspec.Struct, frozen=True):
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
        if isinstance(buffers, bool) or not isinstance(buffers, int) or not 1 <= buffers <= MOST_BUFFERS:
            raise UsageError(
                f"buffers = {buffers!r}", f"it must be a whole number from 1 to {MOST_BUFFERS}", "Choose 4 or 5, or leave it out"
            )
        return _optimal(horizon, buffers)

    def coefficients(self, horizon: int | None = None) -> np.ndarray:
        """The first column of the buffered matrix: float64 ndarray of shape (horizon,), relative error below (d + 6) 2^-52."""
        n = self.horizon if horizon is None else check_horizon(horizon)
        return np.concatenate([[1.0], _powers(self.omega, self.theta, n - 1)])

    def decoder(self, horizon: int | None = None) -> np.ndarray:
        """The first column of the partner: float64 ndarray of shape (horizon,), right to 1e-9."""
        return _powers(self.beta, self.zeta, self.horizon if horizon is None else check_horizon(horizon))

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
        variance = float(_sum_of_squares(np.array(self.beta), 1 - np.array(self.zeta), self.horizon))
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
    found = minimize(_objective, start, args=(horizon,), jac=True, method="BFGS", options={"gtol": 1e-7, "maxiter": 1000})
    gaps = _gaps(found.x)
    theta = 1 - gaps[0::2]
    # In single precision, since buffers may be kept in it: rounded later they would be those of another matrix.
    omega = (theta * _residues(gaps[0::2], gaps[1::2])).astype(np.float32).astype(np.float64)
    theta = theta.astype(np.float32).astype(np.float64)
    zeta = np.concatenate([[0.0], _zeros(1 - theta, omega)])
    beta = _residues(zeta, 1 - theta)
    return BLT(horizon, *(tuple(map(float, found)) for found in (theta, omega, 1 - zeta, beta)))


def _zeros(gaps: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """One minus each zero, rising: the eigenvalues of diag(gaps) + sqrt(omega) sqrt(omega)^T, by Sylvester's determinant identity."""
    root = np.sqrt(omega)
    return np.asarray(np.linalg.eigvalsh(np.diag(gaps) + np.outer(root, root)))


def _objective(x: np.ndarray, horizon: int) -> tuple[float, np.ndarray]:
    """The logarithm of the product of both sums, and its gradient by complex steps, one a row."""
    steps = x + 1j * _STEP * np.eye(len(x))
    gaps = _gaps(steps)
    theta, zeta = gaps[..., 0::2], gaps[..., 1::2]
    omega = (1 - theta) * _residues(theta, zeta)
    strategy = 1 + _sum_of_squares(omega, theta, horizon - 1)
    poles = np.concatenate([np.zeros_like(zeta[..., :1]), zeta], axis=-1)
    value = np.log(strategy) + np.log(_sum_of_squares(_residues(poles, theta), poles, horizon))
    return float(value[0].real), value.imag / _STEP


def _gaps(x: np.ndarray) -> np.ndarray:
    """One minus each pole, rising: logits that start at x_0 and grow by exp(x_1), exp(x_2), ..."""
    logits = np.cumsum(np.concatenate([x[..., :1], np.exp(x[..., 1:])], axis=-1), axis=-1)
    return np.asarray(1 / (1 + np.exp(-logits)))


def _residues(poles: np.ndarray, zeros: np.ndarray) -> np.ndarray:
    """A_i of the sum of A_i / (1 - p_i x), from one minus poles and zeros: differences near 1 lose nothing."""
    values = 1 - poles[..., :, None]
    above = np.prod((zeros[..., None, :] - poles[..., :, None]) / values, axis=-1)
    below = np.prod((poles[..., None, :] - poles[..., :, None]) / values + np.eye(poles.shape[-1]), axis=-1)
    return np.asarray(above / below)


def _sum_of_squares(weights: np.ndarray, gaps: np.ndarray, terms: int) -> np.ndarray:
    """Sum over k < terms of (sum of w_i p_i^k)^2, p_i = 1 - gap_i, from geometric series over pairs."""
    one, other = gaps[..., :, None], gaps[..., None, :]
    together = one + other - one * other
    certain = together == 0
    logs = terms * (np.log1p(-one) + np.log1p(-other))
    series = np.where(certain, terms, -np.expm1(logs) / np.where(certain, 1, together))
    return np.asarray(np.sum(weights[..., :, None] * weights[..., None, :] * series, axis=(-1, -2)))


def _powers(weights: tuple[float, ...], poles: tuple[float, ...], terms: int) -> np.ndarray:
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


class BLTState(msgspec.Struct, frozen=True, eq=False):
    """Where a buffered stream stands. Secret: it holds noise that is still to be used.

    Attributes
    ----------
    step : int
        Index of the current step.
    noise : value
        The noise of the current step.
    sums : tuple, one item a leaf of the value
        The d buffers u_i, the current value included: ndarray of shape (d, size) where the leaf is an array of numpy.
    value_generator_state : Any
    """

    step: int
    noise: Any
    sums: tuple[Any, ...]
    value_generator_state: Any

    def __repr__(self) -> str:
        return f"<BLTState of step {self.step}>"


class BLTAggregator(Aggregator):
    """Noise of a running total from a few decaying sums: within one percent of the square root, in constant memory.

    Parameters
    ----------
    value_generator : ValueGenerator, or a function without arguments
    horizon : int
        How many steps there will be, at most 10^7.
    buffers : int, optional
        How many buffers. None: the fewest that come within one percent.

    Guarantee: with Gaussian values of standard deviation sigma times the clip, rho-zCDP, rho = L / (2 sigma^2), for one person added or
    removed, when the noise is added to sums of contributions clipped in L2.
    Sensitivity: L2 squared L = c_0^2 + ... + c_(steps-1)^2, c the partner, for one participation; for several, ``squared_sensitivity``.
    Holds because: total + noise = B (C x + z): post-processing of C x + z, whose C is lower triangular, so that the steps may depend on
    what was released before. C is known to 1e-9, for which L is raised by 1e-6.
    Not covered: the noise is a float that is added to floats; its low-order bits may tell sums apart (Mironov 2012).
    Source: Dvijotham et al., FOCS 2024; McMahan, Xu, Zhang, EMNLP 2024.

    >>> aggregator = BLTAggregator(lambda: 1.0, horizon=1024)
    >>> noise, state = aggregator.get_cumsum_and_update(aggregator.init_state())
    >>> round(noise, 9), state
    (1.0, <BLTState of step 1>)
    """

    def __init__(self, value_generator: ValueGenerator | Callable[[], Any], horizon: int, buffers: int | None = None) -> None:
        super().__init__(value_generator)
        self.blt = BLT.for_horizon(horizon, buffers)
        self.horizon = self.blt.horizon

    def init_state(self) -> BLTState:
        """Return the state of the first step."""
        return self._first(self.value_generator.initialize())

    def reset_state(self, state: BLTState) -> BLTState:
        """Return the state of the first step of a new stream; its values go on where the old ones ended."""
        return self._first(self._own(state).value_generator_state)

    def get_cumsum_and_update(self, state: BLTState) -> tuple[Any, BLTState]:
        """Return the noise of the current total, and the state of the next step.

        Raises
        ------
        UsageError
            The state belongs to another aggregator, or the horizon has been reached.
        """
        noise, step = self._own(state).noise, state.step
        if step >= self.horizon:
            raise beyond(self.horizon)
        if step + 1 == self.horizon:
            return noise, BLTState(step + 1, None, state.sums, state.value_generator_state)
        value, after = self.value_generator.next(state.value_generator_state)
        found = [self._step(held, leaf) for held, leaf in zip(state.sums, leaves(value), strict=True)]
        ready = rebuilt(value, [one for one, _ in found])
        return noise, BLTState(step + 1, ready, tuple([sums for _, sums in found]), after)

    def variances(self, steps: int) -> np.ndarray:
        """Variance at each step for values of variance 1: float64 ndarray of shape (steps,)."""
        return np.cumsum(self.blt.coefficients(check_steps(steps, self.horizon)) ** 2)

    def squared_sensitivity(self, steps: int, *, participations: int = 1, separation: int = 1) -> float:
        """How far one person moves the strategy within ``steps`` steps, in L2, squared."""
        column = self.blt.decoder(check_steps(steps, self.horizon))
        return squared_sensitivity(column, participations=participations, separation=separation) * (1 + ROUNDING)

    def _first(self, generator_state: Any) -> BLTState:
        value, after = self.value_generator.next(generator_state)
        many = len(self.blt.theta)
        sums = [np.tile(leaf.reshape(-1), (many, 1)) if _is_floats(leaf) else [leaf] * many for leaf in leaves(value)]
        return BLTState(0, value, tuple(sums), after)

    def _step(self, held: Any, value: Any) -> tuple[Any, Any]:
        """One leaf's noise for its new value, and its buffers after it."""
        blt = self.blt
        if type(value) is float:
            noise = value + sum(map(mul, blt.omega, held))
            return noise, [theta * one + value for theta, one in zip(blt.theta, held, strict=True)]
        if _is_floats(value):
            return _step_of_array(blt, held, value)
        sums = [combine((theta, 1), (one, value)) for theta, one in zip(blt.theta, held, strict=True)]
        return combine((1, *blt.omega), (value, *held)), sums

    def _own(self, state: BLTState) -> BLTState:
        if not isinstance(state, BLTState) or any(len(sums) != len(self.blt.theta) for sums in state.sums):
            raise UsageError("a step of BLTAggregator", "the state belongs to another aggregator", "Start from this one's init_state()")
        return state

    def _whole(self, steps: int, draw: Callable[[int], np.ndarray]) -> np.ndarray:
        from scipy.signal import lfilter

        found = draw(check_steps(steps, self.horizon))
        before = np.concatenate([[0.0], found[:-1]])
        for theta, omega in zip(self.blt.theta, self.blt.omega, strict=True):
            found += lfilter([omega], [1.0, -theta], before)
        return found


def _is_floats(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype.kind == "f"


def _step_of_array(blt: BLT, held: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Piece by piece, so that the buffers pass through the processor's cache once."""
    flat = np.ascontiguousarray(value).reshape(-1)
    if held.shape[1] != flat.size:
        raise unlike()
    sums, noise = np.empty_like(held), np.empty_like(flat)
    theta, omega = np.array(blt.theta, dtype=held.dtype)[:, None], np.array(blt.omega, dtype=held.dtype)
    for start in range(0, flat.size, WHOLE):
        piece = slice(start, start + WHOLE)
        np.einsum("i,ij->j", omega, held[:, piece], out=noise[piece])  # not BLAS, whose threads cost more than they save
        noise[piece] += flat[piece]
        decayed = np.multiply(held[:, piece], theta, out=sums[:, piece])
        decayed += flat[piece]
    return noise.reshape(value.shape), sums
