"""What an engine counts of persons rather than of rows: their cells, and numbers that they have.

Guarantee: what a person adds depends on that person's own rows and the key alone, because every
group and every window is of one person.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sfumato.answers.counts import Counted, Needs, Summed
from sfumato.answers.person_values import PersonLattice
from sfumato.data.engines.cells import binned
from sfumato.data.engines.dialect import Dialect
from sfumato.data.packing import Packing
from sfumato.errors import InternalError
from sfumato.lattice import EdgesAxis, GridAxis, Lattice


def first_cells(
    pairs: str, persons: Sequence[str], cells: Sequence[str], most: int, dialect: Dialect
) -> str:
    """A query of the pairs of person and cell that are counted: those of least keyed hash.

    Parameters
    ----------
    pairs : str
        A query that has each pair once.
    persons, cells : sequence of str
        Its columns.
    most : int
        In how many cells a person is counted.
    dialect : Dialect
    """
    priority = dialect.priority("cells", [*persons, *cells])
    hashed = f"SELECT *, {priority} AS priority FROM ({pairs}) AS pairs{dialect.fence}"
    order = ", ".join(("priority", *cells))
    placed = (
        f"SELECT *, row_number() OVER (PARTITION BY {', '.join(persons)} ORDER BY {order}) AS place"
        f" FROM ({hashed}) AS hashed"
    )
    return f"SELECT * FROM ({placed}) AS placed WHERE place <= {most}"


# --- one number of each person in a cell --------------------------------------------------------


def lattice_of(summed: Summed) -> PersonLattice:
    """What persons' numbers are rounded to; without one, means are rounded to the axis' numbers."""
    return summed.onto or PersonLattice(0, 1, 0, 1, summed.axis.size - 1)


def number_of(summed: Summed, total: str, rows: str, dialect: Dialect) -> str:
    """The number that a person adds, of what their rows add up to (``PersonLattice.located``).

    Parameters
    ----------
    summed : Summed
    total, rows : str
        Columns: what the numbers of a person's rows add up to, and how many rows there are.
    dialect : Dialect
    """
    lattice = lattice_of(summed)
    sums, count = (f"CAST({column} AS {dialect.wide_type})" for column in (total, rows))
    if summed.of_person == "mean":
        above = f"({lattice.row_step} * {sums} + {lattice.row_start - lattice.start} * {count})"
        steps = f"({lattice.step} * {count})"
    elif summed.of_person == "sum":
        above = f"({lattice.row_step} * {sums} + {lattice.row_start} * {count} - {lattice.start})"
        steps = f"{lattice.step}"
    else:
        raise InternalError("Rows are added up where persons are counted.")
    # Half up. What is below zero counts as zero, so only what is not negative is divided.
    halves = f"greatest(2 * {above} + {steps}, 0)"
    nearest = dialect.wide_quotient(halves, f"(2 * {steps})")
    return f"CAST(least({nearest}, {lattice.most}) AS {dialect.integer_type})"


MOST_WIDE = 2**125
"""What arithmetic on persons' sums may reach: less than the wide type of any engine holds."""

_MOST_TOTAL = 2**80
"""More than the numbers of any table's rows add up to."""


def fits(summed: Summed) -> bool:
    """Whether no number on the way to a person's number can pass the wide type."""
    if summed.of_person is None:
        return True
    lattice = lattice_of(summed)
    farthest = abs(lattice.row_start) + abs(lattice.start) + lattice.step
    return 4 * _MOST_TOTAL * (lattice.row_step + farthest) < MOST_WIDE


def relocated(
    need: Needs, cells: Sequence[str], values: Sequence[str], dialect: Dialect
) -> dict[str, str]:
    """The packed cells of persons, from those of their rows and from the numbers that they add.

    Parameters
    ----------
    need : Needs
    cells, values : sequence of str
        Columns: the packed cells of the row lattice, then its keys; and the numbers.
    dialect : Dialect

    Returns
    -------
    dict of str to str
        Expressions by their names.
    """
    if need.lattice == need.row_lattice:
        return {name: name for name in cells}
    packing = Packing(_plain(need.row_lattice))
    located = {
        summed.segments: cell_of_number(summed.segments, value, dialect)
        for summed, value in zip(need.sums, values, strict=True)
        if summed.segments is not None
    }
    unpacked = iter(_unpacked(packing, cells, dialect))
    plain = [axis for axis in need.lattice.axes if not axis.has_keys]
    of_axes = [
        located[axis] if isinstance(axis, EdgesAxis) and axis in located else next(unpacked)
        for axis in plain
    ]
    found = {}
    for place, group in enumerate(Packing(_plain(need.lattice)).groups):
        packed = dialect.integer(0)
        for axis in group:
            packed = f"({packed}) * {plain[axis].size} + ({of_axes[axis]})"
        found[f"g{place}"] = packed
    keys = cells[len(packing.groups) :]
    return {**found, **{name: name for name in keys}}


def _plain(lattice: Lattice) -> Lattice:
    return Lattice(tuple(axis for axis in lattice.axes if not axis.has_keys))


def _unpacked(packing: Packing, cells: Sequence[str], dialect: Dialect) -> list[str]:
    """The cell on each axis of packed cells."""
    found = []
    for name, group in zip(cells, packing.groups, strict=False):
        below = int(np.prod([packing.lattice.shape[axis] for axis in group], dtype=object))
        for axis in group:
            size = packing.lattice.shape[axis]
            below //= size
            found.append(f"({dialect.quotient(name, str(below))} % {size})")
    return found


# --- numbers of persons -------------------------------------------------------------------------


def cell_of_number(axis: GridAxis | EdgesAxis, number: str, dialect: Dialect) -> str:
    """The cell of a whole number that is not missing."""
    return binned(axis, f"CAST({number} AS {dialect.double_type})", dialect)


def spread(counted: Counted, pairs: str, persons: Sequence[str], dialect: Dialect) -> str:
    """A query of one ``number`` for each person: how their rows spread over cells.

    Parameters
    ----------
    counted : Counted
    pairs : str
        A query of the number of rows ``n`` of each person and cell.
    persons : sequence of str
    dialect : Dialect
    """
    by = ", ".join(persons)
    numbers: Mapping[Counted, str] = {
        "cells of each person": "count(*)",
        "largest cell of each person": "max(n)",
    }
    if counted in numbers:
        number = numbers[counted]
        return f"SELECT {number} AS number FROM ({pairs}) AS pairs GROUP BY {by}"
    square = f"CAST(n AS {dialect.wide_type}) * n"
    squares = (
        f"SELECT CAST({dialect.total(square)} AS {dialect.double_type}) AS squares"
        f" FROM ({pairs}) AS pairs GROUP BY {by}"
    )
    roots = f"SELECT squares, ceil(sqrt(squares)) AS root FROM ({squares}) AS squared"
    # A square root is rounded: where the number below it is enough, that one is the norm.
    return (
        "SELECT CASE WHEN (root - 1) * (root - 1) >= squares THEN root - 1 ELSE root END AS number"
        f" FROM ({roots}) AS rooted"
    )
