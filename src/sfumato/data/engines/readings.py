"""The columns of a table in the forms that cells are made of, and the cells made of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.types as pt

from sfumato.data.engines.calendar import of_calendar
from sfumato.data.engines.cells import binned, binned_integers, integer_edges
from sfumato.data.engines.dialect import Dialect, plain
from sfumato.data.engines.labels import labelled
from sfumato.lattice import BinsAndMissing, EdgesAxis, GridAxis, LabelAxis, LatticeAxis
from sfumato.times import TimeUnit

_COLUMN = re.compile(r't\.("[^"]*"|\w+)')


@dataclass(frozen=True)
class Table:
    """What is counted.

    Attributes
    ----------
    relation : str
        What stands after FROM: a quoted name, or a query in brackets.
    types : mapping of str to pyarrow.DataType
        The types of the columns that are looked at.
    """

    relation: str
    types: Mapping[str, pa.DataType]


class Readings:
    """Collects what a query reads of a table, so that each expression is evaluated once.

    Expressions over columns get names, and ``relation`` is where these names are known. Lists of
    labels are joined to it. Names may also stand for expressions over other names.
    """

    def __init__(
        self, table: Table, dialect: Dialect, located: Mapping[LatticeAxis, str] | None = None
    ) -> None:
        self._table = table
        self._dialect = dialect
        self._levels: list[dict[str, str]] = [{}]
        self._used_once: set[str] = set()
        self._lists: dict[tuple[str, tuple[tuple[str, int], ...]], str] = {}
        # Axes whose cells the table has, in columns of these names and of the type of groups.
        self._cells: dict[LatticeAxis, str] = {}
        for axis, name in (located or {}).items():
            is_wide = dialect.group_type(axis.size) == dialect.integer_type
            column = f"t.{name}" if is_wide else f"CAST(t.{name} AS {dialect.integer_type})"
            self._cells[axis] = self._named(column)

    @property
    def is_deep(self) -> bool:
        """Whether names stand for expressions over other names."""
        return len(self._levels) > 1

    def relation(self, barrier: str = "") -> str:
        """What stands after FROM, once everything is read.

        Parameters
        ----------
        barrier : str
            What else the uppermost of the levels has: an expression and its name, or nothing.
        """
        first, *later = self._levels
        query = f"SELECT {_listed(first) or '1 AS one'} FROM {self._table.relation} AS t"
        for level in later:
            listed = _listed(level)
            if barrier and level is later[-1]:
                listed += f", {barrier}"
            query = f"SELECT *, {listed} FROM ({query}{self._dialect.fence}) AS r"
        # Columns as they are cost nothing, however often they are looked at.
        several = [each for each in first if each not in self._used_once]
        is_plain = not later and all(map(_COLUMN.fullmatch, several))
        joins = [f"({query}{'' if is_plain else self._dialect.fence}) AS r"]
        for (value, entries), name in self._lists.items():
            rows = ", ".join(f"({text}, {cell})" for text, cell in entries)
            joins.append(
                f"LEFT JOIN (VALUES {rows}) AS {name}({name}_label, {name}_cell)"
                f" ON {value} = {name}_label"
            )
        return " ".join(joins)

    def _named(self, expression: str, level: int = 0) -> str:
        """Give an expression a name: over columns on level 0, or over names of lower levels."""
        while len(self._levels) <= level:
            self._levels.append({})
        names = self._levels[level]
        return names.setdefault(expression, f"r{level}_{len(names)}")

    def _joined(self, cells: Mapping[str, int], value: str) -> str:
        entries = tuple(cells.items())
        name = self._lists.setdefault((value, entries), f"l{len(self._lists)}")
        return f"CAST({name}_cell AS {self._dialect.integer_type})"

    def _column(self, name: str) -> tuple[str, pa.DataType]:
        return f"t.{self._dialect.name(name)}", self._table.types[name]

    def cell(self, axis: LatticeAxis) -> str:
        """The cell of a row along an axis without keys; null where the row is dropped."""
        if axis not in self._cells:
            self._cells[axis] = self._cell(axis)
        return self._cells[axis]

    def grouped_cell(self, axis: LatticeAxis) -> str:
        """The same in the type by which rows are grouped fastest."""
        wanted = self._dialect.group_type(axis.size)
        if axis in self._cells or isinstance(axis, LabelAxis):
            return self._dialect.of_type(self.cell(axis), wanted)
        assert isinstance(axis, GridAxis | EdgesAxis | BinsAndMissing)
        return self._binned(axis, wanted)

    def _cell(self, axis: LatticeAxis) -> str:
        column, type_ = self._column(axis.column_name)
        if isinstance(axis, LabelAxis):
            if axis.calendar is not msgspec.UNSET:
                return of_calendar(axis, column, type_, self._dialect, self._named)
            return labelled(axis, column, type_, self._dialect, self._named, self._joined)
        assert isinstance(axis, GridAxis | EdgesAxis | BinsAndMissing)
        return self._binned(axis)

    def _binned(
        self, axis: GridAxis | EdgesAxis | BinsAndMissing, wanted: str | None = None
    ) -> str:
        column, type_ = self._column(axis.column_name)
        held = plain(type_)
        if axis.time is None and pt.is_integer(held):
            edges = integer_edges(axis, held, self._dialect)
            if edges is not None:
                integer = self._named(self._dialect.exact(column, held))
                return binned_integers(axis, integer, edges, self._dialect, wanted)
        return binned(axis, self._number(column, type_, axis.time), self._dialect, wanted)

    def _number(self, column: str, type_: pa.DataType, time: TimeUnit | None) -> str:
        """The double that an axis reads."""
        dialect = self._dialect
        type_ = plain(type_)
        if pt.is_null(type_):
            return self._named(f"CAST(NULL AS {dialect.double_type})")
        if time is None:
            return self._named(dialect.number(column, type_))
        whole = (
            dialect.days(column, type_) if time == "day" else dialect.microseconds(column, type_)
        )
        return self._named(f"CAST({whole} AS {dialect.double_type})")

    def column(self, name: str) -> str:
        """A column that is taken as it is."""
        return self._named(f"t.{name}")

    def text(self, axis: LatticeAxis) -> str:
        """The text in which an axis of labels looks for them, to be looked at once."""
        column, type_ = self._column(axis.column_name)
        written = self._dialect.written(column, plain(type_))
        self._used_once.add(written)
        return self._named(written)

    def key(self, axis: LatticeAxis) -> str:
        """The key of a row; null where it is missing."""
        column, type_ = self._column(axis.column_name)
        return self._named(self._dialect.key(column, plain(type_)))

    def person(self, name: str) -> str:
        """One of the columns that name a person; null where there is none."""
        column, type_ = self._column(name)
        return self._named(self._dialect.person(column, plain(type_)))

    def day(self, name: str) -> str:
        """The day of a period."""
        column, type_ = self._column(name)
        return self._named(self._dialect.days(column, plain(type_)))

    def value(self, axis: LatticeAxis) -> str:
        """What a row's column says on an axis, as the choice of a person's rows sees it."""
        if axis.has_keys:
            return self.key(axis)
        if isinstance(axis, LabelAxis):
            return self.cell(axis)
        column, type_ = self._column(axis.column_name)
        number = self._number(column, type_, axis.time)
        # The sum makes the two zeros one.
        return f"{number} + {self._dialect.double(0.0)}"


def _listed(names: Mapping[str, str]) -> str:
    return ", ".join(f"{expression} AS {name}" for expression, name in names.items())
