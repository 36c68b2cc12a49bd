"""A number with an interval."""

from __future__ import annotations

from fractions import Fraction

import msgspec
import numpy as np

from sfumato.basics.numbers import Array, Exactly, probability
from sfumato.errors import UsageError

LEAST = Fraction(1, 10**9)  # the smallest probability of error that intervals are computed for


class Estimate(msgspec.Struct, frozen=True):
    """A number, or an array of them, with an interval.

    The truth lies in [low, high] with probability ``confidence``.

    Attributes
    ----------
    value, low, high : number or ndarray
    confidence : float
    about : str
        What the truth is of: "the rows counted", with their limit where persons have one.
    known : bool, or ndarray like ``value``
        False where the interval is all that was possible before anything was counted: the value
        then says nothing.

    >>> from sfumato import Estimate
    >>> total = Estimate(value=1203, low=1188, high=1218, confidence=0.95)
    >>> total
    Estimate(value=1203, low=1188, high=1218, confidence=0.95, about='the rows counted', known=True)
    >>> total.low <= 1200 <= total.high
    True
    """

    value: float | Array
    low: float | Array
    high: float | Array
    confidence: float
    about: str = "the rows counted"
    known: bool | Array = True

    def __str__(self) -> str:
        at = f"at {self.confidence:.0%} confidence, of {self.about}"
        if np.ndim(self.value):
            unknown = int(np.size(self.known) - np.count_nonzero(self.known))
            return f"{np.size(self.value)} estimates {at}" + (
                f"; {unknown} of them not known" if unknown else ""
            )
        value, low, high = map(_shown, (self.value, self.low, self.high))
        return f"{value if self.known else 'not known'} ({low} to {high} {at})"


def _shown(number: float | Array) -> str:
    """Print one number shortly: large ones and whole ones without decimals."""
    one: float = number.item() if isinstance(number, np.ndarray) else number
    return f"{one:,.0f}" if abs(one) >= 1000 or one == int(one) else f"{one:.4g}"


def error_probability(confidence: Exactly) -> float:
    """Read a confidence such as 0.95 as the probability of error, 0.05.

    Parameters
    ----------
    confidence : number in (0, 1)

    Returns
    -------
    float

    >>> from sfumato.extending import error_probability
    >>> error_probability("0.95")
    0.05
    """
    alpha = 1 - probability(confidence, "confidence")
    if not LEAST <= alpha <= 1 - LEAST:
        raise UsageError(
            "confidence",
            "it is too close to 0 or 1 for an interval that says anything",
            "Choose a confidence such as 0.95",
        )
    return float(alpha)
