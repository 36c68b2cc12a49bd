"""Read tables that lie in files: one file, several files, directories and patterns.

*Folders named* ``key=value`` are columns, of the types that the domain declares, below a directory
or from the first wildcard on. The types are never inferred from the values. Values are
percent-decoded; ``__HIVE_DEFAULT_PARTITION__`` is missing. A column that is both in the file and in
the name of a folder is refused, because it is there twice.

*The files of a source* are listed anew each time and always in the same order:

* A directory stands for the Parquet, CSV and Excel files below it, all of one kind. A pattern
  (``*``, ``?``, ``[ab]``, and ``**`` for any depth) stands for what it matches, directories
  included. Names that begin with ``.`` or ``_`` are skipped, and so are those of ``~$``, which
  Excel writes beside an open file.
* Files are sorted by path, folder by folder, in order of code points, whatever order they were
  given in.
* What cannot be listed is refused, and so is a file that is listed twice: no rows are left out or
  doubled silently.

The names of listed files may hold values of the data. So errors give what the user gave, and the
number of the file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Self
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from sfumato.basics import array_of, binary_of, kind_of
from sfumato.data.columns import decoded
from sfumato.data.fields import parse, text_schema
from sfumato.data.options import NO_OPTIONS, FileOptions
from sfumato.data.reader import (
    Column,
    Columns,
    Losses,
    NotingReader,
    Piece,
    RowReader,
    guarded,
    guarded_batches,
    stat_file,
)
from sfumato.data.readers.csv import CsvFile
from sfumato.data.schema import ids_form
from sfumato.errors import DataError, UsageError

# --- folders named key=value --------------------------------------------------------------------

MISSING = "__HIVE_DEFAULT_PARTITION__"


def folder_values(folders: Sequence[str]) -> list[tuple[str, str | None]]:
    """Read columns and their values from the names of folders.

    >>> folder_values(["data", "year=2013", "place=St.%20Gallen"])
    [('year', '2013'), ('place', 'St. Gallen')]
    """
    values: list[tuple[str, str | None]] = []
    for folder in folders:
        key, equals, value = folder.partition("=")
        if key and equals:
            values.append((unquote(key), None if value == MISSING else unquote(value)))
    return values


class FileInFolders(NotingReader):
    """A file, with the columns that the names of its folders add."""

    in_memory = False

    def __init__(
        self, file: RowReader, values: Sequence[tuple[str, str | None]], person: str | None
    ) -> None:
        self.name = file.name
        self.has_schema = file.has_schema
        self._file = file
        self._values = list(values)
        self._person = person

    def names(self) -> list[str]:
        return [*self._file.names(), *(key for key, _ in self._values)]

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types that the file has, and those that the domain declares for folders."""
        of_folders = {key: columns[key] for key, _ in self._values if key in columns}
        in_file = self._file.schema(self._in_file(columns))
        return pa.schema([*in_file, *text_schema(of_folders, self.name, self._person)])

    def rows(self) -> int | None:
        return self._file.rows()

    def hints(self) -> Iterable[str]:
        return self._file.hints()

    def misreading(self) -> tuple[str, str] | None:
        return self._file.misreading()

    def pieces_noting(self, columns: Columns, losses: Losses) -> Iterator[Piece]:
        """Give the pieces of the file, with a constant column for each folder."""
        # To count rows, the first column of the file is read if none is wanted.
        in_file = self._in_file(columns) or {self._file.names()[0]: None}
        for piece in self._file.pieces_noting(in_file, losses):
            yield partial(self._completed, piece, columns)

    def _completed(self, piece: Piece, columns: Columns) -> Iterator[pa.RecordBatch]:
        constants = {
            key: _constant(value, columns[key]) for key, value in self._values if key in columns
        }
        for batch in piece():
            arrays = {name: batch[name] for name in columns if name not in constants}
            first = array_of(np.zeros(len(batch), np.int32))
            for name, constant in constants.items():
                arrays[name] = pa.DictionaryArray.from_arrays(first, constant)
            yield pa.RecordBatch.from_arrays([arrays[name] for name in columns], list(columns))

    def _in_file(self, columns: Columns) -> Columns:
        folders = dict(self._values)
        return {name: column for name, column in columns.items() if name not in folders}


