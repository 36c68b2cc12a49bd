"""The interface to engines: a reader hands out the rows of a table.

A source holds one reader. A ``RowReader`` hands out its rows as Arrow record batches, which one
scan bounds and counts, whatever the engine. Spark alone hands out none: the scan goes to its
executors (``readers/spark.py``).

The method ``of`` says which objects a class reads, and the registry (``sfumato.data.registry``)
knows the classes. ``docs/extending.md`` shows a reader in full, and
``tests/conformance/reader_contract.py`` tests what is promised here.

A reader may raise whatever its engine raises. Engines quote values of the data, so ``guarded`` and
``guarded_batches`` keep the kind of such an error and none of its words: it is raised again as a
``DataError`` that has neither cause nor context. A refusal with words of its own is a
``DataError``, which depends on names and types only.
"""

from __future__ import annotations

import importlib
import os
import re
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import ParamSpec, Self, TypeAlias, TypeVar

import pyarrow as pa

from sfumato.answers import Needs
from sfumato.data.options import FileOptions, refuse_without_files
from sfumato.domain import LatticeAxis
from sfumato.errors import DataError, InternalError, SfumatoError, UsageError, missing_file
from sfumato.privacy import Unit

# How many rows a batch should have where the engine lets us choose.
BATCH_ROWS = 2**16

# What is given in the place of a reader that can be read once.
OPENING = "a function that opens a new one in each call"

# The axis that a column is read as; None for the person's column, if it is no axis.
Column: TypeAlias = LatticeAxis | None

# The columns that are wanted, by name.
Columns: TypeAlias = Mapping[str, Column]

# Gives the record batches of a part of a table, from the first one on each time.
Piece: TypeAlias = Callable[[], Iterator[pa.RecordBatch]]


class PersonColumns(dict[str, Column]):
    """Columns that are wanted, of which one that an axis is read from names the person as well.

    Attributes
    ----------
    person : str
        The column.
    """

    def __init__(self, columns: Columns, person: str) -> None:
        super().__init__(columns)
        self.person = person


def persons_column(columns: Columns) -> str | None:
    """Tell which of the columns is read from an axis, and names the person as well."""
    return columns.person if isinstance(columns, PersonColumns) else None


def ids_name(name: str) -> str:
    """Under which name a batch has ids apart from the axis that is read from the same column.

    A reader gives them if no array serves as both. No column of a table has such a name.
    """
    return f"\0ids of {name}"


# Called with the rows done, and all rows or None: private facts, for the custodian's screen.
Progress: TypeAlias = Callable[[int, int | None], None]


@dataclass
class Losses:
    """What reading text or Python objects lost: true counts, which only the custodian may see.

    Attributes
    ----------
    wrong_length : int
        Rows with another number of fields than the header.
    unended : int
        Rows that do not end in time.
    unparsed, not_utf8 : Counter of str
        Fields of each column that did not parse, and how many of them are not UTF-8.
    forms : Counter of (str, str)
        Of those fields, how many of each column have one of the forms of ``fields.WRITTEN_FORMS``.
    types : Counter of (str, str)
        Of Python objects that were not read, how many of each column are of one type.
    """

    wrong_length: int = 0
    unended: int = 0
    unparsed: Counter[str] = field(default_factory=Counter)
    not_utf8: Counter[str] = field(default_factory=Counter)
    forms: Counter[tuple[str, str]] = field(default_factory=Counter)
    types: Counter[tuple[str, str]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, other: Losses) -> None:
        """Add what was lost in reading other rows; several threads may do so at once."""
        with self._lock:
            self.wrong_length += other.wrong_length
            self.unended += other.unended
            self.unparsed += other.unparsed
            self.not_utf8 += other.not_utf8
            self.forms += other.forms
            self.types += other.types


