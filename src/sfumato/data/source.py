"""A source: a table, its public domain and the unit of privacy."""

from __future__ import annotations

import datetime as dt
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from sfumato.answers.receipt import VERSION
from sfumato.data.column_uses import (
    check_names,
    check_person_names,
    counts_days,
    dates,
    shared,
    type_names,
)
from sfumato.data.engine_abilities import WHAT, abilities
from sfumato.data.engines.addresses import with_table
from sfumato.data.file_options import NOTHING_STATED, StatedOptions, file_options
from sfumato.data.guard import guarded
from sfumato.data.reader import Column, CountingReader, Reader, RowReader
from sfumato.data.stated_names import check_person, public_text, version_text
from sfumato.display import card, facts, structs
from sfumato.domain import Axis, Domain
from sfumato.errors import DataError, UsageError, nearest, printable, without_frames
from sfumato.lattice import Lattice, LatticeAxis
from sfumato.privacy.limits import limits_of
from sfumato.privacy.unit import Neighbours, Unit, unit_within
from sfumato.privacy.where import as_written, conditions_of

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.answers.counts import Needs
    from sfumato.data.where import RowFilter


@without_frames
def source(
    data: object,
    domain: Domain | Mapping[str, Axis],
    person: str | Sequence[str] | None = None,
    rows_per_person: int | None = None,
    neighbours: Neighbours = "add-remove",
    name: str | None = None,
    version: str | int | dt.date | None = None,
    *,
    rows_per_cell: int | None = None,
    cells_per_person: int | None = None,
    norm_per_person: int | None = None,
    where: Mapping[str, object] | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    date_format: str | Mapping[str, str] | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    table: str | None = None,
) -> Source:
    """Declare a table: where its rows are, which axes are public, and who is protected.

    No row is read here. When a question is asked, the columns and their types are checked before
    the question is charged.

    Parameters
    ----------
    data : str, Path, list of these, table, ndarray or Reader
        * A Parquet file; a CSV file with a header (its name ends in ``.csv``, ``.tsv`` or ``.txt``,
          and in ``.gz`` if it is packed); a sheet of an Excel file (``.xlsx`` or ``.xlsm``).
        * A directory, a pattern such as ``"data/*.parquet"``, or a list of paths. Folders named
          ``key=value`` are columns (see ``readers.listing``).
        * A pyarrow Table, Dataset or RecordBatchReader, a polars frame (eager or lazy), a pandas
          frame, a DuckDB relation, or anything with an Arrow stream.
        * The address of a table in a database: ``"duckdb:trips.db?table=trips"`` or
          ``"postgresql://host/database?table=trips"``. As with a DuckDB relation, the engine counts
          the rows by itself, and only counts leave it.
        * A numpy array of shape (n, d), whose columns are the axes in the domain's order.
        * A ``Reader`` of your own, or an object that a registered reader reads (see
          ``sfumato.data.registry``).
    domain : Domain or dict
        The public axes. The table may have more columns.
    person : str, list of two str, or None
        The column that names the person: text, numbers, booleans, dates or times. A person's rows
        beyond the limits are dropped at random. Two columns, such as ``["rider", "day"]``: the
        person, and a column of dates that is part of the person. Then what is protected is one
        rider in one day, and a rider with rows on k days is protected with k times the loss. None:
        each row is one person; or, with ``rows_per_person`` above 1, you state that nobody has more
        rows.
    rows_per_person : int or None
        The contribution bound, 1 to 10^15: how many rows of a person are counted. None: 1, or what
        the limits below allow.
    neighbours : {"add-remove", "replace"}
        How two tables differ that the guarantee compares: one person is added or removed, or one
        person is replaced by another.
    name : str or None
        The name of the data set in the ledger's keys. None: the path of files; for objects in
        memory, a random token.
    version : str, int, date or None
        The state of the data set, such as 2 or "2026-11". Under a new version, the same question is
        a new question, which is charged and counted again. A table in memory with a name needs a
        new version whenever its rows change: otherwise the name stands for the rows that were
        counted first.
    rows_per_cell : int or None
        How many rows of a person are counted in any one cell of a table.
    cells_per_person : int or None
        In how many cells of a table a person is counted.
    norm_per_person : int or None
        The L2 norm of a person's counts in a table: the root of the sum over cells of squared
        numbers of rows. Under zCDP the noise follows this norm, so that a person whose rows spread
        over many cells can have many more rows counted than under a limit on rows.
    where : dict or None
        Public conditions on declared axes: ``{"kind": ["a", "b"], "age": (18, 65)}``. A row must
        satisfy all of them; others are dropped before a person's rows are bounded. Axes of labels
        take a list of labels. Interval axes take a half-open range within their bounds, in which
        None is the axis' own bound; as in bins, a range up to the upper bound holds that value and
        what lies above. A row without a value satisfies no range.
    separator : str or None
        What separates the fields of a CSV file, such as ";" or "tab". None: a comma, or a tab in
        ``.tsv`` files.
    decimal : {".", ","} or None
        What stands before the decimals of a number. None: a point.
    thousands : str or None
        What stands between the thousands of a number: a point, comma, apostrophe, blank or
        underscore. None: nothing does.
    encoding : str or None
        The encoding of CSV files, by Python's name for it, such as "cp1252". None: UTF-8.
    date_format : str, dict or None
        How dates and times are written, such as ``"%d/%m/%Y"``; a dict has formats by column. None:
        year-month-day (ISO 8601).
    sheet : str or None
        The sheet of an Excel file. None: its only one.
    header_row : int or None
        The line of a CSV file, or the row of a sheet, that names the columns, from 1 on. None: the
        first.
    table : str or None
        The table of a database whose address does not name it, such as "trips" or "public.trips".

    The limits by cell hold on the cells of the table that is asked for (the groups of a mean), and
    on no coarser ones. So questions that count on several lattices, such as partitions and
    quantiles, are refused under them. Nothing in the rows decides how a file is written: an option
    says what the form of a file leaves open.

    Returns
    -------
    Source
        Give it to ``sf.Publisher``.

    Raises
    ------
    UsageError
        If the domain, the unit, the kind of table or an option is wrong.

    Guarantee: on each lattice counted, one person changes at most ``rows_per_person`` rows, and no
    more than the limits by cell allow. Under ``where``, this is about the rows that satisfy it.
    Holds because: each person keeps a random choice of rows that depends on no one else's rows; the
    proofs are in ``data/bounding.py`` and ``data/limiting.py``. A public condition looks at one row
    at a time (``privacy/where.py``).
    Not covered: how many rows satisfy ``where``, which is not public; a person with several ids;
    without ``person``, the custodian's own statement; a lazy frame or a relation that gives other
    rows in a second scan.

    >>> import numpy as np
    >>> import sfumato as sf
    >>> ages = np.array([[31.0], [31.5], [64.0]])
    >>> sf.source(ages, sf.Domain(age=sf.Interval(0, 121, step=1)), name="ages")
    <Source ages: age; any one person contributing at most one row, added or removed>
    """
    from sfumato.data.registry import open_reader

    if isinstance(data, Domain):
        raise UsageError(
            "sf.source of a Domain",
            "the domain comes second, and the table first",
            'Write sf.source("visits.csv", domain)',
        )
    if not isinstance(domain, Mapping):
        raise UsageError(
            f"domain = {type(domain).__name__}",
            "it is neither a Domain nor a dict",
            "Write Domain(age=Interval(0, 121, step=1))",
        )
    domain = domain if isinstance(domain, Domain) else Domain(domain)
    check_person(person)
    name = public_text("name", name)
    version = public_text("version", version_text(version))
    limits = limits_of(rows_per_cell, cells_per_person, norm_per_person)
    conditions = () if where is None else conditions_of(where, domain)
    unit = unit_within(rows_per_person, neighbours, person, limits, conditions)
    stated = StatedOptions(separator, decimal, thousands, encoding, date_format, sheet, header_row)
    if table is not None:
        data = with_table(data, table)
    reader = open_reader(data, domain.columns, unit.person, file_options(stated))
    check_person_names(reader, unit.person_columns)
    return Source(reader, domain, unit, name, version, data, stated)


