"""Group a table by its texts before labels are looked up in them: each distinct text once.

A row has its label's cell whatever the other rows are, so rows of one text may be looked up
together. That serves counts of rows that nobody's limit is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import pyarrow.types as pt

from sfumato.data.engines.dialect import Dialect, plain
from sfumato.data.engines.readings import Readings, Table
from sfumato.lattice import LabelAxis, LatticeAxis


class Grouped(NamedTuple):
    """A table of groups of rows.

    Attributes
    ----------
    table : Table
        With the texts in columns of their own names.
    located : dict of LatticeAxis to str
        The columns that hold the cells of the other axes.
    weight : str
        The column that says how many rows a group stands for.
    """

    table: Table
    located: dict[LatticeAxis, str]
    weight: str


def grouped_by_texts(axes: Sequence[LatticeAxis], table: Table, dialect: Dialect) -> Grouped | None:
    """Group the rows of a table by what a count looks at; None where that is no text."""
    texts = [axis for axis in axes if _looks_in_texts(axis, table)]
    if not texts:
        return None
    readings = Readings(table, dialect)
    columns = {dialect.name(axis.column_name): readings.text(axis) for axis in texts}
    others = [axis for axis in dict.fromkeys(axes) if axis not in texts]
    own = _prefix(axis.column_name for axis in texts)
    weight = f"{own}weight"
    located = {axis: f"{own}{place}" for place, axis in enumerate(others)}
    columns |= {name: readings.grouped_cell(axis) for axis, name in located.items()}
    named = ", ".join(f"{each} AS {name}" for name, each in columns.items())
    rows = f"SELECT {named} FROM {readings.relation()}"
    groups = (
        f"(SELECT {', '.join(columns)}, count(*) AS {weight} FROM ({rows}) AS texts"
        f" GROUP BY {', '.join(columns)})"
    )
    types = {axis.column_name: plain(table.types[axis.column_name]) for axis in texts}
    return Grouped(Table(groups, types), located, weight)


def _prefix(names: Iterable[str]) -> str:
    """How no column of the table begins, in whatever case: engines may ignore the case of names."""
    prefix = "own_"
    taken = [name.lower() for name in names]
    while any(name.startswith(prefix) for name in taken):
        prefix += "_"
    return prefix


def _looks_in_texts(axis: LatticeAxis, table: Table) -> bool:
    if not isinstance(axis, LabelAxis) or axis.calendar is not msgspec.UNSET:
        return False
    type_ = plain(table.types[axis.column_name])
    return bool(pt.is_string(type_) or pt.is_large_string(type_))
