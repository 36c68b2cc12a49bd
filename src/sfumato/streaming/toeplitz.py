"""The square-root factorisation of running totals: the matrix of ones below the diagonal is C C with C Toeplitz.

C has the coefficients of (1 - x)^(-1/2): f_0 = 1, f_k = (1 - 1/(2k)) f_(k-1), that is f_k = binomial(2k, k) / 4^k. Among Toeplitz
factorisations B C of the running totals none has a smaller product of largest variance and squared sensitivity; both are
f_0^2 + ... + f_(T-1)^2 for B = C, about (ln T + 3.35) / pi.
Source: Fichtenberger, Henzinger, Upadhyay, ICML 2023; Henzinger, Upadhyay, Upadhyay, SODA 2023.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from sfumato.errors import UsageError
from sfumato.streaming.aggregator import Aggregator, beyond, check_steps
from sfumato.streaming.generators import ValueGenerator
from sfumato.streaming.sensitivity import squared_sensitivity
from sfumato.streaming.values import combine

LONGEST = 10**7
"""The longest horizon for which coefficients are laid out."""

_PLACES = 192
_PART = 2**16
MOST_PRECISE = 48


def coefficients(horizon: int) -> np.ndarray:
    """The first ``horizon`` coefficients of (1 - x)^(-1/2): float64 ndarray of shape (horizon,), relative error below k 2^-52.

    >>> coefficients(4)
    array([1.    , 0.5   , 0.375 , 0.3125])
    """
    k = np.arange(1, check_horizon(horizon), dtype=np.float64)
    return np.concatenate([[1.0], np.cumprod(1 - 0.5 / k)])


def dyadic_coefficients(horizon: int, precision: int) -> np.ndarray:
    """The same as integers in units of 2^-precision, each the nearest one: int64 ndarray of shape (horizon,).

    Parameters
    ----------
    horizon : int
    precision : int
        From 0 to 48.

    Holds because: g <- g (2k - 1) // (2k), from 2^192 on, is exact while k <= 96 and then loses less than one unit a step, so
    that it bounds 2^192 f_k from both sides; f_k 2^precision is no half of an integer for k > 96, and a value so close to one
    that the bounds do not decide it raises ``ArithmeticError`` (none is known).

    >>> dyadic_coefficients(5, 8).tolist()
    [256, 128, 96, 80, 70]
    """
    if isinstance(precision, bool) or not isinstance(precision, int) or not 0 <= precision <= MOST_PRECISE:
        raise UsageError(f"precision = {precision!r}", f"it must be a whole number from 0 to {MOST_PRECISE}", "Choose one such as 16")
    shift = _PLACES - precision
    half = 1 << shift - 1
    value, found = 1 << _PLACES, [1 << precision]
    for k in range(1, check_horizon(horizon)):
        value = value * (2 * k - 1) // (2 * k)
        rounded = value + half >> shift
        if value + k + half >> shift != rounded and k > _PLACES // 2:
            raise ArithmeticError(f"coefficient {k} lies too close to a half to be rounded")
        found.append(rounded)
    return np.array(found, dtype=np.int64)


def inverse_series(column: np.ndarray) -> np.ndarray:
    """The first column of the inverse of a lower-triangular Toeplitz matrix: float64 ndarray like ``column``, by Newton's method.

    Rounding is of the order 1e-15 of the largest coefficient: post-processing, which costs accuracy and never privacy.

    >>> inverse_series(np.array([1.0, 0.5, 0.375])).round(6).tolist()
    [1.0, -0.5, -0.125]
    """
    c = np.asarray(column, dtype=np.float64)
    found, known = np.array([1 / c[0]]), 1
    while known < len(c):
        known = min(2 * known, len(c))
        rest = -convolve(c[:known], found, known)
        rest[0] += 2
        found = convolve(found, rest, known)
    return found


def decoder(column: np.ndarray) -> np.ndarray:
    """First column of B, where B C makes running totals: prefix sums of the inverse of C, float64 ndarray like ``column``.

    A stream y = C x + z is read as the totals B y, whose errors are B z: variance sigma^2 (b_0^2 + ... + b_t^2) at step t.

    >>> decoder(coefficients(4)).round(6).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    return np.cumsum(inverse_series(column))


