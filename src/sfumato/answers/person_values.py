"""One whole number for each person: the mean or the sum of their values, rounded exactly.

Each row of a person has a whole number k. Their sum S and their number n are exact integers, which
add up in any order. So what a person's number is depends on that person's rows alone: not on their
order, nor on how a table is cut or read.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
import numpy as np

from sfumato.basics.numbers import Array
from sfumato.errors import UsageError

PersonStatistic: TypeAlias = Literal["mean", "sum"]
"""What is made of a person's values in a cell."""

INT64_LIMIT = 2**63


class PersonLattice(msgspec.Struct, frozen=True):
    """The lattice that persons' values are rounded to, beside the lattice of the rows' values.

    Both are in one unit, of which everything is a whole number.

    Parameters
    ----------
    row_start, row_step : int
        A row's number k stands for ``row_start + k * row_step`` units.
    start, step, most : int
        A person's number j, from 0 to ``most``, stands for ``start + j * step`` units.

    Raises
    ------
    UsageError
        If a step or ``most`` is not positive.

    >>> dollars = PersonLattice(row_start=0, row_step=1, start=0, step=2, most=50)
    >>> sums, rows = np.array([3, 8, 300]), np.array([1, 3, 2])
    >>> dollars.located("mean", sums, rows).tolist(), dollars.located("sum", sums, rows).tolist()
    ([2, 1, 50], [2, 4, 50])
    """

    row_start: int
    row_step: int
    start: int
    step: int
    most: int

    def __post_init__(self) -> None:
        if min(self.row_step, self.step, self.most) < 1:
            raise UsageError(
                "a lattice of persons' values",
                "its steps must be positive, and there must be one",
                "Declare wider bounds",
            )

    def located(self, statistic: PersonStatistic, sums: Array, rows: Array) -> Array:
        """Give each person's number: the nearest one, the upper one of two, within 0 to ``most``.

        Exact: only integers are added, multiplied and divided with a remainder.

        Parameters
        ----------
        statistic : {"mean", "sum"}
        sums : int64 ndarray of shape (persons,)
            What the numbers of each person's rows add up to.
        rows : int64 ndarray of shape (persons,)
            How many rows each person has, at least 1.

        Returns
        -------
        int64 ndarray of shape (persons,)
        """
        if not self._fits(int(sums.max(initial=1)), int(rows.max(initial=1))):
            # Python's integers never overflow. What comes out is the same.
            sums = sums.astype(object)
            rows = rows.astype(object)
        match statistic:
            case "mean":
                # (row_start n + row_step S) / n - start, in steps
                above = self.row_step * sums + (self.row_start - self.start) * rows
                steps = self.step * rows
            case "sum":
                above = self.row_step * sums + self.row_start * rows - self.start
                steps = self.step * np.ones_like(rows)
        # Half up: floor(above / steps + 1/2). Floor division of integers rounds down, also below 0.
        nearest = (2 * above + steps) // (2 * steps)
        return np.asarray(np.clip(nearest, 0, self.most)).astype(np.int64)

    def _fits(self, most_summed: int, most_rows: int) -> bool:
        """Whether no number on the way to the result can pass 64 bits."""
        farthest = abs(self.row_start) + abs(self.start) + self.step
        return 2 * (self.row_step * most_summed + 2 * farthest * most_rows) < INT64_LIMIT
