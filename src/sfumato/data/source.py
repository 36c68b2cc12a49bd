"""A source: a table, its public domain and the unit of privacy; and its true counts.

The names that a user states of a source are checked first: of its person column, its data set and
its version. ``count`` is for a publisher that has charged for what it counts.
"""

from __future__ import annotations

import datetime as dt
import os
import secrets
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from sfumato.answers import VERSION, Needs
from sfumato.basics import card, facts, thread_limit
from sfumato.basics.text import structs
from sfumato.data.addresses import with_table
from sfumato.data.cells import RowFilter
from sfumato.data.options import NOTHING_STATED, StatedOptions, file_options
from sfumato.data.reader import Column, PersonColumns, Progress, Reader, RowReader, guarded
from sfumato.data.registry import open_reader
from sfumato.data.schema import (
    AS_DECLARED,
    check_names,
    check_person_names,
    counts_days,
    dates,
    described_type,
    ids_form,
    keys_kind,
    misfit,
    plain_type,
    remedy_of_misfit,
    shared,
    type_name,
)
from sfumato.domain import (
    Axis,
    Domain,
    Lattice,
    LatticeAxis,
    as_written,
    conditions_of,
    domain_error,
    iso_text,
)
from sfumato.errors import DataError, UsageError, explained, nearest, printable, without_frames
from sfumato.privacy import Neighbours, Unit, limits_of, stated_limits, unit_within

if TYPE_CHECKING:
    from sfumato.data.priorities import ChosenBy
    from sfumato.data.readers.spark import SparkTable
    from sfumato.data.scan import Scan
    from sfumato.domain import Cube

# --- names that a user states ---------------------------------------------------------------------


def public_text(option: str, text: object) -> str | None:
    """Check a text that receipts print and that is part of the ledger's keys."""
    if text is None:
        return None
    if not isinstance(text, str) or not text:
        raise UsageError(
            f"{option} = {type(text).__name__}",
            "it must be a text that is not empty",
            "Give a text, a whole number or a date"
            if option == "version"
            else "Give a name, or leave it out",
        )
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise UsageError(
            option, "it holds a control character", "Use letters, digits, spaces and signs"
        )
    return text


def _require_person_names(person: object) -> None:
    """Refuse what cannot name the columns of a person."""
    columns = person if isinstance(person, list | tuple) else [person]
    if person is not None and not all(isinstance(text, str) and text for text in columns):
        raise UsageError(
            f"person = {type(person).__name__}",
            "it must be a text that is not empty, or a list of two",
            "Give the name of the column, or leave it out",
        )