class Reader(ABC):
    """A table: its columns, their types, and a label that changes with its rows.

    Implement ``RowReader``, never this class alone.

    Attributes
    ----------
    name : str
        What errors and receipts call the table. It must not hold a value of the data.
    in_memory : bool
        Whether the rows may change unnoticed. Each such object is a data set of its own, unless the
        user names it.
    same_rows : str
        What is assumed of the table by a release that takes several scans, where no snapshot holds
        one state for all of them; guarantees say it. Empty: nothing is. Where it depends on the
        table, ``schema`` or ``require`` finds it.
    read_once : bool
        Whether the rows can be read a single time. A question that may count them again is refused
        before the charge.
    has_schema : bool
        False if the names of the columns are a first line of text. That line may turn out to be
        data, so it is not quoted.
    """

    name: str
    in_memory: bool = True
    same_rows: str = ""
    read_once: bool = False
    has_schema: bool = True

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> Reader | None:
        """Read an object; return None if this class does not read objects of its kind.

        Parameters
        ----------
        data : object
            What ``sf.source`` was given. Only its type is looked at.
        axes : sequence of str
            The names of the domain's axes, in their order.
        person : str or None
            The column that names the person.
        """
        return None

    def written_as(self, options: FileOptions) -> Self:
        """Give the same table, written as the options say; a table that is no file has none.

        Raises
        ------
        UsageError
            If the options do not concern the table.
        """
        refuse_without_files(options)
        return self

    @abstractmethod
    def names(self) -> list[str]:
        """Give the names of the columns, each as often as it occurs."""

    @abstractmethod
    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types of at least the columns asked for, which exist.

        The types must not depend on values.
        """

    def index_names(self) -> Sequence[str]:
        """Give the names of what stands beside the columns and is not read, such as an index."""
        return ()

    def parts(self) -> Sequence[Reader]:
        """Give the tables that this one is made of, or itself. Each of them must fit."""
        return [self]

    def label(self, name: str | None) -> str:
        """Give a text that identifies this state of the data: it changes when the rows do.

        With an empty text, each such object is a data set of its own.

        Parameters
        ----------
        name : str or None
            The user's own name for the data set; never None for a table in memory.
        """
        return name or ""

    def place(self, name: str | None) -> str:
        """Give a text that identifies the data set, whatever its state: ``label`` without it.

        With an empty text, what was paid for in another state is not found.

        Parameters
        ----------
        name : str or None
            As for ``label``.
        """
        return name or ""

    def require(self, needs: Sequence[Needs], unit: Unit) -> None:  # noqa: B027
        """Refuse what cannot be counted of this table; it is asked before each charge.

        As it stands: nothing. It may depend on names, types and on what is there, never on values.

        Raises
        ------
        DataError
            It says what stands in the way.
        """

    def rows(self) -> int | None:
        """Give the number of rows, if it is known at once. It serves progress bars only."""
        return None

    def hints(self) -> Iterable[str]:
        """Give sentences for ``sfumato check`` on what may be wrong with the form of the table."""
        return ()

    def misreading(self) -> tuple[str, str] | None:
        """Say what in the form of the table may be why a column is not found.

        Returns
        -------
        (str, str) or None
            What stands in the way, and which option to use. It depends on the header alone.
        """
        return None

    def snapshot(self) -> AbstractContextManager[object]:
        """Keep the data in one state for all scans in this context, if the engine can.

        A database opens a read-only transaction. All counts of a release take place in one context.
        """
        return nullcontext()


class RowReader(Reader):
    """A table that hands out its rows.

    Every scan gives all rows. Their order, and how they are cut into batches, does not matter:
    which rows of a person are counted follows from the person and the rows' values.

    >>> from sfumato.extending import RowReader
    >>> sorted(RowReader.__abstractmethods__)
    ['batches', 'names', 'schema']
    """

    def parts(self) -> Sequence[RowReader]:
        """Give the tables that this one is made of, or itself."""
        return [self]

    @abstractmethod
    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Give all rows, with at least the columns asked for, of the types that ``schema`` says.

        Values may be in dictionary form. A value that cannot be read is null, and never an error.
        """

    def pieces(self, columns: Columns) -> Iterable[Piece]:
        """Give the table in parts that several threads may read at the same time, in any order.

        As it stands, in one part, which the calling thread reads. They are asked for one by one,
        by whatever thread is free, and never by two threads at once.
        """
        return [partial(self.batches, columns)]

    def pieces_noting(self, columns: Columns, losses: Losses) -> Iterable[Piece]:
        """Give the table in the same parts, and add to ``losses`` what is lost in reading them.

        A table of typed values loses nothing.
        """
        del losses
        return self.pieces(columns)


