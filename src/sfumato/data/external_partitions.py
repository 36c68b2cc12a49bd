"""Records in partitions: in memory while they fit, then in one temporary file without a name.

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

import numpy as np

from sfumato.arrays import Array
from sfumato.errors import DataError, UsageError

DEFAULT_MEMORY = 2**28
"""How many bytes of records are held before they go to a file, without SFUMATO_MEMORY."""

PARTITION_BITS = 6
N_PARTITIONS = 2**PARTITION_BITS
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}

Reduce = Callable[[Array], Array]
"""Drops the records that are not needed, of all that it is given."""


def memory_limit() -> int:
    """How many bytes of records a scan may hold: ``SFUMATO_MEMORY``, such as ``256M``, or 2**28.

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
    """Records of one structured type in 64 partitions, held in memory and in a file.

    Parameters
    ----------
    limit : int
        How many bytes are held in memory.
    reduce : callable or None
        Drops records that are not needed, one partition at a time, before they are written. It is
        called only where it turns out to help.
    """

    def __init__(self, limit: int, reduce: Reduce | None = None) -> None:
        self._limit = limit
        self._reduce = reduce
        self._held: list[list[Array]] = [[] for _ in range(N_PARTITIONS)]
        self._held_bytes = 0
        # Of each partition, the pieces of the file that hold it: offset and number of bytes.
        self._pieces: list[list[tuple[int, int]]] = [[] for _ in range(N_PARTITIONS)]
        self._file: FileIO | None = None
        self.bytes_written = 0
        self._dtype = np.dtype(np.uint8)

    def add(self, partitions: Array, records: Array) -> None:
        """Add records; ``partitions`` is a uint8 ndarray of shape (records,)."""
        self._dtype = records.dtype
        grouped = records[np.argsort(partitions, kind="stable")]
        stops = np.cumsum(np.bincount(partitions, minlength=N_PARTITIONS)).tolist()
        start = 0
        for held, stop in zip(self._held, stops, strict=True):
            if start < stop:
                held.append(grouped[start:stop])
            start = stop
        self._held_bytes += grouped.nbytes
        if self._held_bytes > self._limit:
            self._flush()

    def settle(self) -> None:
        """Write the records that are held, if any were written before. This frees the memory."""
        if self._file is not None:
            self._flush()

    def n_bytes(self, partition: int) -> int:
        """How many bytes a partition has, in memory and in the file."""
        held = sum(records.nbytes for records in self._held[partition])
        return held + sum(size for _, size in self._pieces[partition])

    def read(self, partition: int, most_bytes: int = 2**62) -> Iterator[Array]:
        """Give the records of a partition, and forget those that were held in memory.

        Records from the file come in blocks of at most ``most_bytes`` bytes.
        """
        held = self._held[partition]
        self._held[partition] = []
        self._held_bytes -= sum(records.nbytes for records in held)
        yield from held
        # A block holds whole records, and at least one.
        block = max(1, most_bytes // self._dtype.itemsize) * self._dtype.itemsize
        for start, size in self._pieces[partition]:
            for offset in range(0, size, block):
                yield self._load(start + offset, min(block, size - offset))

    def close(self) -> None:
        """Forget all records, and free the disk."""
        self._held = [[] for _ in range(N_PARTITIONS)]
        if self._file is not None:
            self._file.close()

    def _flush(self) -> None:
        """Write all records that are held to the file, reduced where that helps."""
        reduce = self._reduce
        tried = False
        for partition, held in enumerate(self._held):
            if not held:
                continue
            records = np.concatenate(held)
            self._held[partition] = []
            if reduce is not None:
                fewer = reduce(records)
                # Persons are spread over the partitions at random: the first one tells for all
                # whether reducing is worth its time.
                if not tried and 4 * len(fewer) >= 3 * len(records):
                    reduce = None
                tried = True
                records = fewer
            self._write(partition, records)
        self._held_bytes = 0

    def _write(self, partition: int, records: Array) -> None:
        left = memoryview(records.view(np.uint8).data)
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
            self._pieces[partition].append((self.bytes_written, records.nbytes))
            self.bytes_written += records.nbytes
            return
        raise DataError(
            "bounding each person's rows",
            obstacle,
            "Let TMPDIR name a folder with more room, or let SFUMATO_MEMORY allow more memory",
        )

    def _load(self, start: int, size: int) -> Array:
        records = np.empty(size // self._dtype.itemsize, self._dtype)
        left = memoryview(records.view(np.uint8).data)
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
        return records
