"""Which readers there are. A new engine is one line here; one from outside registers itself.

What an object's type is decides who reads it, and no engine is imported to find out. What a file
holds never decides what is imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import TypeVar

from sfumato.data.reader import CountingReader, Reader, RowReader
from sfumato.data.readers.listing import local
from sfumato.errors import UsageError

R = TypeVar("R", bound=type[Reader])

GROUP = "sfumato.readers"
"""The group of package entry points by which other packages name their readers."""


@dataclass(frozen=True)
class Engine:
    """A reader of the library's own.

    Attributes
    ----------
    package : str or None
        The package that defines the types that it reads; None: types of any package.
    reader : str
        "module:Class". The class itself looks closer, by its method ``of``.
    """

    package: str | None
    reader: str


_READERS = "sfumato.data.readers"
ENGINES = (
    Engine(None, f"{_READERS}.files:Files"),
    Engine(None, f"{_READERS}.numpy:Array"),
    Engine("pandas", f"{_READERS}.pandas:PandasFrame"),
    Engine("polars", f"{_READERS}.polars:PolarsFrame"),
    Engine("duckdb", f"{_READERS}.duckdb:DuckRelation"),
    Engine("pyarrow", f"{_READERS}.arrow:ArrowDataset"),
)
ANY_STREAM = Engine(None, f"{_READERS}.arrow:Stream")
"""Reads what speaks the Arrow protocol and nobody else reads: who knows an object better comes first."""

_outside: list[type[Reader]] = []
"""Readers that other packages registered."""


def load_class(name: str) -> type[Reader]:
    """Import a reader by "module:Class"."""
    module, _, attribute = name.partition(":")
    found: type[Reader] = getattr(importlib.import_module(module), attribute)
    return found


def readers() -> tuple[type[Reader], ...]:
    """All readers that are known, those of other packages last."""
    return (*(load_class(engine.reader) for engine in (*ENGINES, ANY_STREAM)), *_outside)


def register_reader(reader: R) -> R:
    """Make a reader from outside known, so that ``sf.source`` reads what its method ``of`` accepts.

    Use it as a decorator. Defining the class again, as in a notebook, replaces it.

    Raises
    ------
    UsageError
        If the class does not implement ``RowReader`` or ``CountingReader``.
    """
    if not (isinstance(reader, type) and issubclass(reader, RowReader | CountingReader)):
        raise UsageError(
            f"registering {getattr(reader, '__name__', type(reader).__name__)}",
            "it is neither a RowReader nor a CountingReader",
            "Derive it from one of them; see docs/extending.md",
        )
    missing = sorted(reader.__abstractmethods__)
    own = [base for base in reader.__mro__ if base is not Reader]
    if not any("of" in vars(base) for base in own):  # it would read nothing
        missing.append("of")
    if missing:
        raise UsageError(
            f"registering {reader.__name__}",
            f"it does not implement {' and '.join(missing)}",
            "Write it; see docs/extending.md",
        )
    place = (reader.__module__, reader.__qualname__)
    _outside[:] = [each for each in _outside if (each.__module__, each.__qualname__) != place]
    _outside.append(reader)
    return reader


@cache
def discover() -> None:
    """Import what installed packages declare as readers, by entry points of the group ``GROUP``.

    What is installed decides what is imported: never a file.
    """
    for entry in entry_points(group=GROUP):
        register_reader(entry.load())


def open_reader(
    data: object,
    axes: Sequence[str],
    person: str | None,
) -> RowReader | CountingReader:
    """Choose how to read what ``source`` was given, by its type.

    Raises
    ------
    UsageError
        If nothing reads it.
    """
    if isinstance(data, RowReader | CountingReader):
        return data
    found = _opened(_candidates(data), data, axes, person)
    if found is None:
        discover()
        found = _opened(iter(_outside), data, axes, person)
    if found is not None:
        return found
    if isinstance(data, str):
        local(data)  # says what stands in its way
    raise UsageError(
        f"a source of type {type(data).__name__}",
        "it is no path, no array and has no Arrow stream",
        "Give a Parquet or CSV file, a pyarrow, polars or pandas table, or a numpy array",
    )


def _candidates(data: object) -> Iterator[type[Reader]]:
    """Who may read an object, those first who know its kind best."""
    package = type(data).__module__.partition(".")[0]
    for engine in ENGINES:
        if engine.package in (None, package):
            yield load_class(engine.reader)
    yield from _outside
    yield load_class(ANY_STREAM.reader)


def _opened(
    candidates: Iterator[type[Reader]],
    data: object,
    axes: Sequence[str],
    person: str | None,
) -> RowReader | CountingReader | None:
    for candidate in candidates:
        found = candidate.of(data, axes, person)
        if isinstance(found, RowReader | CountingReader):
            return found
    return None