def convolve(one: np.ndarray, other: np.ndarray, length: int) -> np.ndarray:
    """The first ``length`` entries of the convolution of two series, by fast Fourier transforms where that is faster.

    Long series are cut into parts whose transforms stay in the processor's cache, and products of parts are added up as spectra.
    """
    from scipy import fft

    if min(len(one), len(other)) <= 32:
        return np.convolve(one, other)[:length]
    part = min(_PART, length)
    parts = -(-length // part)
    spectra = [fft.rfft(_cut(series, part, parts), 2 * part, axis=1) for series in (one, other)]
    found = np.zeros((parts + 1, part))
    for i in range(parts):
        product = np.einsum("jk,jk->k", spectra[0][: i + 1], spectra[1][i::-1])
        found[i : i + 2] += fft.irfft(product, 2 * part).reshape(2, part)
    return np.asarray(found.ravel()[:length])


def _cut(series: np.ndarray, part: int, parts: int) -> np.ndarray:
    padded = np.zeros(part * parts)
    padded[: len(series)] = series[: part * parts]
    return padded.reshape(parts, part)


def check_horizon(horizon: int) -> int:
    """Refuse a horizon that is no whole number from 1 to 10^7."""
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or not 1 <= horizon <= LONGEST:
        raise UsageError(f"horizon = {horizon!r}", f"it must be a whole number from 1 to {LONGEST:,}", "Say how many steps there will be")
    return int(horizon)


class ToeplitzState(msgspec.Struct, frozen=True, eq=False):
    """Where a Toeplitz stream stands. Secret: it holds all values so far.

    Attributes
    ----------
    step : int
        Index of the current step.
    values : ndarray of shape (step + 1,) for floats, else tuple of values
        One a step, the current one included.
    value_generator_state : Any
    """

    step: int
    values: Any
    value_generator_state: Any

    def __repr__(self) -> str:
        return f"<ToeplitzState of step {self.step}>"


class ToeplitzAggregator(Aggregator):
    """Noise of a running total by the square-root factorisation: noise_t = f_0 z_t + f_1 z_(t-1) + ... + f_t z_0.

    It keeps all values, and step t costs t additions: for long horizons take ``BLTAggregator``, which comes within one percent.

    Parameters
    ----------
    value_generator : ValueGenerator, or a function without arguments
    horizon : int
        How many steps there will be, at most 10^7.

    Guarantee: with Gaussian values of standard deviation sigma times the clip, rho-zCDP, rho = L / (2 sigma^2), for one person added or
    removed, when the noise is added to sums of contributions clipped in L2.
    Sensitivity: L2 squared L = f_0^2 + ... + f_(steps-1)^2 for one participation; for several, ``squared_sensitivity``.
    Holds because: total + noise = B (C x + z) with B = C: post-processing of C x + z, whose C is lower triangular, so that the steps may
    depend on what was released before (Denisov, McMahan, Rush, Smith, Thakurta, NeurIPS 2022, Thm 2.1).
    Not covered: the noise is a float that is added to floats; its low-order bits may tell sums apart (Mironov 2012).
    Source: Fichtenberger, Henzinger, Upadhyay, ICML 2023.

    >>> aggregator = ToeplitzAggregator(lambda: 1.0, horizon=3)
    >>> state = aggregator.init_state()
    >>> first, state = aggregator.get_cumsum_and_update(state)
    >>> second, state = aggregator.get_cumsum_and_update(state)
    >>> first, second
    (1.0, 1.5)
    """

    def __init__(self, value_generator: ValueGenerator | Callable[[], Any], horizon: int) -> None:
        super().__init__(value_generator)
        self.horizon = check_horizon(horizon)
        self._f = coefficients(horizon)

    def init_state(self) -> ToeplitzState:
        """Return the state of the first step."""
        return self._first(self.value_generator.initialize())

    def reset_state(self, state: ToeplitzState) -> ToeplitzState:
        """Return the state of the first step of a new stream; its values go on where the old ones ended."""
        return self._first(self._own(state).value_generator_state)

    def get_cumsum_and_update(self, state: ToeplitzState) -> tuple[Any, ToeplitzState]:
        """Return the noise of the current total, and the state of the next step.

        Raises
        ------
        UsageError
            The state belongs to another aggregator, or the horizon has been reached.
        """
        values, step = self._own(state).values, state.step
        if step >= self.horizon:
            raise beyond(self.horizon)
        weights = self._f[step::-1]
        noise = float(np.dot(weights, values)) if isinstance(values, np.ndarray) else combine(weights.tolist(), values)
        if step + 1 == self.horizon:
            return noise, ToeplitzState(step + 1, values, state.value_generator_state)
        value, after = self.value_generator.next(state.value_generator_state)
        longer = np.append(values, value) if isinstance(values, np.ndarray) else (*values, value)
        return noise, ToeplitzState(step + 1, longer, after)

    def variances(self, steps: int) -> np.ndarray:
        """Variance at each step for values of variance 1: float64 ndarray of shape (steps,)."""
        return np.cumsum(self._f[: check_steps(steps, self.horizon)] ** 2)

    def squared_sensitivity(self, steps: int, *, participations: int = 1, separation: int = 1) -> float:
        """How far one person moves the strategy within ``steps`` steps, in L2, squared."""
        column = self._f[: check_steps(steps, self.horizon)]
        return float(squared_sensitivity(column, participations=participations, separation=separation))

    def _first(self, generator_state: Any) -> ToeplitzState:
        value, after = self.value_generator.next(generator_state)
        return ToeplitzState(0, np.array([value]) if isinstance(value, float) else (value,), after)

    def _own(self, state: ToeplitzState) -> ToeplitzState:
        if not isinstance(state, ToeplitzState):
            raise UsageError(
                "a step of ToeplitzAggregator", "the state belongs to another aggregator", "Start from this one's init_state()"
            )
        return state

    def _whole(self, steps: int, draw: Callable[[int], np.ndarray]) -> np.ndarray:
        return convolve(self._f[: check_steps(steps, self.horizon)], draw(steps), steps)
