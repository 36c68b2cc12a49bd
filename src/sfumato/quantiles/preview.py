"""What quantiles would cost, and how far the ranks of the answers may be from those asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato.answers.estimate import error_probability
from sfumato.answers.preview import Preview
from sfumato.mechanisms.noise import Law
from sfumato.numbers import Exactly
from sfumato.quantiles.methods import Way
from sfumato.quantiles.rank_error import half_width, typical

ALPHA = 0.05


class QuantilesPreview(Preview, frozen=True):
    """What quantiles would cost, and how far their ranks may be from those asked for.

    Attributes
    ----------
    rows : int or None
        As stated by the holder.
    notes : tuple of str
        The methods, in words.
    ways : tuple of Way
        How each axis is answered.
    labels : int
        How often, for ``by``; else 1.
    rows_law : DiscreteLaplace, DiscreteGaussian or None
        Of the noise on the number of rows of each label.
    """

    rows: int | None = None
    notes: tuple[str, ...] = ()
    ways: tuple[Way, ...] = ()
    labels: int = 1
    rows_law: Law | None = None

    @property
    def rows_needed(self) -> int:
        """From about how many rows on all values of a label are known."""
        return rows_needed(self.ways, self.rows_law)

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> int:
        """Rows by which a rank may be off, of the axis where that is most.

        ``simultaneous``: all of them hold together.
        """
        alpha = error_probability(confidence)
        together = len(self.ways) * self.labels if simultaneous else 0
        return max(half_width(way, alpha, together) for way in self.ways)

    def lines(self) -> list[str]:
        """How the values are chosen, how far their ranks may be off, and when they say anything."""
        typically = max(typical(way, ALPHA) for way in self.ways)
        reach = f"{self.accuracy():,} of the one asked for with 95% confidence"
        ties = "a tied value has all ranks of its rows"
        found = [
            f"chooses {self.cells:,} lattice points by {', '.join(self.notes)}",
            f"of {self.unit.counted}, each has its rank within {reach}, whatever the data",
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
            return [*found, f"with {few} some of the values say nothing"]
        off = self.rows_law.half_width(ALPHA)
        found.append(f"the number of rows of each label is released too, within +-{off:,}")
        few = f"fewer than about {self.rows_needed:,} rows"
        found.append(f"values of a label with {few} are marked as not known")
        return found


def rows_needed(ways: Sequence[Way], rows_law: Law | None) -> int:
    """From how many rows on the ranks of all quantiles are known to lie within the rows.

    What noise adds to the number of rows is included.
    """
    alpha = ALPHA if rows_law is None else ALPHA / 2
    ends = [float(min(*way.at, *(1 - q for q in way.at))) for way in ways]
    least = max(half_width(way, alpha) / end for way, end in zip(ways, ends, strict=True))
    return math.floor(least) + 1 + (0 if rows_law is None else 2 * rows_law.half_width(ALPHA))
