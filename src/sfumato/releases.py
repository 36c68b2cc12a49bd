"""The closed unions of questions and releases: what a file may hold, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

import msgspec

from sfumato.clustering import KMeans, KMeansRelease
from sfumato.errors import DataError, UsageError
from sfumato.histogram import Histogram, HistogramRelease
from sfumato.partition import (
    AdaptiveGridPartitioner,
    AutoPartitioner,
    BinaryPartitioner,
    MedianPartitioner,
    MultiQuantilePartitioner,
    Partition,
    PrivTreePartitioner,
    UniformPartitioner,
)
from sfumato.quantiles import Quantiles, QuantilesRelease
from sfumato.release import Release, from_bytes, marked
from sfumato.streaming.counter import CounterRelease

AnyPartitioner: TypeAlias = (
    UniformPartitioner
    | AdaptiveGridPartitioner
    | BinaryPartitioner
    | MedianPartitioner
    | MultiQuantilePartitioner
    | PrivTreePartitioner
    | AutoPartitioner
)
AnyQuestion: TypeAlias = Histogram | Quantiles | AnyPartitioner | KMeans
AnyRelease: TypeAlias = HistogramRelease | QuantilesRelease | Partition | KMeansRelease | CounterRelease
FOR_PEOPLE = ("table", "accuracy")  # what --json prints beside a release; version 0.1 printed the first only
UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError, ArithmeticError, RecursionError)  # what decoding a false file raises


def load(path: str | os.PathLike[str]) -> Release:
    """Read a release that ``release.save`` wrote.

    Raises
    ------
    DataError
        If the file is missing or holds no release of this version.
    """
    if not isinstance(path, str | os.PathLike) or "\0" in os.fspath(path):
        raise UsageError(f"loading {type(path).__name__}", "it is not a path", "Name a file that release.save wrote")
    asked = f"loading {Path(path)}"
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        reason = error.strerror or "the file cannot be read"
    else:
        try:
            return marked(_read(data), loaded=True)
        except UNREADABLE:
            reason = "the file does not hold a release of this version"
    raise DataError(asked, reason, "Name a file that release.save wrote")


def _read(data: bytes) -> Release:
    """Decode a release; a field that no release has is refused, for it would be lost without a word.

    What ``--json`` prints is a release and, beside it, what follows from the release for people: that is not read.
    """
    try:
        release: Release = from_bytes(data, AnyRelease)
    except msgspec.ValidationError:
        fields = msgspec.json.decode(data)
        beside = [name for name in FOR_PEOPLE if isinstance(fields, dict) and name in fields]
        if not beside:
            raise
        for name in beside:
            del fields[name]
        release = from_bytes(msgspec.json.encode(fields), AnyRelease)
    return release
