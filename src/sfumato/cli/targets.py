"""Where commands write. Each path is looked at before anything is read or paid, so that a slip in one costs nothing."""

from __future__ import annotations

import os
from pathlib import Path

import click

from sfumato.errors import DataError, UsageError
from sfumato.writing import DATABASE, is_database, write_bytes

PICTURES = (".svg", ".png", ".pdf")


class _Target(click.Path):
    """A path to be written. Subclasses say what stands in its way."""

    doing, remedy = "writing", "Choose a path that can be written"

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        obstacle = self.obstacle(path)
        if obstacle is not None:
            raise DataError(f"{self.doing} {path}", obstacle, self.remedy)
        return path

    def obstacle(self, path: Path) -> str | None:
        """Why it cannot be written, or None."""
        raise NotImplementedError


class NewFile(_Target):
    """A file to be written, or written over.

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
        return (
            _folder_obstacle(path.parent) if path.parent.exists() else "its folder does not exist"
        )


class Picture(NewFile):
    """The same, with an ending that names a picture format."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        path = super().convert(value, param, ctx)
        if path.suffix.lower() not in PICTURES:
            raise UsageError(
                f"--plot {path}",
                "its ending names no picture format",
                f"Use one of {', '.join(PICTURES)}",
            )
        return path


class NewFolder(_Target):
    """A folder to write into, made where there is none.

    Raises
    ------
    DataError
        If it cannot be made or written.
    """

    doing, remedy = "saving to", "Choose a folder that can be written"

    def obstacle(self, path: Path) -> str | None:
        return _folder_obstacle(
            next(folder for folder in (path, *path.absolute().parents) if folder.exists())
        )


def write_text(path: Path, text: str) -> None:
    """Write a file; what goes wrong at the last moment, such as a full disk, is an error in three parts, too."""
    write_bytes(path, text.encode())


def _folder_obstacle(folder: Path) -> str | None:
    if not folder.is_dir():
        return f"{folder} is no folder"
    return (
        None if os.access(folder, os.W_OK | os.X_OK) else f"the folder {folder} may not be written"
    )
