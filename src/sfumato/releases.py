"""The closed unions of questions and releases: what a file may hold, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

import msgspec

from sfumato.errors import DataError
from sfumato.histogram import Histogram, HistogramRelease
from sfumato.partition import Partition, UniformPartitioner
from sfumato.release import Release, from_bytes

AnyQuestion: TypeAlias = Histogram | UniformPartitioner
AnyRelease: TypeAlias = HistogramRelease | Partition


def load(path: str | os.PathLike[str]) -> Release:
    """Read a release that ``release.save`` wrote.

    Raises
    ------
    DataError
        If the file is missing or holds no release of this version.
    """
    asked = f"loading {Path(path)}"
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror or "the file cannot be read"
    else:
        try:
            release: Release = from_bytes(data, AnyRelease)
        except (msgspec.MsgspecError, ValueError, TypeError):
            reason = "the file does not hold a release of this version"
        else:
            return release
    raise DataError(asked, reason, "Name a file that release.save wrote")
