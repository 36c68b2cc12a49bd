"""The square-root factorisation of running totals.

The matrix of ones on and below the diagonal is C C, with C Toeplitz. C has the coefficients of (1 -
x)^(-1/2): f_0 = 1 and f_k = (1 - 1/(2k)) f_(k-1), which is binomial(2k, k) / 4^k. Among Toeplitz
factorisations B C of the running totals, none has a smaller product of largest variance and squared
sensitivity. Both are f_0^2 + ... + f_(T-1)^2 for B = C, about (ln T + 3.35) / pi.
Source: Fichtenberger, Henzinger, Upadhyay, ICML 2023; Henzinger, Upadhyay, Upadhyay, SODA 2023.
"""

from __future__ import annotations

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.errors import UsageError

LONGEST = 10**7
"""The longest horizon for which coefficients are computed."""

# Binary places of the integers from which coefficients are rounded.
_PLACES = 192
# The longest part into which series are cut for Fourier transforms.
_PART = 2**17
MOST_PRECISE = 48


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
    whole = isinstance(precision, int) and not isinstance(precision, bool)
    if not whole or not 0 <= precision <= MOST_PRECISE:
        raise UsageError(
            f"precision = {precision!r}",
            f"it must be a whole number from 0 to {MOST_PRECISE}",
            "Choose one such as 16",
        )
    shift = _PLACES - precision
    half = 1 << shift - 1
    value = 1 << _PLACES
    found = [1 << precision]
    for k in range(1, check_horizon(horizon)):
        value = value * (2 * k - 1) // (2 * k)
        rounded = value + half >> shift
        # The coefficient lies between value and value + k: both must round alike.
        if value + k + half >> shift != rounded and k > _PLACES // 2:
            raise ArithmeticError(f"coefficient {k} lies too close to a half to be rounded")
        found.append(rounded)
    return np.array(found, dtype=np.int64)


def inverse_series(column: Array) -> Array:
    """Return the first column of the inverse of a lower-triangular Toeplitz matrix.

    It is found by Newton's method, as a float64 ndarray like ``column``. Rounding is of the order
    1e-15 of the largest coefficient. The inverse is used on published numbers, so rounding costs
    accuracy and never privacy.

    >>> inverse_series(np.array([1.0, 0.5, 0.375])).round(6).tolist()
    [1.0, -0.5, -0.125]
    """
    c = np.asarray(column, dtype=np.float64)
    found = np.array([1 / c[0]])
    known = 1
    while known < len(c):
        known = min(2 * known, len(c))
        rest = -convolve(c[:known], found, known)
        rest[0] += 2
        found = convolve(found, rest, known)
    return found


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


def convolve(one: Array, other: Array, length: int) -> Array:
    """Return the first ``length`` entries of the convolution of two series."""
    if min(len(one), len(other)) <= 32:
        return np.convolve(one, other)[:length]
    part = part_of(length)
    one_spectra = spectra(one[:length], part)
    other_spectra = spectra(other[:length], part)
    return convolve_spectra(one_spectra, other_spectra, -(-length // part))[:length]


def part_of(length: int) -> int:
    """Return the length of the parts into which a long series is cut.

    It is such that the transforms of the parts stay in the processor's cache.
    """
    from scipy import fft

    parts = -(-length // _PART)
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


def convolve_spectra(one: Array, other: Array, parts: int) -> Array:
    """Return the first parts of the convolution of two series that are cut alike, joined.

    For each part, products of spectra are added up and transformed back once.
    """
    from scipy import fft

    part = one.shape[1] - 1
    found = np.empty((parts, part))
    product = np.empty(part + 1, dtype=np.complex128)
    # What the products of one part add to the next one.
    carried = np.zeros(part)
    for i, target in enumerate(found):
        first = max(0, i + 1 - len(one))
        last = min(i + 1, len(other))
        reversed_one = one[i - last + 1 : i - first + 1][::-1]
        np.einsum("jk,jk->k", reversed_one, other[first:last], out=product)
        both = fft.irfft(product, 2 * part)
        np.add(both[:part], carried, out=target)
        carried = both[part:]
    return found.ravel()


def check_horizon(horizon: int) -> int:
    """Refuse a horizon that is not a whole number from 1 to 10^7."""
    whole = isinstance(horizon, int | np.integer) and not isinstance(horizon, bool)
    if not whole or not 1 <= horizon <= LONGEST:
        raise UsageError(
            f"horizon = {horizon!r}",
            f"it must be a whole number from 1 to {LONGEST:,}",
            "Say how many steps there will be",
        )
    return int(horizon)
