"""Which files a source is made of: files, directories and patterns, listed anew each time and always in one order.

* A directory stands for the Parquet and CSV files below it, of one kind; a pattern (``*``, ``?``,
  ``[ab]``, and ``**`` for any depth) for what it matches, directories included. Names that begin
  with ``.`` or ``_`` are passed over.
* Files are sorted by path, folder by folder, in order of code points, whatever order they were
  given in.
* Folders named ``key=value`` below a directory, or from the first wildcard on, are columns (see
  ``hive``).
* What cannot be listed is refused, as is a file that is there twice: no rows are left out or
  doubled in silence.

Names of files that were listed may hold values of the data. Errors call them by what was given and
by number.
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
from urllib.request import url2pathname

from sfumato.data.guard import guarded, stat_file
from sfumato.errors import DataError, UsageError

FORMS = {"Parquet": (".parquet", ".parq", ".pq"), "CSV": (".csv", ".csv.gz")}
"""The forms of files, and how their names end. ``files`` knows who reads each."""

Below = tuple[str, ...]


@dataclass(frozen=True)
class File:
    """A file of a source.

    Attributes
    ----------
    path : Path
    name : str
        What errors call it.
    below : tuple of str
        The way to it from what was given, or from the first wildcard on; the file comes last.
    """

    path: Path
    name: str
    below: Below

    @property
    def form(self) -> str:
        """One of ``FORMS``. A file that is named alone and ends otherwise is taken for Parquet."""
        name = self.path.name.lower()
        return next((form for form, endings in FORMS.items() if name.endswith(endings)), "Parquet")


def is_local(given: str) -> bool:
    """Whether a text is a path or a ``file:`` address, and no address of another kind."""
    return given.startswith("file://") or not re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", given)


def local(given: str) -> Path:
    """Read a path or a ``file:`` address."""
    if given.startswith("file://"):
        return Path(url2pathname(given.removeprefix("file://").removeprefix("localhost")))
    if not is_local(given):
        scheme = given.partition(":")[0]
        raise UsageError(
            f"a source at {scheme}://",
            "only local files are opened by name",
            "Give a pyarrow.dataset.dataset(...), which opens other file systems",
        )
    return Path(given).expanduser()


def files_of(given: Sequence[str]) -> list[File]:
    """List the files that paths, directories and patterns stand for, sorted.

    Raises
    ------
    DataError
        If a directory or a pattern holds no table, or a file is there twice.
    """
    found = [file for each in given for file in guarded(each, partial(_expand, each))]
    found.sort(key=lambda file: file.path.parts)
    if len(found) > 1:
        seen = [
            (status.st_dev, status.st_ino)
            for status in (stat_file(file.path, file.name) for file in found)
        ]
        if len(set(seen)) < len(seen):
            raise DataError(
                called(given),
                "a file is there twice, and its rows would count twice",
                "Name each file once",
            )
    return found


def called(given: Sequence[str]) -> str:
    """What a source is called: as given, and no file that was listed."""
    first = given[0].rstrip("/") or given[0]
    return first if len(given) == 1 else f"{first} and {len(given) - 1} more"


def stamp(files: Iterable[File], named: bool) -> str:
    """Tell one state of several files from any other, by names, number, sizes and times of modification.

    With a name of the holder's own, where the files lie does not matter.
    """
    seen = []
    for file in files:
        status = stat_file(file.path, file.name)
        seen.append(
            [
                "/".join(file.below),
                None if named else str(file.path.resolve()),
                status.st_mtime_ns,
                status.st_size,
            ]
        )
    return hashlib.sha256(json.dumps(seen).encode()).hexdigest()


# --- directories and patterns -------------------------------------------------------------------------------------------


def _expand(given: str) -> list[File]:
    path = local(given)
    if _is_pattern(path) and not path.exists():
        fixed = next(i for i, part in enumerate(path.parts) if _wild(part))
        found = list(_matches(Path(*path.parts[:fixed]), path.parts[fixed:], ()))
        nothing = ("no file matches", "Check the pattern, and the folder from which you run")
    elif path.is_dir():
        found = list(_below(path, ()))
        nothing = (
            "it is a directory, and holds no Parquet or CSV file",
            "Name a file, or a directory with files ending in .parquet or .csv",
        )
    else:
        return [File(path, given, (path.name,))]
    if not found:
        raise DataError(given, *nothing)
    _one_form(given, found)
    once = {
        file.path: file for file in found
    }  # a pattern may match both a directory and what is below it
    found = sorted(once.values(), key=lambda file: file.path.parts)
    return [
        replace(file, name=f"{given}, file {i} in sorted order") for i, file in enumerate(found, 1)
    ]


def _one_form(given: str, found: list[File]) -> None:
    """A table and its export, side by side, would count each row twice."""
    forms = {file.form for file in found}
    if len(forms) > 1:
        raise DataError(
            given,
            f"it holds both {' and '.join(form for form in FORMS if form in forms)} files",
            'Choose one kind by a pattern, such as "data/**/*.parquet"',
        )


def _is_pattern(path: Path) -> bool:
    return any(_wild(part) for part in path.parts)


def _wild(part: str) -> bool:
    return any(sign in part for sign in "*?[")


def _matches(folder: Path, patterns: Below, below: Below) -> Iterator[File]:
    """Follow a pattern, part by part; its first part is the first wildcard or comes after it."""
    if not patterns:
        yield from _below(folder, below) if folder.is_dir() else [File(folder, "", below)]
        return
    head = patterns[0]
    rest = patterns[1:]
    if head == "**":
        yield from _matches(folder, rest, below)
        for name in (
            _folders(folder) if rest else ()
        ):  # at the end, a directory stands for all below it
            yield from _matches(folder / name, patterns, (*below, name))
    elif not _wild(head):
        if (folder / head).exists():
            yield from _matches(folder / head, rest, (*below, head))
    elif folder.is_dir():
        for name in _names(folder, head):
            yield from _matches(folder / name, rest, (*below, name))


def _below(folder: Path, below: Below) -> Iterator[File]:
    """All tables below a directory."""
    endings = tuple(chain.from_iterable(FORMS.values()))
    for name in _names(folder):
        if name.lower().endswith(endings) and not (folder / name).is_dir():
            yield File(folder / name, "", (*below, name))
    for name in _folders(folder):
        yield from _below(folder / name, (*below, name))


def _names(folder: Path, pattern: str = "*") -> list[str]:
    passed_over = tuple(sign for sign in "._" if not pattern.startswith(sign))
    return sorted(
        name
        for name in os.listdir(folder)
        if fnmatch(name, pattern) and not name.startswith(passed_over)
    )


def _folders(folder: Path) -> list[str]:
    """Folders in a folder, without links that lead back up."""
    if not folder.is_dir():
        return []
    above = {parent.resolve() for parent in (folder, *folder.parents)}
    inside = [name for name in _names(folder) if (folder / name).is_dir()]
    return [
        name
        for name in inside
        if not (folder / name).is_symlink() or (folder / name).resolve() not in above
    ]