def _constant(value: str | None, column: Column) -> pa.Array:
    """Return a column of one row; the value is missing if it does not parse, as in CSV."""
    raw = None if value is None else value.encode("utf-8", "surrogateescape")
    text = pa.nulls(1, pa.binary()) if raw is None else binary_of([raw])
    return decoded(parse(text, column))


# --- the files of a source ----------------------------------------------------------------------

# The forms of files, and how their names end. ``files`` says who reads each.
FORMS = {
    "Parquet": (".parquet", ".parq", ".pq"),
    "CSV": (".csv", ".csv.gz", ".tsv", ".tsv.gz"),
    "Excel": (".xlsx", ".xlsm"),
}

# The forms of files that a directory does not stand for, but that can be named.
_NAMED_ONLY = {
    ".txt": "CSV",
    ".txt.gz": "CSV",
    ".xls": "another spreadsheet",
    ".xlsb": "another spreadsheet",
    ".ods": "another spreadsheet",
    ".numbers": "another spreadsheet",
}

# The parts of a path.
Names = tuple[str, ...]


@dataclass(frozen=True)
class File:
    """A file of a source.

    Attributes
    ----------
    path : Path
    name : str
        What errors call it.
    below : tuple of str
        The parts of its path below what was given, or from the first wildcard on; the file's name
        comes last.
    """

    path: Path
    name: str
    below: Names

    @property
    def form(self) -> str:
        """One of ``FORMS``, or "another spreadsheet".

        A file with an unknown ending, given by its name, is read as Parquet.
        """
        name = self.path.name.lower()
        named = (form for ending, form in _NAMED_ONLY.items() if name.endswith(ending))
        listed = (form for form, endings in FORMS.items() if name.endswith(endings))
        return next(chain(listed, named), "Parquet")


def is_local(given: str) -> bool:
    """Tell whether a text is a path or a ``file:`` address, rather than another address."""
    if given.startswith("file://"):
        return True
    kind = kind_of(given)
    # A file may have a name that looks as if it held a password.
    return kind is None or (not kind and os.path.exists(given))


def local(given: str) -> Path:
    """Turn a path or a ``file:`` address into a path.

    Raises
    ------
    UsageError
        If it is another address.
    """
    if given.startswith("file://"):
        from urllib.request import url2pathname

        return Path(url2pathname(given.removeprefix("file://").removeprefix("localhost")))
    if not is_local(given):
        # It may hold a password: only its kind is quoted.
        kind = kind_of(given)
        raise UsageError(
            f"a source at {kind}:..." if kind else "a source at an address",
            "only local files, and tables of PostgreSQL and DuckDB, are opened by name",
            "Give a pyarrow.dataset.dataset(...), which opens other file systems, or write "
            '"postgresql://host/database?table=trips" or "duckdb:trips.db?table=trips"',
        )
    return Path(given).expanduser()


def files_of(given: Sequence[str]) -> list[File]:
    """List the files that paths, directories and patterns stand for, sorted.

    Raises
    ------
    DataError
        If a directory or a pattern holds no table, or a file is listed twice.
    """
    files: list[File] = []
    for path in given:
        files += guarded(path, _expanded, path)
    files.sort(key=lambda file: file.path.parts)
    if len(files) > 1:
        # A link has another path than its file, but the same device and inode.
        statuses = [stat_file(file.path, file.name) for file in files]
        distinct = {(status.st_dev, status.st_ino) for status in statuses}
        if len(distinct) < len(files):
            raise DataError(
                called(given),
                "a file is there twice, and its rows would count twice",
                "Name each file once",
            )
    return files


def called(given: Sequence[str]) -> str:
    """Return what a source is called: what the user gave, never a file that was listed."""
    first = given[0].rstrip("/") or given[0]
    return first if len(given) == 1 else f"{first} and {len(given) - 1} more"


# --- what was given -----------------------------------------------------------------------------


def _expanded(given: str) -> list[File]:
    path = local(given)
    # A name may hold such signs: a file of exactly that name is meant as it is.
    if _WILDCARD.search(str(path)) and not path.exists():
        parts = path.parts
        n_fixed = next(index for index, part in enumerate(parts) if _WILDCARD.search(part))
        files = list(_matches(Path(*parts[:n_fixed]), parts[n_fixed:], ()))
        obstacle = "no file matches"
        remedy = "Check the pattern, and the folder from which you run"
        if "?table=" in given:
            remedy = "Write duckdb: before it if it is a database of DuckDB"
    elif path.is_dir():
        files = list(_below(path, ()))
        obstacle = "it is a directory, and holds no Parquet, CSV or Excel file"
        remedy = "Name a file, or a directory with files ending in .parquet, .csv or .xlsx"
    else:
        return [File(path, given, (path.name,))]
    if not files:
        raise DataError(given, obstacle, remedy)
    _require_one_form(given, files)
    # A pattern may match both a directory and what lies below it.
    distinct = {file.path: file for file in files}
    in_order = sorted(distinct.values(), key=lambda file: file.path.parts)
    return [
        replace(file, name=f"{given}, file {number} in sorted order")
        for number, file in enumerate(in_order, 1)
    ]


