"""Factorisations of running totals into Toeplitz matrices: the square root, and one with buffers.

*The square root* (``coefficients``).

The matrix of ones on and below the diagonal is C C, with C Toeplitz. C has the coefficients of (1 -
x)^(-1/2): f_0 = 1 and f_k = (1 - 1/(2k)) f_(k-1), which is binomial(2k, k) / 4^k. Among Toeplitz
factorisations B C of the running totals, none has a smaller product of largest variance and squared
sensitivity. Both are f_0^2 + ... + f_(T-1)^2 for B = C, about (ln T + 3.35) / pi.
Source: Fichtenberger, Henzinger, Upadhyay, ICML 2023; Henzinger, Upadhyay, Upadhyay, SODA 2023.

*Buffered linear Toeplitz matrices* (``BLT``): within one percent of the square root, in constant
memory.

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

import numpy as np

from sfumato.basics import Array, ExplainedStruct, whole
from sfumato.errors import explained, explained_methods

# --- the square root ------------------------------------------------------------------------------

# The longest horizon for which coefficients are computed.
LONGEST = 10**7

# Binary places of the integers from which coefficients are rounded.
_PLACES = 192
MOST_PRECISE = 48


@explained
def coefficients(horizon: int) -> Array:
    """Return the first coefficients of (1 - x)^(-1/2).

    Parameters
    ----------
    horizon : int
        At least 1.

    Returns
    -------
    float64 ndarray of shape (horizon,)
        The relative error of coefficient k is below k 2^-52.

    >>> coefficients(4)
    array([1.    , 0.5   , 0.375 , 0.3125])
    """
    f = np.arange(check_horizon(horizon), dtype=np.float64)
    factors = f[1:]
    np.divide(-0.5, factors, out=factors)
    factors += 1
    f[0] = 1
    return np.cumprod(f, out=f)


@explained
def dyadic_coefficients(horizon: int, precision: int) -> Array:
    """Return the coefficients rounded to whole units of 2^-precision.

    Parameters
    ----------
    horizon : int
    precision : int
        From 0 to 48.

    Returns
    -------
    int64 ndarray of shape (horizon,)
        The nearest integers.

    Holds because: g <- g (2k - 1) // (2k), starting at 2^192, is exact while k <= 96. It then loses
    less than one unit a step, so that it bounds 2^192 f_k from both sides. For k > 96, f_k
    2^precision is never half an integer. A value so close to one that the bounds do not decide it
    raises ``ArithmeticError``; none is known.

    >>> dyadic_coefficients(5, 8).tolist()
    [256, 128, 96, 80, 70]
    """
    places = whole(
        precision,
        "precision",
        0,
        MOST_PRECISE,
        obstacle=f"it must be a whole number from 0 to {MOST_PRECISE}",
        remedy="Choose one such as 16",
    )
    shift = _PLACES - places
    half = 1 << shift - 1
    value = 1 << _PLACES
    rounded_coefficients = [1 << places]
    for k in range(1, check_horizon(horizon)):
        value = value * (2 * k - 1) // (2 * k)
        rounded = value + half >> shift
        # The coefficient lies between value and value + k: both must round alike.
        if value + k + half >> shift != rounded and k > _PLACES // 2:
            raise ArithmeticError(f"coefficient {k} lies too close to a half to be rounded")
        rounded_coefficients.append(rounded)
    return np.array(rounded_coefficients, dtype=np.int64)


def inverse_series(column: Array) -> Array:
    """Return the first column of the inverse of a lower-triangular Toeplitz matrix.

    It is found by Newton's method, as a float64 ndarray like ``column``. Rounding is of the order
    1e-15 of the largest coefficient. The inverse is used on published numbers, so rounding costs
    accuracy and never privacy.

    >>> inverse_series(np.array([1.0, 0.5, 0.375])).round(6).tolist()
    [1.0, -0.5, -0.125]
    """
    c = np.asarray(column, dtype=np.float64)
    inverse = np.array([1 / c[0]])
    known = 1
    while known < len(c):
        known = min(2 * known, len(c))
        rest = -convolve(c[:known], inverse, known)
        rest[0] += 2
        inverse = convolve(inverse, rest, known)
    return inverse


@explained
def decoder(column: Array) -> Array:
    """Return the first column of B, where B C is the matrix of running sums.

    A stream y = C x + z is read as the totals B y. Their errors are B z, of variance
    sigma^2 (b_0^2 + ... + b_t^2) at step t.

    Parameters
    ----------
    column : float64 ndarray of shape (horizon,)
        The first column of C.

    Returns
    -------
    float64 ndarray like ``column``
        The prefix sums of the inverse of C.

    >>> decoder(coefficients(4)).round(6).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    return np.cumsum(inverse_series(column))


