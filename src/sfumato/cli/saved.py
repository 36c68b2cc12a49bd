"""Reading saved releases, also those of questions that installed packages declare."""

from __future__ import annotations

from pathlib import Path

from sfumato.answers.loading import load
from sfumato.answers.registry import discover
from sfumato.answers.release import Release
from sfumato.errors import DataError


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
        remedy = f"Name the files in it, as in {path}/*.json"
        raise DataError(f"loading {path}", "it is a folder", remedy)
    refused = discover()
    try:
        return load(path)
    except DataError as error:
        for other in refused.values():
            error.add_note(str(other))
        raise
