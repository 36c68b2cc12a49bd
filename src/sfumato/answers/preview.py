"""What a question would cost, and how accurate its answer would be."""

from __future__ import annotations

import math
from typing import TypeVar

import msgspec
import numpy as np

from sfumato.answers.estimate import error_probability, half_width_text
from sfumato.basics import Exactly, ExplainedStruct, card, facts, line, sidak
from sfumato.errors import UsageError, explained_methods
from sfumato.mechanisms import CountLaw, KeyLaw
from sfumato.privacy import CentralMeasure, Unit, belief, counted_rows, not_counted, scope

P = TypeVar("P", bound="Preview")


class _MayRemark(ExplainedStruct, frozen=True, kw_only=True):
    """What a preview may say beside its numbers.

    Attributes
    ----------
    whole_numbers : tuple of str or UNSET
        Which whole numbers lie in bins, where there is something to say of them, axis by axis.
    advice : str or UNSET
        Which question tells how much the limits on a person leave out, and its price.
    payable : str or UNSET
        How many such answers the account can pay, where it adds up by curves.
    """

    whole_numbers: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    advice: str | msgspec.UnsetType = msgspec.UNSET
    payable: str | msgspec.UnsetType = msgspec.UNSET


@explained_methods
class Preview(_MayRemark, frozen=True):
    """What a question would cost and how accurate its answer would be.

    It touches no data and spends nothing.
    ``str`` of it is what people read; a subclass says in ``lines`` what its noise is and what
    follows from it.

    Attributes
    ----------
    question : str
        Its name and axes.
    cost : PureDP, ApproxDP or ZCDP
    unit : Unit
    cells : int or None
        How many numbers are released; None where that depends on a noisy count and no number of
        rows was stated.

    >>> import sfumato as sf
    >>> domain = sf.Domain(age=sf.Interval(0, 100))
    >>> question = sf.Histogram("age", bins=4)
    >>> preview = sf.preview(question, domain=domain, unit=sf.Unit(), epsilon="0.5")
    >>> preview.cells, preview.accuracy(confidence="0.95")
    (4, 6)
    >>> print(preview)
    Histogram of age at epsilon = 0.5, for any one person contributing at most one row,
    added or removed:
      adds discrete Laplace noise of scale 2 to each of 4 counts
      of the rows counted, each count is within +-6 of the truth with 95% confidence
      all of them at once are within +-9
      anyone 1% sure that a person is in the data can become at most 1.64% sure
      one row is one person: someone with 20 rows is 20 persons here
      not counted: rows without a value, rows with an unlisted label (unless the domain
    gives them a cell)
    """

    question: str
    cost: CentralMeasure
    unit: Unit
    cells: int | None

    @property
    def counted(self) -> str:
        """Which rows the answer would be about, and which not."""
        return counted_rows(self.unit)

    @property
    def states_accuracy(self) -> bool:
        """Whether the accuracy is known beforehand: whether its class implements ``accuracy``."""
        return type(self).accuracy is not Preview.accuracy

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> float:
        """Half-width of the interval of each number, of the least accurate one.

        ``simultaneous``: all of them hold together.
        """
        raise NotImplementedError

    def lines(self) -> list[str]:
        """What the question would do, and how accurate its answer would be, a sentence a line."""
        return []

    def remarks(self) -> list[str]:
        """What else there is to know, a sentence a line."""
        of_bins = () if self.whole_numbers is msgspec.UNSET else self.whole_numbers
        told = scope(self.unit).rstrip(".")
        told = f"{told[:1].lower()}{told[1:]}"
        further = [text for text in (self.advice, self.payable) if text]
        return [*of_bins, told, *further, not_counted(self.unit)]

    def _repr_html_(self) -> str:
        rows = [("Cost", str(self.cost)), ("Protects", str(self.unit))]
        if self.cells is not None:
            rows.append(("Numbers", f"{self.cells:,}"))
        said = [*self.lines(), self.risk, *self.remarks()]
        sentences = [f"{text[:1].upper()}{text[1:].rstrip('.')}." for text in said if text]
        return card(f"Preview: {self.question}", facts(rows), *map(line, sentences))

    @property
    def risk(self) -> str:
        """How sure an attacker could become."""
        return belief.warning(self.cost, self.unit) or belief.sentence(self.cost, self.unit)

    def __str__(self) -> str:
        """The question, its cost, what follows from it, and how sure an attacker could become."""
        return "\n  ".join(
            [
                f"{self.question} at {self.cost}, for {self.unit}:",
                *self.lines(),
                self.risk,
                *self.remarks(),
            ]
        )


