"""The known readers. A new engine of the library is one line here; other packages register theirs.

The type of an object decides who reads it. No engine is imported to find out, and what a file holds
never decides what is imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TypeVar, cast

import msgspec

from sfumato.basics import imported
from sfumato.data.addresses import Kind, read
from sfumato.data.options import NO_OPTIONS, FileOptions
from sfumato.data.reader import Reader, RowReader
from sfumato.data.readers.files import local
from sfumato.errors import UsageError

R = TypeVar("R", bound=type[Reader])

# The group of package entry points by which other packages name their readers.
GROUP = "sfumato.readers"


class Engine(msgspec.Struct, frozen=True):
    """A reader of the library's own.

    Attributes
    ----------
    package : str or None
        The package that defines the types that it reads; None: it reads types of any package.
    reader : str
        "module:Class". The class decides by its method ``of`` whether it reads an object.
    address : {"postgresql", "duckdb"} or None
        The kind of addresses that alone it reads; None: it reads no address.
    """

    package: str | None
    reader: str
    address: Kind | None = None

    def imported(self) -> type[Reader]:
        """Import the class."""
        return cast("type[Reader]", imported(self.reader))


_READERS = "sfumato.data.readers"
ENGINES = (
    Engine(None, f"{_READERS}.postgres:PostgresTable", "postgresql"),
    Engine(None, f"{_READERS}.duckdb:DuckFile", "duckdb"),
    Engine(None, f"{_READERS}.files:Files"),
    Engine(None, f"{_READERS}.arrow:NumpyArray"),
    Engine("pandas", f"{_READERS}.frames:PandasFrame"),
    Engine("polars", f"{_READERS}.frames:PolarsFrame"),
    Engine("duckdb", f"{_READERS}.duckdb:DuckRelation"),
    Engine("pyspark", f"{_READERS}.spark:SparkTable"),
    Engine("pyarrow", f"{_READERS}.arrow:ArrowDataset"),
)
# Read any object with an Arrow stream, or that opens one, which no reader above reads.
ANY_STREAM = tuple(
    Engine(None, f"{_READERS}.arrow:{name}") for name in ("Stream", "StreamFunction")
)

# Readers that other packages registered.
_outside: list[type[Reader]] = []


def register_reader(reader: R) -> R:
    """Register a reader of your own: ``sf.source`` then reads what its method ``of`` accepts.

    Use it as a decorator. A class that is defined again, as in a notebook, replaces the old one.

    Parameters
    ----------
    reader : subclass of RowReader

    Returns
    -------
    The class itself.

    Raises
    ------
    UsageError
        If the class does not implement ``RowReader``.

    >>> from sfumato.extending import register_reader
    >>> register_reader(object)
    Traceback (most recent call last):
    sfumato.errors.UsageError: registering object: it is no RowReader. Derive it from that, ...
    """
    if not (isinstance(reader, type) and issubclass(reader, RowReader)):
        raise UsageError(
            f"registering {getattr(reader, '__name__', type(reader).__name__)}",
            "it is no RowReader",
            "Derive it from that, and hand out rows by batches(); see docs/extending.md",
        )
    missing = sorted(reader.__abstractmethods__)
    # The base class's own ``of`` reads nothing.
    bases = [base for base in reader.__mro__ if base is not Reader]
    if not any("of" in vars(base) for base in bases):
        missing.append("of")
    if missing:
        raise UsageError(
            f"registering {reader.__name__}",
            f"it does not implement {' and '.join(missing)}",
            "Write it; see docs/extending.md",
        )
    full_name = (reader.__module__, reader.__qualname__)
    _outside[:] = [
        other for other in _outside if (other.__module__, other.__qualname__) != full_name
    ]
    _outside.append(reader)
    return reader


@cache
def discover() -> None:
    """Register the readers that installed packages declare by entry points of the group ``GROUP``.

    What is installed decides what is imported; a file never does.
    """
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP):
        register_reader(entry.load())


def open_reader(
    data: object,
    axes: Sequence[str],
    person: str | None,
    options: FileOptions = NO_OPTIONS,
) -> Reader:
    """Choose the reader of what ``source`` was given, by its type.

    Raises
    ------
    UsageError
        If nothing reads it, or it is no file and there are options of files.
    """
    reader = _reader_of(data, axes, person)
    return reader if options == NO_OPTIONS else reader.written_as(options)


def _reader_of(
    data: object,
    axes: Sequence[str],
    person: str | None,
) -> Reader:
    if isinstance(data, Reader):
        return data
    # The type is asked: a DataFrame of Spark Connect has every attribute, as a column.
    kind = type(data)
    if hasattr(kind, "to_frame") and hasattr(kind, "dtype"):
        raise UsageError(
            f"a source of type {kind.__name__}",
            "it is one column, and a source is a table",
            "Write sf.source(series.to_frame(), domain)",
        )
    for candidate in _candidates(data):
        reader = candidate.of(data, axes, person)
        if isinstance(reader, Reader):
            return reader
    if isinstance(data, str | os.PathLike):
        local(os.fspath(data))  # raises an error that says why an address is not read
    raise UsageError(
        f"a source of type {kind.__name__}",
        "it is no path, no array and has no Arrow stream",
        _table_of(data),
    )


def _table_of(data: object) -> str:
    """Tell how to make a table of what is none."""
    if isinstance(data, dict):
        return "Write sf.source(pyarrow.table(columns), domain), with a list for each column"
    if isinstance(data, list):
        return "Write sf.source(pandas.DataFrame(rows), domain)"
    if hasattr(data, "read"):
        return 'Give the path of the file, as in sf.source("visits.csv", domain)'
    return "Give a Parquet, CSV or Excel file, a pyarrow, polars or pandas table, or a numpy array"


def _candidates(data: object) -> Iterator[type[Reader]]:
    """Return the readers to ask, in order: those that know the object's package come first."""
    package = type(data).__module__.partition(".")[0]
    address = read(data)
    kind = None if address is None else address.kind
    for engine in ENGINES:
        if engine.package in (None, package) and engine.address in (None, kind):
            yield engine.imported()
    yield from _outside
    yield from (engine.imported() for engine in ANY_STREAM)
    discover()
    yield from _outside