class Source:
    """A table with its domain and unit; see ``source``. Its repr shows no value and no row count.

    Attributes
    ----------
    domain : Domain
    unit : Unit
    name, version : str or None
        The public name, and the version as text, if they were given.

    >>> import sfumato as sf
    >>> sf.source("ages.csv", sf.Domain(age=sf.Interval(0, 100)))
    <Source ages.csv: age; any one person contributing at most one row, added or removed>
    """

    def __init__(
        self,
        reader: RowReader | CountingReader,
        domain: Domain,
        unit: Unit,
        name: str | None,
        version: str | None,
        data: object,
        stated: StatedOptions = NOTHING_STATED,
    ) -> None:
        self.domain = domain
        self.unit = unit
        self.name = name
        self.version = version
        self._reader = reader
        self._data = data
        self._stated = stated
        self._token = secrets.token_hex(16)
        self._row_filter = self._filter()

    def _filter(self) -> RowFilter | None:
        """What keeps the rows that satisfy the public conditions; None without any."""
        from sfumato.data.where import RowFilter

        where = self.unit.where
        return None if where is msgspec.UNSET else RowFilter(where, self.domain)

    @property
    def in_memory(self) -> bool:
        """Whether the rows are held in memory, where they may change unnoticed."""
        return self._reader.in_memory

    @property
    def same_rows(self) -> str:
        """What a release assumes that asks several queries; empty where an engine sees to it."""
        return self._reader.same_rows

    @property
    def title(self) -> str:
        """What a receipt calls this data set: its name or file name, sheet, version, conditions."""
        conditions = self.unit.conditions
        return f"{self._table}, rows{conditions}" if conditions else self._table

    @property
    def named(self) -> str:
        """The title without version and conditions, if it does not show where they begin."""
        versions = self._table.count(VERSION)
        return self._file if versions > (self.version is not None) else ""

    @property
    def _table(self) -> str:
        """The title without the conditions."""
        return self._file if self.version is None else f"{self._file}{VERSION}{self.version}"

    @property
    def _file(self) -> str:
        """The title without the conditions and the version."""
        title = self.name or os.path.basename(self._reader.name)
        if self._stated.sheet is not None:
            title = f"{title}, sheet {printable(self._stated.sheet)}"
        return title

    @property
    def label(self) -> str:
        """The text that identifies this state of the data set in the ledger's keys.

        * A file: its name or resolved path, and its time of modification. Several files: the names,
          sizes and times of all, in one digest. They are looked up anew each time.
        * A table in memory, a dataset, a lazy frame or a relation: its name, or a random token of
          this object, so that two objects never share a key. If a dataset lies in files, also their
          state.

        The version, if there is one, is part of every label.
        """
        own = f"in memory {self._token}"
        name = self.name or (own if self._reader.in_memory else None)
        label = guarded(self._reader.name, partial(self._reader.label, name)) or own
        # No path and no name holds a zero character, so no name reads like another with a version.
        return label if self.version is None else f"{label}\0version {self.version}"

    def _repr_html_(self) -> str:
        """What a notebook shows: what is public, and no fact about the rows."""
        rows = [("Data", self.title), ("Protects", str(self.unit))]
        return card("Source", facts(rows), structs(self.domain))

    def require(self, needs: Sequence[Needs | Lattice]) -> None:
        """Refuse a table on which the needs cannot be counted. Call it before any charge.

        It looks at the header or footer of each file and at the declared types of the columns,
        never at values.

        Raises
        ------
        DataError
            If the file cannot be read or is damaged, a column is missing or of the wrong type, or
            the engine cannot count one of the needs.
        UsageError
            If a lattice has an axis that the domain does not have, or persons are to be counted
            where no column names them.
        """
        from sfumato.data.external_partitions import memory_limit

        asked = [as_need(need) for need in needs]
        columns = self._columns(asked)
        parts = guarded(self._reader.name, self._reader.parts)
        uses = self._uses(asked)
        schemas = [self._fitting_schema(part, columns, uses) for part in parts]
        for part, schema in zip(parts, schemas, strict=True):
            self._check_period(part, schema)
        if (person := self.unit.person) is not None:
            memory_limit()  # a bad limit is refused now, and not after the charge
            self._check_ids([schema.field(person).type for schema in schemas])
        for name, column in columns.items():
            if column is not None and column.has_keys:
                self._check_keys(name, [schema.field(name).type for schema in schemas])
        self._check_engine(asked)

    def _check_engine(self, needs: Sequence[Needs]) -> None:
        """Refuse what an engine that counts by itself does not count."""
        reader = self._reader
        if not isinstance(reader, CountingReader):
            return
        for need in needs:
            unknown = sorted(abilities(need, self.unit) - reader.abilities)
            if unknown:
                raise DataError(
                    f"counting {need.counted} of {reader.name}",
                    f"its engine does not know {' and '.join(map(WHAT.__getitem__, unknown))}",
                    "Give a file or a frame, or ask without",
                )
            if not guarded(reader.name, partial(reader.supports, need, self.unit)):
                raise DataError(
                    f"counting {need.counted} of {reader.name}",
                    "its engine does not count that, or not under these limits",
                    "Give a file or a frame, or ask for rows under a limit on rows alone",
                )

    def _fitting_schema(
        self, table: Reader, columns: dict[str, Column], uses: Mapping[str, Sequence[Column]]
    ) -> pa.Schema:
        """The schema of one table, if it has each column once and of a type that fits."""
        from sfumato.data.column_types import misfit, type_name

        check_names(table, columns, self.unit.person_columns)
        schema = guarded(table.name, partial(table.schema, columns))
        for name, column in columns.items():
            type_ = schema.field(name).type
            for use in uses.get(name, (column,)):
                if obstacle := misfit(use, type_):
                    raise DataError(
                        f"{table.name}, column {name!r}",
                        f"it is of type {type_name(type_)}, and {obstacle}",
                        "Convert the column, or declare it as what it is",
                    )
        return schema

    def _check_ids(self, types: list[pa.DataType]) -> None:
        from sfumato.data.column_types import ids_form

        if ids_form(types) is None:
            raise DataError(
                f"{self._reader.name}, column {self.unit.person!r}",
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

    def _columns(self, needs: Sequence[Needs]) -> dict[str, Column]:
        """The columns that are needed, and the person's."""
        columns: dict[str, Column] = {}
        for axis in self._axes_of(needs):
            if axis.name not in self.domain:
                raise UsageError(
                    f"axis {axis.name!r}",
                    f"the domain has no axis of that name; {nearest(axis.name, self.domain)}",
                    "Declare it there",
                )
            name = axis.column_name
            columns[name] = axis if (held := columns.get(name)) is None else shared(held, axis)
        if self.unit.person is not None:
            columns.setdefault(self.unit.person, None)
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
        if self.unit.person is not None:
            uses.setdefault(self.unit.person, []).append(None)
        return uses

    def _axes_of(self, needs: Sequence[Needs]) -> Iterator[LatticeAxis]:
        """The axes that the needs and the conditions look at."""
        for need in needs:
            yield from need.columns
        if self._row_filter is not None:
            yield from self._row_filter.axes

    def _add_period(self, columns: dict[str, Column]) -> None:
        """Have the column of the period read as dates."""
        period = self.unit.period
        if period is msgspec.UNSET:
            return
        column = columns.setdefault(period, dates(period))
        if column is None or not counts_days(column):
            raise UsageError(
                f"person = [{self.unit.person!r}, {period!r}]",
                "the second column is a period, and the domain declares it as no dates",
                "Declare it as an Interval of dates, or leave it out of the domain",
            )

    def _check_period(self, table: Reader, schema: pa.Schema) -> None:
        """Refuse a period that is no date; a file of text is read as if it were."""
        import pyarrow.types as pt

        from sfumato.data.column_types import plain_type, type_name

        period = self.unit.period
        if period is msgspec.UNSET or not table.has_schema:
            return
        type_ = plain_type(schema.field(period).type)
        if not (pt.is_date(type_) or pt.is_null(type_)):
            raise DataError(
                f"{table.name}, column {period!r}",
                f"it is of type {type_name(type_)}, and a period is a date",
                "Convert the column to dates",
            )

    def __repr__(self) -> str:
        return f"<Source {self._table}: {', '.join(self.domain)}; {self.unit}>"

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        if self._reader.in_memory:
            raise UsageError(
                "pickling a Source",
                "it holds data in memory",
                "Write the table to a file, and pickle a source of that",
            )
        unit = self.unit
        limits = {} if unit.limits is msgspec.UNSET else msgspec.structs.asdict(unit.limits)
        where = None if unit.where is msgspec.UNSET else as_written(unit.where)
        return partial(source, **limits, where=where, **self._stated.arguments()), (
            self._data,
            self.domain,
            unit.person_columns or None,
            unit.rows_per_person,
            unit.neighbours,
            self.name,
            self.version,
        )


def as_need(need: Needs | Lattice) -> Needs:
    """What is to be counted on a lattice alone: rows."""
    from sfumato.answers.counts import Needs

    return Needs(need, need.size) if isinstance(need, Lattice) else need


@contextmanager
def snapshot(source: Source) -> Iterator[None]:
    """Keep the data in one state for all counts in this context, if the engine can.

    Otherwise rows could change between two counts of one release, and a person might count for more
    than the limit.
    """
    with ExitStack() as held:
        guarded(source._reader.name, lambda: held.enter_context(source._reader.snapshot()))
        yield
