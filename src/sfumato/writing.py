"""Writing what was made into a file, but never over a ledger, whose charges could not be had back."""

from __future__ import annotations

import os
from pathlib import Path

from sfumato.errors import DataError

ELSEWHERE = "Choose a path that can be written"
DATABASE = "it is a database, such as a ledger, and would be lost"
_SQLITE = b"SQLite format 3\0"  # what a ledger begins with, and its file of secrets


def is_database(path: Path) -> bool:
    """Whether a file is a database of SQLite, such as a ledger."""
    try:
        if not path.is_file():  # reading from a pipe would wait
            return False
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False  # not there, or not to be read: writing to it will say what is the matter


def require_no_database(path: Path, doing: str) -> None:
    """Refuse to write over a ledger.

    Raises
    ------
    DataError
        If the file is a database.
    """
    if is_database(path):
        raise DataError(f"{doing} {path}", DATABASE, ELSEWHERE)


def write_bytes(path: str | os.PathLike[str], content: bytes, doing: str = "writing") -> Path:
    """Write a file, and return its path.

    Raises
    ------
    DataError
        If it cannot be written, or is a ledger.
    """
    target = Path(path)
    require_no_database(target, doing)
    try:
        target.write_bytes(content)
    except OSError as error:
        reason = error.strerror or "the file cannot be written"
    else:
        return target
    raise DataError(f"{doing} {target}", reason, ELSEWHERE)
