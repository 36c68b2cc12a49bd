"""Options and arguments that name a file: to write, to read, or to load saved releases from.

Each path to write is checked before anything is read or paid, so that a mistake in one costs
nothing. The argument FILE is a path, or the address of a table in a database. Saved releases may be
of questions that installed packages declare.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TypeAlias

import click

from sfumato.answers import Release, discover, load
from sfumato.basics import DATABASE, is_database, is_folder, several
from sfumato.cli.output import print_messages
from sfumato.data.addresses import Address, read
from sfumato.data.readers.files import files_of, is_local, local
from sfumato.errors import DataError, UsageError

# --- files to write -------------------------------------------------------------------------------

PICTURES = (".svg", ".png", ".pdf")
MOST_NAMED = 3  # files that were replaced


class _Target(click.Path):
    """A path to write to. Subclasses say why one cannot be written."""

    action = "writing"
    remedy = "Choose a path that can be written"

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Read the path, and refuse one that cannot be written."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        obstacle = self.obstacle(path)
        if obstacle is not None:
            raise DataError(f"{self.action} {path}", obstacle, self.remedy)
        self.require_ending(path, "writing" if param is None else param.opts[0])
        if ctx is not None:
            before = _written_at(path)
            ctx.call_on_close(lambda: _say_replaced(path, before))
        return path

    def require_ending(self, path: Path, option: str) -> None:
        """Refuse a name with an ending of another kind of file. Any ending will do here."""

    def obstacle(self, path: Path) -> str | None:
        """Why the path cannot be written; None if it can."""
        raise NotImplementedError


def _written_at(path: Path) -> dict[Path, int]:
    """When a file, or each file of a folder, was last written."""
    files = path.iterdir() if path.is_dir() else [path]
    return {file: file.stat().st_mtime_ns for file in files if file.is_file()}


def _say_replaced(path: Path, before: dict[Path, int]) -> None:
    """Say which files that were there are others now.

    A plan is not replaced without --force, because a person wrote it. All other files can be
    written again at no cost.
    """
    now = _written_at(path)
    replaced = sorted(str(file) for file in before if now.get(file, before[file]) != before[file])
    if replaced:
        more = len(replaced) - MOST_NAMED
        others = f" and {several(more, 'more file')}" if more > 0 else ""
        print_messages(
            f"Replaced what was there before: {', '.join(replaced[:MOST_NAMED])}{others}"
        )


class NewFile(_Target):
    """A file to write, or to replace.

    Raises
    ------
    DataError
        If its folder does not exist, or it cannot be written there, or it is a ledger.
    """

    def obstacle(self, path: Path) -> str | None:
        if path.is_dir():
            return "it is a folder"
        if is_database(path):
            return DATABASE
        if path.exists():
            return None if os.access(path, os.W_OK) else "the file may not be written"
        if not path.parent.exists():
            return "its folder does not exist"
        return _folder_obstacle(path.parent)


class Picture(NewFile):
    """A file to write whose ending names a picture format.

    Raises
    ------
    UsageError
        If the ending names none.
    """

    def require_ending(self, path: Path, option: str) -> None:
        if path.suffix.lower() not in PICTURES:
            raise UsageError(
                f"{option} {path}",
                "its ending names no picture format",
                f"Use one of {', '.join(PICTURES)}",
            )


class NewFolder(_Target):
    """A folder to write into. It is made if it does not exist.

    Raises
    ------
    DataError
        If it cannot be made or written.
    """

    action = "saving to"
    remedy = "Choose a folder that can be written"

    def obstacle(self, path: Path) -> str | None:
        """Why the folder, or the nearest one above it that exists, cannot be written."""
        above = (path, *path.absolute().parents)
        return _folder_obstacle(next(folder for folder in above if folder.exists()))


class FileOrFolder(_Target):
    """A file to write, or a folder to write into: one that is there, or a name without an ending.

    Parameters
    ----------
    ending : str
        What the name of a file ends in; other programs would take it for something else.

    Raises
    ------
    DataError
        If it cannot be written.
    UsageError
        If the name of a file has another ending.
    """

    def __init__(self, ending: str) -> None:
        super().__init__()
        self.ending = ending

    def require_ending(self, path: Path, option: str) -> None:
        if not is_folder(path) and path.suffix.lower() != self.ending:
            raise UsageError(
                f"{option} {path}",
                f"its name does not end in {self.ending}",
                f"End it in {self.ending}, or name a folder",
            )

    def obstacle(self, path: Path) -> str | None:
        return (NewFolder if is_folder(path) else NewFile)().obstacle(path)


def require_unread(option: str, path: Path | None, read: Iterable[str | os.PathLike[str]]) -> None:
    """Refuse to write over a file that the same command reads. None: nothing is written.

    Raises
    ------
    UsageError
        If the path leads to one of the files that are read.
    """
    if path is None or not path.is_file():
        return
    # The file itself is compared: a link has another path.
    if any(os.path.exists(source) and path.samefile(source) for source in read):
        raise UsageError(
            f"{option} {path}", "it is a file that is read, and would be lost", "Name another file"
        )


def require_apart(option: str, path: Path, ending: str, source: str | os.PathLike[str]) -> None:
    """Refuse to write over a file of the table that is read, or a file that is read next time.

    Parameters
    ----------
    option : str
    path : Path
        A file to write, or a folder of files to write.
    ending : str
        How the names of these end.
    source : str or path
        What is read: a file, a directory, a pattern, or an address.

    Raises
    ------
    UsageError
        If the path is a file that is read, or lies where a directory or a pattern finds it.
    DataError
        If a directory or a pattern finds nothing.
    """
    files = files_read(source)
    require_unread(option, path, files)
    if files and _is_found(path, ending, local(os.fspath(source)), files):
        raise UsageError(
            f"{option} {path}",
            "it lies among the files that are read, and would be counted with them next time",
            "Name a file or folder elsewhere",
        )


def files_read(source: str | os.PathLike[str]) -> list[Path]:
    """The files of a source: none where it is no path; errors are those of `require_apart`."""
    given = os.fspath(source)
    if read(given) is not None or not is_local(given):
        return []
    return [file.path for file in files_of([given])]


def _is_found(path: Path, ending: str, source: Path, files: Sequence[Path]) -> bool:
    """Whether a directory or a pattern stands for what is written there, too."""
    is_file = not is_folder(path)
    folder = (path.parent if is_file else path).resolve()
    if source.is_dir():
        return folder.is_relative_to(source.resolve())
    name = path.name if is_file else f"01-answer{ending}"
    is_beside = folder in {file.parent.resolve() for file in files}
    return is_beside and not source.exists() and fnmatch(name, source.name)


def _folder_obstacle(folder: Path) -> str | None:
    if not folder.is_dir():
        return f"{folder} is no folder"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"the folder {folder} may not be written"
    return None


# --- files to read --------------------------------------------------------------------------------

SourcePath: TypeAlias = Path | Address


class SourceFile(click.Path):
    """A path, or an address such as ``postgresql://host/database?table=trips``, as it is written.

    A path of Python would make one slash of two in an address.
    """

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> SourcePath:
        address = read(value) if isinstance(value, str) else None
        return address or Path(os.fsdecode(super().convert(value, param, ctx)))


def saved(path: Path) -> Release:
    """Read a release from a file.

    Which packages are imported depends on what is installed, never on what the file says: a file
    from a stranger must not choose the code that runs.

    Raises
    ------
    DataError
        If it cannot be read; its notes say which packages could not be imported.
    """
    if path.is_dir():
        raise DataError(
            f"loading {path}", "it is a folder", f"Name the files in it, as in {path}/*.json"
        )
    refused = discover()
    try:
        return load(path)
    except DataError as error:
        for other in refused.values():
            error.add_note(str(other))
        raise