# --- sources --------------------------------------------------------------------------------------


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
    person_called: str | None = None,
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
    data : str, Path, list of these, table, ndarray, function or Reader
        * A Parquet file; a CSV file with a header (its name ends in ``.csv``, ``.tsv`` or ``.txt``,
          and in ``.gz`` if it is packed); a sheet of an Excel file (``.xlsx`` or ``.xlsm``).
        * A directory, a pattern such as ``"data/*.parquet"``, or a list of paths. Folders named
          ``key=value`` are columns (see ``readers.files``).
        * A pyarrow Table, Dataset or RecordBatchReader, a polars frame (eager or lazy), a pandas
          frame, a DuckDB relation, or anything with an Arrow stream. A RecordBatchReader is read
          once: give a function that opens a new one in each call where rows are counted again.
        * The address of a table in a database: ``"duckdb:trips.db?table=trips"`` or
          ``"postgresql://host/database?table=trips"``.
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
    person_called : str or None
        What sentences call a person, such as "rider": public text of up to 40 characters. It
        changes neither the counts nor the price, and stored answers are shown with it. None:
        "person".
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
    quantiles, are refused under them; families of tables keep ``norm_per_person`` in all of their
    tables together. Nothing in the rows decides how a file is written: an option
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
    proofs are in ``data/bounding.py``. A public condition looks at one row at a time
    (``domain/conditions.py``).
    Not covered: how many rows satisfy ``where``, which is not public; a person with several ids;
    without ``person``, the custodian's own statement; a lazy frame or a relation that gives other
    rows in a second scan.

    >>> import numpy as np
    >>> import sfumato as sf
    >>> ages = np.array([[31.0], [31.5], [64.0]])
    >>> sf.source(ages, sf.Domain(age=sf.Interval(0, 121, step=1)), name="ages")
    <Source ages: age; any one person contributing at most one row, added or removed>
    """
    if isinstance(data, Domain):
        raise UsageError(
            "sf.source of a Domain",
            "the domain comes second, and the table first",
            'Write sf.source("visits.csv", domain)',
        )
    if not isinstance(domain, Mapping):
        raise domain_error(domain)
    domain = domain if isinstance(domain, Domain) else Domain(domain)
    _require_person_names(person)
    name = public_text("name", name)
    if isinstance(version, int) and not isinstance(version, bool):
        # 2 and "2" are the same version.
        version = str(version)
    version = public_text("version", iso_text(version))
    limits = limits_of(rows_per_cell, cells_per_person, norm_per_person)
    conditions = () if where is None else conditions_of(where, domain)
    unit = unit_within(rows_per_person, neighbours, person, limits, conditions, person_called)
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

    @explained
    def __init__(
        self,
        reader: Reader,
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
        # Two objects in memory never share a key of the ledger, however alike they are.
        self._token = secrets.token_hex(16)
        # What keeps the rows that satisfy the public conditions.
        self._row_filter: RowFilter | None = None
        if unit.where is not msgspec.UNSET:
            self._row_filter = RowFilter(unit.where, domain)

    @property
    def in_memory(self) -> bool:
        """Whether the rows are held in memory, where they may change unnoticed."""
        return self._reader.in_memory

    @property
    def same_rows(self) -> str:
        """What a release of several scans assumes; empty where the engine sees to it."""
        return self._reader.same_rows

    @property
    def read_once(self) -> bool:
        """Whether the rows can be read a single time."""
        return self._reader.read_once

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
        label = guarded(self._reader.name, self._reader.label, name) or own
        # No path and no name holds a zero character, so no name reads like another with a version.
        return label if self.version is None else f"{label}\0version {self.version}"

    @property
    def place(self) -> str | None:
        """The text that identifies the data set, whatever its state; None where nothing does.

        A file: its name or resolved path, with the options that say how it is read; a table in
        memory or on a server: its name. The version, if there is one, is part of it: another
        version is another place.
        """
        place = guarded(self._reader.name, self._reader.place, self.name)
        if not place or self.version is None:
            return place or None
        return f"{place}\0version {self.version}"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: what is public, and no fact about the rows."""
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
        wanted = [as_need(need) for need in needs]
        thread_limit()  # a bad number is refused now, and not after the charge
        reader = self._reader
        columns = columns_of(self, wanted)
        uses: dict[str, list[Column]] = {}
        for axis in _axes_of(self, wanted):
            uses.setdefault(axis.column_name, []).append(axis)
        person = self.unit.person
        if person is not None:
            from sfumato.data.person_records import memory_limit

            memory_limit()  # as is a bad limit
            uses.setdefault(person, []).append(None)
        parts = guarded(reader.name, reader.parts)
        schemas = [_fitting_schema(part, self.unit, columns, uses) for part in parts]
        _require_types_alike(reader.name, columns, person, schemas)
        guarded(reader.name, reader.require, wanted, self.unit)

    def __repr__(self) -> str:
        return printable(f"<Source {self._table}: {', '.join(self.domain)}; {self.unit}>")

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        if self._reader.in_memory:
            raise UsageError(
                "pickling a Source",
                "it holds data in memory",
                "Write the table to a file, and pickle a source of that",
            )
        unit = self.unit
        limits = stated_limits(unit.limits)
        where = None if unit.where is msgspec.UNSET else as_written(unit.where)
        called = None if unit.person_called is msgspec.UNSET else unit.person_called
        stated = msgspec.structs.asdict(self._stated)
        return partial(source, **limits, where=where, person_called=called, **stated), (
            self._data,
            self.domain,
            unit.person_columns or None,
            unit.rows_per_person,
            unit.neighbours,
            self.name,
            self.version,
        )


