"""What quantiles would cost, and how far the ranks of the answers may be from those asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato.answers.estimate import error_probability
from sfumato.answers.preview import Preview
from sfumato.exact import Exactly
from sfumato.mechanisms.noise import Law
from sfumato.quantiles.methods import Way
from sfumato.quantiles.reach import half_width, typical

ALPHA = 0.05


class QuantilesPreview(Preview, frozen=True):
    """What quantiles would cost, and how far their ranks may be from those asked for. Touches no data, spends nothing.

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
        """Rows by which a rank may be off, of the axis where that is most; ``simultaneous``: all of them hold together."""
        alpha = error_probability(confidence)
        return max(half_width(way, alpha, len(self.ways) * self.labels if simultaneous else 0) for way in self.ways)

    def lines(self) -> list[str]:
        """How the values are chosen, how far their ranks may be off, and from how many rows on they say anything."""
        typically = max(typical(way, ALPHA) for way in self.ways)
        of = f"of {self.unit.counted}"
        found = [
            f"chooses {self.cells:,} lattice points by {', '.join(self.notes)}",
            f"{of}, each has its rank within {self.accuracy():,} of the one asked for with 95% confidence, whatever the data",
            f"and typically within {typically:,.0f}, where values lie evenly; a tied value has all ranks of its rows",
        ]
        if self.cells and self.cells > 1:
            found.append(f"all of them at once are within {self.accuracy(simultaneous=True):,} rows")
        if self.rows:
            share = self.accuracy() * self.labels / self.rows
            found.append(f"of {self.rows:,} rows{', evenly divided,' if self.labels > 1 else ''} that is {share:.2%}")
        if self.rows_law is None:
            return [*found, f"with fewer than {self.rows_needed:,} rows some of the values say nothing"]
        found.append(f"the number of rows of each label is released too, within +-{self.rows_law.half_width(ALPHA):,}")
        return [*found, f"values of a label with fewer than about {self.rows_needed:,} rows are marked as not known"]


def rows_needed(ways: Sequence[Way], rows_law: Law | None) -> int:
    """From how many rows on the ranks of all quantiles are known to lie within the rows, beside what noise adds to their number."""
    alpha = ALPHA if rows_law is None else ALPHA / 2
    least = max(half_width(way, alpha) / float(min(*way.at, *(1 - q for q in way.at))) for way in ways)
    return math.floor(least) + 1 + (0 if rows_law is None else 2 * rows_law.half_width(ALPHA))
