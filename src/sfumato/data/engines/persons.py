"""Which rows of a person an engine counts: the law of ``data/bounding.py``, in window functions.

A row has a priority: a keyed hash of the person, of the row's values in the columns of the choice,
and of a copy number 1, 2, ... among the person's rows that are alike in these. On each lattice a
person keeps the r rows of least priority among the person's own rows that have a cell there. Under
limits by cell, rows are taken in this order as ``data/limiting.py`` says.

Every window orders rows by priority and then by their values (``PersonColumns.order``). An engine
breaks ties by where rows lie, and so by what other persons' rows do to its sort.

Guarantee: which rows of a person are counted depends on the key and on that person's own rows
alone, and they are a uniformly random choice, as in a scan (see ``data/bounding.py``).
Holds because: every window is partitioned by the person, and rows without a person are dropped
before. Copies are equal in all that is counted, so it does not matter which has which number:
the order in which rows lie, and how often a part is evaluated, does not show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.data.engines.dialect import Dialect
from sfumato.data.limiting import ALWAYS_WITHIN
from sfumato.privacy.limits import Limits


@dataclass(frozen=True)
class PersonColumns:
    """Names of the columns of a query whose rows have a person.

    Attributes
    ----------
    persons : tuple of str
        What names the person, of which nothing is null.
    choice : tuple of str
        The values by which a person's rows are chosen.
    carried : tuple of str
        What is counted of a row: functions of the values of the choice.
    """

    persons: tuple[str, ...]
    choice: tuple[str, ...]
    carried: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.persons, *self.choice, *self.carried)

    @property
    def order(self) -> str:
        """The order of a person's rows: rows that are equal in all of it are copies of one row."""
        return ", ".join(("priority", *self.choice, *self.carried))


def first_rows(rows: str, columns: PersonColumns, most: int, dialect: Dialect) -> str:
    """A query of the columns ``carried`` of the rows that each person keeps.

    Parameters
    ----------
    rows : str
        A query of ``columns``.
    columns : PersonColumns
    most : int
        How many rows a person keeps.
    dialect : Dialect
    """
    carried = ", ".join(columns.carried)
    by_person = f"PARTITION BY {', '.join(columns.persons)}"
    numbered = (
        f"SELECT {carried}, row_number() OVER ({by_person} ORDER BY {columns.order}) AS place"
        f" FROM ({with_priorities(rows, columns, dialect)}) AS prioritized"
    )
    return f"SELECT {carried} FROM ({numbered}) AS numbered WHERE place <= {most}"


def with_priorities(rows: str, columns: PersonColumns, dialect: Dialect) -> str:
    """A query of all of the columns, and of the ``priority`` of each row."""
    own = dialect.prioritized(rows, columns.persons, columns.choice, columns.carried)
    if own is not None:
        return own
    copies = dialect.copies(rows, columns.all)
    priority = dialect.priority("rows", [*columns.persons, *columns.choice, "copy"])
    kept = ", ".join(columns.all)
    return f"SELECT {kept}, {priority} AS priority FROM ({copies}) AS copied{dialect.fence}"


def rows_within(
    rows: str,
    columns: PersonColumns,
    cells: Sequence[str],
    most: int,
    limits: Limits,
    dialect: Dialect,
) -> str:
    """The same under limits by cell; ``cells`` are the columns of the cells that they are about."""
    persons = ", ".join(columns.persons)
    carried = ", ".join(columns.carried)
    in_cell = ", ".join((*columns.persons, *cells))
    further = ""
    conditions = [f"rank <= {limits.largest_cell(most)}"]
    prioritized = with_priorities(rows, columns, dialect)
    if limits.cells_per_person is not None:
        cell_priority = dialect.priority("cells", [*columns.persons, *cells])
        prioritized = (
            f"SELECT *, {cell_priority} AS cell_priority FROM ({prioritized}) AS prioritized"
            f"{dialect.fence}"
        )
        order = ", ".join(("cell_priority", *cells))
        further = f", dense_rank() OVER (PARTITION BY {persons} ORDER BY {order}) AS cell_place"
        conditions.append(f"cell_place <= {limits.cells_per_person}")
    ranked = (
        f"SELECT *, row_number() OVER (PARTITION BY {in_cell} ORDER BY {columns.order})"
        f" AS rank{further}"
        f" FROM ({prioritized}) AS prioritized"
    )
    by_order = f"PARTITION BY {persons} ORDER BY {columns.order}"
    in_order = f"({by_order} ROWS UNBOUNDED PRECEDING)"
    placed = (
        f"SELECT {carried}, row_number() OVER ({by_order}) AS place,"
        # The row of rank m in its cell makes (m - 1)^2 there to m^2.
        f" sum(2 * rank - 1) OVER {in_order} AS squares"
        f" FROM ({ranked}) AS ranked WHERE {' AND '.join(conditions)}"
    )
    within = [f"place <= {most}"]
    norm = limits.norm_per_person
    if norm is not None and norm < ALWAYS_WITHIN:
        within.append(f"squares <= {norm**2}")
    return f"SELECT {carried} FROM ({placed}) AS placed WHERE {' AND '.join(within)}"
