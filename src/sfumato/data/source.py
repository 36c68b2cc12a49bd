"""A source: a table, its public domain and the unit of privacy."""

from __future__ import annotations

import datetime as dt
import os
import secrets
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from sfumato.data.guard import guarded
from sfumato.data.reader import Column, CountingReader, Progress, Reader, RowReader
from sfumato.domain import Axis, Domain
from sfumato.errors import DataError, UsageError, nearest
from sfumato.lattice import Lattice
from sfumato.privacy.unit import Neighbours, Unit
from sfumato.times import iso_text

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.answers.counts import Needs
    from sfumato.cube import Cube


def source(
    data: object,
    domain: Domain | Mapping[str, Axis],
    person: str | None = None,
    rows_per_person: int = 1,
    neighbours: Neighbours = "add-remove",
    name: str | None = None,
    version: str | int | dt.date | None = None,
) -> Source:
    """Declare a table: where its rows are, which axes are public, and who is protected.

    No row is read here. When a question is asked, the columns and their types are checked before
    the question is charged.

    Parameters
    ----------
    data : str, Path, list of these, table, ndarray or Reader
        * A Parquet file, or a CSV file with a header (its name ends in ``.csv`` or ``.csv.gz``).
        * A directory, a pattern such as ``"data/*.parquet"``, or a list of paths. Folders named
          ``key=value`` are columns (see ``readers.listing``).
        * A pyarrow Table, Dataset or RecordBatchReader, a polars frame (eager or lazy), a pandas
          frame, a DuckDB relation, or anything with an Arrow stream.
        * A numpy array of shape (n, d), whose columns are the axes in the domain's order.
        * A ``Reader`` of your own, or an object that a registered reader reads (see
          ``sfumato.data.registry``).
    domain : Domain or dict
        The public axes. The table may have more columns.
    person : str or None
        The column that names the person: text, numbers, booleans, dates or times. A person's rows
        beyond ``rows_per_person`` are dropped at random. None: each row is one person; or, with
        ``rows_per_person`` above 1, you state that nobody has more rows.
    rows_per_person : int
        The contribution bound, 1 to 10^15.
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

    Returns
    -------
    Source
        Give it to ``sf.Publisher``.

    Raises
    ------
    UsageError
        If the domain, the unit or the kind of table is wrong.

    Guarantee: on each lattice counted, one person changes at most ``rows_per_person`` rows.
    Holds because: each person keeps a random choice of rows that depends on no one else's rows; the
    proof is in ``data/bounding.py``.
    Not covered: a person with several ids; without ``person``, the custodian's own statement; a
    lazy frame or a relation that gives other rows, or another order, in a second scan.

    >>> import numpy as np
    >>> import sfumato as sf
    >>> ages = np.array([[31.0], [31.5], [64.0]])
    >>> sf.source(ages, sf.Domain(age=sf.Interval(0, 121, step=1)), name="ages")
    <Source ages: age; any one person contributing at most one row, added or removed>
    """
    from sfumato.data.registry import open_reader

    if not isinstance(domain, Mapping):
        raise UsageError(
            f"domain = {type(domain).__name__}",
            "it is neither a Domain nor a dict",
            "Write Domain(age=Interval(0, 121, step=1))",
        )
    domain = domain if isinstance(domain, Domain) else Domain(domain)
    if person == "" or not isinstance(person, str | None):
        raise UsageError(
            f"person = {type(person).__name__}",
            "it must be a text that is not empty",
            "Give a name, or leave it out",
        )
    name = _public_text("name", name)
    version = _public_text("version", _version_text(version))
    unit = Unit(rows_per_person, neighbours, person)
    return Source(open_reader(data, tuple(domain), person), domain, unit, name, version, data)


def _version_text(version: object) -> object:
    """Write a version as text, so that 2 and "2" are the same version."""
    if isinstance(version, int) and not isinstance(version, bool):
        return str(version)
    return iso_text(version)


def _public_text(option: str, text: object) -> str | None:
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


