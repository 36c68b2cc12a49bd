"""Have Spark count Parquet files by their path, as ``sfumato release --engine spark`` does."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sfumato.basics.text import public_place
from sfumato.data.readers.files import Files
from sfumato.data.readers.listing import files_of, is_local
from sfumato.data.readers.spark import SparkTable
from sfumato.data.readers.spark_failures import spark_guarded
from sfumato.errors import DataError

if TYPE_CHECKING:
    from sfumato.data.readers.spark import SparkFrame, SparkSession


class SparkFiles(SparkTable):
    """Parquet files: a path, a folder or a pattern; or an address that Spark knows.

    The state of local files is known, so an answer about unchanged files is found again, and a file
    that is written to meanwhile is noticed. What lies at another address counts as a table in
    memory: it needs a name.

    Parameters
    ----------
    path : str or path
    session : SparkSession
    """

    def __init__(self, path: str | os.PathLike[str], session: SparkSession) -> None:
        given = os.fspath(path)
        self._files = Files([given], None) if is_local(given) else None
        self.in_memory = self._files is None
        # Elsewhere, an address may hold a password or a key.
        self.name = given if self._files is not None else public_place(given)
        paths = [given]
        if self._files is not None:
            listed = files_of([given])
            if any(file.form != "Parquet" for file in listed):
                raise DataError(
                    given,
                    "not all of these files are Parquet",
                    "Give Spark Parquet files, or a DataFrame",
                )
            folder = os.path.isdir(given)
            paths = [os.path.abspath(given)] if folder else [str(file.path) for file in listed]
        super().__init__(_read(session, self.name, paths))

    def label(self, name: str | None) -> str:
        """Identify the state of local files."""
        return super().label(name) if self._files is None else self._files.label(name)


def _read(session: SparkSession, name: str, paths: list[str]) -> SparkFrame:
    return spark_guarded(name, session, lambda: session.read.parquet(*paths))