def _require_one_form(given: str, files: Sequence[File]) -> None:
    """Refuse files of several forms: a table and its export would count each row twice."""
    forms = {file.form for file in files}
    if len(forms) > 1:
        raise DataError(
            given,
            f"it holds both {' and '.join(form for form in FORMS if form in forms)} files",
            'Choose one kind by a pattern, such as "data/**/*.parquet"',
        )


# --- patterns -----------------------------------------------------------------------------------


_WILDCARD = re.compile(r"[*?\[]")


def _matches(folder: Path, patterns: Names, below: Names) -> Iterator[File]:
    """Follow a pattern part by part, from its first wildcard on.

    Parameters
    ----------
    folder : Path
        What the parts before have matched; a file where no parts are left.
    patterns : tuple of str
        The parts that are left.
    below : tuple of str
        The names that were matched so far.
    """
    if not patterns:
        yield from _below(folder, below) if folder.is_dir() else [File(folder, "", below)]
        return
    head = patterns[0]
    rest = patterns[1:]
    if head == "**":
        yield from _matches(folder, rest, below)
        # At the end of a pattern, a directory already stands for all that lies below it.
        for name in _folders(folder) if rest else ():
            yield from _matches(folder / name, patterns, (*below, name))
    elif not _WILDCARD.search(head):
        if (folder / head).exists():
            yield from _matches(folder / head, rest, (*below, head))
    elif folder.is_dir():
        for name in _names(folder, head):
            yield from _matches(folder / name, rest, (*below, name))


# --- directories --------------------------------------------------------------------------------


def _below(folder: Path, below: Names) -> Iterator[File]:
    endings = tuple(chain.from_iterable(FORMS.values()))
    for name in _names(folder):
        if name.lower().endswith(endings) and not (folder / name).is_dir():
            yield File(folder / name, "", (*below, name))
    for name in _folders(folder):
        yield from _below(folder / name, (*below, name))


def _names(folder: Path, pattern: str = "*") -> list[str]:
    """List matching names in a folder, sorted; hidden ones only if the pattern begins so."""
    hidden = tuple(sign for sign in (".", "_", "~$") if not pattern.startswith(sign))
    return sorted(
        name
        for name in os.listdir(folder)
        if fnmatch(name, pattern) and not name.startswith(hidden)
    )


def _folders(folder: Path) -> list[str]:
    """Return the folders in a folder, without links that lead back to a folder above."""
    if not folder.is_dir():
        return []
    above = {parent.resolve() for parent in (folder, *folder.parents)}

    def leads_back(path: Path) -> bool:
        return path.is_symlink() and path.resolve() in above

    return [
        name
        for name in _names(folder)
        if (folder / name).is_dir() and not leads_back(folder / name)
    ]


# --- the reader ---------------------------------------------------------------------------------


