"""Records in partitions: in memory while they fit, then in one temporary file without a name.

Records are held field by field: one array for each field. Sorting and copying whole fields is
several times as fast as moving structured records.

The file lies in the folder that TMPDIR names, and only its owner can read it. Linux gives it no
name at all; other systems remove the name before anything is written. However the process ends, by
an error, Ctrl-C, kill -TERM or kill -9, the system frees the space and nothing is left.
Not covered: the freed blocks are not overwritten. A disk that is not encrypted keeps them until it
needs the space.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from io import FileIO
from typing import TypeAlias

import numpy as np

from sfumato.arrays import Array
from sfumato.errors import DataError, UsageError

DEFAULT_MEMORY = 2**29
"""How many bytes of records are held before they go to a file, without SFUMATO_MEMORY."""

PARTITION_BITS = 6
N_PARTITIONS = 2**PARTITION_BITS
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}

Records: TypeAlias = list[Array]
"""One array for each field, all of shape (records,)."""

Reduce: TypeAlias = Callable[[Records], Records]
"""Drops the records that are not needed, of all that it is given."""


def memory_limit() -> int:
    """How many bytes of records a scan may hold: ``SFUMATO_MEMORY``, such as ``256M``, or 2**29.

    Raises
    ------
    UsageError
        If the variable is no number of bytes.
    """
    text = os.environ.get("SFUMATO_MEMORY", "").strip()
    if not text:
        return DEFAULT_MEMORY
    found = re.fullmatch(r"([0-9]{1,15}) ?([KMG]?)i?B?", text, re.IGNORECASE)
    if found is None:
        raise UsageError(
            f"SFUMATO_MEMORY={text!r}",
            "it is not a number of bytes",
            "Write it as 256M or 2G, or leave it out",
        )
    return int(found[1]) * _UNITS[found[2].upper()]


class ExternalPartitions:
    """Records of the same fields in 64 partitions, held in memory and in a file.

    Parameters
    ----------
    limit : int
        How many bytes are held in memory. Beyond it, half of them are written; a partition that is
        in the file already goes first, so that others may stay in memory.
    reduce : callable or None
        Drops records that are not needed, one partition at a time, before they are written. It is
        called only where it turns out to help.
    """

    def __init__(self, limit: int, reduce: Reduce | None = None) -> None:
        self._limit = limit
        self._reduce = reduce
        self._held: list[list[Records]] = [[] for _ in range(N_PARTITIONS)]
        self._held_rows = [0] * N_PARTITIONS
        self._held_bytes = 0
        # Of each partition, the pieces of the file that hold it: offset and number of records.
        self._pieces: list[list[tuple[int, int]]] = [[] for _ in range(N_PARTITIONS)]
        self._file: FileIO | None = None
        self.bytes_written = 0
        self._empty: Records = []  # tells the types of the fields
        self._row_bytes = 0

    def add(self, partitions: Array, records: Records) -> None:
        """Add records; ``partitions`` is a uint8 ndarray of shape (records,)."""
        if not self._empty:
            self._empty = [np.empty(0, field.dtype) for field in records]
            self._row_bytes = sum(field.itemsize for field in self._empty)
        order = np.argsort(partitions, kind="stable")
        grouped = [field.take(order) for field in records]
        stops = np.searchsorted(partitions[order], np.arange(N_PARTITIONS), side="right").tolist()
        start = 0
        for partition, stop in enumerate(stops):
            if start < stop:
                self._held[partition].append([field[start:stop] for field in grouped])
                self._held_rows[partition] += stop - start
            start = stop
        self._held_bytes += self._row_bytes * len(order)
        if self._held_bytes > self._limit:
            self._flush(self._limit // 2)

    def settle(self) -> None:
        """Write all records that are held. This frees the memory."""
        self._flush(0)

    def n_bytes(self, partition: int) -> int:
        """How many bytes a partition has, in memory and in the file."""
        in_file = sum(n_records for _, n_records in self._pieces[partition])
        return (self._held_rows[partition] + in_file) * self._row_bytes

    def read(self, partition: int, most_bytes: int = 2**62) -> Iterator[Records]:
        """Give the records of a partition, and forget those that were held in memory.

        Records from the file come in blocks of at most ``most_bytes`` bytes.
        """
        yield from self._taken(partition)
        # A block holds whole records, and at least one.
        block = max(1, most_bytes // max(1, self._row_bytes))
        for start, n_records in self._pieces[partition]:
            for first in range(0, n_records, block):
                yield self._load(start, n_records, first, min(block, n_records - first))

    def whole(self, partition: int) -> Records:
        """Give all records of a partition that has some, and forget those held in memory."""
        return joined(list(self.read(partition)))

    def close(self) -> None:
        """Forget all records, and free the disk."""
        self._held = [[] for _ in range(N_PARTITIONS)]
        if self._file is not None:
            self._file.close()

    def _taken(self, partition: int) -> list[Records]:
        """The records of a partition that are held, which are forgotten."""
        held = self._held[partition]
        self._held[partition] = []
        self._held_bytes -= self._held_rows[partition] * self._row_bytes
        self._held_rows[partition] = 0
        return held

    def _flush(self, target: int) -> None:
        """Write records, reduced where that helps, until at most ``target`` bytes are held."""
        reduce = self._reduce
        tried = False
        for partition in sorted(range(N_PARTITIONS), key=lambda each: not self._pieces[each]):
            if self._held_bytes <= target:
                break
            if not self._held[partition]:
                continue
            records = joined(self._taken(partition))
            if reduce is not None:
                fewer = reduce(records)
                # Persons are spread over the partitions at random: the first one tells for all
                # whether reducing is worth its time.
                if not tried and 4 * len(fewer[0]) >= 3 * len(records[0]):
                    reduce = None
                tried = True
                records = fewer
            self._write(partition, records)
        self._compact()

    def _compact(self) -> None:
        """Copy what is still held: parts of arrays keep whole arrays in memory."""
        for partition, held in enumerate(self._held):
            if held:
                whole = [np.concatenate(parts) for parts in zip(*held, strict=True)]
                self._held[partition] = [whole]

    def _write(self, partition: int, records: Records) -> None:
        start = self.bytes_written
        for field in records:
            self._write_field(field)
        self._pieces[partition].append((start, len(records[0])))

    def _write_field(self, field: Array) -> None:
        left = memoryview(np.ascontiguousarray(field).view(np.uint8).data)
        try:
            if self._file is None:
                # It lives as long as this object; ``close`` closes it.
                self._file = tempfile.TemporaryFile(buffering=0, prefix="sfumato-")  # noqa: SIM115
            self._file.seek(self.bytes_written)
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            obstacle = f"the folder for temporary files cannot be written to ({error.strerror})"
        else:
            self.bytes_written += field.nbytes
            return
        raise DataError(
            "bounding each person's rows",
            obstacle,
            "Let TMPDIR name a folder with more room, or let SFUMATO_MEMORY allow more memory",
        )

    def _load(self, start: int, n_records: int, first: int, count: int) -> Records:
        """Load some records of a piece, in which field follows field."""
        records = []
        for empty in self._empty:
            field = np.empty(count, empty.dtype)
            self._load_field(field, start + first * empty.itemsize)
            records.append(field)
            start += n_records * empty.itemsize
        return records

    def _load_field(self, field: Array, start: int) -> None:
        left = memoryview(field.view(np.uint8).data)
        assert self._file is not None
        self._file.seek(start)
        while left:
            n_read = self._file.readinto(left)
            if not n_read:
                raise DataError(
                    "bounding each person's rows",
                    "a temporary file lost its end",
                    "Check the disk that TMPDIR names",
                )
            left = left[n_read:]


def joined(several: list[Records]) -> Records:
    """Join records of the same fields; there must be some."""
    if len(several) == 1:
        return several[0]
    return [np.concatenate(parts) for parts in zip(*several, strict=True)]
