"""Records in parts: in memory while they fit, then in one temporary file that has no name.

The file is opened in the folder that TMPDIR names, readable by its owner only. Linux gives it no
name at all, other systems take the name away before anything is written: however the process ends,
by an error, Ctrl-C, kill -TERM or kill -9, the system frees the space and nothing is left.
Not covered: the blocks that were freed are not overwritten; a disk that is not encrypted keeps them
until it needs them.
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

MEMORY = 2**28
"""How many bytes of records are held before they go to a file, unless SFUMATO_MEMORY says otherwise."""

PARTS_BITS = 6
PARTS = 2**PARTS_BITS
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}

Shrink = Callable[[Array], Array]


def memory() -> int:
    """How many bytes of records a scan may hold: ``SFUMATO_MEMORY``, such as ``256M``, or the default.

    Raises
    ------
    UsageError
        If the variable is no such number.
    """
    text = os.environ.get("SFUMATO_MEMORY", "").strip()
    if not text:
        return MEMORY
    found = re.fullmatch(r"([0-9]{1,15}) ?([KMG]?)i?B?", text, re.IGNORECASE)
    if found is None:
        raise UsageError(
            f"SFUMATO_MEMORY={text!r}",
            "it is not a number of bytes",
            "Write it as 256M or 2G, or leave it out",
        )
    return int(found[1]) * _UNITS[found[2].upper()]


class Parts:
    """Records of one structured type, dealt into parts.

    Parameters
    ----------
    limit : int
        How many bytes are held in memory.
    shrink : callable or None
        Drops records that are not needed, part by part, before they are written; called where it is
        seen to help.
    """

    def __init__(self, limit: int, shrink: Shrink | None = None) -> None:
        self._limit = limit
        self._shrink = shrink
        self._held: list[list[Array]] = [[] for _ in range(PARTS)]
        self._held_bytes = 0
        self._written: list[list[tuple[int, int]]] = [
            [] for _ in range(PARTS)
        ]  # where, how many bytes
        self._file: FileIO | None = None
        self.written = 0
        self._dtype = np.dtype(np.uint8)

    def add(self, part: Array, records: Array) -> None:
        """Deal records: ``part`` is a uint8 ndarray of shape (records,)."""
        self._dtype = records.dtype
        dealt = records[np.argsort(part, kind="stable")]
        stops = np.cumsum(np.bincount(part, minlength=PARTS)).tolist()
        for i, (start, stop) in enumerate(zip([0, *stops], stops, strict=False)):
            if start < stop:
                self._held[i].append(dealt[start:stop])
        self._held_bytes += dealt.nbytes
        if self._held_bytes > self._limit:
            self._spill()

    def settle(self) -> None:
        """Send what is held to the file if any part went there, so that the memory is free."""
        if self._file is not None:
            self._spill()

    def size(self, part: int) -> int:
        """How many bytes a part has."""
        return sum(records.nbytes for records in self._held[part]) + sum(
            size for _, size in self._written[part]
        )

    def read(self, part: int, block: int = 2**62) -> Iterator[Array]:
        """Give the records of a part and forget those held, in pieces of at most ``block`` bytes from the file."""
        held = self._held[part]
        self._held[part] = []
        self._held_bytes -= sum(records.nbytes for records in held)
        yield from held
        step = max(1, block // self._dtype.itemsize) * self._dtype.itemsize
        for start, size in self._written[part]:
            for offset in range(0, size, step):
                yield self._load(start + offset, min(step, size - offset))

    def close(self) -> None:
        """Forget everything, and give the disk back."""
        self._held = [[] for _ in range(PARTS)]
        if self._file is not None:
            self._file.close()

    def _spill(self) -> None:
        shrink = self._shrink
        tried = False
        for part, held in enumerate(self._held):
            if not held:
                continue
            records = np.concatenate(held)
            self._held[part] = []
            if shrink is not None:
                fewer = shrink(records)
                shrink = (
                    shrink if tried or 4 * len(fewer) < 3 * len(records) else None
                )  # the first part tells for all
                records = fewer
                tried = True
            self._write(part, records)
        self._held_bytes = 0

    def _write(self, part: int, records: Array) -> None:
        left = memoryview(records.view(np.uint8).data)
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(buffering=0, prefix="sfumato-")  # noqa: SIM115
            self._file.seek(self.written)
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            obstacle = f"the folder for temporary files cannot be written to ({error.strerror})"
        else:
            self._written[part].append((self.written, records.nbytes))
            self.written += records.nbytes
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
            got = self._file.readinto(left)
            if not got:
                raise DataError(
                    "bounding each person's rows",
                    "a temporary file lost its end",
                    "Check the disk that TMPDIR names",
                )
            left = left[got:]
        return records
