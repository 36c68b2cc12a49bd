"""What quantiles would cost, and how far the ranks of the answers may be from those asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import msgspec

from sfumato.answers.estimate import error_probability
from sfumato.answers.preview import Preview
from sfumato.basics.numbers import Exactly
from sfumato.mechanisms.noise import Law
from sfumato.quantiles.axis_method import AxisMethod
from sfumato.quantiles.paid_ranks import RankNoise
from sfumato.quantiles.rank_error import half_width, typical

ALPHA = 0.05


class QuantilesPreview(Preview, frozen=True):
    """What quantiles would cost, and how far their ranks may be from those asked for.

    Attributes
    ----------
    rows : int or None
        As stated by the data custodian.
    notes : tuple of str
        What each method is called.
    axis_methods : tuple of AxisMethod, "ways" in JSON
        How each axis is answered. Also ``ways``.
    labels : int
        The number of labels of ``by``; 1 without ``by``.
    """

    rows: int | None = None
    notes: tuple[str, ...] = ()
    axis_methods: tuple[AxisMethod, ...] = msgspec.field(default=(), name="ways")
    labels: int = 1

    @property
    def ways(self) -> tuple[AxisMethod, ...]:
        """``axis_methods`` under its name in JSON and in version 0.1."""
        return self.axis_methods

    @property
    def rows_needed(self) -> int:
        """About how many rows a label needs for all its values to be known."""
        return rows_needed_for_ranks(self.axis_methods)

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> int:
        """Rows by which a released rank may be off, for the value where that is most.

        The release keeps it, whatever the data. Where values turn out to be equal, fewer counts are
        needed and its accuracy is better.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            True: the bound holds for all values together.
        """
        alpha = error_probability(confidence)
        if simultaneous:
            alpha /= max(self.cells or 1, 1)
        return max(widest(method.rank_noise, method.at, alpha) for method in self.axis_methods)

    def selection_accuracy(self, confidence: Exactly = "0.95") -> int:
        """Rows by which a chosen value's rank may be off the one asked for, whatever the data."""
        alpha = error_probability(confidence)
        return max(half_width(method, alpha) for method in self.axis_methods)

    def lines(self) -> list[str]:
        """How the values are chosen, and how far their ranks may be off."""
        typically = max(typical(method, ALPHA) for method in self.axis_methods)
        stated = f"within +-{self.accuracy():,} rows with 95% confidence"
        chosen = f"of the one asked for typically within {typically:,.0f} rows"
        worst = f"at worst within {self.selection_accuracy():,}, whatever the data"
        found = [
            f"chooses {self.cells:,} lattice points by {', '.join(self.notes)}",
            f"of {self.unit.counted}, each has its rank released, {stated}",
            f"and {chosen}, {worst}; a tied value has all ranks of its rows",
        ]
        if self.cells and self.cells > 1:
            every = self.accuracy(simultaneous=True)
            found.append(f"all released ranks at once are within +-{every:,} rows")
        if self.rows:
            share = self.accuracy() * self.labels / self.rows
            divided = ", evenly divided," if self.labels > 1 else ""
            found.append(f"of {self.rows:,} rows{divided} that is {share:.2%}")
        few = f"fewer than about {self.rows_needed:,} rows"
        of_label = "values of a label with" if self.labels > 1 else "with"
        subject = "" if self.labels > 1 else ", some of the values"
        return [*found, f"{of_label} {few}{subject} are marked as not known"]


def widest(noise: RankNoise, at: Sequence[Fraction], alpha: float) -> int:
    """The largest half-width of the ranks of an axis on which no values are equal."""
    gaps = len(at) + 1
    return max(noise.half_width(j, gaps - j, q, alpha) for j, q in enumerate(at, 1))


def rows_needed_for_ranks(methods: Sequence[AxisMethod]) -> int:
    """About how many rows it takes until rows surely lie on both sides of every value.

    The value at q has about q n rows below it, less what the selection is typically off. Their
    noisy number must exceed its own half-width, which its noise may bring down once more.
    """
    least = 0.0
    for method in methods:
        noise = method.rank_noise
        gaps = len(method.at) + 1
        for j, q in enumerate(method.at, 1):
            below = noise.half_width(j, 0, Fraction(0), ALPHA) / q
            above = noise.half_width(0, gaps - j, Fraction(1), ALPHA) / (1 - q)
            off = Fraction(typical(method, ALPHA)) / min(q, 1 - q)
            least = max(least, float(2 * max(below, above) + off))
    return math.floor(least) + 1


def rows_needed(methods: Sequence[AxisMethod], rows_law: Law | None) -> int:
    """How many rows it takes for the ranks of all quantiles to lie surely within the rows.

    Parameters
    ----------
    methods : sequence of AxisMethod
    rows_law : law of noise, or None
        Of the noise on the number of rows, which the answer includes. None: the number is not
        released.
    """
    alpha = ALPHA if rows_law is None else ALPHA / 2
    least = 0.0
    for method in methods:
        nearest_end = float(min(*method.at, *(1 - q for q in method.at)))
        least = max(least, half_width(method, alpha) / nearest_end)
    noise = 0 if rows_law is None else 2 * rows_law.half_width(ALPHA)
    return math.floor(least) + 1 + noise
