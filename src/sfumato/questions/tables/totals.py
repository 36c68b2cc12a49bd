"""Public totals: counts that everybody knows, which the tables of a family then have exactly.

An office may publish how many persons live in each region, and how many there are in all. Such
totals enter least squares as measurements without noise. They must be true of the rows counted, so
they are refused where rows may be dropped or limited.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np

from sfumato.basics import Array
from sfumato.domain import BinsAndMissing, EdgesAxis, GridAxis, Label, LabelAxis, LatticeAxis
from sfumato.errors import UsageError, nearest, printable, shown
from sfumato.privacy import Unit
from sfumato.questions.tables.asked import named
from sfumato.questions.tables.levels import Chains, Margin, Nesting, common

ALL_ROWS = "all rows"

# Counts of cells: one number, by labels, or in the order of the cells.
Counts: TypeAlias = (
    "int | Sequence[int] | Array | Mapping[Label, int] | Mapping[tuple[Label, ...], int]"
)
# Counts by the axes of a table; ``()``, or ``""`` in a file, stands for the number of all rows.
GivenTotals: TypeAlias = "Mapping[str, Counts] | Mapping[tuple[str, ...], Counts]"

WRITE = 'Write totals={"region": {"north": 120, "south": 80}} or totals={(): 200}'


class PublicTotal(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Counts of one table that everybody knows.

    Attributes
    ----------
    axes : tuple of str
        Of the table; none of them for the number of all rows.
    counts : tuple of int
        One for each cell, from 0 to 2^53.
    labels : tuple of tuples of str, int or bool
        The cell of each count, with a label for each axis. Left out: the counts are in the order
        of the cells, the last axis running fastest.
    """

    axes: tuple[str, ...]
    counts: tuple[int, ...]
    labels: tuple[tuple[Label, ...], ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.axes)) < len(self.axes):
            raise UsageError(self.title, "it names an axis twice", "Name each axis once")
        if any(not 0 <= count <= 2**53 for count in self.counts):
            raise UsageError(self.title, "a count is below 0 or above 2^53", "Give numbers of rows")
        if self.labels and len(self.labels) != len(self.counts):
            raise UsageError(self.title, "it does not have one count for each cell", WRITE)

    @property
    def title(self) -> str:
        return f"public totals of {named(self.axes, 'all rows')}"

    def on(self, axes: Sequence[LatticeAxis]) -> Array:
        """The counts in the order of the cells: int64 ndarray with one dimension for each axis.

        Parameters
        ----------
        axes : sequence of LatticeAxis
            Those that it names, in its order.

        Raises
        ------
        UsageError
            If a cell has no count, or a label is unknown or given twice.
        """
        shape = tuple(axis.size for axis in axes)
        cells = math.prod(shape)
        if not self.labels:
            if len(self.counts) != cells:
                raise UsageError(
                    self.title,
                    f"it has {len(self.counts):,} counts, and the table has {cells:,} cells",
                    "Give one count for each cell",
                )
            return np.array(self.counts, dtype=np.int64).reshape(shape)
        # No count is -1, so a cell that none was given for shows.
        table = np.full(shape, -1, dtype=np.int64)
        for labels, count in zip(self.labels, self.counts, strict=True):
            table[self._place(labels, axes)] = count
        lacking = np.argwhere(table < 0)
        if len(lacking):
            names = [axis.cell_names()[at] for axis, at in zip(axes, lacking[0], strict=True)]
            raise UsageError(
                self.title,
                f"the cell {' x '.join(map(printable, names))} has no count",
                "Give each cell a count, which may be 0",
            )
        if len(self.labels) > cells:
            raise UsageError(self.title, "a cell has two counts", "Name each cell once")
        return table

    def _place(self, labels: tuple[Label, ...], axes: Sequence[LatticeAxis]) -> tuple[int, ...]:
        if len(labels) != len(axes):
            raise UsageError(self.title, f"a cell has {len(axes)} labels, one for each axis", WRITE)
        place = []
        for label, axis in zip(labels, axes, strict=True):
            names = axis.cell_names()
            # Plans may name bins of whole numbers by their edges, as answers once did. A name of
            # either form says where its bin begins, so no name means two bins.
            known = names if str(label) in names else axis.edge_names()
            if str(label) not in known:
                obstacle = f"{printable(axis.name)} has no cell {shown(label)}"
                raise UsageError(self.title, f"{obstacle}; {nearest(str(label), names)}", WRITE)
            place.append(known.index(str(label)))
        return tuple(place)


def plain_totals(given: object) -> tuple[PublicTotal, ...]:
    """Read totals as people write them.

    Parameters
    ----------
    given : mapping, sequence of PublicTotal, or None
        See ``GivenTotals``. Axes of a table of several are a tuple, and so are its cells.

    Raises
    ------
    UsageError
        If it is none of these, or a count is negative, fractional, or above 2^53.

    >>> plain_totals({(): 5, "sex": {"f": 3, "m": 2}})[1].counts
    (3, 2)
    """
    if given is None:
        return ()
    if isinstance(given, Sequence) and all(isinstance(total, PublicTotal) for total in given):
        return tuple(given)
    if not isinstance(given, Mapping):
        raise UsageError(
            f"totals of type {type(given).__name__}",
            "they must be counts by the axes of a table",
            WRITE,
        )
    return tuple(_plain(axes, counts) for axes, counts in given.items())


