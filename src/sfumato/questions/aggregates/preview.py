"""How accurate a mean, sum or variance would be, before anything is charged."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from msgspec import UNSET

from sfumato.answers import Preview, error_probability, reach_text
from sfumato.basics.numbers import Exactly, sidak
from sfumato.basics.text import number
from sfumato.errors import UsageError, printable
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law
from sfumato.mechanisms.thresholds import KeyLaw
from sfumato.questions.aggregates.encoding import Encoding
from sfumato.questions.aggregates.intervals import (
    clipped_mean_bounds,
    clipped_sum_half_width,
    mean_bounds,
    sum_half_width,
    variance_bounds,
)
from sfumato.questions.aggregates.values import Basis, Values
from sfumato.questions.histogram.keys import describe_selection

Statistic: TypeAlias = Literal["mean", "sum", "variance"]

SHARES_AT_UPPER_BOUND = 9  # from 0 to 1, at which the widest interval is looked for


class AggregatePreview(Preview, frozen=True):
    """What a mean, sum or variance would cost, and how accurate it would be in equal groups.

    Attributes
    ----------
    encodings : tuple of Encoding
        Of each value: the lattice that it is rounded to, the functions that are summed, and the
        noise on each sum.
    statistic : {"mean", "sum", "variance"}
    rows : int or None
        The number of rows, as stated by the custodian; of persons, each once in every group that
        they are in, if persons have the values.
    selects : TruncatedGeometric, ThresholdLaplace or None
        The law that selects the groups, if they are keys.
    """

    encodings: tuple[Encoding, ...]
    statistic: Statistic
    rows: int | None = None
    selects: KeyLaw | None = None

    @property
    def law(self) -> Law:
        """The noise on each sum of the first value."""
        return self.encodings[0].law

    @property
    def basis(self) -> Basis:
        """The functions of the first value that are summed."""
        return self.encodings[0].basis

    @property
    def scale(self) -> Values:
        """How the first value is added up."""
        return self.encodings[0].values

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> float:
        """Half-width of each group's interval, if its values lie where the interval is widest.

        Of several values it is that of the least accurate one. For means, variances and sums of
        rounded values it depends on the number of rows in a group. State ``rows``: they are taken
        to be divided evenly among the groups.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            False: each interval holds with this confidence. True: all of them hold together.

        Raises
        ------
        UsageError
            If it depends on the number of rows, and ``rows`` was not stated; or if it depends on
            the number of groups, and these are keys.
        """
        return max(
            self._accuracy_of(encoding, confidence, simultaneous) for encoding in self.encodings
        )

    def _accuracy_of(
        self, encoding: Encoding, confidence: Exactly, simultaneous: bool = False
    ) -> float:
        """The accuracy of one value."""
        alpha = error_probability(confidence)
        request = f"the accuracy of a {self.statistic}"
        depends_on_rows = self._depends_on_rows(encoding)
        if self.cells is None and (simultaneous or depends_on_rows):
            obstacle = "how many groups are shown depends on the data"
            raise UsageError(request, obstacle, "Declare Categories to preview it")
        groups = self.cells or 1
        if simultaneous:
            alpha = sidak(alpha, groups * len(self.encodings))
        if depends_on_rows and self.rows is None:
            obstacle = "it depends on the number of rows"
            remedy = "State rows= to preview it"
            if self.of_persons:
                obstacle = "it depends on the number of persons"
                remedy = "State it as rows= to preview it"
            raise UsageError(request, obstacle, remedy)
        rows_per_group = (self.rows or 0) / groups
        if self.statistic == "sum":
            return _sum_half_width(encoding, rows_per_group, alpha)
        return self._ratio_half_width(encoding, rows_per_group, alpha)

    @property
    def chooses_clip(self) -> bool:
        """Whether a clip is chosen from the noisy sums; ``accuracy`` is then that of the bounds."""
        return self.basis.name == "hats"

    @property
    def of_persons(self) -> bool:
        """Whether each person has one value in a group; ``rows`` is then a number of persons."""
        return self.scale.persons is not UNSET

    def _depends_on_rows(self, encoding: Encoding) -> bool:
        """Whether the accuracy depends on the number of rows of a group."""
        return self.statistic != "sum" or encoding.values.rounded

    def _ratio_half_width(self, encoding: Encoding, rows: float, alpha: float) -> float:
        """Half of the widest interval of a mean or variance of so many rows, all at the two bounds.

        The groups that are tried differ only in the share of rows at the upper bound.
        """
        basis = encoding.basis
        shares = np.linspace(0, 1, SHARES_AT_UPPER_BOUND)[:, None]
        at_lower, at_upper = basis.functions(np.array([0, basis.points]))
        sums = rows * ((1 - shares) * at_lower + shares * at_upper)
        if self.statistic == "variance":
            low, high = variance_bounds(sums, basis, encoding.law, alpha)
        elif self.chooses_clip:
            no_clip = np.full(len(sums), basis.size - 1)
            low, high = clipped_mean_bounds(sums, basis, encoding.law, no_clip, alpha)
        else:
            low, high = mean_bounds(sums, basis, encoding.law, alpha)
        power = 1 if self.statistic == "mean" else 2
        widest = float((high - low).max()) / 2
        return widest * encoding.values.width**power + encoding.values.rounding

    def lines(self) -> list[str]:
        """The noise on each sum, and the accuracy of the statistic, for each value."""
        lines = []
        for encoding in self.encodings:
            lines += self._lines_of(encoding)
        if self.selects is not None:
            lines.append(describe_selection(self.selects))
        return lines

    def _lines_of(self, encoding: Encoding) -> list[str]:
        several = len(self.encodings) > 1
        things = "persons" if self.of_persons else "rows"
        of_value = f" of {printable(encoding.values.name)}" if several else ""
        groups = "each group that is shown"
        if self.cells is not None:
            groups = "one group" if self.cells == 1 else f"each of {self.cells:,} groups"
        basis = encoding.basis
        one = f"{self.unit.who} in it" if self.of_persons else "row"
        lines = [
            f"adds {_noise_in_units(encoding)} to {basis.size} sums{of_value} in {groups}, where "
            f"each {one} adds {number(_one_in_units(encoding))} in all "
            f"({_noise_in_rows(encoding, things)})"
        ]
        if self.chooses_clip:
            lines.append(
                f"a clip is chosen from the noisy sums: the values may be clipped to as little as "
                f"2^-{encoding.basis.size - 2} of the range, and the noise falls with the clip"
            )
        if self._depends_on_rows(encoding) and (self.rows is None or self.cells is None):
            remedy = (
                "" if self.cells is None else ": state rows= (command line: --rows) to preview it"
            )
            if remedy and self.of_persons:
                remedy = ": state that as rows= to preview it"
            depends = f"how accurate each is depends on how many {things} a group has{remedy}"
            return [*lines, depends]
        evenly = ""
        if self.rows is not None:
            evenly = f", if {self.rows:,} {things} are divided evenly among the groups,"
        if self.chooses_clip:
            evenly += " if no clip below the bounds is chosen,"
        if encoding.values.cut and not evenly:
            evenly = ","
        each = self._accuracy_of(encoding, "0.95")
        lines.append(
            f"of {self.unit.counted}{encoding.values.cut}{evenly} each {self.statistic}{of_value} "
            f"is within {reach_text(np.array(each))} of the truth with 95% confidence"
        )
        if self.cells and self.cells > 1:
            every = self._accuracy_of(encoding, "0.95", simultaneous=True)
            lines.append(f"all of them at once are within {reach_text(np.array(every))}")
        return lines


def _one_in_units(encoding: Encoding) -> float:
    """What one row or person adds to all sums together, in the units of the value.

    Sums are whole numbers of a fine unit, which says nothing to a reader. A row adds its distances
    from both bounds, which is the width; with squares, the square of that. Hats add up to 1.
    """
    match encoding.basis.name:
        case "pair":
            return encoding.values.width
        case "quadratic":
            return encoding.values.width**2
        case "hats":
            return 1


def _noise_in_units(encoding: Encoding) -> str:
    """The noise on a sum, in the same units."""
    unit = _one_in_units(encoding) / encoding.basis.unity
    match encoding.law:
        case DiscreteLaplace(scale=scale):
            return f"discrete Laplace noise of scale {number(float(scale) * unit)}"
        case DiscreteGaussian(sigma=sigma):
            return f"discrete Gaussian noise of sigma {number(sigma * unit)}"


def _noise_in_rows(encoding: Encoding, things: str) -> str:
    """The scale or sigma of the noise on a sum, as a number of rows or persons."""
    match encoding.law:
        case DiscreteLaplace(scale=scale):
            return f"a scale of {number(float(scale / encoding.basis.unity))} {things}"
        case DiscreteGaussian(sigma=sigma):
            return f"a sigma of {number(sigma / encoding.basis.unity)} {things}"


def _sum_half_width(encoding: Encoding, rows: float, alpha: float) -> float:
    """Half-width of the interval of a sum over so many rows."""
    values = encoding.values
    basis = encoding.basis
    law = encoding.law
    if basis.name != "hats":
        return float(sum_half_width(values, basis, law, np.array([rows]), alpha)[0])
    no_clip = np.array([basis.size - 1])
    found = clipped_sum_half_width(values, basis, law, np.array([rows]), no_clip, alpha)
    return float(found[0])
