"""How accurate numbers of persons would be, before anything is charged."""

from __future__ import annotations

from collections.abc import Mapping

from sfumato.answers.estimate import error_probability
from sfumato.answers.preview import Preview
from sfumato.basics.numbers import Exactly, sidak
from sfumato.mechanisms.noise import Law
from sfumato.mechanisms.noise_sums import plain_sum_half_width
from sfumato.persons.measured import MEASURED, Of

_BY: Mapping[Of, str] = {
    "rows": "by how many rows they have",
    "cells": "by how many cells they have rows in",
    "norm": "by the L2 norm of their counts",
    "largest-cell": "by their rows in the cell that has most of them",
}


class PersonsPreview(Preview, frozen=True):
    """What a count of persons by their number of rows would cost, and how accurate it would be.

    Attributes
    ----------
    law : DiscreteLaplace or DiscreteGaussian
        The noise on the number of persons in each bin.
    most_rows : int or None
        The public bound on a person's rows.
    of : {"rows", "cells", "norm", "largest-cell"}
        What is measured of each person.
    """

    law: Law
    most_rows: int | None
    of: Of = "rows"

    @property
    def counted(self) -> str:
        """Which rows the answer would be about: all that name a person."""
        from sfumato.persons.release import counted_persons

        return counted_persons(self.unit, self.of)

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> int:
        """Half-width of the interval of the number of persons in one bin."""
        alpha = error_probability(confidence)
        return self.law.half_width(sidak(alpha, self.cells or 1) if simultaneous else alpha)

    def lines(self) -> list[str]:
        """The noise on each bin, and how accurate the number of all persons would be."""
        everyone = plain_sum_half_width(self.law, self.cells or 1, 0.05)
        found = [
            f"adds {self.law} to each of {self.cells} numbers of persons, {_BY[self.of]}",
            f"of {self.unit.counted}, each number is within +-{self.accuracy():,} of the truth, "
            f"and the number of all persons within +-{everyone:,}, with 95% confidence",
        ]
        return [*found, self._what_follows()]

    def _what_follows(self) -> str:
        """What the answer says of limits."""
        if self.of == "cells":
            return "says which share of the pairs of a person and a cell any limit on cells keeps"
        if self.of != "rows":
            limit = MEASURED[self.of].limit
            return f"says how many persons a limit {limit} affects; sf.recommend finds one from it"
        if self.most_rows is None:
            return (
                "says how many persons a limit on rows affects; state most_rows to learn which "
                "share of the rows it keeps"
            )
        return (
            f"says which share of the rows any limit keeps, if nobody has more than "
            f"{self.most_rows:,} rows"
        )

    def remarks(self) -> list[str]:
        """Which rows are left out."""
        return [f"not counted: rows without a {self.unit.who}; no other limit applies"]