def _plain(axes: object, counts: object) -> PublicTotal:
    names = axes if isinstance(axes, tuple) else (axes,) if axes != "" else ()
    if not all(isinstance(name, str) for name in names):
        raise UsageError(f"public totals of {shown(axes)}", "an axis is named by a text", WRITE)
    title = f"public totals of {named(names, 'all rows')}"
    if isinstance(counts, Mapping):
        cells = tuple(cell if isinstance(cell, tuple) else (cell,) for cell in counts)
        numbers = tuple(_plain_count(count, title) for count in counts.values())
        return PublicTotal(names, numbers, cells)
    flat = np.asarray(counts, dtype=object).ravel().tolist()
    return PublicTotal(names, tuple(_plain_count(count, title) for count in flat))


def _plain_count(count: object, title: str) -> int:
    if hasattr(count, "__index__") and not isinstance(count, bool):
        # True is an integer to Python, and no number of rows.
        return int(count.__index__())
    raise UsageError(
        title,
        f"{shown(count)} is not a whole number, and rows are counted",
        "Give whole numbers of at least 0",
    )


def require_no_persons(totals: Sequence[PublicTotal], unit: Unit) -> None:
    """Refuse totals where a column names persons, whose rows are limited: they are of all rows."""
    if totals and unit.person is not None:
        raise UsageError(
            totals[0].title,
            f"each {unit.who} has limited rows, and the totals are about all rows",
            "Leave totals out, or give a table with one row for each person and no person column",
        )


def require_all_rows(totals: Sequence[PublicTotal], axes: Sequence[LatticeAxis]) -> None:
    """Refuse totals where an axis of the family may drop rows: they would not be true of the rest.

    Raises
    ------
    UsageError
        If an axis has no cell for missing values, or none for unlisted labels.
    """
    for axis in axes:
        dropped = dropped_rows(axis)
        if totals and dropped:
            obstacle = f"{printable(axis.name)} drops rows {dropped.which}"
            raise UsageError(totals[0].title, obstacle, dropped.remedy)


class Dropped(NamedTuple):
    """Which rows an axis leaves out, in words, and what to declare so that it does not."""

    which: str
    remedy: str


def dropped_rows(axis: LatticeAxis) -> Dropped | None:
    """Return which rows an axis leaves out; None if it has a cell for every row."""
    match axis:
        case BinsAndMissing():
            return None
        case GridAxis() | EdgesAxis():
            if axis.missing is not None:
                return None
            return Dropped("without a value", "Declare Interval(..., missing=True)")
        case LabelAxis():
            lacking = [
                which
                for which, counted in (
                    ("without a value", axis.missing),
                    ("with an unlisted label", axis.other),
                )
                if not counted
            ]
            if not lacking:
                return None
            return Dropped(
                " or ".join(lacking), 'Declare Categories([...], other="else", missing="not known")'
            )
        case _:
            return Dropped("of keys that are not shown", "Declare Categories with a public list")


class KnownTable(msgspec.Struct, frozen=True, eq=False, forbid_unknown_fields=True):
    """A table that is known without being measured.

    Attributes
    ----------
    margin : tuple of int
        The level of each axis of the family; 0 where the table is summed over it.
    counts : int64 ndarray of shape (cells,)
    """

    margin: tuple[int, ...]
    counts: Array


def known_tables(totals: Sequence[PublicTotal], chains: Chains) -> dict[Margin, Array]:
    """Public totals as tables of a family.

    Parameters
    ----------
    totals : sequence of PublicTotal
    chains : Chains
        All axes of the family.

    Returns
    -------
    dict of levels to int64 ndarrays
        With a dimension for each axis of the family.

    Raises
    ------
    UsageError
        If an axis is unknown or may drop rows, cells do not match, two totals are of the same
        table, or they contradict each other.
    """
    lattice = chains.lattice
    require_all_rows(totals, lattice.axes)
    axes = dict(zip(lattice.names, lattice.axes, strict=True))
    tables: dict[Margin, Array] = {}
    titles: dict[Margin, PublicTotal] = {}
    for total in totals:
        for name in total.axes:
            if name not in axes:
                raise UsageError(
                    total.title,
                    f"no table has the axis {printable(name)}; {nearest(name, axes)}",
                    "Name axes of the tables",
                )
        counts = total.on([axes[name] for name in total.axes])
        margin = chains.margin(total.axes)
        places = np.argsort(chains.order(total.axes))
        if margin in tables:
            raise UsageError(total.title, "they are given twice", "Give them once")
        titles[margin] = total
        tables[margin] = counts.transpose(places).reshape(chains.nesting.shape(margin))
    # Totals that differ have no common family: least squares would invent numbers between them.
    for first, second in itertools.combinations(tables, 2):
        if not agree(first, tables[first], second, tables[second], chains.nesting):
            raise UsageError(
                f"{titles[first].title} and {named(titles[second].axes, 'all rows')}",
                "they contradict each other: their sums differ",
                "Correct one of them, or leave it out",
            )
    return tables


def agree(
    margin: Margin, counts: Array, other_margin: Margin, other_counts: Array, nesting: Nesting
) -> bool:
    """Whether two tables have the same common margin; the same table, whether it is equal."""
    shared = common(margin, other_margin)
    sums = nesting.margin(counts, margin, shared)
    return bool(np.array_equal(sums, nesting.margin(other_counts, other_margin, shared)))


def assumption(totals: Sequence[PublicTotal]) -> str:
    """Return what the guarantee says of public totals."""
    listed = "; ".join(named(total.axes, ALL_ROWS) for total in totals)
    return (
        f"Apart from the public totals ({listed}): they are stated, not measured, so nothing about "
        "them is hidden; they are true of the rows counted."
    )
