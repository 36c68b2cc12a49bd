"""How accurate will a histogram be, and which epsilon makes it so accurate: two functions, each the inverse of the other.

The accuracy a of a mechanism is such that a released count is farther than a from the true one with probability at most alpha,
two-sided, before any post-processing. Over ``n_bins`` bins at once (``simultaneous``) alpha is 1 - (1 - alpha)^(1 / n_bins) for
each (Sidak: the noise is independent).

* ``laplace``: the source's formula, (s / eps) ln(1 / alpha), for continuous noise, which is never added here.
* ``geometric``: discrete Laplace noise, which is what a release adds: the smallest integer k with 2 q^(k + 1) / (1 + q) <= alpha.
* ``stability``: the source's formula, (2 / eps) ln(2 / (alpha delta)) + 1; its sensitivity is 2 under either relation. Where a person
  has several rows, which the source does not know, the threshold must lie higher: then as the next, by the law that selects.
* ``truncated-geometric``: the law that selects keys: the smallest integer a that is exceeded with probability at most alpha
  whatever the true count, a key that is not shown being read as a count of nought, as the source reads it.

s is the sensitivity: ``rows_per_person``, twice that under replace.
Source: PSIlence, ``histogram.getAccuracy`` and ``histogram.getParameters``; Vadhan 2017, section 3.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal, TypeAlias

from sfumato.errors import Infeasible, UsageError, nearest, shown
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.mechanisms.thresholds import KeyLaw, key_law
from sfumato.numbers import Exactly, decimal, fraction, positive, probability, sidak
from sfumato.privacy.measures import ApproxDP
from sfumato.privacy.unit import Neighbours, Unit

Mechanism: TypeAlias = Literal["laplace", "geometric", "stability", "truncated-geometric"]
MECHANISMS: tuple[Mechanism, ...] = ("laplace", "geometric", "stability", "truncated-geometric")
WITH_DELTA = ("stability", "truncated-geometric")
STABILITY_SENSITIVITY = 2
LEAST_ALPHA = 1e-300
SMALLEST, LARGEST = (
    math.log(1e-6),
    math.log(2.0**20),
)  # between which an epsilon is looked for, as logarithms
STRIDE, TOLERANCE = 0.5, 4e-14


def histogram_accuracy(
    mechanism: Mechanism,
    *,
    epsilon: Exactly,
    alpha: Exactly = "0.05",
    n_bins: int = 1,
    n: int | None = None,
    delta: Exactly = "1e-6",
    neighbours: Neighbours = "replace",
    simultaneous: bool = False,
    rows_per_person: int = 1,
) -> float | int:
    """How far may a count of a histogram be from the truth? PSIlence's ``histogram.getAccuracy``, for the whole histogram too.

    Parameters
    ----------
    mechanism : {"laplace", "geometric", "stability", "truncated-geometric"}
    epsilon : number above 0
    alpha : number in (0, 1)
        The probability with which the accuracy may be missed.
    n_bins : int
        How many bins there are; counts only with ``simultaneous``.
    n : int or None
        The public number of rows, if it is known: a delta of 1 / n^2 or more is then refused.
    delta : number in (0, 1)
        For ``stability`` and ``truncated-geometric``.
    neighbours : {"replace", "add-remove"}
    simultaneous : bool
        False: each bin by itself. True: all of them at once.
    rows_per_person : int

    Returns
    -------
    float, or int for the discrete mechanisms

    Raises
    ------
    UsageError
        If a parameter is out of range, or the mechanism is unknown.

    >>> round(histogram_accuracy("laplace", epsilon=0.2, alpha=0.05), 6)
    29.957323
    >>> histogram_accuracy("geometric", epsilon=0.2)
    30
    """
    asked = _Asked(
        mechanism, alpha, n_bins, n, delta, Unit(rows_per_person, neighbours), simultaneous
    )
    return asked.accuracy(positive(epsilon, "epsilon"))


def histogram_epsilon(
    mechanism: Mechanism,
    *,
    accuracy: Exactly,
    alpha: Exactly = "0.05",
    n_bins: int = 1,
    n: int | None = None,
    delta: Exactly = "1e-6",
    neighbours: Neighbours = "replace",
    simultaneous: bool = False,
    rows_per_person: int = 1,
) -> float:
    """Which epsilon makes a histogram so accurate? The inverse of ``histogram_accuracy``, PSIlence's ``histogram.getParameters``.

    For the discrete mechanisms, the smallest epsilon, to a relative 1e-12, with at most that accuracy. A release counts epsilon in
    units of 1e-9, rounded down: round this one up to nine decimals, as ``sfumato histogram --accuracy`` does, before you spend it.

    Parameters
    ----------
    accuracy : number
        Above 0, or 0 for ``geometric``; above 1 for ``stability``. Others as in ``histogram_accuracy``.

    Raises
    ------
    UsageError
        If a parameter is out of range, or the mechanism is unknown.
    Infeasible
        If no epsilon between 1e-6 and 1e6 is enough.

    >>> round(histogram_epsilon("laplace", accuracy=0.5, alpha=0.05), 6)
    11.982929
    """
    asked = _Asked(
        mechanism, alpha, n_bins, n, delta, Unit(rows_per_person, neighbours), simultaneous
    )
    wanted = fraction(accuracy, "accuracy")
    if wanted == 0 and mechanism == "geometric":  # its noise may be nought often enough
        return asked.epsilon(wanted)
    return asked.epsilon(positive(wanted, "accuracy"))


class _Asked:
    """The parameters that both directions share, read and checked."""

    def __init__(
        self,
        mechanism: str,
        alpha: Exactly,
        n_bins: int,
        n: int | None,
        delta: Exactly,
        unit: Unit,
        simultaneous: bool,
    ) -> None:
        if mechanism not in MECHANISMS:
            asked = f"mechanism {mechanism!r}"
            raise UsageError(
                asked,
                f"there is none of that name; {nearest(mechanism, MECHANISMS)}",
                "Name one of them",
            )
        self.mechanism, self.unit = mechanism, unit
        bins = _whole(n_bins, "n_bins", "a histogram has at least one bin")
        each = float(probability(alpha, "alpha"))
        if not LEAST_ALPHA < each < 1:
            raise UsageError(
                "alpha", "it is too close to 0 or 1 to compute with", "Choose alpha such as 0.05"
            )
        self.alpha = sidak(each, bins) if simultaneous else each
        self.delta = self._delta(delta, n)

    def _delta(self, delta: Exactly, n: int | None) -> Fraction:
        rows = None if n is None else _whole(n, "n", "the number of rows is at least 1")
        if self.mechanism not in WITH_DELTA:
            return fraction(delta, "delta")
        exact = probability(delta, "delta")
        if rows is not None and exact >= Fraction(1, rows**2):
            raise UsageError(
                f"delta = {decimal(exact)} for {rows:,} rows",
                f"it is not below 1/n^2, {1 / rows**2:.3g}: such a delta would allow a few rows to be published",
                "Choose a smaller delta",
            )
        return exact

    def accuracy(self, epsilon: Fraction) -> float | int:
        match self.mechanism:
            case "laplace":
                return float(self.unit.counts_l1 / epsilon) * -math.log(self.alpha)
            case "stability" if self.unit.rows_per_person == 1:
                return STABILITY_SENSITIVITY * self._stability_log / float(epsilon) + 1
            case "geometric":
                return DiscreteLaplace(self.unit.counts_l1 / epsilon).half_width(self.alpha)
        return self._keys(epsilon).reach(self.alpha)

    def _keys(self, epsilon: Fraction) -> KeyLaw:
        return key_law(
            ApproxDP(epsilon, self.delta),
            self.unit,
            "stability" if self.mechanism == "stability" else "truncated-geometric",
        )

    def excess(self, epsilon: Fraction, accuracy: int) -> float:
        """By how much, in logarithms, a discrete mechanism misses an accuracy more often than it may; 0 or less: it is enough."""
        if self.mechanism == "geometric":
            return DiscreteLaplace(self.unit.counts_l1 / epsilon).log_tail(accuracy) - math.log(
                self.alpha
            )
        missed = self._keys(epsilon).misses(accuracy)
        return math.log(max(missed, LEAST_ALPHA)) - math.log(self.alpha)

    @property
    def _stability_log(self) -> float:
        return (
            math.log(2)
            - math.log(self.alpha)
            - (math.log(self.delta.numerator) - math.log(self.delta.denominator))
        )

    def epsilon(self, accuracy: Fraction) -> float:
        match self.mechanism:
            case "laplace":
                return self.unit.counts_l1 * -math.log(self.alpha) / float(accuracy)
            case "stability":
                if accuracy <= 1:
                    raise UsageError(
                        f"accuracy = {decimal(accuracy)} by stability",
                        "its accuracy is always above 1",
                        "Ask for an accuracy above 1",
                    )
                if self.unit.rows_per_person == 1:
                    return STABILITY_SENSITIVITY * self._stability_log / float(accuracy - 1)
        start = self.unit.counts_l1 * (
            self._stability_log if self.mechanism in WITH_DELTA else -math.log(self.alpha)
        )
        asked = f"an accuracy of {decimal(accuracy)}"
        return _smallest(
            lambda epsilon: self.excess(Fraction(epsilon), math.floor(accuracy)),
            start / max(float(accuracy), 1.0),
            asked,
        )


def _whole(value: object, name: str, obstacle: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < 1:
        raise UsageError(
            f"{name} = {shown(value)}" if isinstance(value, int | float) else name,
            obstacle,
            "Give a whole number from 1 on",
        )
    return int(value.__index__())


def _smallest(excess: Callable[[float], float], start: float, asked: str) -> float:
    """The smallest epsilon without an excess, which falls as epsilon grows, to a relative 1e-13; the returned one has none.

    The logarithm of an epsilon is enclosed from ``start`` on, and found where the excess crosses nought; as that is a matter of the last
    digits, and the excess may jump, its neighbours are then looked at.
    """

    def over(position: float) -> float:
        try:
            return excess(math.exp(position))
        except UsageError:  # so small an epsilon has no law
            return math.inf

    high = low = math.log(start)
    while over(high) > 0:
        low, high = high, high + STRIDE
        if high > LARGEST:
            raise Infeasible(
                asked,
                f"no epsilon up to {math.exp(LARGEST):,.0f} is enough",
                "Ask for a larger accuracy, or a larger alpha",
            )
    while low == high or over(low) <= 0:
        low, high = low - STRIDE, low
        if low < SMALLEST:
            raise Infeasible(
                asked,
                f"an epsilon of {math.exp(SMALLEST):g} is more than enough",
                "Ask for a smaller accuracy",
            )
    return math.exp(_crossing(over, low, high))


def _crossing(over: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function, above nought at ``low`` and not at ``high``, is no longer above it; from above."""
    from scipy.optimize import brentq

    near = brentq(lambda x: min(over(x), 1e3), low, high, xtol=TOLERANCE)
    step = TOLERANCE
    while over(near + step) > 0:
        low, step = near + step, 4 * step
    high, step = min(high, near + step), TOLERANCE
    while near - step > low and over(near - step) <= 0:
        high, step = near - step, 4 * step
    low = max(low, near - step)
    while high - low > 2 * TOLERANCE:
        middle = (low + high) / 2
        low, high = (middle, high) if over(middle) > 0 else (low, middle)
    return high
