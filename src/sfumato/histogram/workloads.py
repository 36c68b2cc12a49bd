"""``workload="ranges"``: what may be asked, and its preview."""

from __future__ import annotations

import numpy as np

from sfumato.answers.estimate import error_probability
from sfumato.answers.preview import Preview
from sfumato.basics.numbers import Exactly
from sfumato.domain.lattice import LabelAxis, Lattice
from sfumato.errors import UsageError, shown
from sfumato.histogram.range_counts import RangeErrors
from sfumato.histogram.strategies import MOST_CELLS, Strategy
from sfumato.mechanisms.noise import Law
from sfumato.mechanisms.noise_sums import sum_half_width

MOST_STARTS = 512
"""Of how many ranges of one length the least accurate one is sought."""

WITHOUT = "Leave workload out, or ask for a histogram of known bins of one Interval axis"


def check_workload(workload: object, records: int | None) -> None:
    """Refuse what is no workload, and bins that the data choose."""
    if workload not in (None, "ranges"):
        asked = f"workload = {shown(workload)}"
        raise UsageError(asked, "noise is made for cells or for ranges", 'Write workload="ranges"')
    if workload is not None and records is not None:
        obstacle = "the edges of its bins are not known beforehand"
        raise UsageError("records with workload = 'ranges'", obstacle, "Give bins or a width")


def ranged_axis(title: str, lattice: Lattice) -> int:
    """The index of the one axis along which ranges are counted.

    Raises
    ------
    UsageError
        If there is not exactly one Interval axis, an axis of keys, or there are too many bins.
    """
    asked = f"{title} with workload = 'ranges'"
    if lattice.keyed or any(axis.has_keys for axis in lattice.axes):
        raise UsageError(asked, "keys that are not shown are missing from every range", WITHOUT)
    found = [at for at, axis in enumerate(lattice.axes) if not isinstance(axis, LabelAxis)]
    if len(found) != 1:
        obstacle = f"ranges are counted along one Interval axis, and it has {len(found)}"
        raise UsageError(asked, obstacle, WITHOUT)
    size = lattice.axes[found[0]].size
    if size > MOST_CELLS:
        obstacle = f"it has {size:,} bins along the axis, and at most {MOST_CELLS:,} are possible"
        raise UsageError(asked, obstacle, "Give fewer bins")
    return found[0]


class RangesPreview(Preview, frozen=True):
    """The preview of counts that follow from noisy sums of bins.

    Attributes
    ----------
    law : DiscreteLaplace or DiscreteGaussian
        The noise that each count would have by itself, for comparison.
    strategy : RangeTree or RangeMatrix
        Which sums of bins are counted, and their noise.
    rows : int or None
        As stated by the holder.
    """

    law: Law
    strategy: Strategy
    rows: int | None = None

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> int:
        """Half-width of the interval of each count, of the least accurate one.

        ``simultaneous``: all of them hold together (Bonferroni).
        """
        alpha = error_probability(confidence) / ((self.cells or 1) if simultaneous else 1)
        return int(np.floor(RangeErrors(self.strategy).least_accurate_cell(alpha) + 1))

    def of_range(self, bins: int, confidence: Exactly = "0.95") -> int:
        """Half-width of the interval of a range of so many bins, of the least accurate one.

        Parameters
        ----------
        bins : int
            From 1 to the number of bins along the axis.
        confidence : number in (0, 1)
        """
        alpha = error_probability(confidence)
        cells = self.strategy.cells
        if not 1 <= bins <= cells:
            obstacle = f"there are {cells:,} along the axis"
            raise UsageError(f"a range of {bins} bins", obstacle, f"Give a number up to {cells:,}")
        # The least accurate one is that of the largest variance.
        starts = np.unique(np.linspace(0, cells - bins, MOST_STARTS).astype(np.int64))
        errors = RangeErrors(self.strategy)
        inside = np.arange(cells) - starts[:, None]
        weights = ((inside >= 0) & (inside < bins)).astype(float)
        variances = errors.variances(self.strategy.influence(weights))
        worst = starts[[int(np.argmax(variances))]]
        return int(np.floor(errors.ranges(worst, worst + bins, alpha)[0]))

    def lines(self) -> list[str]:
        """What is added to which sums, and how accurate counts and ranges would be."""
        cells = self.strategy.cells
        half = max(1, cells // 2)
        of = f"of {self.unit.counted}"
        alone = sum_half_width(self.law, half, 0.05)
        return [
            f"adds {self.strategy}",
            f"{of}, each count is within +-{self.accuracy():,} of the truth with 95% confidence, "
            f"and a range of {half:,} bins within +-{self.of_range(half):,}",
            f"counted one by one, each count would be within +-{self.law.half_width(0.05):,}, and "
            f"such a range within +-{alone:,}",
        ]
