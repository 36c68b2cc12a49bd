"""List the files of a source, anew each time and always in the same order.

* A directory stands for the Parquet, CSV and Excel files below it, all of one kind. A pattern
  (``*``, ``?``, ``[ab]``, and ``**`` for any depth) stands for what it matches, directories
  included. Names that begin with ``.`` or ``_`` are skipped, and so are those of ``~$``, which
  Excel writes beside an open file.
* Files are sorted by path, folder by folder, in order of code points, whatever order they were
  given in.
* Folders named ``key=value``, below a directory or from the first wildcard on, are columns (see
  ``hive``).
* What cannot be listed is refused, and so is a file that is listed twice: no rows are left out or
  doubled silently.

The names of listed files may hold values of the data. So errors give what the user gave, and the
number of the file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import partial
from itertools import chain
from pathlib import Path
from urllib.request import url2pathname

from sfumato.basics.text import kind_of
from sfumato.data.guard import guarded, stat_file
from sfumato.errors import DataError, UsageError

FORMS = {
    "Parquet": (".parquet", ".parq", ".pq"),
    "CSV": (".csv", ".csv.gz", ".tsv", ".tsv.gz"),
    "Excel": (".xlsx", ".xlsm"),
}
"""The forms of files, and how their names end. ``files`` says who reads each."""

_NAMED_ONLY = {
    ".txt": "CSV",
    ".txt.gz": "CSV",
    ".xls": "another spreadsheet",
    ".xlsb": "another spreadsheet",
    ".ods": "another spreadsheet",
    ".numbers": "another spreadsheet",
}
"""The forms of files that a directory does not stand for, but that can be named."""

Names = tuple[str, ...]
"""The parts of a path."""


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
    """Whether a text is a path or a ``file:`` address, rather than another address."""
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
    files = [file for each in given for file in guarded(each, partial(_expanded, each))]
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
    """What a source is called: what the user gave, never a file that was listed."""
    first = given[0].rstrip("/") or given[0]
    return first if len(given) == 1 else f"{first} and {len(given) - 1} more"


def state_digest(files: Iterable[File], with_paths: bool) -> str:
    """Digest the state of several files: their number, names, sizes and times of modification.

    With ``with_paths``, the folder in which the files lie counts as well; without, they may move.
    """
    states = []
    for file in files:
        status = stat_file(file.path, file.name)
        path = str(file.path.resolve()) if with_paths else None
        states.append(["/".join(file.below), path, status.st_mtime_ns, status.st_size])
    return hashlib.sha256(json.dumps(states).encode()).hexdigest()


# --- what was given -----------------------------------------------------------------------------


def _expanded(given: str) -> list[File]:
    """The files that one path, directory or pattern stands for."""
    path = local(given)
    if _is_pattern(path) and not path.exists():
        files = _matching(path)
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


def _require_one_form(given: str, files: list[File]) -> None:
    """Refuse forms side by side: a table and its export would count each row twice."""
    forms = {file.form for file in files}
    if len(forms) > 1:
        raise DataError(
            given,
            f"it holds both {' and '.join(form for form in FORMS if form in forms)} files",
            'Choose one kind by a pattern, such as "data/**/*.parquet"',
        )


# --- patterns -----------------------------------------------------------------------------------


def _is_pattern(path: Path) -> bool:
    return any(_is_wild(part) for part in path.parts)


def _is_wild(part: str) -> bool:
    return any(wildcard in part for wildcard in "*?[")


def _matching(pattern: Path) -> list[File]:
    """The files that a pattern matches."""
    parts = pattern.parts
    n_fixed = next(index for index, part in enumerate(parts) if _is_wild(part))
    return list(_matches(Path(*parts[:n_fixed]), parts[n_fixed:], ()))


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
    elif not _is_wild(head):
        if (folder / head).exists():
            yield from _matches(folder / head, rest, (*below, head))
    elif folder.is_dir():
        for name in _names(folder, head):
            yield from _matches(folder / name, rest, (*below, name))


# --- directories --------------------------------------------------------------------------------


def _below(folder: Path, below: Names) -> Iterator[File]:
    """All tables below a directory."""
    endings = tuple(chain.from_iterable(FORMS.values()))
    for name in _names(folder):
        if name.lower().endswith(endings) and not (folder / name).is_dir():
            yield File(folder / name, "", (*below, name))
    for name in _folders(folder):
        yield from _below(folder / name, (*below, name))


def _names(folder: Path, pattern: str = "*") -> list[str]:
    """The matching names in a folder, sorted; hidden ones only if the pattern begins like them."""
    hidden = tuple(sign for sign in (".", "_", "~$") if not pattern.startswith(sign))
    return sorted(
        name
        for name in os.listdir(folder)
        if fnmatch(name, pattern) and not name.startswith(hidden)
    )


def _folders(folder: Path) -> list[str]:
    """The folders in a folder, without links that lead back to a folder above."""
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
