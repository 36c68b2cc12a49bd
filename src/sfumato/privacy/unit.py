"""The unit of privacy: what one person can change, and how far that moves an answer.

A unit has further limits on one person's rows beside their number.

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
import re
from collections.abc import Sequence
from typing import Literal, TypedDict, TypeGuard

import msgspec

from sfumato.basics import ExplainedStruct, agreeing, plural, several, whole
from sfumato.domain import Condition, in_words
from sfumato.errors import InternalError, UsageError, printable, shown

# --- limits on a person's rows --------------------------------------------------------------------

# Of any limit: more rows than any table has.
MOST_ROWS = 10**15


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
            read = whole(limit, name, 1, MOST_ROWS, obstacle=obstacle, remedy=remedy)
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


# Limits that leave out no row of anyone.
UNLIMITED = Limits(rows_per_cell=MOST_ROWS)


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
        raise UsageError(
            " and ".join(limits.in_words()),
            "it leaves the number of a person's rows without a bound",
            "Give rows_per_person too, or both rows_per_cell and cells_per_person",
        )
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


# --- the unit -------------------------------------------------------------------------------------

Neighbours = Literal["add-remove", "replace"]
# Characters of what a person is called.
LONGEST_NAME = 40


def squared_factor(neighbours: str, signed: bool = False) -> int:
    """By how much one person's change may exceed all of the person's rows in one place, in squared
    length.

    Rows that come or go do not exceed it. Under replace two vectors are subtracted: of values of
    one sign, their inner product is not negative, and the squares add up; of both signs, the
    lengths do.

    Raises
    ------
    UsageError
        If the relation is unknown.
    """
    match neighbours:
        case "add-remove":
            return 1
        case "replace":
            return 4 if signed else 2
        case _:
            raise UsageError(
                f"neighbours = {shown(neighbours)}",
                "the unit relation is unknown",
                'Choose "add-remove" or "replace"',
            )


class Unit(ExplainedStruct, frozen=True, forbid_unknown_fields=True):
    """The privacy unit: who is protected, and how many of a person's rows are counted.

    Under ``"replace"`` the number of persons is public; the number of rows is not, unless every
    person has exactly one row and none is dropped.

    Parameters
    ----------
    rows_per_person : int
        The contribution bound, 1 to 10^15.
    neighbours : {"add-remove", "replace"}
        How two tables differ that the guarantee compares: one person is added or removed, or one
        person is replaced by another.
    person : str or None
        The column that names the person; rows beyond the limits are dropped at random. None: each
        row is one person, or, with ``rows_per_person`` above 1, the custodian states that nobody
        has more.
    limits : Limits, optional
        Further limits on a person's rows. They hold on the cells that a question counts, and on no
        coarser ones.
    period : str, optional
        The column of dates that is part of the person: what is protected is one person in one
        period.
    where : tuple of OneOf or Within, optional
        The public conditions: rows that do not satisfy them are no rows of the table.
    person_called : str, optional
        What sentences call a person, such as "rider": public text, and no part of what is charged.

    Raises
    ------
    UsageError
        If ``rows_per_person`` is not from 1 to 10^15, ``neighbours`` is unknown, there are limits
        by cell or a period without a person, or ``person_called`` is no short text of one line.

    >>> Unit(rows_per_person=3, neighbours="replace").counts_l1
    6
    """

    rows_per_person: int = 1
    neighbours: Neighbours = "add-remove"
    person: str | None = None
    # Absent from files unless given: a unit without them is stored as version 0.1 stored it.
    limits: Limits | msgspec.UnsetType = msgspec.UNSET
    period: str | msgspec.UnsetType = msgspec.UNSET
    where: tuple[Condition, ...] | msgspec.UnsetType = msgspec.UNSET
    person_called: str | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        if self.person_called is not msgspec.UNSET and not is_name(self.person_called):
            raise UsageError(
                f"person_called = {shown(self.person_called)}",
                f"it is a text of one line, of 1 to {LONGEST_NAME} characters",
                'Write one noun, such as "rider"',
            )
        rows = whole(
            self.rows_per_person,
            "rows_per_person",
            1,
            MOST_ROWS,
            obstacle="one person has at least one row, and at most 10^15",
            remedy="Give a whole number such as 4",
        )
        msgspec.structs.force_setattr(self, "rows_per_person", rows)
        squared_factor(self.neighbours)  # refuses an unknown relation
        if self.person is None and (self.by_cell or self.period is not msgspec.UNSET):
            raise UsageError(
                "limits by cell or a period, without a person",
                "only where a column names the person can they be kept",
                "Give person= as well",
            )

    @property
    def by_cell(self) -> bool:
        """Whether there are limits that hold on the counted cells alone, and on no coarser ones."""
        return self.limits is not msgspec.UNSET

    @property
    def _limits(self) -> Limits:
        return UNLIMITED if self.limits is msgspec.UNSET else self.limits

    @property
    def person_columns(self) -> tuple[str, ...]:
        """The columns that together name the person; none where each row is one."""
        if self.person is None:
            return ()
        if self.period is msgspec.UNSET:
            return (self.person,)
        return self.person, self.period

    @property
    def called(self) -> str:
        """What sentences call a person: as the custodian says, or else "person"."""
        return "person" if self.person_called is msgspec.UNSET else self.person_called

    @property
    def uncalled(self) -> Unit:
        """The same unit without a name for its persons: what is charged, and compared."""
        return msgspec.structs.replace(self, person_called=msgspec.UNSET)

    @property
    def who(self) -> str:
        """The person as sentences call it, such as "rider" or "rider in one day"."""
        if self.period is msgspec.UNSET:
            return self.called
        return f"{self.called} in one {printable(self.period)}"

    @property
    def anyone(self) -> str:
        """The same with its article, such as "a rider" or "an aircraft".

        >>> Unit(person="tail", person_called="aircraft").anyone
        'an aircraft'
        """
        # As it sounds in most words.
        is_vowel = re.match(r"[aeio]|u(?!ni|s)", self.called, re.IGNORECASE)
        return f"{'an' if is_vowel else 'a'} {self.who}"

    @property
    def several(self) -> str:
        """Several persons as sentences call them, such as "riders"."""
        named = plural(self.called)
        if self.period is msgspec.UNSET:
            return named
        return f"{named}, each once for each {printable(self.period)},"

    @property
    def limits_kept(self) -> dict[str, int]:
        """The limits that are kept on each person's rows, by name; without what follows from them.

        Without a person column none is kept: the custodian says how many rows a person has.

        >>> Unit(100, person="rider", limits=Limits(norm_per_person=10)).limits_kept
        {'norm_per_person': 10}
        """
        if self.person is None:
            return {}
        given = {} if self.limits is msgspec.UNSET else self.limits.given
        if self.counts_persons:
            # Once in a cell: that is what counting persons means.
            return {"cells_per_person": self.cells_of_person}
        if self.rows_per_person == MOST_ROWS or self._rows_follow_from_norm:
            return given
        implied = self._limits.rows
        if implied is not None and implied <= self.rows_per_person:
            return given
        return {"rows_per_person": self.rows_per_person} | given

    @property
    def _rows_follow_from_norm(self) -> bool:
        """Whether the largest number of rows says no more than a norm does, which is told instead.

        Rows in cells of their own have the least norm: the root of their number.
        """
        norm = self._limits.norm_per_person or self._limits.norm_in_tables
        return norm is not None and self.rows_per_person == norm**2

    @property
    def rows_counted(self) -> int:
        """How many rows of one person are counted at most."""
        return self._limits.rows_counted(self.rows_per_person)

    @property
    def counts_l1(self) -> int:
        """How far one person moves a vector of counts of disjoint cells, in L1: r, or 2r under
        replace.
        """
        return self.sums_l1(1)

    @property
    def counts_l2_squared(self) -> int:
        """The same in L2, squared.

        Without further limits all r rows may lie in one cell: r^2. Under replace they leave one
        cell and enter another: 2 r^2.
        """
        return self.sums_l2_squared(1)

    @property
    def largest_cell(self) -> int:
        """How far one person moves any one count."""
        return self._limits.largest_cell(self.rows_per_person)

    @property
    def protects(self) -> str:
        """Whose presence is hidden, and how: what the charges of one account must have in common to
        add up.

        Limits on rows may differ where a column names the person, since they are enforced. Without
        one they are the custodian's word about the same table, and two different words cannot both
        be true.
        """
        if self.person is not None:
            who = f"one {_named(self.person)}"
            if self.period is not msgspec.UNSET:
                who += f" in one {_named(self.period)}"
        else:
            several_rows = f"one person of at most {self.rows_per_person} rows"
            who = "one row" if self.rows_per_person == 1 else several_rows
        change = "replaced by another" if self.neighbours == "replace" else "added or removed"
        return f"{who}, {change}"

    def sums_l1(self, row: int) -> int:
        """How far one person moves sums over disjoint cells, in L1; ``row`` is the largest norm of
        a row.
        """
        return self.rows_counted * row * (2 if self.neighbours == "replace" else 1)

    def sums_l2_squared(self, row: int, signed: bool = False) -> int:
        """The same in L2, squared; ``signed`` where values may differ in sign or direction.

        The rows of one cell may all point the same way, so their sum is at most their number times
        ``row`` long; over the cells these lengths have the norm of the person's counts.
        """
        squared = self._limits.squared_norm(self.rows_per_person)
        return squared * row**2 * squared_factor(self.neighbours, signed)

    @property
    def counts_persons(self) -> bool:
        """Whether each person is counted at most once in a cell: counts of rows count persons."""
        limits = self._limits
        return limits.rows_per_cell == 1 and limits.cells_per_person == self.rows_per_person

    @property
    def cells_of_person(self) -> int:
        """In how many cells a person is counted at most where persons are counted."""
        return self._limits.cells_per_person or self.rows_per_person

    def counting_persons(self, cells: int) -> Unit:
        """The unit of tables that count each person once a cell, in at most ``cells`` cells."""
        return msgspec.structs.replace(
            self, rows_per_person=cells, limits=Limits(rows_per_cell=1, cells_per_person=cells)
        )

    def on_cells(self, cells: int) -> Unit:
        """The same unit in a table of so many known cells: what its limits by cell allow there.

        Holds because: nobody is in more cells than there are; with at most Linf rows in each they
        have at most Linf times as many rows, and counts of a norm of at most c in k cells add up to
        at most c sqrt k (Cauchy, Schwarz).

        >>> unit = Unit(100, person="rider", limits=Limits(norm_per_person=10))
        >>> unit.on_cells(4).counts_l1
        20
        """
        limits = self.limits
        if limits is msgspec.UNSET:
            return self
        most_cells = cells
        if limits.cells_per_person is not None:
            most_cells = min(cells, limits.cells_per_person)
            limits = msgspec.structs.replace(limits, cells_per_person=most_cells)
        rows = min(self.rows_per_person, limits.largest_cell(self.rows_per_person) * most_cells)
        if limits.norm_per_person is not None:
            # Rounded down: the number of rows is whole.
            rows = min(rows, math.isqrt(limits.norm_per_person**2 * most_cells))
        return msgspec.structs.replace(self, rows_per_person=rows, limits=limits)

    @property
    def of_all_rows(self) -> Unit:
        """The unit of an answer to which each person adds once, whatever number of rows they have.

        >>> str(Unit(12, person="rider_id", person_called="rider").of_all_rows)
        'any one rider with any number of rows, added or removed'
        """
        return msgspec.structs.replace(self, rows_per_person=MOST_ROWS, limits=msgspec.UNSET)

    @property
    def counted(self) -> str:
        """The rows that an answer is about, in words: a statement of accuracy is true of these, and
        names them.

        >>> Unit(12, person="rider_id", person_called="rider").counted
        'the rows counted (at most 12 per rider)'
        """
        by_rows = ", by rows" if self.conditions and self.counts_persons else ""
        counted = "the rows counted" if self.person is None else self._limited[1]
        return f"{counted}{by_rows}{self.conditions}"

    @property
    def conditions(self) -> str:
        """The public conditions as they follow "rows" in a sentence; "" without any."""
        return "" if self.where is msgspec.UNSET else in_words(self.where)

    @property
    def _limited(self) -> tuple[str, str]:
        """Say what is counted of a person: behind "any one person", and as all that is counted."""
        if self.rows_per_person == MOST_ROWS and not self.by_cell:
            return "with any number of rows", f"all rows that name {self.anyone}"
        if self.counts_persons:
            n_cells = self.cells_of_person
            cells = "one cell" if n_cells == 1 else several(n_cells, "cell")
            return (
                f"counted at most once in a cell, and in at most {cells}",
                f"the {self.several} counted (each in at most {cells})",
            )
        further = "" if self.limits is msgspec.UNSET else ", ".join(self.limits.in_words())
        if self._rows_follow_from_norm:
            return f"contributing {further}", f"the rows counted (of each {self.who}, {further})"
        and_further = f", {further}" if further else ""
        rows = "one row" if self.rows_per_person == 1 else f"{self.rows_per_person:,} rows"
        per_person = f"at most {self.rows_per_person:,} per {self.who}{and_further}"
        return f"contributing at most {rows}{and_further}", f"the rows counted ({per_person})"

    def __str__(self) -> str:
        change = "replaced by another" if self.neighbours == "replace" else "added or removed"
        of_rows = ", of rows" if self.conditions and self.by_cell else ""
        return f"any one {self.who} {self._limited[0]}{of_rows}{self.conditions}, {change}"


def unit_within(
    rows_per_person: int | None,
    neighbours: Neighbours,
    person: str | Sequence[str] | None,
    limits: Limits | None = None,
    where: tuple[Condition, ...] = (),
    person_called: str | None = None,
) -> Unit:
    """The unit of a table whose person's rows are kept within all of the given limits.

    Parameters
    ----------
    rows_per_person : int or None
        None: what the limits allow, or 1 without any.
    neighbours : {"add-remove", "replace"}
    person : str, sequence of str or None
        The column that names the person; or that and the column of dates that is the period.
    limits : Limits or None
    where : tuple of OneOf or Within
        The public conditions on rows.
    person_called : str or None
        What sentences call a person.

    Raises
    ------
    UsageError
        If there are neither one nor two columns, nothing bounds the rows, or as ``Unit``.

    >>> str(unit_within(None, "add-remove", ["rider", "day"], Limits(norm_per_person=2)))
    'any one person in one day contributing counts cut to a norm of 2, added or removed'
    """
    columns = [person] if person is None or isinstance(person, str) else list(person)
    if not 1 <= len(columns) <= 2 or len(set(columns)) < len(columns):
        raise UsageError(
            f"person = {shown(person)}",
            "it is the column of the person, or that and a column of dates",
            'Write person="rider" or person=["rider", "day"]',
        )
    unit = Unit(
        merged(rows_per_person, limits),
        neighbours,
        columns[0],
        msgspec.UNSET if limits is None else limits,
        where=where or msgspec.UNSET,
        person_called=msgspec.UNSET if person_called is None else person_called,
    )
    return msgspec.structs.replace(unit, period=columns[1]) if columns[1:] else unit


def _named(column: str) -> str:
    # Two units never read the same, whatever a column is called. A column ``row`` would read like
    # the unit of a table in which each row is one person.
    plain = column.isidentifier() and column != "row"
    return column if plain else f"person, named by the column {column!r}"


def is_name(text: object) -> TypeGuard[str]:
    """Tell whether a text can name a person in a sentence: short, of one line, without controls."""
    if not isinstance(text, str) or not text.strip():
        return False
    return len(text) <= LONGEST_NAME and text.isprintable()
