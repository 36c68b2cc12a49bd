"""One query that counts what is needed where the data lie; only occupied cells come back.

A query is built in levels, from the inside out:

1. *readings*: the columns of the table in the forms that cells are made of, each once;
2. *located*: of each row that is counted, the packed cells (see ``data/packing.py``), the keys and
   the values to be added up, as ``g0, k0, s0``; the person as ``p0`` (and the period as ``p1``);
   the values by which a person's rows are chosen, as ``v0``. Rows that are dropped are left out;
3. *kept*: the rows within a person's limits (``persons``), or one row for each person or cell;
4. *groups*: the count of each cell as ``n``, and its sums as ``t0``.

>>> from sfumato.data.engines.postgres import Postgres
>>> from sfumato.lattice import LabelAxis
>>> import pyarrow as pa
>>> lattice = Lattice((LabelAxis("ward", ("surgery", "children")),))
>>> table = Table("visits", {"ward": pa.string()})
>>> query = count_query(Needs(lattice, 2), Unit(), table, Postgres())
>>> query.cube([[1, 0], [3, 5]]).counts.tolist()
[5, 3]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from sfumato.answers.counts import Needs, Summed
from sfumato.arrays import Array
from sfumato.cube import Cube
from sfumato.data.engines import per_person, persons
from sfumato.data.engines.dialect import Dialect
from sfumato.data.engines.groups import Column, cube_of
from sfumato.data.engines.persons import PersonColumns
from sfumato.data.engines.readings import Readings, Table
from sfumato.data.engines.stacked import rows_within_norm
from sfumato.data.engines.texts_first import grouped_by_texts
from sfumato.data.packing import Packing
from sfumato.data.row_priorities import ChosenBy, chosen_by
from sfumato.lattice import EdgesAxis, GridAxis, Lattice, LatticeAxis
from sfumato.privacy.unit import Unit

_UNMOVED = "unmoved"

Condition = tuple[LatticeAxis, Array]
"""An axis, and which of its cells satisfy a condition: bool ndarray of shape (cells,)."""


@dataclass(frozen=True)
class CountQuery:
    """A query, and how its result is read.

    Attributes
    ----------
    text : str
        Its columns are whole numbers, or keys; see ``cube``.
    lattice : Lattice
        On which is counted.
    sums : tuple of Summed
        What is added up.
    """

    text: str
    lattice: Lattice
    sums: tuple[Summed, ...] = ()

    def cube(self, columns: Sequence[Column]) -> Cube:
        """Make a cube of the columns of the result, in their order, with rows in any order."""
        return cube_of(self.lattice, self.sums, columns)


def count_query(
    need: Needs,
    unit: Unit,
    table: Table,
    dialect: Dialect,
    choice: ChosenBy | None = None,
    conditions: Sequence[Condition] = (),
) -> CountQuery:
    """The query that counts a need.

    Parameters
    ----------
    need : Needs
    unit : Unit
    table : Table
        With the types of all columns that the need, the choice, the conditions and the unit name.
    dialect : Dialect
    choice : tuple of LatticeAxis or None
        Whose columns' values choose a person's rows; all columns of the need must be among these.
        None: those of the need.
    conditions : sequence of Condition
        Rows that do not satisfy them are no rows of the table.
    """
    grouped = None
    # Groups stand for several rows, which only the count by one packed cell adds up.
    is_one = len(Packing(need.lattice).groups) == 1
    if dialect.texts_first and is_one and _is_plain(need, unit):
        axes = (*need.lattice.axes, *(axis for axis, _ in conditions))
        grouped = grouped_by_texts(axes, table, dialect)
    if grouped is None:
        rows = _Rows(Readings(table, dialect), unit, dialect)
    else:
        readings = Readings(grouped.table, dialect, grouped.located)
        rows = _Rows(readings, unit, dialect, grouped.weight)
    for axis, kept in conditions:
        rows.satisfy(axis, kept)
    if need.counted == "rows of each person":
        text = rows.numbers_of_rows(need.lattice)
    elif need.of_each_person:
        text = rows.numbers_of_cells(need)
    elif need.counted == "persons" and need.sums:
        text = rows.persons_with_values(need)
    elif need.counted == "persons" and need.cells is None:
        text = rows.persons(need.lattice)
    else:
        chosen = chosen_by([need]) if choice is None else choice
        text = rows.rows(need, chosen)
    return CountQuery(text, need.lattice, need.sums)


def _is_plain(need: Needs, unit: Unit) -> bool:
    """Whether nothing but rows is counted, and all of them."""
    has_keys = any(axis.has_keys for axis in need.lattice.axes)
    return unit.person is None and need.counted == "rows" and not need.sums and not has_keys


class _Rows:
    """Builds the levels of one query.

    Parameters
    ----------
    readings : Readings
    unit : Unit
    dialect : Dialect
    weight : str or None
        The column that says how many rows each row of the table stands for; None: one.
    """

    def __init__(
        self, readings: Readings, unit: Unit, dialect: Dialect, weight: str | None = None
    ) -> None:
        self._readings = readings
        self._unit = unit
        self._dialect = dialect
        self._weight = weight
        self._conditions: list[str] = []

    def satisfy(self, axis: LatticeAxis, kept: Array) -> None:
        """Drop rows in other cells of an axis, and those without a cell."""
        cells = [str(cell) for cell in np.flatnonzero(kept).tolist()]
        # Text of a query grows with them; a range of cells is written as such.
        first, last = (cells[0], cells[-1]) if cells else ("0", "-1")
        cell = self._readings.cell(axis)
        if len(cells) in (0, int(last) - int(first) + 1):
            self._conditions.append(f"{cell} BETWEEN {first} AND {last}")
        else:
            self._conditions.append(f"{cell} IN ({', '.join(cells)})")

    # --- levels ---------------------------------------------------------------------------------

    def _located(self, columns: Mapping[str, str], *, fenced: bool = True) -> str:
        """A query of named expressions, of the rows that satisfy all conditions."""
        named = ", ".join(f"{each} AS {name}" for name, each in columns.items())
        conditions = list(self._conditions)
        barrier = ""
        # Conditions on columns as they are may be moved: engines then skip whole files by them.
        if conditions and self._dialect.barrier and self._readings.is_deep:
            barrier = f"{self._dialect.barrier} AS {_UNMOVED}"
            conditions.append(f"{_UNMOVED} >= 0")
        located = f"SELECT {named or '1 AS one'} FROM {self._readings.relation(barrier)}"
        if conditions:
            located += f" WHERE {' AND '.join(conditions)}"
        return f"{located}{self._dialect.fence}" if fenced else located

    def _known(self, columns: Mapping[str, str], names: Sequence[str]) -> str:
        """The same, of the rows in which none of these is null."""
        if not names:
            return self._located(columns)
        known = [f"{name} IS NOT NULL" for name in names]
        if self._dialect.barrier:
            columns = {**columns, _UNMOVED: self._dialect.barrier}
            known.append(f"{_UNMOVED} >= 0")
        located = self._located(columns)
        return f"SELECT * FROM ({located}) AS located WHERE {' AND '.join(known)}"

    def _groups(self, rows: str, columns: Sequence[str], totals: Sequence[str] = ()) -> str:
        listed = ", ".join(columns)
        added = [
            f"{self._dialect.total(expression)} AS t{place}"
            for place, expression in enumerate(totals)
        ]
        counted = ", ".join([*columns, "count(*) AS n", *added])
        return f"SELECT {counted} FROM ({rows}) AS kept GROUP BY {listed}"

    def _persons_read(self) -> dict[str, str]:
        read = (self._readings.person, self._readings.day)
        columns = self._unit.person_columns
        return {
            f"p{place}": as_what(column)
            for place, (column, as_what) in enumerate(zip(columns, read, strict=False))
        }

    def _cells(self, lattice: Lattice, prefix: str = "g") -> dict[str, str]:
        """The packed cells of the axes without keys, then the keys."""
        plain = [axis for axis in lattice.axes if not axis.has_keys]
        packing = Packing(Lattice(tuple(plain)))
        found = {}
        for place, group in enumerate(packing.groups):
            found[f"{prefix}{place}"] = self._packed([plain[axis] for axis in group])
        for place, axis in enumerate(axis for axis in lattice.axes if axis.has_keys):
            found[f"{prefix}k{place}"] = self._readings.key(axis)
        return found

    def _packed(self, axes: Sequence[LatticeAxis]) -> str:
        if not axes:
            return self._dialect.integer(0)
        packed = self._readings.cell(axes[0])
        for axis in axes[1:]:
            packed = f"({packed}) * {axis.size} + {self._readings.cell(axis)}"
        return packed

    def _grouped_cells(self, axes: Sequence[LatticeAxis]) -> str:
        """The packed cells in the type by which rows are grouped fastest."""
        if len(axes) == 1:
            return self._readings.grouped_cell(axes[0])
        n_cells = math.prod(axis.size for axis in axes)
        return self._dialect.of_type(self._packed(axes), self._dialect.group_type(n_cells))

    def _values(self, sums: Sequence[Summed]) -> dict[str, str]:
        return {f"s{place}": self._readings.cell(summed.axis) for place, summed in enumerate(sums)}

    # --- what is counted ------------------------------------------------------------------------

    def rows(self, need: Needs, choice: ChosenBy) -> str:
        """Count rows, or persons by one row in each of other cells."""
        if _is_plain(need, self._unit) and len(Packing(need.lattice).groups) == 1:
            return self._occupied(need.lattice)
        cells = self._cells(need.lattice)
        values = self._values(need.sums)
        carried = {**cells, **values}
        totals = _totals(list(values), need.sums)
        if self._unit.person is None:
            if values or not self._dialect.drops_groups:
                located = self._known(carried, list(carried))
            else:
                located = self._located(carried)
            return self._groups(located, list(cells), totals)
        kept = self._kept(need, carried, choice)
        return self._groups(kept, list(cells), totals)

    def _occupied(self, lattice: Lattice) -> str:
        """Count all rows by their cell, and drop the group of those that have none."""
        counted = "count(*)"
        columns = {"g0": self._grouped_cells(lattice.axes)}
        if self._weight is not None:
            columns["m"] = self._readings.column(self._weight)
            counted = f"CAST(sum(m) AS {self._dialect.integer_type})"
        located = self._located(columns, fenced=False)
        groups = f"SELECT g0, {counted} AS n FROM ({located}) AS located GROUP BY g0"
        # A condition on cells alone would be evaluated for each row of the table, however the rows
        # are grouped before; one that names the count is evaluated for groups.
        has_cell = "CASE WHEN n > 0 THEN g0 IS NOT NULL END"
        return f"SELECT g0, n FROM ({groups}) AS counted WHERE {has_cell}"

    def _kept(self, need: Needs, carried: dict[str, str], choice: ChosenBy) -> str:
        """The rows of each person within the limits."""
        unit = self._unit
        if need.counted == "persons":
            unit = unit.counting_persons(unit.cells_of_person)
        if unit.limits is msgspec.UNSET:
            located, columns = self._of_persons(carried, choice)
            return persons.first_rows(located, columns, unit.rows_per_person, self._dialect)
        if need.norm is not None:
            axes = (need.cells or need.lattice).axes
            cells = {f"l{at}": self._readings.cell(axis) for at, axis in enumerate(axes)}
            located, columns = self._of_persons({**carried, **cells}, choice)
            return rows_within_norm(located, columns, list(cells), need.norm, self._dialect)
        limited = [name for name in carried if name.startswith("g")]
        if need.cells is not None:
            other = self._cells(need.cells, "h")
            limited = list(other)
            carried = {**carried, **other}
        located, columns = self._of_persons(carried, choice)
        return persons.rows_within(
            located, columns, limited, unit.rows_per_person, unit.limits, self._dialect
        )

    def _of_persons(self, carried: dict[str, str], choice: ChosenBy) -> tuple[str, PersonColumns]:
        """The rows that have a person, and what is counted of them."""
        values = {f"v{place}": self._readings.value(axis) for place, axis in enumerate(choice)}
        read = self._persons_read()
        located = self._known({**read, **values, **carried}, [*read, *carried])
        return located, PersonColumns(tuple(read), tuple(values), tuple(carried))

    def persons(self, lattice: Lattice) -> str:
        """Count persons in the cells where they have a row."""
        cells = self._cells(lattice)
        read = self._persons_read()
        located = self._known({**read, **cells}, [*read, *cells])
        distinct = f"SELECT DISTINCT {', '.join((*read, *cells))} FROM ({located}) AS known"
        most = self._unit.cells_of_person
        kept = per_person.first_cells(distinct, list(read), list(cells), most, self._dialect)
        return self._groups(kept, list(cells))

    def persons_with_values(self, need: Needs) -> str:
        """Count persons in cells, and add up one number of each person there."""
        read = self._persons_read()
        cells = self._cells(need.row_lattice)
        values = self._values(need.sums)
        all_named = [*read, *cells, *values]
        located = self._known({**read, **cells, **values}, all_named)
        pairs = self._groups(located, [*read, *cells], list(values))
        most = self._unit.cells_of_person
        chosen = per_person.first_cells(pairs, list(read), list(cells), most, self._dialect)
        numbers = [
            f"{per_person.number_of(summed, f't{place}', 'n', self._dialect)} AS s{place}"
            for place, summed in enumerate(need.sums)
        ]
        numbered = f"SELECT {', '.join([*cells, *numbers])} FROM ({chosen}) AS chosen"
        numbered += self._dialect.fence
        packed = per_person.relocated(need, list(cells), list(values), self._dialect)
        named = [f"{each} AS {name}" for name, each in packed.items()]
        located = f"SELECT {', '.join([*named, *values])} FROM ({numbered}) AS numbered"
        return self._groups(located, list(packed), _totals(list(values), need.sums))

    def numbers_of_rows(self, lattice: Lattice) -> str:
        """Count persons by their number of rows."""
        read = self._persons_read()
        located = self._known(read, list(read))
        each = self._groups(located, list(read))
        return self._by_number(f"SELECT n AS number FROM ({each}) AS each", lattice)

    def numbers_of_cells(self, need: Needs) -> str:
        """Count persons by a number that follows from their counts in cells."""
        assert need.cells is not None
        read = self._persons_read()
        cells = self._cells(need.cells)
        located = self._known({**read, **cells}, [*read, *cells])
        pairs = self._groups(located, [*read, *cells])
        numbers = per_person.spread(need.counted, pairs, list(read), self._dialect)
        return self._by_number(numbers, need.lattice)

    def _by_number(self, numbers: str, lattice: Lattice) -> str:
        """Count the rows of a query along the one axis of their ``number``."""
        (axis,) = lattice.axes
        assert isinstance(axis, GridAxis | EdgesAxis)
        cell = per_person.cell_of_number(axis, "number", self._dialect)
        located = f"SELECT {cell} AS g0 FROM ({numbers}) AS numbers"
        return self._groups(located, ["g0"])


def _totals(values: Sequence[str], sums: Sequence[Summed]) -> list[str]:
    """What is added up: each value, then its square where it is asked for."""
    found = []
    for value, summed in zip(values, sums, strict=True):
        found.append(value)
        if summed.squares:
            found.append(f"{value} * {value}")
    return found


def can_count(need: Needs) -> bool:
    """Whether an engine's whole numbers hold all that a need makes of its sums."""
    return all(per_person.fits(summed) for summed in need.sums)


def looked_at(
    needs: Sequence[Needs],
    unit: Unit,
    choice: ChosenBy | None,
    conditions: Sequence[Condition],
) -> list[str]:
    """The names of the columns that queries of these needs look at, each once."""
    axes = [axis for need in needs for axis in need.columns]
    axes += [*(choice or ()), *(axis for axis, _ in conditions)]
    return list(dict.fromkeys([*(axis.column_name for axis in axes), *unit.person_columns]))
