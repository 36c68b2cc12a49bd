"""Writing results into files, but never over a ledger: its charges would be lost for good."""

from __future__ import annotations

import os
from pathlib import Path

from sfumato.errors import DataError, UsageError

ELSEWHERE = "Choose a path that can be written"
DATABASE = "it is a database, such as a ledger, and would be lost"
_SQLITE = b"SQLite format 3\0"  # how a ledger begins, and its file of secrets


def is_database(path: Path) -> bool:
    """Whether a file is a database of SQLite, such as a ledger."""
    try:
        # Reading from a pipe would wait for someone to write to it.
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        # It is missing or cannot be read. If it cannot be written either, writing will say so.
        return False


def _target(path: object, doing: str) -> Path:
    """A path as the user gave it.

    Raises
    ------
    UsageError
        If it is none, or no file system can hold it.
    """
    request = f"{doing} a file"
    if not isinstance(path, str | os.PathLike):
        raise UsageError(
            request,
            f"a value of type {type(path).__name__} is not a path",
            'Give a path, such as "release.json"',
        )
    target = Path(path)
    try:
        os.fsencode(target)
    except UnicodeEncodeError:
        obstacle = "its name holds half a character (a lone surrogate)"
    else:
        return target
    raise UsageError(request, obstacle, "Give another name")


def write_bytes(path: str | os.PathLike[str], content: bytes, doing: str = "writing") -> Path:
    """Write a file, and return its path.

    Parameters
    ----------
    path : str or path
        An existing file is replaced, unless it is a ledger.
    content : bytes
    doing : str
        What the caller is doing, for messages.

    Raises
    ------
    DataError
        If the file cannot be written, or is a ledger.
    UsageError
        If ``path`` is not a path.
    """
    target = _target(path, doing)
    if is_database(target):
        raise DataError(f"{doing} {target}", DATABASE, ELSEWHERE)
    try:
        target.write_bytes(content)
    except OSError as error:
        reason = error.strerror or "the file cannot be written"
    else:
        return target
    raise DataError(f"{doing} {target}", reason, ELSEWHERE)


def is_folder(path: object) -> bool:
    """Whether a path names a folder: one that is there, or one to make, without an ending."""
    if not isinstance(path, str | os.PathLike):
        return False
    return Path(path).is_dir() or not Path(path).suffix


def made_folder(path: str | os.PathLike[str], doing: str = "saving to") -> Path:
    """Make a folder, unless it is there, and return its path.

    Raises
    ------
    DataError
        If it cannot be made.
    UsageError
        If ``path`` is not a path.
    """
    folder = _target(path, doing)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        obstacle = error.strerror or "the folder cannot be made"
    else:
        return folder
    raise DataError(f"{doing} {folder}", obstacle, "Choose a folder that can be written")


def file_name(title: str) -> str:
    """A title as part of a file name: its letters and digits, joined by hyphens.

    >>> file_name("Table of carrier x hour")
    'table-of-carrier-x-hour'
    """
    cleaned = "".join(c if c.isalnum() else " " for c in title.lower())
    return "-".join(cleaned.split())[:60]
