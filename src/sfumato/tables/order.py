"""In which order the tables of a family are rounded, such that each can agree with all before it.

Tables are rounded one after another. The next one has to have the margins that it shares with those
before it. Two such margins agree with each other, since their tables do. Whether some table of
non-negative whole numbers has all of these margins, whatever their numbers are, depends on the sets
of axes alone: it has if the margins can be put in an order in which each shares with all before it
only what it shares with one of them (the running intersection property). Then they are met one
after another. A table with two margins is a transportation problem, which always has a whole
solution, so one with more margins takes one such problem for each.

Without this property there may be none: with the margins (a, b), (b, c) and (a, c) of a table over
a, b and c, two values each, let a = b and b = c, but a != c.

The total and the tables of single axes come first, then the common margins, then the tables. A
table that cannot be met after its margins is moved before some of them, which then follow from it.
If that does not help, it is joined with another table: both then follow from the larger one. All of
this is public, as is whether it succeeds.

Source: Beeri, Fagin, Maier, Yannakakis, *On the desirability of acyclic database schemes*, J. ACM
1983, Thm 3.4; Dobra, Fienberg, *Bounds for cell entries in contingency tables given marginal
totals and decomposable graphs*, PNAS 2000.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from sfumato.tables.nesting import Margin, Nesting, common, is_margin, joined

MOST_JOINED_CELLS = 2**20
"""How many cells a table may have that was not asked for, and is rounded in place of others."""


@dataclass(frozen=True)
class Step:
    """A table, and the margins that it is given.

    Attributes
    ----------
    table : tuple of int
    given : tuple of at most two tuples of int
        Margins of tables of earlier steps. If there are two, every cell of the one and every cell
        of the other that agree in their common margin have a cell of the table in common.
    missed : tuple of tuples of int
        Further margins that matter, and follow from the table: they can be met only nearly.
    """

    table: Margin
    given: tuple[Margin, ...]
    missed: tuple[Margin, ...] = ()


@dataclass(frozen=True)
class Order:
    """The steps of a family.

    Attributes
    ----------
    steps : tuple of Step
    joined : tuple of tuples of int
        Tables that were not asked for, and are rounded so that others follow from them.
    """

    steps: tuple[Step, ...]
    joined: tuple[Margin, ...] = ()


def order_of(
    tables: Sequence[Margin], nesting: Nesting, known: Sequence[Margin] = ()
) -> Order | None:
    """Find the order in which tables are rounded.

    Parameters
    ----------
    tables : sequence of tuples of int
        The tables that are published, at least one.
    nesting : Nesting
    known : sequence of tuples of int
        Tables that are whole already, and agree with each other.

    Returns
    -------
    Order or None
        None: a table of more than ``MOST_JOINED_CELLS`` cells would be needed.
    """
    largest = sorted(_maximal(tables))
    while True:
        steps, stuck = _Sequence(tables, largest, nesting, known).steps()
        if stuck is None:
            return Order(tuple(steps), tuple(sorted(set(largest) - set(tables))))
        joints = [joined(stuck, other) for other in largest if other != stuck]
        joint = min(joints, key=lambda found: (nesting.cells(found), found))
        if nesting.cells(joint) > MOST_JOINED_CELLS:
            return None
        largest = sorted(_maximal([*largest, joint]))


def _maximal(tables: Iterable[Margin]) -> list[Margin]:
    """The tables that are margins of no other one."""
    found = set(tables)
    return [
        one for one in found if not any(one != other and is_margin(one, other) for other in found)
    ]


class _Sequence:
    """Finds the steps of tables none of which is a margin of another.

    Parameters
    ----------
    asked : sequence of tuples of int
    largest : sequence of tuples of int
        The tables that have to be met. All others follow from them, and are met before them where
        they can be: then they are nearer to their estimates.
    nesting : Nesting
    known : sequence of tuples of int
    """

    def __init__(
        self,
        asked: Sequence[Margin],
        largest: Sequence[Margin],
        nesting: Nesting,
        known: Sequence[Margin],
    ) -> None:
        self.known = list(known)
        self.asked = set(asked)
        self.largest = set(largest)
        self.nesting = nesting
        self.singles = _single_axes(largest)
        self.later = _with_common_margins([*asked, *largest])
        self.moved: list[Margin] = []  # tables that come early, each after some of its margins

    def steps(self) -> tuple[list[Step], Margin | None]:
        """The steps; or a table that cannot be met, wherever it is put."""
        while True:
            steps, before, stuck = self._tried([*self.singles, *self.moved, *self.later])
            if stuck is None:
                return steps, None
            if stuck in self.moved:
                return [], stuck
            self.moved += [*self._kept_margins(stuck, before), stuck]

    def _tried(self, sequence: Sequence[Margin]) -> tuple[list[Step], list[Margin], Margin | None]:
        """The steps of this sequence, the tables met, and the one that could not be met."""
        before = list(self.known)
        steps: list[Step] = []
        for table in sequence:
            if any(is_margin(table, earlier) for earlier in before):
                continue  # it follows from that one
            ordered = running_order(_maximal(common(table, earlier) for earlier in before))
            if ordered is not None:
                steps += _one_by_one(table, ordered, self._missed(table, ordered))
                before.append(table)
            elif table in self.largest:
                return [], before, table
        return steps, before, None

    def _missed(self, table: Margin, given: Sequence[Margin]) -> tuple[Margin, ...]:
        """The common margins that follow from a table, because they cannot be met before it."""
        return tuple(
            one
            for one in self.later
            if one != table
            and is_margin(one, table)
            and not any(is_margin(one, margin) for margin in given)
        )

    def _kept_margins(self, table: Margin, before: Sequence[Margin]) -> list[Margin]:
        """The margins that a table is given when it is moved: those asked for first, then small."""
        first = [*self.known, *self.singles, *self.moved]
        kept: list[Margin] = []
        margins = _maximal(common(table, earlier) for earlier in before)
        for margin in sorted(margins, key=self._rank):
            given = _maximal(common(table, earlier) for earlier in [*first, *kept, margin])
            if running_order(given) is not None:
                kept.append(margin)
        return kept

    def _rank(self, table: Margin) -> tuple[bool, int, Margin]:
        return table not in self.asked, self.nesting.cells(table), table


def _single_axes(tables: Sequence[Margin]) -> list[Margin]:
    """The total, and the tables of one axis at one of its levels, coarse ones first."""
    largest = reduce(joined, tables)
    total = tuple(0 for _ in largest)
    found = [
        tuple(level if place == axis else 0 for place in range(len(largest)))
        for axis, finest in enumerate(largest)
        for level in range(1, finest + 1)
    ]
    return [total, *found]


def _with_common_margins(tables: Sequence[Margin]) -> list[Margin]:
    """The tables and all their common margins, small ones first."""
    found = set(tables)
    fresh = set(tables)
    while fresh:
        fresh = {common(one, other) for one in fresh for other in tables} - found
        found |= fresh
    return sorted(found, key=lambda table: (sum(table), table))


def running_order(margins: Iterable[Margin]) -> list[Margin] | None:
    """Order margins so that each shares with all before it only what it shares with one of them.

    Parameters
    ----------
    margins : iterable of tuples of int
        None of them is a margin of another.

    Returns
    -------
    list of tuples of int, or None
        None: there is no such order.

    >>> running_order({(1, 1, 0), (0, 1, 1)})
    [(1, 1, 0), (0, 1, 1)]
    >>> running_order({(1, 1, 0), (0, 1, 1), (1, 0, 1)}) is None
    True
    """
    left = sorted(margins)
    last_first = []
    while len(left) > 1:
        ear = next((one for one in left if _is_ear(one, left)), None)
        if ear is None:
            return None
        left.remove(ear)
        last_first.append(ear)
    return left + last_first[::-1]


def _is_ear(one: Margin, margins: Sequence[Margin]) -> bool:
    """Whether a margin shares with all others together only what it shares with one of them."""
    others = [other for other in margins if other != one]
    shared = common(one, reduce(joined, others))
    return any(is_margin(shared, other) for other in others)


def _one_by_one(table: Margin, given: Sequence[Margin], missed: tuple[Margin, ...]) -> list[Step]:
    """The steps that meet margins in a running order: joins of the first ones, then the table."""
    if len(given) <= 2:
        return [Step(table, tuple(given), missed)]
    *first, last = given
    steps = []
    so_far = first[0]
    for margin in first[1:]:
        larger = joined(so_far, margin)
        steps.append(Step(larger, (so_far, margin)))
        so_far = larger
    return [*steps, Step(table, (so_far, last), missed)]
