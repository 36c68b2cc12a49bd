"""How accurate a mean, sum or variance would be, before anything is charged."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from msgspec import UNSET

from sfumato.answers import Preview, error_probability, reach_text
from sfumato.basics import Exactly, number, sidak
from sfumato.errors import UsageError, printable
from sfumato.mechanisms import DiscreteGaussian, DiscreteLaplace, KeyLaw, Law
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
        alpha = error_probability(confidence)
        self._require_numbers(encoding, simultaneous)
        groups = self.cells or 1
        if simultaneous:
            alpha = sidak(alpha, groups * len(self.encodings))
        rows_per_group = (self.rows or 0) / groups
        if self.statistic == "sum":
            return _sum_half_width(encoding, rows_per_group, alpha)
        # Half of the widest interval of a mean or variance of so many rows, all at the two
        # bounds. The groups that are tried differ only in the share of rows at the upper bound.
        basis = encoding.basis
        shares = np.linspace(0, 1, 9)[:, None]
        at_lower, at_upper = basis.functions(np.array([0, basis.points]))
        sums = rows_per_group * ((1 - shares) * at_lower + shares * at_upper)
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

    def _require_numbers(self, encoding: Encoding, simultaneous: bool) -> None:
        """Refuse an accuracy that depends on a number of rows or groups that nobody has stated."""
        request = f"the accuracy of a {self.statistic}"
        depends_on_rows = self._depends_on_rows(encoding)
        if self.cells is None and (simultaneous or depends_on_rows):
            raise UsageError(
                request,
                "how many groups are shown depends on the data",
                "Declare Categories to preview it",
            )
        if depends_on_rows and self.rows is None:
            obstacle = f"it depends on the number of {self._counted_things}"
            stated = "State it as rows=" if self.of_persons else "State rows="
            raise UsageError(request, obstacle, f"{stated} to preview it")

    @property
    def chooses_clip(self) -> bool:
        """Whether a clip is chosen from the noisy sums; ``accuracy`` is then that of the bounds."""
        return self.basis.name == "hats"

    @property
    def of_persons(self) -> bool:
        """Whether each person has one value in a group; ``rows`` is then a number of persons."""
        return self.scale.persons is not UNSET

    @property
    def _counted_things(self) -> str:
        return "persons" if self.of_persons else "rows"

    def _depends_on_rows(self, encoding: Encoding) -> bool:
        return self.statistic != "sum" or encoding.values.rounded

    def lines(self) -> list[str]:
        """The noise on each sum, and the accuracy of the statistic, for each value."""
        lines = []
        for encoding in self.encodings:
            lines += self._lines_of(encoding)
        if self.selects is not None:
            lines.append(describe_selection(self.selects))
        return lines

    def _lines_of(self, encoding: Encoding) -> list[str]:
        of_value = f" of {printable(encoding.values.name)}" if len(self.encodings) > 1 else ""
        lines = [self._noise_line(encoding, of_value)]
        if self.chooses_clip:
            lines.append(
                f"a clip is chosen from the noisy sums: the values may be clipped to as little as "
                f"2^-{encoding.basis.size - 2} of the range, and the noise falls with the clip"
            )
        if self._depends_on_rows(encoding) and (self.rows is None or self.cells is None):
            return [*lines, self._missing_number()]
        half_width = reach_text(np.array(self._accuracy_of(encoding, "0.95")))
        # An estimate that takes a span of knots need not be the middle of its interval.
        known = (
            f"has a 95% interval that reaches {half_width} from its middle"
            if self.chooses_clip
            else f"is within {half_width} of the truth with 95% confidence"
        )
        lines.append(
            f"of {self.unit.counted}{encoding.values.cut}{self._conditions(encoding)} each "
            f"{self.statistic}{of_value} {known}"
        )
        if self.cells and self.cells > 1:
            widest = np.array(self._accuracy_of(encoding, "0.95", simultaneous=True))
            at_once = (
                "of all of them at once:" if self.chooses_clip else "all of them at once are within"
            )
            lines.append(f"{at_once} {reach_text(widest)}")
        return lines

    def _missing_number(self) -> str:
        """Say on what the accuracy depends that nobody has stated."""
        depends = f"how accurate each is depends on how many {self._counted_things} a group has"
        if self.cells is None:
            return depends
        remedy = "state that as rows=" if self.of_persons else "state rows= (command line: --rows)"
        return f"{depends}: {remedy} to preview it"

    def _noise_line(self, encoding: Encoding, of_value: str) -> str:
        groups = "each group that is shown"
        if self.cells is not None:
            groups = "one group" if self.cells == 1 else f"each of {self.cells:,} groups"
        who = f"{self.unit.who} in it" if self.of_persons else "row"
        of_one = _one_in_units(encoding)
        unity = encoding.basis.unity
        match encoding.law:
            case DiscreteLaplace(scale=scale):
                noise = f"discrete Laplace noise of scale {number(float(scale) * (of_one / unity))}"
                in_rows = f"a scale of {number(float(scale / unity))}"
            case DiscreteGaussian(sigma=sigma):
                noise = f"discrete Gaussian noise of sigma {number(sigma * (of_one / unity))}"
                in_rows = f"a sigma of {number(sigma / unity)}"
        return (
            f"adds {noise} to {encoding.basis.size} sums{of_value} in {groups}, where each {who} "
            f"adds {number(of_one)} in all ({in_rows} {self._counted_things})"
        )

    def _conditions(self, encoding: Encoding) -> str:
        """Return the clauses on what an accuracy takes to be the case."""
        clauses = ""
        if self.rows is not None:
            clauses = (
                f", if {self.rows:,} {self._counted_things} are divided evenly among the groups,"
            )
        if self.chooses_clip:
            clauses += " if no clip below the bounds is chosen,"
        return clauses or ("," if encoding.values.cut else "")


def _one_in_units(encoding: Encoding) -> float:
    """Return what one row or person adds to all sums together, in the units of the value.

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


def _sum_half_width(encoding: Encoding, rows: float, alpha: float) -> float:
    values = encoding.values
    basis = encoding.basis
    law = encoding.law
    per_group = np.array([rows])
    if basis.name != "hats":
        return float(sum_half_width(values, basis, law, per_group, alpha)[0])
    no_clip = np.array([basis.size - 1])
    return float(clipped_sum_half_width(values, basis, law, per_group, no_clip, alpha)[0])
