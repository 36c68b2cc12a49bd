"""Reduce the errors of engines to their kind, because their messages quote values of the data.

They are raised again as a ``DataError`` that has neither cause nor context.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from sfumato.errors import DataError, InternalError, SfumatoError, missing_file

T = TypeVar("T")


def guarded(name: str, action: Callable[[], T]) -> T:
    """Do something with an engine. If it fails, say which kind of failure it was, and no more.

    Parameters
    ----------
    name : str
        What the error calls the table.
    action : callable
    """
    try:
        return action()
    except (SfumatoError, InternalError, KeyboardInterrupt, GeneratorExit) as error:
        # An error that a reader met before it refused may quote values.
        error.__cause__ = error.__context__ = None
        raise
    except BaseException as error:
        # Engines have error trees of their own, and a panic in Rust derives from BaseException.
        obstacle, remedy = _kind_of(error, name)
    # Raised outside the except block: the context that Python adds there would quote values.
    raise DataError(name, obstacle, remedy)


def guarded_batches(name: str, start: Callable[[], Iterable[T]]) -> Iterator[T]:
    """Iterate over what an engine gives, with each step guarded."""
    batches = guarded(name, lambda: iter(start()))
    while (batch := guarded(name, lambda: next(batches, None))) is not None:
        yield batch


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


def _kind_of(error: BaseException, name: str) -> tuple[str, str]:
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
    kind = type(error).__name__
    obstacle = f"it cannot be read ({kind}; its message is withheld, because it may quote values)"
    return obstacle, "Check the table with the tool that wrote it"


def stat_file(path: Path, name: str) -> os.stat_result:
    """Get the status of a file without opening it."""
    status = guarded(name, path.stat)
    if path.is_dir():
        raise DataError(name, "it is a directory", "Name files")
    return status


def check_file(path: Path, name: str) -> None:
    """Refuse a file that is missing, cannot be read or is empty."""
    is_empty = stat_file(path, name).st_size == 0
    guarded(name, lambda: path.open("rb").close())
    if is_empty:
        raise DataError(name, "the file is empty", "Check what wrote it")