# --- what a table must have ---------------------------------------------------------------------


def columns_of(source: Source, needs: Sequence[Needs]) -> dict[str, Column]:
    """Return the columns needed, and the person's, each with the axis that it is read as."""
    axes: dict[str, LatticeAxis] = {}
    for axis in _axes_of(source, needs):
        if axis.name not in source.domain:
            raise UsageError(
                f"axis {axis.name!r}",
                f"the domain has no axis of that name; {nearest(axis.name, source.domain)}",
                "Declare it there",
            )
        name = axis.column_name
        axes[name] = shared(axes.get(name, axis), axis)
    columns: dict[str, Column] = {**axes}
    unit = source.unit
    if unit.person is not None:
        if columns.setdefault(unit.person, None) is not None:
            columns = PersonColumns(columns, unit.person)
        period = unit.period
        if period is not msgspec.UNSET:
            column = columns.setdefault(period, dates(period))
            if column is None or not counts_days(column):
                raise UsageError(
                    f"person = [{unit.person!r}, {period!r}]",
                    "the second column is a period, and the domain declares it as no dates",
                    "Declare it as an Interval of dates, or leave it out of the domain",
                )
    elif any(need.counted != "rows" for need in needs):
        raise UsageError(
            "counting persons",
            "no column names them",
            'Give the source person="rider", the column that names the person',
        )
    return columns


def _axes_of(source: Source, needs: Sequence[Needs]) -> Iterator[LatticeAxis]:
    for need in needs:
        yield from need.columns
    if source._row_filter is not None:
        yield from source._row_filter.axes


def _fitting_schema(
    table: Reader, unit: Unit, columns: dict[str, Column], uses: Mapping[str, Sequence[Column]]
) -> pa.Schema:
    """Return the schema of one table, if it has each column once and of a type that fits."""
    check_names(table, columns, unit.person_columns)
    schema = guarded(table.name, table.schema, columns)
    for name, column in columns.items():
        field = schema.field(name)
        for use in uses.get(name, (column,)):
            if obstacle := misfit(use, field.type):
                raise DataError(
                    f"{table.name}, column {name!r}",
                    f"it is {described_type(field)}, and {obstacle}",
                    remedy_of_misfit(name, use, field.type),
                )
    if unit.period is not msgspec.UNSET:
        field = schema.field(unit.period)
        type_ = plain_type(field.type)
        # Text and objects are read as if they were dates.
        if field.metadata != AS_DECLARED and not (
            pa.types.is_date(type_) or pa.types.is_null(type_)
        ):
            raise DataError(
                f"{table.name}, column {field.name!r}",
                f"it is {described_type(field)}, and a period is a date",
                "Convert the column to dates",
            )
    return schema


def _require_types_alike(
    table: str, columns: Mapping[str, Column], person: str | None, schemas: Sequence[pa.Schema]
) -> None:
    """Refuse files in which equal ids or keys are of several types."""
    if person is not None:
        types = [schema.field(person).type for schema in schemas]
        if ids_form(types) is None:
            raise _in_several_types(table, person, types, "ids of persons", "ids", "a person")
    for name in (
        name for name, column in columns.items() if column is not None and column.has_keys
    ):
        types = [schema.field(name).type for schema in schemas]
        if len({*map(keys_kind, types)} - {"null"}) > 1:
            raise _in_several_types(table, name, types, "its keys", "keys", "a key")


def _in_several_types(
    table: str, column: str, types: Sequence[pa.DataType], values: str, noun: str, subject: str
) -> DataError:
    named = " and ".join(sorted({type_name(type_) for type_ in types}))
    return DataError(
        f"{table}, column {column!r}",
        f"{values} are of different types in different files: {named}",
        f"Write the files with {noun} of one type, so that {subject} is the same in all of them",
    )


