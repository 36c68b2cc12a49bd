"""How accurate a mean, sum or variance would be, before anything is charged."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from sfumato.aggregates.basis import Basis
from sfumato.aggregates.intervals import (
    clipped_mean_bounds,
    clipped_sum_half_width,
    mean_bounds,
    sum_half_width,
    variance_bounds,
)
from sfumato.aggregates.values import Values
from sfumato.answers.estimate import error_probability
from sfumato.answers.preview import Preview
from sfumato.errors import UsageError
from sfumato.mechanisms.noise import Law
from sfumato.numbers import Exactly, sidak

Statistic: TypeAlias = Literal["mean", "sum", "variance"]

SHARES_AT_UPPER_BOUND = 9  # from 0 to 1, at which the widest interval is looked for


class AggregatePreview(Preview, frozen=True):
    """What a mean, sum or variance would cost, and how accurate it would be in equal groups.

    Attributes
    ----------
    law : DiscreteLaplace or DiscreteGaussian
        The noise on each sum.
    basis : Basis
        The functions of a value that are summed.
    scale : Values
        The values that are added up.
    statistic : {"mean", "sum", "variance"}
    rows : int or None
        The number of rows, as stated by the custodian.
    """

    law: Law
    basis: Basis
    scale: Values
    statistic: Statistic
    rows: int | None = None

    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> float:
        """Half-width of each group's interval, if its values lie where the interval is widest.

        For means, variances and sums of rounded values it depends on the number of rows in a group.
        State ``rows``: they are taken to be divided evenly among the groups.

        Parameters
        ----------
        confidence : number in (0, 1)
        simultaneous : bool
            False: each interval holds with this confidence. True: all of them hold together.

        Raises
        ------
        UsageError
            If it depends on the number of rows, and ``rows`` was not stated.
        """
        alpha = error_probability(confidence)
        groups = self.cells or 1
        if simultaneous:
            alpha = sidak(alpha, groups)
        if self._wants_rows:
            asked = f"the accuracy of a {self.statistic}"
            obstacle = "it depends on the number of rows"
            raise UsageError(asked, obstacle, "State rows= to preview it")
        rows_per_group = (self.rows or 0) / groups
        if self.statistic == "sum":
            rows = np.array([rows_per_group])
            if self.chooses_clip:
                no_clip = np.array([self.basis.size - 1])
                found = clipped_sum_half_width(
                    self.scale, self.basis, self.law, rows, no_clip, alpha
                )
                return float(found[0])
            return float(sum_half_width(self.scale, self.basis, self.law, rows, alpha)[0])
        return self._ratio_half_width(rows_per_group, alpha)

    @property
    def chooses_clip(self) -> bool:
        """Whether a clip is chosen from the noisy sums; ``accuracy`` is then that of the bounds."""
        return self.basis.name == "hats"

    @property
    def _wants_rows(self) -> bool:
        """Whether the accuracy depends on a number of rows that was not stated."""
        fixed_by_noise = self.statistic == "sum" and not self.scale.rounded
        return self.rows is None and not fixed_by_noise

    def _ratio_half_width(self, rows: float, alpha: float) -> float:
        """Half of the widest interval of a mean or variance of so many rows, all at the two bounds.

        The groups that are tried differ only in the share of rows at the upper bound.
        """
        shares = np.linspace(0, 1, SHARES_AT_UPPER_BOUND)[:, None]
        at_lower, at_upper = self.basis.functions(np.array([0, self.basis.points]))
        sums = rows * ((1 - shares) * at_lower + shares * at_upper)
        if self.statistic == "variance":
            low, high = variance_bounds(sums, self.basis, self.law, alpha)
        elif self.chooses_clip:
            no_clip = np.full(len(sums), self.basis.size - 1)
            low, high = clipped_mean_bounds(sums, self.basis, self.law, no_clip, alpha)
        else:
            low, high = mean_bounds(sums, self.basis, self.law, alpha)
        power = 1 if self.statistic == "mean" else 2
        widest = float((high - low).max()) / 2
        return widest * self.scale.width**power + self.scale.rounding

    def lines(self) -> list[str]:
        """The noise on each sum, and the accuracy of the statistic."""
        lines = [f"adds {self.law} to {self.basis.size} sums in each of {self.cells:,} groups"]
        if self.chooses_clip:
            lines.append(
                f"a clip is chosen from the noisy sums: the values may be clipped to as little as "
                f"2^-{self.basis.size - 2} of the range, and the noise falls with the clip"
            )
        if self._wants_rows:
            remedy = "state rows= to preview it"
            return [*lines, f"how accurate each is depends on how many rows a group has: {remedy}"]
        evenly = ""
        if self.rows is not None:
            evenly = f", if {self.rows:,} rows are divided evenly among the groups,"
        if self.chooses_clip:
            evenly += " if no clip below the bounds is chosen,"
        lines.append(
            f"of {self.unit.counted}{self.scale.cut}{evenly} each {self.statistic} is within "
            f"+-{self.accuracy():,.4g} of the truth with 95% confidence"
        )
        if self.cells and self.cells > 1:
            every = self.accuracy(simultaneous=True)
            lines.append(f"all of them at once are within +-{every:,.4g}")
        return lines