class Source:
    """A table with its domain and unit; see ``source``. Its repr shows no value and no row count.

    Attributes
    ----------
    domain : Domain
    unit : Unit
    name : str or None
        The public name that was given, if any.
    version : str or None
        The version that was given, as text, if any.
    """

    def __init__(
        self,
        reader: RowReader | CountingReader,
        domain: Domain,
        unit: Unit,
        name: str | None,
        version: str | None,
        data: object,
    ) -> None:
        self.domain = domain
        self.unit = unit
        self.name = name
        self.version = version
        self._reader = reader
        self._data = data
        self._token = secrets.token_hex(16)

    @property
    def in_memory(self) -> bool:
        """Whether the rows are held in memory, where they may change unnoticed."""
        return self._reader.in_memory

    @property
    def title(self) -> str:
        """What a receipt calls this data set: its name, or its file name; and its version."""
        title = self.name or os.path.basename(self._reader.name)
        return title if self.version is None else f"{title}, version {self.version}"

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

        asked = [_as_need(need) for need in needs]
        columns = self._columns(asked)
        parts = guarded(self._reader.name, self._reader.parts)
        schemas = [self._fitting_schema(part, columns) for part in parts]
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
            if not guarded(reader.name, partial(reader.supports, need, self.unit)):
                raise DataError(
                    f"counting {need.counted} of {reader.name}",
                    "its engine does not count that, or not under these limits",
                    "Give a file or a frame, or ask for rows under a limit on rows alone",
                )

    def _fitting_schema(self, table: Reader, columns: dict[str, Column]) -> pa.Schema:
        """The schema of one table, if it has each column once and of a type that fits."""
        from sfumato.data.column_types import misfit, type_name

        _check_names(table, columns)
        schema = guarded(table.name, partial(table.schema, columns))
        for name, column in columns.items():
            type_ = schema.field(name).type
            # A person's column that is an axis as well must fit both.
            uses = (column, None) if name == self.unit.person else (column,)
            for use in uses:
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
                f"ids of persons are of different types in different files: {_type_names(types)}",
                "Write the files with ids of one type, so that a person is the same in all of them",
            )

    def _check_keys(self, name: str, types: list[pa.DataType]) -> None:
        from sfumato.data.column_types import keys_kind

        if len({keys_kind(type_) for type_ in types} - {"null"}) > 1:
            raise DataError(
                f"{self._reader.name}, column {name!r}",
                f"its keys are of different types in different files: {_type_names(types)}",
                "Write the files with keys of one type, so that a key is the same in all of them",
            )

    def _columns(self, needs: Sequence[Needs]) -> dict[str, Column]:
        """The columns that are needed, and the person's."""
        columns: dict[str, Column] = {axis.name: axis for need in needs for axis in need.columns}
        for name in columns:
            if name not in self.domain:
                raise UsageError(
                    f"axis {name!r}",
                    f"the domain has no axis of that name; {nearest(name, self.domain)}",
                    "Declare it there",
                )
        if self.unit.person is not None:
            columns.setdefault(self.unit.person, None)
        elif any(need.counted != "rows" for need in needs):
            raise UsageError(
                "counting persons",
                "no column names them",
                'Give the source person="rider", the column that names the person',
            )
        return columns

    def __repr__(self) -> str:
        return f"<Source {self.title}: {', '.join(self.domain)}; {self.unit}>"

    def __reduce_ex__(self, protocol: object) -> tuple[object, ...]:
        if self._reader.in_memory:
            raise UsageError(
                "pickling a Source",
                "it holds data in memory",
                "Write the table to a file, and pickle a source of that",
            )
        unit = self.unit
        return source, (
            self._data,
            self.domain,
            unit.person,
            unit.rows_per_person,
            unit.neighbours,
            self.name,
            self.version,
        )


def count(
    source: Source,
    needs: Sequence[Needs | Lattice],
    progress: Progress | None = None,
    *,
    key: bytes | None = None,
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
        The secret that chooses which rows a person keeps; None draws a fresh one. In two scans of
        one table with the same key, each person keeps the same rows.

    Returns
    -------
    list of Cube

    Raises
    ------
    DataError
        As ``Source.require``; or if the file turns out to be damaged further on.
    """
    from sfumato.data.bounding import fresh_key
    from sfumato.data.scan import scan

    asked = [_as_need(need) for need in needs]
    source.require(asked)
    if not asked:
        return []
    reader = source._reader
    key = key or fresh_key()
    if isinstance(reader, CountingReader):
        return _by_engine(reader, asked, source.unit, key, progress)
    return scan(reader, source._columns(asked), asked, source.unit, key, progress)


def _as_need(need: Needs | Lattice) -> Needs:
    """What is to be counted on a lattice alone: rows."""
    from sfumato.answers.counts import Needs

    return Needs(need, need.size) if isinstance(need, Lattice) else need


def _by_engine(
    reader: CountingReader,
    needs: Sequence[Needs],
    unit: Unit,
    key: bytes,
    progress: Progress | None,
) -> list[Cube]:
    """Let the engine count, and check that it counted on the lattices asked for."""

    def counted() -> list[Cube]:
        cubes = reader.count(needs, unit, key, progress)
        if [cube.lattice for cube in cubes] != [need.lattice for need in needs]:
            raise DataError(
                reader.name,
                "its engine counted other cells than were asked for",
                "Report it to the author of its reader",
            )
        return cubes

    return guarded(reader.name, counted)


@contextmanager
def snapshot(source: Source) -> Iterator[None]:
    """Keep the data in one state for all counts in this context, if the engine can.

    Otherwise rows could change between two counts of one release, and a person might count for more
    than the limit.
    """
    with ExitStack() as held:
        guarded(source._reader.name, lambda: held.enter_context(source._reader.snapshot()))
        yield


def _type_names(types: Sequence[pa.DataType]) -> str:
    from sfumato.data.column_types import type_name

    return " and ".join(sorted({type_name(type_) for type_ in types}))


def _check_names(table: Reader, columns: dict[str, Column]) -> None:
    names = guarded(table.name, table.names)
    for name in columns:
        if name not in names:
            raise DataError(
                f"{table.name}, column {name!r}",
                *_no_column(name, names, header=not table.has_schema),
            )
        if names.count(name) > 1:
            raise DataError(
                f"{table.name}, column {name!r}",
                "several columns have that name",
                "Rename the columns",
            )


def _no_column(name: str, names: Sequence[str], header: bool) -> tuple[str, str]:
    """Say what stands in the way, and what to do, if a table lacks a column.

    The first line of a file may hold data: it is quoted only where it nearly is the name asked for.
    """
    suggestion = nearest(name, names)
    if header and not suggestion.startswith("did you mean"):
        return (
            "there is no column of that name in the first line",
            "Name the axis as the column is named, or give the file a header",
        )
    return f"there is no column of that name; {suggestion}", "Name the axis as the column is named"
