"""What a question would cost, and how accurate its answer would be."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from sfumato.answers.estimate import error_probability
from sfumato.errors import UsageError
from sfumato.exact import Exactly, sidak
from sfumato.mechanisms.noise import Law
from sfumato.mechanisms.thresholds import KeyLaw
from sfumato.privacy import belief
from sfumato.privacy.guarantee import counted_rows, left_out
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Unit


class Preview(msgspec.Struct, frozen=True):
    """What a question would cost and how accurate its answer would be. Touches no data, spends nothing.

    Attributes
    ----------
    question : str
        Its name and axes.
    cost : PureDP, ApproxDP or ZCDP
    unit : Unit
    cells : int or None
        How many numbers are released; None where that depends on a noisy count and no ``rows`` was stated.
    law : DiscreteLaplace, DiscreteGaussian, TruncatedGeometric or ThresholdLaplace
        Of the noise on each number.
    rows : int or None
        As stated by the holder.
    notes : tuple of str
    worst : like ``law``, or None
        The most noise that any number may get, where they differ; None: all have the same law.
    terms : int or None
        Of how many counts a number is the sum, at most; None where that depends on a noisy count and no ``rows`` was stated.
    """

    question: str
    cost: CentralMeasure
    unit: Unit
    cells: int | None
    law: Law | KeyLaw
    rows: int | None = None
    notes: tuple[str, ...] = ()
    worst: Law | None = None
    terms: int | None = 1

    @property
    def counted(self) -> str:
        """Which rows the answer would be about, and which not: every accuracy is about the rows counted."""
        return counted_rows(self.unit)

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> int:
        """Half-width of the interval of each number, of the least accurate one; ``simultaneous``: all of them hold together."""
        alpha = error_probability(confidence)
        if simultaneous and self.cells is None:
            raise UsageError("simultaneous accuracy", "the number of cells depends on a noisy count", "State rows= to preview it")
        if self.terms is None:
            raise UsageError("the accuracy of sums of counts", "how many there are depends on a noisy count", "State rows= to preview it")
        law, share = self.worst or self.law, sidak(alpha, self.cells or 1) if simultaneous else alpha
        if self.terms == 1 or not isinstance(law, Law):
            return law.half_width(share)
        return math.ceil(float(law.sum_half_width(np.array([float(self.terms)]), share)[0]))

    def __str__(self) -> str:
        lines = [f"{self.question} at {self.cost}, for {self.unit}:"]
        many = "each of an unknown number of counts" if self.cells is None else f"each of {self.cells:,} counts"
        which = "each count, and numbers are sums of them" if self.terms != 1 else "one count" if self.cells == 1 else many
        lines.append(f"  adds {self.law} to {which}")
        of = f"of {self.unit.counted}"
        if self.terms is None:
            lines.append("  how accurate each number is depends on how many rows there are: state rows= to preview it")
        elif self.worst is None:
            what = "count" if self.terms == 1 else "number"
            lines.append(f"  {of}, each {what} is within +-{self.accuracy():,} of the truth with 95% confidence")
        else:
            best, worst = self.law.half_width(0.05), self.accuracy()
            lines.append(f"  {of}, counts are within +-{best:,} of the truth at best, and within +-{worst:,} at worst, with 95% confidence")
        if self.cells is not None and self.cells > 1 and self.terms is not None:
            lines.append(f"  all of them at once are within +-{self.accuracy(simultaneous=True):,}")
        if self.rows and self.cells and self.terms == 1:
            average = self.rows / self.cells
            lines.append(f"  a cell of average size ({average:,.1f} rows) is known to +-{self.accuracy() / average:.1%}")
        lines.append(f"  {belief.warning(self.cost, self.unit) or belief.sentence(self.cost, self.unit)}")
        lines += [f"  {note}" for note in self.notes]
        return "\n".join([*lines, f"  {left_out(self.unit)}"])