def convolve(left: Array, right: Array, length: int) -> Array:
    """Return the first ``length`` entries of the convolution of two series."""
    if min(len(left), len(right)) <= 32:
        return np.convolve(left, right)[:length]
    part = part_of(length)
    left_spectra = spectra(left[:length], part)
    right_spectra = spectra(right[:length], part)
    return convolve_spectra(left_spectra, right_spectra, -(-length // part))[:length]


def part_of(length: int) -> int:
    """Return the length of the parts into which a long series is cut.

    It is such that the transforms of the parts stay in the processor's cache.
    """
    from scipy import fft

    parts = -(-length // 2**17)
    return int(fft.next_fast_len(-(-length // parts), real=True))


def spectra(series: Array, part: int) -> Array:
    """Return the transforms of the parts of a series, each with as many zeros behind it.

    Returns
    -------
    complex128 ndarray of shape (parts, part + 1)
    """
    from scipy import fft

    parts = -(-len(series) // part)
    if len(series) < part * parts:
        series = np.concatenate([series, np.zeros(part * parts - len(series))])
    return np.asarray(fft.rfft(series.reshape(parts, part), 2 * part, axis=1))


def convolve_spectra(left: Array, right: Array, parts: int) -> Array:
    """Return the first parts of the convolution of two series that are cut alike, joined.

    For each part, products of spectra are added up and transformed back once.
    """
    from scipy import fft

    part = left.shape[1] - 1
    joined = np.empty((parts, part))
    product = np.empty(part + 1, dtype=np.complex128)
    # What the products of one part add to the next one.
    carried = np.zeros(part)
    for i, target in enumerate(joined):
        first = max(0, i + 1 - len(left))
        last = min(i + 1, len(right))
        reversed_left = left[i - last + 1 : i - first + 1][::-1]
        np.einsum("jk,jk->k", reversed_left, right[first:last], out=product)
        both = fft.irfft(product, 2 * part)
        np.add(both[:part], carried, out=target)
        carried = both[part:]
    return joined.ravel()


def check_horizon(horizon: int) -> int:
    """Refuse a horizon that is not a whole number from 1 to 10^7."""
    return whole(
        horizon,
        "horizon",
        1,
        LONGEST,
        obstacle=f"it must be a whole number from 1 to {LONGEST:,}",
        remedy="Say how many steps there will be",
    )


# --- buffers --------------------------------------------------------------------------------------

MOST_BUFFERS = 12
# The relative rise of a squared sensitivity that covers the rounding of ``BLT.decoder``.
ROUNDING = 1e-6
# The step of complex-step derivatives.
_STEP = 1e-30
# Binary places of fixed-point powers.
_FIXED = 256


@explained_methods
class BLT(ExplainedStruct, frozen=True, forbid_unknown_fields=True):
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
        number = whole(
            buffers,
            "buffers",
            1,
            MOST_BUFFERS,
            obstacle=f"it must be a whole number from 1 to {MOST_BUFFERS}",
            remedy="Choose 4 or 5, or leave it out",
        )
        return _optimal(horizon, number)

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
                # A lower bound of the power gives an upper bound of the series, since all weights
                # are positive.
                series = (1 - _power_below(a * b, n - 1)) / (1 - a * b)
                total += weight_a * weight_b * series
        # Rounded up: a squared sensitivity must not fall below the true one.
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
    norm = float(np.dot(f, f))
    if horizon > n:
        norm += _tail(horizon) - _tail(n)
    return norm


def _tail(n: int) -> float:
    """Return the antidifference of f_k^2 at n, up to a constant.

    f_k^2 = 1/(pi k) (1 - 1/(4k) + 1/(32 k^2) + ...).
    """
    return (math.log(n) - 1 / (4 * n) + 5 / (192 * n * n)) / math.pi


@lru_cache(maxsize=64)
def _fewest(horizon: int) -> BLT:
    for buffers in range(1, MOST_BUFFERS):
        blt = _optimal(horizon, buffers)
        if blt.loss() < 0.01:
            return blt
    return _optimal(horizon, MOST_BUFFERS)


@lru_cache(maxsize=64)
def _optimal(horizon: int, buffers: int) -> BLT:
    """Search for theta and omega, round them, and return them with their partner."""
    from scipy.optimize import minimize

    low = -math.log(horizon + 1)
    high = 1.5
    start = np.full(2 * buffers, math.log((high - low) / max(2 * buffers - 1, 1)))
    start[0] = low
    solution = minimize(
        _objective,
        start,
        args=(horizon,),
        jac=True,
        method="BFGS",
        options={"gtol": 1e-7, "maxiter": 1000},
    )
    gaps = _gaps(solution.x)
    theta = 1 - gaps[0::2]
    # Rounded to single precision before the partner is computed: buffers may be held in single
    # precision, and parameters that were rounded later would be those of another matrix.
    omega = (theta * _residues(gaps[0::2], gaps[1::2])).astype(np.float32).astype(np.float64)
    theta = theta.astype(np.float32).astype(np.float64)
    # The partner has a pole at exactly 1: it ends in running sums.
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
    return np.linalg.eigvalsh(np.diag(gaps) + np.outer(root, root))


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
    gap = gaps[..., :, None]
    other_gap = gaps[..., None, :]
    # 1 - p_i p_j, which is 0 for a pair of poles at 1: its series then has ``terms`` ones.
    together = gap + other_gap - gap * other_gap
    at_one = together == 0
    # Poles lie close to 1: log1p and expm1 keep the digits that 1 - p^T would lose.
    logs = terms * (np.log1p(-gap) + np.log1p(-other_gap))
    series = np.where(at_one, terms, -np.expm1(logs) / np.where(at_one, 1, together))
    pairs = weights[..., :, None] * weights[..., None, :]
    return np.asarray(np.sum(pairs * series, axis=(-1, -2)))


def _powers(weights: tuple[float, ...], poles: tuple[float, ...], terms: int) -> Array:
    """Return the sum of w_i p_i^k for each k < terms."""
    # p^k = p^(block a) p^b, since a power by itself is slow where it underflows.
    block = 4096
    few = np.arange(min(block, terms))
    many = block * np.arange(-(-terms // block))
    series = np.zeros((len(many), len(few)))
    for weight, pole in zip(weights, poles, strict=True):
        series += np.multiply.outer(weight * np.power(pole, many), np.power(pole, few))
    return series.ravel()[:terms]


def _power_below(base: Fraction, exponent: int) -> Fraction:
    """Return a lower bound of base^exponent for 0 <= base < 1.

    It is found by repeated squaring of fixed-point numbers, each rounded down.
    """
    square = (base.numerator << _FIXED) // base.denominator
    power = 1 << _FIXED
    while exponent:
        if exponent & 1:
            power = power * square >> _FIXED
        square = square * square >> _FIXED
        exponent >>= 1
    return Fraction(power, 1 << _FIXED)