# --- what is counted ----------------------------------------------------------------------------


def as_need(need: Needs | Lattice) -> Needs:
    """Return what is to be counted on a lattice alone: rows."""
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


# --- counting -------------------------------------------------------------------------------------


def count(
    source: Source,
    needs: Sequence[Needs | Lattice],
    progress: Progress | None = None,
    *,
    key: bytes | None = None,
    choice: ChosenBy | None = None,
) -> list[Cube]:
    """Count what is needed, in one scan of the columns: one cube for each need, in order.

    The counts are true, and none of them may be published. Only a publisher that has charged for
    them should call this.

    Values outside the bounds are clamped. A row without a person, or with a missing value in a
    column of a lattice, is dropped for that lattice. Labels that are not listed go to ``other``, or
    their rows are dropped. All of this happens silently.

    Parameters
    ----------
    source : Source
    needs : sequence of Needs or Lattice
        What is to be counted in the cells of each lattice. A lattice alone stands for the rows in
        its cells.
    progress : callable or None
        Called after each chunk with the rows done, and all rows or None. These are private facts,
        for the custodian's screen only.
    key : bytes of length 32 or None
        The secret that chooses which rows a person keeps; None draws a fresh one.
    choice : tuple of LatticeAxis or None
        Whose columns' values choose a person's rows, together with the key; from
        ``priorities.chosen_by``. None: all columns of the needs. In two scans of one table with
        the same key and the same columns, each person keeps the same rows.

    Returns
    -------
    list of Cube

    Raises
    ------
    DataError
        As ``Source.require``; or if the file turns out to be damaged further on.
    """
    # Loaded when data are counted, and not with the package.
    from sfumato.data.bounding import fresh_key
    from sfumato.data.priorities import chosen_by
    from sfumato.data.scan import cubes_of_pieces

    wanted = tuple(as_need(need) for need in needs)
    # Again, though a publisher asked before the charge: files may have changed since.
    source.require(wanted)
    if not wanted:
        return []
    reader = source._reader
    key = key or fresh_key()
    chosen = chosen_by(wanted) if choice is None else choice
    scan = scan_of(source, wanted, key, chosen)
    if not isinstance(reader, RowReader):
        return on_executors(source).count(scan)
    threads = thread_limit()
    pieces = guarded(reader.name, reader.pieces, scan.columns)
    if progress is None:
        return cubes_of_pieces(scan, pieces, threads=threads)
    all_rows = guarded(reader.name, reader.rows)
    return cubes_of_pieces(scan, pieces, lambda rows_done: progress(rows_done, all_rows), threads)


def scan_of(source: Source, needs: tuple[Needs, ...], key: bytes, choice: ChosenBy) -> Scan:
    """Return what is counted of a source, for whoever counts it.

    Parameters
    ----------
    source : Source
    needs : tuple of Needs
    key : bytes of length 32
    choice : tuple of LatticeAxis
        Whose columns' values choose a person's rows.
    """
    from sfumato.data.scan import Scan

    looked_at = [*needs, *(as_need(Lattice((axis,))) for axis in choice)]
    return Scan(
        name=source._reader.name,
        columns=columns_of(source, looked_at),
        needs=needs,
        unit=source.unit,
        key=key,
        row_filter=source._row_filter,
        choice=choice,
    )


def selects(source: Source, needs: Needs) -> bool:
    """Say whether the executors of a source select keys."""
    if isinstance(source._reader, RowReader):
        return False
    return not (needs.sums or needs.of_each_person or len(needs.lattice.keyed) != 1)


def on_executors(source: Source) -> SparkTable:
    """Return the reader of a source that hands out no rows: the scan goes to where they are."""
    from sfumato.data.readers.spark import SparkTable

    reader = source._reader
    assert isinstance(reader, SparkTable)
    return reader
