"""How accurate a histogram will be, and which epsilon makes it that accurate.

``histogram_accuracy`` and ``histogram_epsilon`` are inverses of each other. The accuracy of a
mechanism is the number a such that a released count differs from the true one by more than a with
probability at most alpha: two-sided, and before any post-processing. With ``simultaneous``, alpha
is for all ``n_bins`` bins together. Each bin then has 1 - (1 - alpha)^(1 / n_bins), by Sidak's
formula: the noise of different bins is independent.

* ``laplace``: the source's formula, (s / epsilon) ln(1 / alpha). It is about continuous noise,
  which this library never adds.
* ``geometric``: the discrete Laplace noise that a release adds. The accuracy is the smallest
  integer k with 2 q^(k + 1) / (1 + q) <= alpha, where q = exp(-epsilon / s).
* ``stability``: the source's formula, (2 / epsilon) ln(2 / (alpha delta)) + 1. Its sensitivity is 2
  under either relation. The source assumes one row per person. With several rows the threshold
  must be higher, and the accuracy follows from the law that selects keys, as in the next entry.
* ``truncated-geometric``: the law that selects keys. The accuracy is the smallest integer that the
  error exceeds with probability at most alpha, whatever the true count. As in the source, a key
  that is not shown counts as 0.

The sensitivity s is ``rows_per_person``, or twice that under replace.

Source: PSIlence, ``histogram.getAccuracy`` and ``histogram.getParameters``; Vadhan 2017,
section 3.3.

The last part is about ``noise="bounded"``: counts that are never farther from the truth than a
stated bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Literal, TypeAlias

from sfumato.answers import CountsPreview
from sfumato.basics import (
    Exactly,
    decimal,
    fraction,
    positive,
    probability,
    root,
    sidak,
    whole,
)
from sfumato.domain import Lattice
from sfumato.errors import Infeasible, UsageError, explained, nearest
from sfumato.mechanisms import DiscreteLaplace, KeyLaw, Rule, TruncatedLaplace, key_law
from sfumato.privacy import ApproxDP, Neighbours, Proof, Unit

# --- accuracy and epsilon -------------------------------------------------------------------------

Mechanism: TypeAlias = Literal[
    "laplace",
    "geometric",
    "stability",
    "truncated-geometric",
    "mechanismLaplace",
    "mechanismStability",
]
MECHANISMS: tuple[Mechanism, ...] = ("laplace", "geometric", "stability", "truncated-geometric")
SOURCE_NAMES = {"mechanismLaplace": "laplace", "mechanismStability": "stability"}
WITH_DELTA = ("stability", "truncated-geometric")
STABILITY_SENSITIVITY = 2
LEAST_ALPHA = 1e-300

# An epsilon is searched for between these two.
SMALLEST = 1e-6
LARGEST = 2.0**20
STRIDE = 1.5  # between the ends of an interval that holds it
CLOSE = 1e-13  # of its size: how far it may be from the least one


@explained
def histogram_accuracy(
    mechanism: Mechanism,
    n_bins: int = 1,
    n: int | None = None,
    epsilon: Exactly | None = None,
    delta: Exactly = "1e-6",
    alpha: Exactly = "0.05",
    *,
    neighbours: Neighbours = "replace",
    simultaneous: bool = False,
    rows_per_person: int = 1,
) -> float | int:
    """How far may a count of a histogram be from the truth? PSIlence's ``histogram.getAccuracy``.

    The arguments stand in the order of the source.

    Parameters
    ----------
    mechanism : {"laplace", "geometric", "stability", "truncated-geometric"}
        Or the source's names: ``mechanismLaplace``, ``mechanismStability``.
    n_bins : int
        The number of bins, at least 1. It matters only with ``simultaneous``.
    n : int or None
        The number of rows, if it is public. A delta of 1 / n^2 or more is then refused.
    epsilon : number above 0
        Needed.
    delta : number in (0, 1)
        For ``stability`` and ``truncated-geometric``.
    alpha : number in (0, 1)
        The probability that an error exceeds the accuracy.
    neighbours : {"replace", "add-remove"}
    simultaneous : bool
        False: alpha is for each bin. True: alpha is for all bins together.
    rows_per_person : int
        The largest number of rows that one person contributes.

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
    >>> round(histogram_accuracy("mechanismStability", 5, 500, 0.2), 4)
    176.0439
    """
    unit = Unit(rows_per_person, neighbours)
    request = _Request(mechanism, alpha, n_bins, n, delta, unit, simultaneous)
    return request.accuracy(positive(_stated(epsilon, "epsilon"), "epsilon"))


@explained
def histogram_epsilon(
    mechanism: Mechanism,
    n_bins: int = 1,
    n: int | None = None,
    accuracy: Exactly | None = None,
    delta: Exactly = "1e-6",
    alpha: Exactly = "0.05",
    *,
    neighbours: Neighbours = "replace",
    simultaneous: bool = False,
    rows_per_person: int = 1,
) -> float:
    """Which epsilon makes a histogram this accurate? PSIlence's ``histogram.getParameters``.

    It is the inverse of ``histogram_accuracy``. For the discrete mechanisms it is the smallest
    epsilon with at most that accuracy, to a relative 1e-12.

    A release counts epsilon in units of 1e-9 and rounds down. Before you spend this epsilon, round
    it up to nine decimals, as ``sfumato histogram --accuracy`` does.

    Parameters
    ----------
    accuracy : number
        Needed. Above 0. Also 0 for ``geometric``. Above 1 for ``stability``.
    mechanism, n_bins, n, delta, alpha, neighbours, simultaneous, rows_per_person
        As in ``histogram_accuracy``.

    Returns
    -------
    float

    Raises
    ------
    UsageError
        If a parameter is out of range, or the mechanism is unknown.
    Infeasible
        If no epsilon between 1e-6 and 1e6 is enough.

    >>> round(histogram_epsilon("laplace", accuracy=0.5, alpha=0.05), 6)
    11.982929
    """
    unit = Unit(rows_per_person, neighbours)
    request = _Request(mechanism, alpha, n_bins, n, delta, unit, simultaneous)
    wanted = fraction(_stated(accuracy, "accuracy"), "accuracy")
    # Discrete noise is 0 with positive probability, so an error of 0 can be asked for.
    if wanted == 0 and mechanism == "geometric":
        return request.epsilon(wanted)
    return request.epsilon(positive(wanted, "accuracy"))


def _stated(number: Exactly | None, name: str) -> Exactly:
    if number is None:
        raise UsageError(
            f"a histogram without {name}",
            f"{name} has no default",
            f"Write {name}=0.5, or give it as the fourth argument",
        )
    return number


class _Request:
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
        mechanism = SOURCE_NAMES.get(mechanism, mechanism) if isinstance(mechanism, str) else ""
        if mechanism not in MECHANISMS:
            raise UsageError(
                f"mechanism {mechanism!r}",
                f"there is none of that name; {nearest(mechanism, MECHANISMS)}",
                "Name one of them",
            )
        self.mechanism = mechanism
        self.unit = unit
        bins = whole(
            n_bins,
            "n_bins",
            1,
            obstacle="a histogram has at least one bin",
            remedy="Give a whole number of at least 1",
        )
        stated_alpha = float(probability(alpha, "alpha"))
        if not LEAST_ALPHA < stated_alpha < 1:
            raise UsageError(
                "alpha", "it is too close to 0 or 1 to compute with", "Choose alpha such as 0.05"
            )
        self.alpha = sidak(stated_alpha, bins) if simultaneous else stated_alpha
        self.log_alpha = math.log(self.alpha)
        self.delta = self._checked_delta(delta, n)

    def _checked_delta(self, delta: Exactly, n: int | None) -> Fraction:
        rows = None
        if n is not None:
            rows = whole(
                n,
                "n",
                1,
                obstacle="the number of rows is at least 1",
                remedy="Give a whole number of at least 1",
            )
        if self.mechanism not in WITH_DELTA:
            return fraction(delta, "delta")
        exact = probability(delta, "delta")
        if rows is not None and exact >= Fraction(1, rows**2):
            # Publishing one row chosen at random satisfies delta = 1/n, so delta must be far below.
            raise UsageError(
                f"delta = {decimal(exact)} for {rows:,} rows",
                f"it is not below 1/n^2, {1 / rows**2:.3g}: "
                "such a delta would allow a few rows to be published",
                "Choose a smaller delta",
            )
        return exact

    def accuracy(self, epsilon: Fraction) -> float | int:
        """The accuracy at this epsilon."""
        match self.mechanism:
            case "laplace":
                return float(self.unit.counts_l1 / epsilon) * -self.log_alpha
            case "stability" if self.unit.rows_per_person == 1:
                return STABILITY_SENSITIVITY * self._stability_log / float(epsilon) + 1
            case "geometric":
                return DiscreteLaplace(self.unit.counts_l1 / epsilon).half_width(self.alpha)
        return self._key_law(epsilon).error_bound(self.alpha)

    def epsilon(self, accuracy: Fraction) -> float:
        """The least epsilon with at most this accuracy."""
        match self.mechanism:
            case "laplace":
                return self.unit.counts_l1 * -self.log_alpha / float(accuracy)
            case "stability":
                if accuracy <= 1:
                    raise UsageError(
                        f"accuracy = {decimal(accuracy)} by stability",
                        "its accuracy is always above 1",
                        "Ask for an accuracy above 1",
                    )
                if self.unit.rows_per_person == 1:
                    return STABILITY_SENSITIVITY * self._stability_log / float(accuracy - 1)
        log_odds = self._stability_log if self.mechanism in WITH_DELTA else -self.log_alpha
        start = self.unit.counts_l1 * log_odds / max(float(accuracy), 1.0)

        most = math.floor(accuracy)

        def is_enough(epsilon: float) -> bool:
            try:
                if self.mechanism == "geometric":
                    law = DiscreteLaplace(self.unit.counts_l1 / Fraction(epsilon))
                    return law.log_tail(most) <= self.log_alpha
                return self._key_law(Fraction(epsilon)).miss_probability(most) <= self.alpha
            except UsageError:  # this epsilon is too small for the mechanism to have a law
                return False

        low, high = _bracket(is_enough, start, f"an accuracy of {decimal(accuracy)}")
        return root(is_enough, low, high, CLOSE)[1]

    def _key_law(self, epsilon: Fraction) -> KeyLaw:
        rule: Rule = "stability" if self.mechanism == "stability" else "truncated-geometric"
        return key_law(ApproxDP(epsilon, self.delta), self.unit, rule)

    @property
    def _stability_log(self) -> float:
        """The logarithm of 2 / (alpha delta), without forming the quotient, which may overflow."""
        log_delta = math.log(self.delta.numerator) - math.log(self.delta.denominator)
        return math.log(2) - self.log_alpha - log_delta


def _bracket(is_enough: Callable[[float], bool], start: float, request: str) -> tuple[float, float]:
    """Enclose the least epsilon that is enough: the high end is, and the low end is not."""
    high = start
    while not is_enough(high):
        high *= STRIDE
        if high > LARGEST:
            raise Infeasible(
                request,
                f"no epsilon up to {LARGEST:,.0f} is enough",
                "Ask for a larger accuracy, or a larger alpha",
            )
    low = high / STRIDE
    while is_enough(low):
        high = low
        low /= STRIDE
        if low < SMALLEST:
            raise Infeasible(
                request,
                f"an epsilon of {SMALLEST:g} is more than enough",
                "Ask for a smaller accuracy",
            )
    return low, high


# --- bounded noise --------------------------------------------------------------------------------

PROOF = Proof(
    sensitivity="L1 = rows_per_person (twice that under replace), of which all may be in one cell, "
    "unless rows per cell are limited. Where persons are counted, c: one in each of c cells.",
    because="an output that is possible with and without the person is at most e^epsilon times as "
    "likely with as without. All others, where the noise of some cell is among its largest values, "
    "have a probability of at most delta, however the person's rows lie in cells: the noise is "
    "log-concave, so all rows together in as few cells as possible are the worst "
    "(mechanisms/bounded_noise). The cells are disjoint and fixed by the public domain, and the "
    "noise is exact on the integers.",
    not_covered="the choice of columns, bins and bounds; the time the query takes, in which draws "
    "beyond the bound are drawn again; persons who appear under several ids.",
    source="Geng, Ding, Guo, Kumar, AISTATS 2020; on the integers: Ghosh, Roughgarden, "
    "Sundararajan 2009; several cells: mechanisms/bounded_noise.",
)


def require_known_cells(title: str, lattice: Lattice) -> None:
    """Refuse an axis of keys, whose own noise decides which of them are shown.

    Raises
    ------
    UsageError
        If there is one.
    """
    if lattice.keyed or any(axis.has_keys for axis in lattice.axes):
        raise UsageError(
            f"{title} with noise = 'bounded'",
            "keys that are not known beforehand are selected by noise of their own",
            "Leave noise out, or declare the keys as Categories",
        )


class BoundedPreview(CountsPreview, frozen=True):
    """The preview of counts with noise that never exceeds a bound, ``law.bound``.

    >>> import sfumato as sf
    >>> domain = sf.Domain(age=sf.Interval(0, 100))
    >>> question = sf.Histogram("age", bins=4, noise="bounded")
    >>> found = sf.preview(question, domain=domain, unit=sf.Unit(), epsilon="1", delta="1e-6")
    >>> found.law.bound, found.accuracy(confidence="0.95"), found.accuracy(confidence="0.999999999")
    (14, 3, 14)
    """

    def lines(self) -> list[str]:
        """What is added to which counts, how accurate they would be, and how far off at most."""
        assert isinstance(self.law, TruncatedLaplace)
        noise, *accuracies = super().lines()
        usual = self.law.without_bound.half_width(0.05)
        return [
            noise,
            f"of {self.unit.counted}, each count is never more than {self.law.bound:,} off",
            *accuracies,
            f"the bound costs the delta: noise without one needs no delta, and each count is "
            f"within +-{usual:,} with 95% confidence at the same epsilon",
        ]
