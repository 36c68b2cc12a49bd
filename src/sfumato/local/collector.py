"""What runs on the server: it gathers reports, refuses what is none, and decodes them.

True values never come here.

Reports arrive as lines of JSON (``client.Report``) or as Parquet with the columns ``id`` and
``cells`` and the mechanism's label in the file's metadata. Only reports to one mechanism can be
decoded together; a copy of a report counts once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np

from sfumato.errors import DataError, UsageError
from sfumato.local.bpm import BPM
from sfumato.local.client import NOT_PRIVATE, Report, label, mechanism_of
from sfumato.local.constants import Floats
from sfumato.local.decoder import Decoded, decode
from sfumato.local.mechanism import MultivariateLaplace
from sfumato.privacy import Guarantee

METADATA = b"sfumato.mechanism"
# Bytes: a report in 10^5 dimensions takes less.
LONGEST_LINE = 2**22


class Collector:
    """Reports to one mechanism, gathered until they are decoded.

    Parameters
    ----------
    mechanism : BPM, MultivariateLaplace or None
        What the devices use. None: that of the first report, whoever sent it; for rehearsals only.
    private : bool
        False: take reports of ``testing.deterministic`` only, and say that they are not private.

    Attributes
    ----------
    refused : int
        Reports that were left out: not readable, to another mechanism, outside its lattice, or
        copies. Where a mechanism is given, also those whose noise came from a public seed; with
        ``private=False`` all others.
    """

    def __init__(
        self, mechanism: BPM | MultivariateLaplace | None = None, *, private: bool = True
    ) -> None:
        self.mechanism = mechanism
        self.private = private
        self.refused = 0
        self._ids: set[str] = set()
        self._cells: list[Sequence[int]] = []

    def __len__(self) -> int:
        return len(self._cells)

    def __repr__(self) -> str:
        what = "reports to anything"
        if self.mechanism is not None:
            what = f"reports to {label(self.mechanism)}"
        return f"Collector({len(self):,} {what}, {self.refused:,} refused)"

    def add(self, reports: Iterable[Report]) -> None:
        """Take reports; those that cannot be decoded together with the others are counted and left
        out.
        """
        mechanism = self.mechanism
        is_sound = None if mechanism is None else _soundness(mechanism, self.private)
        for report in reports:
            if is_sound is None:
                mechanism = self._believed(report)
                is_sound = None if mechanism is None else _soundness(mechanism, self.private)
            # A second report of one id is no further person's.
            if is_sound is not None and is_sound(report) and report.id not in self._ids:
                self._ids.add(report.id)
                self._cells.append(report.cells)
            else:
                self.refused += 1

    def _believed(self, report: Report) -> BPM | MultivariateLaplace | None:
        """Take the mechanism that a report names for that of all; None if it names none."""
        try:
            self.mechanism = mechanism_of(report.to)
        except (UsageError, DataError):
            return None
        self.private = not report.to.endswith(NOT_PRIVATE)
        return self.mechanism

    def read(self, path: str | os.PathLike[str]) -> None:
        """Take the reports of a file: Parquet where its name ends so, else lines of JSON.

        Raises
        ------
        DataError
            If the file cannot be read. Lines that are no reports are counted as refused.
        """
        where = Path(path)
        try:
            self.add(self._parquet(where) if where.suffix == ".parquet" else self._lines(where))
        except OSError as error:
            reason = error.strerror or "the file cannot be read"
        except (ValueError, KeyError, TypeError):
            reason = "it does not hold reports"
        else:
            return
        raise DataError(f"reports in {where}", reason, "Name a file of reports")

    def _lines(self, path: Path) -> Iterator[Report]:
        decoder = msgspec.json.Decoder(Report)
        with path.open("rb") as file:
            for line in lines(file):
                try:
                    yield decoder.decode(line)
                except (msgspec.MsgspecError, ValueError, RecursionError):
                    # A blank line is no report that was refused.
                    self.refused += bool(line.strip())

    def _parquet(self, path: Path) -> Iterator[Report]:
        import pyarrow.parquet as pq

        with pq.ParquetFile(path, pre_buffer=False) as file:
            to = (file.schema_arrow.metadata or {})[METADATA].decode()
            for batch in file.iter_batches(2**16, columns=["id", "cells"]):
                for name, cells in zip(
                    batch["id"].to_pylist(), batch["cells"].to_pylist(), strict=True
                ):
                    try:
                        yield msgspec.convert({"to": to, "id": name, "cells": cells}, Report)
                    except msgspec.MsgspecError:
                        self.refused += 1

    @property
    def guarantee(self) -> Guarantee:
        """What each report that was taken promises; nothing where they came from a public seed."""
        if self.mechanism is None:
            raise UsageError(
                "the guarantee of no reports",
                "none has been collected",
                "Read a file of reports first",
            )
        return msgspec.structs.replace(self.mechanism.guarantee, private=self.private)

    def points(self) -> Floats:
        """The reports as points: float64 of shape (n, d)."""
        if self.mechanism is None or not self._cells:
            if not self.refused:
                raise UsageError(
                    "decoding no reports", "none has been collected", "Read a file of reports first"
                )
            raise UsageError(
                "decoding no reports",
                f"all {self.refused:,} that were read were left out: "
                "they are not readable, or to another mechanism than the one named",
                "Name epsilon, reach and axes as the devices have them",
            )
        return self.mechanism.place(np.array(self._cells, dtype=np.int64))

    def decode(self, n_clusters: int, random_state: int | None = None) -> Decoded:
        """Find clusters in the reports; see ``decoder``.

        ``random_state`` seeds the search, and no noise.
        """
        points = self.points()
        assert self.mechanism is not None
        return decode(points, self.mechanism, n_clusters, np.random.default_rng(random_state))


def lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, in bounded memory.

    Of a line that is longer than any report only the beginning is given, which is no report.
    """
    whole = True
    while line := file.readline(LONGEST_LINE):
        if whole:
            yield line
        whole = line.endswith(b"\n")


def write(reports: Sequence[Report], path: str | os.PathLike[str]) -> None:
    """Write reports to one mechanism: Parquet where the name ends so, else lines of JSON."""
    where = Path(path)
    try:
        if where.suffix == ".parquet":
            _write_parquet(reports, where)
        else:
            where.write_bytes(msgspec.json.Encoder().encode_lines(reports))
    except OSError as error:
        reason = error.strerror or "the file cannot be written"
    else:
        return
    raise DataError(f"reports to {where}", reason, "Choose a path that can be written")


def _soundness(mechanism: BPM | MultivariateLaplace, private: bool) -> Callable[[Report], bool]:
    """Return the test of whether a report can be decoded with others of this mechanism."""
    # The label also says whether the noise is secret: other reports are of another collection.
    to = label(mechanism, private)
    dimension = mechanism.dimension
    least, most = mechanism.limits

    def is_sound(report: Report) -> bool:
        cells = report.cells
        # The length is looked at first: a report without cells has neither a least nor a largest
        # one.
        return (
            report.to == to
            and len(cells) == dimension
            and least <= min(cells)
            and max(cells) <= most
            and 0 < len(report.id) <= 64
        )

    return is_sound


def _write_parquet(reports: Sequence[Report], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = pa.array([report.id for report in reports], pa.string())
    cells = pa.array([report.cells for report in reports], pa.list_(pa.int64()))
    table = pa.table({"id": names, "cells": cells}).replace_schema_metadata(
        {METADATA: reports[0].to.encode() if reports else b""}
    )
    pq.write_table(table, path)
