"""What quantiles would cost, and how far the ranks of the answers may be from those asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from sfumato.answers.estimate import error_probability
from sfumato.answers.preview import Preview
from sfumato.mechanisms.noise import Law
from sfumato.numbers import Exactly
from sfumato.quantiles.axis_method import AxisMethod
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
    rows_law : DiscreteLaplace, DiscreteGaussian or None
        Of the noise on the number of rows of each label.
    """

    rows: int | None = None
    notes: tuple[str, ...] = ()
    axis_methods: tuple[AxisMethod, ...] = msgspec.field(default=(), name="ways")
    labels: int = 1
    rows_law: Law | None = None

    @property
    def ways(self) -> tuple[AxisMethod, ...]:
        """``axis_methods`` under its name in JSON and in version 0.1."""
        return self.axis_methods

    @property
    def rows_needed(self) -> int:
        """About how many rows a label needs for all its values to be known."""
        return rows_needed(self.axis_methods, self.rows_law)

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> int:
        """Rows by which a rank may be off, on the axis where that is most.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            True: the bound holds for all values together.
        """
        alpha = error_probability(confidence)
        together = len(self.axis_methods) * self.labels if simultaneous else 0
        return max(half_width(method, alpha, together) for method in self.axis_methods)

    def lines(self) -> list[str]:
        """How the values are chosen, how far their ranks may be off, and when they say anything."""
        typically = max(typical(method, ALPHA) for method in self.axis_methods)
        within = f"{self.accuracy():,} of the one asked for with 95% confidence"
        ties = "a tied value has all ranks of its rows"
        found = [
            f"chooses {self.cells:,} lattice points by {', '.join(self.notes)}",
            f"of {self.unit.counted}, each has its rank within {within}, whatever the data",
            f"and typically within {typically:,.0f}, where values lie evenly; {ties}",
        ]
        if self.cells and self.cells > 1:
            every = self.accuracy(simultaneous=True)
            found.append(f"all of them at once are within {every:,} rows")
        if self.rows:
            share = self.accuracy() * self.labels / self.rows
            divided = ", evenly divided," if self.labels > 1 else ""
            found.append(f"of {self.rows:,} rows{divided} that is {share:.2%}")
        if self.rows_law is None:
            few = f"fewer than {self.rows_needed:,} rows"
            return [*found, f"with {few}, some of the values are not known"]
        off = self.rows_law.half_width(ALPHA)
        found.append(f"the number of rows of each label is released too, within +-{off:,}")
        few = f"fewer than about {self.rows_needed:,} rows"
        found.append(f"values of a label with {few} are marked as not known")
        return found


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
