"""The norm of one person's counts in several tables at once, in whole numbers.

A person adds counts h to the cells of a lattice, and so adds sums of them, M_B h, to each coarser
table B. A *stacked* norm weighs the squared lengths of all these:

    Q(h) = sum over B of w_B |M_B h|^2.

Weights may be negative, as long as no h has a negative Q(h): then Q is the square of a norm. It is
laid out for the noise that the tables get (see ``tables.stacked``), so one limit on it says what
all tables together may cost.
"""

from __future__ import annotations

import math

import msgspec

from sfumato.errors import InternalError


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
        at_once = sum(abs(each.weight) for each in self.weighed) * (2 * self.rows + 1)
        if self.most + at_once >= 2**63 or self.of_one_row < 1:
            raise InternalError("A stacked norm does not fit into 64 bits.")

    @property
    def of_one_row(self) -> int:
        """The squared norm of one row."""
        return sum(each.weight for each in self.weighed)

    @property
    def all_kept(self) -> int:
        """Up to which number of rows all of a person's rows fit, wherever they lie.

        n rows have the largest norm in one cell (the triangle inequality): n times that of one.
        """
        return min(self.rows, math.isqrt(self.most // self.of_one_row))