class Files(NotingReader):
    """The files that paths, directories and patterns stand for, one after another, sorted.

    Names and types are those of the first file. Each file must have all columns wanted, of types
    that fit. Ids of persons are converted to one type.
    """

    in_memory = False

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> Files | None:
        """Read a path or a list of paths. Other addresses than ``file:`` are left to others."""
        if isinstance(data, str | os.PathLike):
            return cls([data], person) if is_local(os.fspath(data)) else None
        if not isinstance(data, list | tuple) or not data:
            return None
        are_paths = all(isinstance(path, str | os.PathLike) for path in data)
        return cls(data, person) if are_paths else None

    def __init__(
        self,
        given: Sequence[str | os.PathLike[str]],
        person: str | None,
        options: FileOptions = NO_OPTIONS,
    ) -> None:
        self._given = [os.fspath(path) for path in given]
        # Called for its refusal of other addresses, before any file is looked for.
        for path in self._given:
            local(path)
        self._person = person
        self._options = options
        self.name = called(self._given)

    def written_as(self, options: FileOptions) -> Self:
        return type(self)(self._given, self._person, options)

    def parts(self) -> list[RowReader]:
        """Give the files that exist at this moment."""
        return [self._open(file) for file in files_of(self._given)]

    def _open(self, file: File) -> RowReader:
        table: RowReader
        match file.form:
            case "Parquet":
                from sfumato.data.readers.arrow import ParquetFile

                table = ParquetFile(file.path, file.name)
            case "CSV":
                table = CsvFile(file.path, file.name, self._person, self._options)
            case "Excel":
                from sfumato.data.readers.excel import ExcelFile

                table = ExcelFile(file.path, file.name, self._person, self._options)
            case _:
                raise DataError(
                    file.name,
                    "it is a spreadsheet of another form than .xlsx",
                    "Open it, and save it as .xlsx or as CSV",
                )
        self._options.require(file.form, file.name)
        values = folder_values(file.below[:-1])
        return FileInFolders(table, values, self._person) if values else table

    def names(self) -> list[str]:
        first = self.parts()[0]
        return guarded(first.name, first.names)

    def schema(self, columns: Columns) -> pa.Schema:
        first = self.parts()[0]
        return guarded(first.name, first.schema, columns)

    def label(self, name: str | None) -> str:
        """Identify the state of the files: it changes when one of them changes, comes or goes.

        The options that are stated belong to it: read otherwise, the files hold other rows.
        """
        files = files_of(self._given)
        if len(files) == 1 and files[0].name == self._given[0]:
            path = files[0].path
            status = stat_file(path, files[0].name)
            state = f"modified {status.st_mtime_ns} of {status.st_size} bytes"
            return self._as_read(f"{name or path.resolve()} {state}")
        states = []
        for file in files:
            status = stat_file(file.path, file.name)
            # Where the files lie counts only if they have no name: those that have one may move.
            place = str(file.path.resolve()) if name is None else None
            states.append(["/".join(file.below), place, status.st_mtime_ns, status.st_size])
        digest = hashlib.sha256(json.dumps(states).encode()).hexdigest()
        return self._as_read(f"{name or 'files'} modified {digest}")

    def place(self, name: str | None) -> str:
        return self._as_read(name or " and ".join(sorted(map(os.path.realpath, self._given))))

    def _as_read(self, files: str) -> str:
        stated = self._options.stated()
        return f"{files} read with {stated}" if stated else files

    def rows(self) -> int | None:
        """Give the number of rows, if each file declares it."""
        declared = [guarded(part.name, part.rows) for part in self.parts()]
        rows = [number for number in declared if number is not None]
        return sum(rows) if len(rows) == len(declared) else None

    def hints(self) -> Iterable[str]:
        for part in self.parts():
            yield from guarded_batches(part.name, part.hints)

    def misreading(self) -> tuple[str, str] | None:
        return self.parts()[0].misreading()

    def pieces_noting(self, columns: Columns, losses: Losses) -> Iterable[Piece]:
        """Give the pieces of each file, and add to ``losses`` what is lost in reading text."""
        parts = self.parts()
        if len(parts) == 1 and parts[0].name == self.name:
            # An error names the table, and so the file: it needs no guard of its own.
            return parts[0].pieces_noting(columns, losses)
        return self._pieces_of(parts, columns, losses)

    def _pieces_of(
        self, parts: Sequence[RowReader], columns: Columns, losses: Losses
    ) -> Iterator[Piece]:
        id_type: pa.DataType | None = None
        if self._person in columns and len(parts) > 1:
            # Files may store the ids of a person in several types: in one type they are one person.
            schemas = [guarded(part.name, part.schema, columns) for part in parts]
            id_type = ids_form([schema.field(self._person).type for schema in schemas])
        for part in parts:
            for piece in guarded_batches(part.name, part.pieces_noting, columns, losses):
                yield partial(self._of_part, part.name, piece, id_type)

    def _of_part(
        self, name: str, piece: Piece, id_type: pa.DataType | None
    ) -> Iterator[pa.RecordBatch]:
        for batch in guarded_batches(name, piece):
            if id_type is None:
                yield batch
                continue
            index = batch.schema.get_field_index(self._person)
            ids = decoded(batch.column(index)).cast(id_type)
            yield batch.set_column(index, pa.field(self._person, id_type), ids)