class CountsPreview(Preview, frozen=True):
    """The preview of counts with integer noise, or of sums of such counts.

    Attributes
    ----------
    law : DiscreteLaplace, DiscreteGaussian, TruncatedLaplace, or the law that selects keys
        Of the noise on each number.
    rows : int or None
        As stated by the holder.
    notes : tuple of str
    worst : like ``law``, or None
        The most noise that any number may get, where they differ; None: all have the same law.
    terms : int or None
        Of how many counts a number is the sum, at most; None where that depends on a noisy count
        and no ``rows`` was stated.

    >>> import sfumato as sf
    >>> from sfumato.extending import CountsPreview
    >>> domain = sf.Domain(age=sf.Interval(0, 100))
    >>> question = sf.Histogram("age", bins=4)
    >>> preview = sf.preview(question, domain=domain, unit=sf.Unit(), rho="0.125")
    >>> isinstance(preview, CountsPreview), preview.law
    (True, DiscreteGaussian(sigma_squared=Fraction(4, 1)))
    """

    law: CountLaw | KeyLaw
    rows: int | None = None
    notes: tuple[str, ...] = ()
    worst: CountLaw | None = None
    terms: int | None = 1

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> int:
        """Half-width of the interval of each number, of the least accurate one.

        ``simultaneous``: all of them hold together.
        """
        alpha = error_probability(confidence)
        if simultaneous and self.cells is None:
            raise UsageError(
                "simultaneous accuracy",
                "the number of cells depends on a noisy count",
                "State rows= to preview it",
            )
        if self.terms is None:
            raise UsageError(
                "the accuracy of sums of counts",
                "how many there are depends on a noisy count",
                "State rows= to preview it",
            )
        law = self.worst or self.law
        share = sidak(alpha, self.cells or 1) if simultaneous else alpha
        if self.terms == 1 or not isinstance(law, CountLaw):
            return law.half_width(share)
        # Rounded upwards, so that the confidence still holds.
        return math.ceil(float(law.sum_half_width(np.array([float(self.terms)]), share)[0]))

    def lines(self) -> list[str]:
        """What is added to which counts, and how accurate they would be."""
        lines = [f"adds {self.law} to {self._which()}", self._reach()]
        if self.cells is not None and self.cells > 1 and self.terms is not None:
            lines.append(f"all of them at once are within +-{self.accuracy(simultaneous=True):,}")
        # How many persons a cell holds does not follow from a number of rows.
        of_rows = not self.unit.counts_persons
        if self.rows and self.cells and self.terms == 1 and of_rows:
            average = self.rows / self.cells
            share = self.accuracy() / average
            rows = f"{average:,.0f}" if average >= 100 else f"{average:.3g}"
            known = f"is known to +-{half_width_text(100 * share)}%"
            lines.append(f"a cell of average size ({rows} rows) {known}")
        return lines

    def remarks(self) -> list[str]:
        return [*self.notes, *super().remarks()]

    def _which(self) -> str:
        if self.terms != 1:
            return "each count, and numbers are sums of them"
        if self.cells == 1:
            return "one count"
        if self.cells is None:
            return "each of an unknown number of counts"
        return f"each of {self.cells:,} counts"

    def _reach(self) -> str:
        if self.terms is None:
            return (
                "how accurate each number is depends on how many rows there are: state rows= to "
                "preview it"
            )
        of = f"of {self.unit.counted}"
        sure = "with 95% confidence"
        if self.worst is None:
            what = "count" if self.terms == 1 else "number"
            return f"{of}, each {what} is within +-{self.accuracy():,} of the truth {sure}"
        best = self.law.half_width(0.05)
        ends = f"within +-{best:,} of the truth at best, and within +-{self.accuracy():,} at worst"
        return f"{of}, counts are {ends}, {sure}"