class NotingReader(RowReader):
    """A table of text or of Python objects: it implements ``pieces_noting``."""

    @abstractmethod
    def pieces_noting(self, columns: Columns, losses: Losses) -> Iterable[Piece]:
        """Give the table in parts, and add to ``losses`` what is lost in reading them."""

    def pieces(self, columns: Columns) -> Iterable[Piece]:
        """Give the table in parts."""
        return self.pieces_noting(columns, Losses())

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Give all rows, part by part."""
        for piece in self.pieces(columns):
            yield from piece()


def with_rows(reader: Reader, purpose: str) -> RowReader:
    """Return the reader if it hands out rows.

    Parameters
    ----------
    reader : Reader
    purpose : str
        What the rows are wanted for; the error says so.

    Raises
    ------
    UsageError
        If the rows stay in their engine.
    """
    if isinstance(reader, RowReader):
        return reader
    raise UsageError(
        f"{purpose} of {reader.name}",
        "its rows stay in its engine",
        "Give a file or a frame",
    )


def driver_of(table: str, package: str, *, extra: str) -> ModuleType:
    """Import the package that opens a table; ``extra`` installs it.

    Raises
    ------
    UsageError
        If it is not installed.
    """
    try:
        return importlib.import_module(package.replace("-", "_"))
    except ImportError:
        pass
    # Raised outside the except block, so that the message stands alone.
    raise UsageError(
        table, f"the package {package} is not installed", f'Run pip install "sfumato[{extra}]"'
    )


# --- errors of engines ----------------------------------------------------------------------------

T = TypeVar("T")
P = ParamSpec("P")


def guarded(name: str, action: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Do something with an engine. If it fails, say which kind of failure it was, and no more.

    Parameters
    ----------
    name : str
        What the error calls the table.
    action : callable
        It is called with all further arguments.
    """
    try:
        return action(*given, **named)
    except PASSED_ON as error:
        # An error that a reader met before it refused may quote values.
        error.__cause__ = error.__context__ = None
        raise
    except BaseException as error:
        # Engines have error trees of their own, and a panic in Rust derives from BaseException.
        obstacle, remedy = kind_of_failure(error, name)
    # Raised outside the except block: the context that Python adds there would quote values.
    raise DataError(name, obstacle, remedy)


def guarded_batches(
    name: str, start: Callable[P, Iterable[T]], *given: P.args, **named: P.kwargs
) -> Iterator[T]:
    """Iterate over what an engine gives, guarded from the first step to the last."""
    try:
        # A generator that raised has ended, so one guard serves for all of its steps.
        yield from start(*given, **named)
        return
    except PASSED_ON as error:
        error.__cause__ = error.__context__ = None
        raise
    except BaseException as error:
        obstacle, remedy = kind_of_failure(error, name)
    raise DataError(name, obstacle, remedy)


# What passes a guard as it is: words of our own, and requests to stop.
PASSED_ON = (SfumatoError, InternalError, KeyboardInterrupt, GeneratorExit)

_KINDS: tuple[tuple[str, str, str], ...] = (
    (
        r"zlib|[Gg]zip|compressed|decompress",
        "its compression is damaged, or the file is cut off",
        "Copy it again, and test it with gzip -t",
    ),
    (
        r"[Pp]arquet|magic bytes|footer",
        "it is not a Parquet file, or it is damaged",
        "Check the file, or give a CSV file a name ending in .csv",
    ),
)


def kind_of_failure(error: BaseException, name: str) -> tuple[str, str]:
    """Say what stands in the way, and what to do, in none of the words of an engine's error."""
    if isinstance(error, FileNotFoundError):
        # Only beside a path that the user wrote are names of files looked at.
        given = error.filename is not None and str(error.filename) == name
        return missing_file(name) if given else "there is no such file", "Check the path"
    if isinstance(error, PermissionError):
        return "the file may not be read", "Ask for permission to read it"
    if isinstance(error, IsADirectoryError):
        return "it is a directory", "Name one file"
    if isinstance(error, MemoryError):
        return "there is not enough memory", "Give a Parquet file, which is read in parts"
    for pattern, obstacle, remedy in _KINDS:
        if re.search(pattern, str(error)[:200]):
            return obstacle, remedy
    withheld = f"{type(error).__name__}; its message is withheld, because it may quote values"
    return f"it cannot be read ({withheld})", "Check the table with the tool that wrote it"


def stat_file(path: Path, name: str) -> os.stat_result:
    """Get the status of a file without opening it."""
    status = guarded(name, path.stat)
    if path.is_dir():
        raise DataError(name, "it is a directory", "Name files")
    return status


def check_file(path: Path, name: str) -> None:
    """Refuse a file that is missing, cannot be read or is empty."""
    is_empty = stat_file(path, name).st_size == 0
    guarded(name, path.open, "rb").close()
    if is_empty:
        raise DataError(name, "the file is empty", "Check what wrote it")
