"""Limits on one person's rows beside their number, and how far a person within them moves counts.

*In one table.* A person adds a vector of counts to a table, one per cell. With at most ``r`` rows
in all, its L1 norm is at most r and its L2 norm too. Further limits make these norms smaller: on
the rows in any one cell (Linf), on the cells that the person is in (L0), and on the L2 norm itself.
Such limits hold on the cells in which rows were counted, and on no coarser ones: cells with one row
each become one cell with many.

*In several tables at once.* The norm of one person's counts in all of them is taken in whole
numbers. A person adds counts h to the cells of a lattice, and so adds sums of them, M_B h, to each
coarser table B. A *stacked* norm weighs the squared lengths of all these:

    Q(h) = sum over B of w_B |M_B h|^2.

Weights may be negative, as long as no h has a negative Q(h): then Q is the square of a norm. It is
laid out for the noise that the tables get (see ``stacked_norm``), so one limit on it says what
all tables together may cost.
"""

from __future__ import annotations

import math
from typing import TypedDict

import msgspec

from sfumato.basics import agreeing, several, whole
from sfumato.errors import InternalError, UsageError

MOST = 10**15
"""Of any limit: more rows than any table has."""


class Limits(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What of one person is counted at most, beside a number of rows in all.

    Parameters
    ----------
    rows_per_cell : int or None
        Rows in any one cell; 1 counts persons.
    cells_per_person : int or None
        Cells that a person is counted in.
    norm_per_person : int or None
        The L2 norm of a person's counts: the root of the sum over cells of squared numbers of rows.
    norm_in_tables : int or None
        The stacked norm of a person's counts in several tables (see ``stacked_norm``), by how many
        rows in one cell have it. A family of tables states it in place of ``norm_per_person``.

    Raises
    ------
    UsageError
        If none is given, or one is not a whole number from 1 to 10^15.

    >>> Limits(rows_per_cell=2, cells_per_person=3).rows
    6
    >>> Limits(rows_per_cell=2, cells_per_person=3).squared_norm(5)
    9
    """

    rows_per_cell: int | None = None
    cells_per_person: int | None = None
    norm_per_person: int | None = None
    norm_in_tables: int | None = None

    def __post_init__(self) -> None:
        obstacle = "a limit is a whole number from 1 to 10^15"
        remedy = "Give a number such as 4"
        for name, limit in self.given.items():
            read = whole(limit, name, 1, MOST, obstacle=obstacle, remedy=remedy)
            msgspec.structs.force_setattr(self, name, read)
        if not self.given:
            raise UsageError("limits", "none of them is given", "Leave them out, or give one")

    @property
    def given(self) -> dict[str, int]:
        """Those that are given, by name.

        >>> Limits(norm_per_person=2).given
        {'norm_per_person': 2}
        """
        stated = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: limit for name, limit in stated.items() if limit is not None}

    @property
    def rows(self) -> int | None:
        """How many rows they allow a person in all; None if they do not say."""
        allowed = []
        if self.rows_per_cell is not None and self.cells_per_person is not None:
            allowed.append(self.rows_per_cell * self.cells_per_person)
        if self.norm_per_person is not None:
            # n rows have the least norm where each is in a cell of its own: the root of n.
            allowed.append(self.norm_per_person**2)
        return min(allowed, default=None)

    def largest_cell(self, rows: int) -> int:
        """The most rows of a person in any one cell, of at most ``rows`` in all."""
        # The norm of all counts is at least the count of any one cell.
        bounds = [rows, self.rows_per_cell, self.norm_per_person]
        return min(bound for bound in bounds if bound is not None)

    def rows_counted(self, rows: int) -> int:
        """The L1 norm of a person's counts, at most: ``rows``, or what the limits allow of them."""
        return rows if self.rows is None else min(rows, self.rows)

    def squared_norm(self, rows: int) -> int:
        """The squared L2 norm of a person's counts, at most.

        Holds because: a sum of squares is convex, so under limits on the sum, on each term and on
        the number of terms it is largest where as many cells as possible are full: k of Linf rows,
        and one of what is left, if a cell is left for it.
        """
        most = self.rows_counted(rows)
        full = self.largest_cell(rows)
        cells = most // full
        if self.cells_per_person is not None:
            cells = min(cells, self.cells_per_person)
        rest = most - cells * full
        squared = cells * full**2
        if self.cells_per_person is None or cells < self.cells_per_person:
            squared += rest**2
        if self.norm_per_person is not None:
            squared = min(squared, self.norm_per_person**2)
        return squared

    def in_words(self) -> list[str]:
        """The limits, one phrase each.

        >>> Limits(rows_per_cell=1, cells_per_person=8).in_words()
        ['at most 1 row in a cell', 'at most 8 cells']
        """
        return [_phrase(name, limit) for name, limit in self.given.items()]


UNLIMITED = Limits(rows_per_cell=MOST)
"""Limits that leave out no row of anyone."""


def _phrase(name: str, limit: int) -> str:
    return {
        "rows_per_cell": f"at most {several(limit, 'row')} in a cell",
        "cells_per_person": f"at most {several(limit, 'cell')}",
        "norm_per_person": f"counts cut to a norm of {limit:,}",
        "norm_in_tables": f"counts in all tables cut to a norm of {limit:,}",
    }[name]


def limit_in_words(name: str, limit: int, who: str) -> str:
    """What one limit does to the rows of a person, as a sentence without its beginning and end.

    >>> limit_in_words("rows_per_person", 1, "rider")
    'at most 1 row of each rider is counted'
    >>> print(limit_in_words("norm_per_person", 120, "rider"))
    the counts of each rider are cut to a norm of 120 (whoever has at most 120 rows keeps them all)
    """
    rows = f"at most {several(limit, 'row')} of each {who} {agreeing(limit, 'are')} counted"
    # A person's norm is at most their number of rows.
    kept = f"whoever has at most {limit:,} rows keeps them all"
    cut = f"are cut to a norm of {limit:,} ({kept})"
    return {
        "rows_per_person": rows,
        "rows_per_cell": f"{rows} in a cell",
        "cells_per_person": f"each {who} is counted in at most {several(limit, 'cell')}",
        "norm_per_person": f"the counts of each {who} {cut}",
        "norm_in_tables": f"the counts of each {who} in all tables {cut}",
    }[name]


class StatedLimits(TypedDict):
    """The limits by cell as a source states them."""

    rows_per_cell: int | None
    cells_per_person: int | None
    norm_per_person: int | None


def stated_limits(limits: Limits | msgspec.UnsetType) -> StatedLimits:
    """What a source is given so that it keeps these limits.

    >>> stated_limits(Limits(norm_per_person=2))
    {'rows_per_cell': None, 'cells_per_person': None, 'norm_per_person': 2}
    """
    given = {} if limits is msgspec.UNSET else limits.given
    return StatedLimits(
        rows_per_cell=given.get("rows_per_cell"),
        cells_per_person=given.get("cells_per_person"),
        norm_per_person=given.get("norm_per_person"),
    )


def limits_of(
    rows_per_cell: int | None, cells_per_person: int | None, norm_per_person: int | None
) -> Limits | None:
    """The limits by cell that are given; None if none is."""
    if rows_per_cell is None and cells_per_person is None and norm_per_person is None:
        return None
    return Limits(rows_per_cell, cells_per_person, norm_per_person)


def merged(rows: int | None, limits: Limits | None) -> int:
    """How many rows of a person are counted in all, given both kinds of limit.

    Raises
    ------
    UsageError
        If nothing bounds the number of rows.
    """
    if limits is None:
        return 1 if rows is None else rows
    if rows is not None:
        return limits.rows_counted(rows)
    if limits.rows is None:
        obstacle = "it leaves the number of a person's rows without a bound"
        remedy = "Give rows_per_person too, or both rows_per_cell and cells_per_person"
        raise UsageError(" and ".join(limits.in_words()), obstacle, remedy)
    return limits.rows


# --- several tables at once -----------------------------------------------------------------------


class Weighed(msgspec.Struct, frozen=True):
    """A table, and what its squared counts weigh.

    Attributes
    ----------
    margin : tuple of int
        The level of each axis; 0 where the table is summed over it.
    weight : int
    """

    margin: tuple[int, ...]
    weight: int


class StackedNorm(msgspec.Struct, frozen=True):
    """A limit on what one person adds to several tables.

    Parameters
    ----------
    levels : tuple of tuples of tuples of int
        For each axis of the lattice and each of its levels from 1 on: how many cells of the level
        lie in each cell of the level before. The last level is that of the lattice.
    weighed : tuple of Weighed
    most : int
        The largest squared norm that is allowed.
    rows : int
        How many rows of a person are counted at most.

    Raises
    ------
    InternalError
        If sums could pass 2^63 before a row is found that does not fit.

    >>> norm = StackedNorm((((3,),),), (Weighed((0,), 1), Weighed((1,), 2)), most=12, rows=4)
    >>> norm.of_one_row, norm.all_kept
    (3, 2)
    """

    levels: tuple[tuple[tuple[int, ...], ...], ...]
    weighed: tuple[Weighed, ...]
    most: int
    rows: int

    def __post_init__(self) -> None:
        # The next row adds at most (2 n + 1) times the weights to the squared norm of n rows.
        at_once = sum(abs(weighed.weight) for weighed in self.weighed) * (2 * self.rows + 1)
        if self.most + at_once >= 2**63 or self.of_one_row < 1:
            raise InternalError("A stacked norm does not fit into 64 bits.")

    @property
    def of_one_row(self) -> int:
        """The squared norm of one row."""
        return sum(weighed.weight for weighed in self.weighed)

    @property
    def all_kept(self) -> int:
        """Up to which number of rows all of a person's rows fit, wherever they lie.

        n rows have the largest norm in one cell (the triangle inequality): n times that of one.
        """
        return min(self.rows, math.isqrt(self.most // self.of_one_row))
