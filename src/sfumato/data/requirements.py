"""What a table must have so that something can be counted of it, looked at before any charge.

Names of columns and their declared types decide, and never a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from sfumato.data.column_uses import check_names, counts_days, dates, shared, type_names
from sfumato.data.guard import guarded
from sfumato.data.reader import Column, PersonColumns, Reader
from sfumato.domain.domain import Domain
from sfumato.domain.lattice import LatticeAxis
from sfumato.errors import DataError, UsageError, nearest
from sfumato.privacy.unit import Unit

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.answers.counts import Needs


class Requirements:
    """What a source requires of its table.

    Parameters
    ----------
    reader : Reader
    domain : Domain
    unit : Unit
    filtered : sequence of LatticeAxis
        The axes that the conditions on rows look at.
    """

    def __init__(
        self, reader: Reader, domain: Domain, unit: Unit, filtered: Sequence[LatticeAxis]
    ) -> None:
        self._reader = reader
        self._domain = domain
        self._unit = unit
        self._filtered = filtered

    def check(self, needs: Sequence[Needs]) -> None:
        """Refuse a table on which the needs cannot be counted; see ``Source.require``."""
        from sfumato.data.external_partitions import memory_limit

        columns = self.columns(needs)
        parts = guarded(self._reader.name, self._reader.parts)
        uses = self._uses(needs)
        schemas = [self._fitting_schema(part, columns, uses) for part in parts]
        for part, schema in zip(parts, schemas, strict=True):
            self._check_period(part, schema)
        if (person := self._unit.person) is not None:
            memory_limit()  # a bad limit is refused now, and not after the charge
            self._check_ids([schema.field(person).type for schema in schemas])
        for name, column in columns.items():
            if column is not None and column.has_keys:
                self._check_keys(name, [schema.field(name).type for schema in schemas])
        guarded(self._reader.name, partial(self._reader.require, needs, self._unit))

    def columns(self, needs: Sequence[Needs]) -> dict[str, Column]:
        """The columns that are needed, and the person's, each with the axis that it is read as."""
        columns: dict[str, Column] = {}
        for axis in self._axes_of(needs):
            if axis.name not in self._domain:
                raise UsageError(
                    f"axis {axis.name!r}",
                    f"the domain has no axis of that name; {nearest(axis.name, self._domain)}",
                    "Declare it there",
                )
            name = axis.column_name
            columns[name] = axis if (held := columns.get(name)) is None else shared(held, axis)
        if self._unit.person is not None:
            if columns.setdefault(self._unit.person, None) is not None:
                columns = PersonColumns(columns, self._unit.person)
            self._add_period(columns)
        elif any(need.counted != "rows" for need in needs):
            raise UsageError(
                "counting persons",
                "no column names them",
                'Give the source person="rider", the column that names the person',
            )
        return columns

    def _uses(self, needs: Sequence[Needs]) -> dict[str, list[Column]]:
        """What each column is read as: its type must fit all of it."""
        uses: dict[str, list[Column]] = {}
        for axis in self._axes_of(needs):
            uses.setdefault(axis.column_name, []).append(axis)
        if self._unit.person is not None:
            uses.setdefault(self._unit.person, []).append(None)
        return uses

    def _axes_of(self, needs: Sequence[Needs]) -> Iterator[LatticeAxis]:
        """The axes that the needs and the conditions look at."""
        for need in needs:
            yield from need.columns
        yield from self._filtered

    def _add_period(self, columns: dict[str, Column]) -> None:
        """Have the column of the period read as dates."""
        period = self._unit.period
        if period is msgspec.UNSET:
            return
        column = columns.setdefault(period, dates(period))
        if column is None or not counts_days(column):
            raise UsageError(
                f"person = [{self._unit.person!r}, {period!r}]",
                "the second column is a period, and the domain declares it as no dates",
                "Declare it as an Interval of dates, or leave it out of the domain",
            )

    def _fitting_schema(
        self, table: Reader, columns: dict[str, Column], uses: Mapping[str, Sequence[Column]]
    ) -> pa.Schema:
        """The schema of one table, if it has each column once and of a type that fits."""
        from sfumato.data.column_types import described_type, misfit

        check_names(table, columns, self._unit.person_columns)
        schema = guarded(table.name, partial(table.schema, columns))
        for name, column in columns.items():
            field = schema.field(name)
            for use in uses.get(name, (column,)):
                if obstacle := misfit(use, field.type):
                    raise DataError(
                        f"{table.name}, column {name!r}",
                        f"it is {described_type(field)}, and {obstacle}",
                        "Convert the column, or declare it as what it is",
                    )
        return schema

    def _check_ids(self, types: list[pa.DataType]) -> None:
        from sfumato.data.column_types import ids_form

        if ids_form(types) is None:
            raise DataError(
                f"{self._reader.name}, column {self._unit.person!r}",
                f"ids of persons are of different types in different files: {type_names(types)}",
                "Write the files with ids of one type, so that a person is the same in all of them",
            )

    def _check_keys(self, name: str, types: list[pa.DataType]) -> None:
        from sfumato.data.column_types import keys_kind

        if len({keys_kind(type_) for type_ in types} - {"null"}) > 1:
            raise DataError(
                f"{self._reader.name}, column {name!r}",
                f"its keys are of different types in different files: {type_names(types)}",
                "Write the files with keys of one type, so that a key is the same in all of them",
            )

    def _check_period(self, table: Reader, schema: pa.Schema) -> None:
        """Refuse a period that is no date; text and objects are read as if they were."""
        import pyarrow.types as pt

        from sfumato.data.column_types import AS_DECLARED, described_type, plain_type

        period = self._unit.period
        if period is msgspec.UNSET:
            return
        field = schema.field(period)
        if field.metadata == AS_DECLARED:
            return
        type_ = plain_type(field.type)
        if not (pt.is_date(type_) or pt.is_null(type_)):
            raise DataError(
                f"{table.name}, column {period!r}",
                f"it is {described_type(field)}, and a period is a date",
                "Convert the column to dates",
            )
