"""Which rows of a person an engine counts under a norm of several tables, in window functions.

Rows are taken in the order of their priorities (see ``persons``), up to the first with which the
squared norm would exceed its limit: what ``data/stacked_limits.py`` says, for the same whole
numbers.

Guarantee: as there; sums over rows are of a type that holds all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sfumato.data.engines.cells import searched
from sfumato.data.engines.dialect import Dialect
from sfumato.data.engines.persons import PersonColumns, with_priorities
from sfumato.privacy.stacked_norm import StackedNorm


def rows_within_norm(
    rows: str, columns: PersonColumns, cells: Sequence[str], norm: StackedNorm, dialect: Dialect
) -> str:
    """A query of the columns ``carried`` of the rows that each person keeps.

    Parameters
    ----------
    rows : str
        A query of ``columns``.
    columns : PersonColumns
    cells : sequence of str
        The column of the cell on each axis of the norm's lattice, at the last level; carried.
    norm : StackedNorm
    dialect : Dialect
    """
    levels = _levels(cells, norm, dialect)
    named = "".join(f", {each} AS {name}" for name, each in levels.items())
    leveled = f"SELECT *{named} FROM ({rows}) AS located{dialect.fence}"
    both = replace(columns, carried=(*columns.carried, *levels))
    persons = ", ".join(columns.persons)
    kept = ", ".join((*columns.all, "priority"))
    order = columns.order
    ranked = (
        f"SELECT {kept}, {_ranks(persons, order, cells, norm)}"
        f" FROM ({with_priorities(leveled, both, dialect)}) AS prioritized"
    )
    # No rank of a row that may be kept is above ``rows``. An engine may compute this before it
    # drops the others, for which it would not fit into 64 bits.
    added = " + ".join(
        f"{dialect.integer(each.weight)} * (2 * least(rank{at}, {norm.rows}) - 1)"
        for at, each in enumerate(norm.weighed)
    )
    within = f"SELECT {kept}, {added} AS added FROM ({ranked}) AS ranked WHERE place <= {norm.rows}"
    in_order = f"(PARTITION BY {persons} ORDER BY {order} ROWS UNBOUNDED PRECEDING)"
    wide = dialect.of_type("added", dialect.wide_type)
    squared = f"SELECT {kept}, sum({wide}) OVER {in_order} AS squares FROM ({within}) AS counted"
    carried = ", ".join(columns.carried)
    beyond = f"max(CASE WHEN squares <= {norm.most} THEN 0 ELSE 1 END) OVER {in_order} AS beyond"
    judged = f"SELECT {carried}, {beyond} FROM ({squared}) AS squared"
    return f"SELECT {carried} FROM ({judged}) AS judged WHERE beyond = 0"


def _ranks(persons: str, order: str, cells: Sequence[str], norm: StackedNorm) -> str:
    """How many rows of the person there are in the cell of each table, up to each row; and in all.

    Rows are numbered from 1.
    """
    ranks = []
    for at, each in enumerate(norm.weighed):
        pairs = zip(cells, norm.levels, each.margin, strict=True)
        own = [_name(cell, fanouts, level) for cell, fanouts, level in pairs if level]
        window = f"(PARTITION BY {', '.join((persons, *own))} ORDER BY {order})"
        ranks.append(f"row_number() OVER {window} AS rank{at}")
    ranks.append(f"row_number() OVER (PARTITION BY {persons} ORDER BY {order}) AS place")
    return ", ".join(ranks)


def _name(cell: str, fanouts: Sequence[Sequence[int]], level: int) -> str:
    """The column of the cells of a level."""
    return cell if level == len(fanouts) else f"{cell}_{level}"


def _levels(cells: Sequence[str], norm: StackedNorm, dialect: Dialect) -> dict[str, str]:
    """The cells of each level that a table of the norm has, but the last, by their columns."""
    found = {}
    for at, (cell, fanouts) in enumerate(zip(cells, norm.levels, strict=True)):
        for level in sorted({each.margin[at] for each in norm.weighed} - {0, len(fanouts)}):
            starts = [str(start) for start in _starts(fanouts, level)[1:]]
            numbers = [dialect.integer(number) for number in range(len(starts) + 1)]
            found[_name(cell, fanouts, level)] = searched(starts, numbers, cell)
    return found


def _starts(fanouts: Sequence[Sequence[int]], level: int) -> list[int]:
    """The first cell of the last level that lies in each cell of a level."""
    above = np.arange(sum(fanouts[level - 1]))
    for children in fanouts[level:]:
        above = np.repeat(above, children)
    return np.flatnonzero(np.diff(above, prepend=-1)).tolist()
