"""Records in partitions: in memory while they fit, then in one temporary file without a name.

Records are held field by field: one array for each field. Sorting and copying whole fields is
several times as fast as moving structured records. Of a first field of 64 bits, only the upper
halves are held as long as all lower halves are 0, as in the person tokens of small numbers: it
takes the system longer to provide memory than it takes a scan to fill it.

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
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import FileIO
from typing import NamedTuple, TypeAlias

import numpy as np

from sfumato.basics import Array
from sfumato.data.hashing import Scratch
from sfumato.errors import DataError, UsageError

DEFAULT_MEMORY = 2**29
"""How many bytes of records are held before they go to a file, without SFUMATO_MEMORY."""

PARTITION_BITS = 6
N_PARTITIONS = 2**PARTITION_BITS
ALL_PARTITIONS = range(N_PARTITIONS)
BLOCK_ROWS = 2**13
"""How many records a block in memory holds."""

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}

Records: TypeAlias = list[Array]
"""One array for each field, all of shape (records,)."""

Reduce: TypeAlias = Callable[[Records], Records]
"""Drops the records that are not needed, of all that it is given."""


def memory_limit() -> int:
    """Read how many bytes of records a scan may hold: ``SFUMATO_MEMORY``, as ``256M``, or 2**29.

    Raises
    ------
    UsageError
        If the variable is no number of bytes.
    """
    text = os.environ.get("SFUMATO_MEMORY", "").strip()
    if not text:
        return DEFAULT_MEMORY
    stated = re.fullmatch(r"([0-9]{1,15}) ?([KMG]?)i?B?", text, re.IGNORECASE)
    if stated is None:
        raise UsageError(
            f"SFUMATO_MEMORY={text!r}",
            "it is not a number of bytes",
            "Write it as 256M or 2G, or leave it out",
        )
    return int(stated[1]) * _UNITS[stated[2].upper()]


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
        self._blocks = _Blocks(self._limit // 16)
        self._held: list[list[Records]] = [[] for _ in range(N_PARTITIONS)]
        self._held_rows = [0] * N_PARTITIONS
        # Of each partition, the pieces of the file that hold it.
        self._pieces: list[list[_Piece]] = [[] for _ in range(N_PARTITIONS)]
        self._file: FileIO | None = None
        self._lock = threading.Lock()  # of the file, and of what writing to it uses
        self.bytes_written = 0
        self._empty: Records = []  # tells the types of the fields
        self._row_bytes = 0
        self._in_halves = False  # whether the first field is held in its upper halves
        self._scratch = Scratch()

    def add(self, partitions: Array, records: Records) -> None:
        """Add records; ``partitions`` is a uint8 ndarray of shape (records,)."""
        if not self._empty:
            self._empty = [np.empty(0, field.dtype) for field in records]
            self._row_bytes = sum(field.itemsize for field in self._empty)
            self._in_halves = _fits_halves(records[0])
        elif self._in_halves and not _fits_halves(records[0]):
            # What was held so far is read back from the file in its own form.
            self.settle()
            self._blocks = _Blocks(self._limit // 16)
            self._in_halves = False
        records = self._as_held(records)
        order = np.argsort(partitions, kind="stable")
        stops = np.searchsorted(partitions[order], np.arange(N_PARTITIONS), side="right").tolist()
        start = 0
        for partition, stop in enumerate(stops):
            if start < stop:
                self._hold(partition, records, order[start:stop])
            start = stop
        if self._held_bytes > self._limit:
            self._flush(self._limit // 2)

    @property
    def _held_bytes(self) -> int:
        row_bytes = self._row_bytes - 4 if self._in_halves else self._row_bytes
        return row_bytes * sum(self._held_rows)

    def _as_held(self, records: Records) -> Records:
        """Return records in the form in which they are held."""
        return [_upper_halves(records[0]), *records[1:]] if self._in_halves else records

    def _hold(self, partition: int, records: Records, indices: Array) -> None:
        """Copy some records to the blocks of a partition."""
        blocks = self._held[partition]
        while len(indices):
            filled = self._held_rows[partition] % BLOCK_ROWS
            if not filled:
                blocks.append(self._blocks.take(records))
            here = indices[: BLOCK_ROWS - filled]
            end = filled + len(here)
            for field, room in zip(records, blocks[-1], strict=True):
                # In this mode numpy writes to the room at once. No index is out of bounds.
                field.take(here, out=room[filled:end], mode="clip")
            self._held_rows[partition] += len(here)
            indices = indices[len(here) :]

    def settle(self, partitions: Iterable[int] = ALL_PARTITIONS) -> None:
        """Write the records of partitions that are held. This frees the memory."""
        self._flush(0, partitions)

    def n_records(self, partition: int) -> int:
        """Tell how many records a partition has, in memory and in the file."""
        in_file = sum(piece.n_records for piece in self._pieces[partition])
        return self._held_rows[partition] + in_file

    def n_bytes(self, partition: int) -> int:
        """Tell how many bytes a partition has, in memory and in the file."""
        return self.n_records(partition) * self._row_bytes

    def read(self, partition: int, most_bytes: int = 2**62) -> Iterator[Records]:
        """Give the records of a partition, and forget those that were held in memory.

        Records from the file come in blocks of at most ``most_bytes`` bytes. Records are valid
        until the next ones are asked for.
        """
        yield from self._taken(partition)
        # A block holds whole records, and at least one.
        block_rows = max(1, most_bytes // max(1, self._row_bytes))
        for piece in self._pieces[partition]:
            for first in range(0, piece.n_records, block_rows):
                n_records = min(block_rows, piece.n_records - first)
                records = [np.empty(n_records, field.dtype) for field in self._empty]
                self._load(records, piece, first)
                yield records

    def together(self, n_records: int, blocks: Iterable[Records], scratch: Scratch) -> Records:
        """Copy blocks of so many records to one place, where they are until it is used again."""
        records = [
            scratch.array(f"whole {i}", n_records, field.dtype)
            for i, field in enumerate(self._empty)
        ]
        begin = 0
        for block in blocks:
            end = begin + len(block[0])
            for field, part in zip(records, block, strict=True):
                field[begin:end] = part
            begin = end
        return records

    def close(self) -> None:
        """Forget all records, and free the memory and the disk."""
        self._held = [[] for _ in range(N_PARTITIONS)]
        self._blocks = _Blocks(self._limit // 16)
        self._scratch = Scratch()
        if self._file is not None:
            self._file.close()

    def _taken(self, partition: int) -> Iterator[Records]:
        """Give the records of a partition that are held in memory, block by block; forget them."""
        blocks = self._held[partition]
        n_records = self._held_rows[partition]
        self._held[partition] = []
        self._held_rows[partition] = 0
        for i, block in enumerate(blocks):
            held = [field[: n_records - i * BLOCK_ROWS] for field in block]
            yield _whole_words(held, self._empty)
            self._blocks.give_back(block)

    def _flush(self, target: int, partitions: Iterable[int] = ALL_PARTITIONS) -> None:
        """Write records, reduced where that helps, until at most ``target`` bytes are held."""
        with self._lock:
            # Those that are in the file already come first: the others may then stay in memory
            # whole.
            self._write_all(target, sorted(partitions, key=lambda place: not self._pieces[place]))

    def _write_all(self, target: int, partitions: Sequence[int]) -> None:
        reduce = self._reduce
        tried = False
        for partition in partitions:
            if self._held_bytes <= target:
                break
            if not self._held[partition]:
                continue
            n_records = self._held_rows[partition]
            records = self.together(n_records, self._taken(partition), self._scratch)
            if reduce is not None:
                fewer = reduce(records)
                # Persons are spread over the partitions at random: the first one tells for all
                # whether reducing is worth its time.
                if not tried and 4 * len(fewer[0]) >= 3 * len(records[0]):
                    reduce = None
                tried = True
                records = fewer
            self._write(partition, records)

    def _write(self, partition: int, records: Records) -> None:
        start = self.bytes_written
        for field in self._as_held(records):
            self._write_field(field)
        # Noted once it is written, so that no piece names bytes that are not in the file.
        self._pieces[partition].append(_Piece(start, len(records[0]), self._in_halves))

    def _write_field(self, field: Array) -> None:
        left = memoryview(np.ascontiguousarray(field).view(np.uint8).data)
        try:
            if self._file is None:
                # It lives as long as this object; ``close`` closes it.
                self._file = tempfile.TemporaryFile(buffering=0, prefix="sfumato-")  # noqa: SIM115
            # Reading may have moved the place in the file.
            self._file.seek(self.bytes_written)
            # Without a buffer, a write may take only a part of the bytes.
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

    def _load(self, rooms: Records, piece: _Piece, first: int) -> None:
        """Load some records of a piece, in which field follows field."""
        start = piece.start
        for i, field in enumerate(rooms):
            held = np.empty(len(field), np.uint32) if piece.in_halves and not i else field
            self._load_field(held, start + first * held.itemsize)
            if held is not field:
                np.left_shift(held, np.uint64(32), out=field)
            start += piece.n_records * held.itemsize

    def _load_field(self, field: Array, start: int) -> None:
        left = memoryview(field.view(np.uint8).data)
        assert self._file is not None
        # The threads share the place in the file: none may move it between this seek and the read.
        with self._lock:
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


class JoinedPartitions:
    """The records of several threads, of which one thread finishes some partitions.

    No partition belongs to two threads. What is left of a thread's records is shared: its file, and
    its room for writing.

    Parameters
    ----------
    several : sequence of ExternalPartitions
        Of records of the same fields; each has some.
    renumber : sequence of callables
        Changes the records of each, in place, into what they are among all.
    own : iterable of int
        The partitions of this thread.
    """

    def __init__(
        self,
        several: Sequence[ExternalPartitions],
        renumber: Sequence[Callable[[Records], None]] = (),
        own: Iterable[int] = ALL_PARTITIONS,
    ) -> None:
        self.own = own
        self._several = several
        self._renumber = renumber
        self._scratch = Scratch()

    def settle(self) -> None:
        """Write all records of these partitions that are held."""
        for partitions in self._several:
            partitions.settle(self.own)

    def n_bytes(self, partition: int) -> int:
        """Tell how many bytes a partition has, in memory and in files."""
        return sum(partitions.n_bytes(partition) for partitions in self._several)

    def read(self, partition: int, most_bytes: int = 2**62) -> Iterator[Records]:
        """Give the records of a partition, as ``ExternalPartitions.read``."""
        for thread, partitions in enumerate(self._several):
            for records in partitions.read(partition, most_bytes):
                # Each thread numbered keys in the order in which it met them.
                for renumber in self._renumber[thread : thread + 1]:
                    renumber(records)
                yield records

    def whole(self, partition: int) -> Records:
        """Give all records of a partition, until the next one is asked for; forget them."""
        n_records = sum(partitions.n_records(partition) for partitions in self._several)
        return self._several[0].together(n_records, self.read(partition), self._scratch)


class _Piece(NamedTuple):
    """Records of one partition in the file.

    Attributes
    ----------
    start : int
        The byte at which they begin.
    n_records : int
    in_halves : bool
        Whether the first field is in its upper halves.
    """

    start: int
    n_records: int
    in_halves: bool


def _fits_halves(words: Array) -> bool:
    """Tell whether the lower halves of words are all 0."""
    return words.dtype == np.uint64 and not (words & np.uint64(2**32 - 1)).any()


def _upper_halves(words: Array) -> Array:
    return (words >> np.uint64(32)).astype(np.uint32)


def _whole_words(held: Records, like: Records) -> Records:
    """Return the records of which the first field may be held in its upper halves."""
    if held[0].dtype == like[0].dtype:
        return held
    return [held[0].astype(like[0].dtype) << np.uint64(32), *held[1:]]


class _Blocks:
    """Room for records, in blocks of ``BLOCK_ROWS`` that are used again.

    Blocks are cut from larger and larger arrays, which the system provides in huge pages.

    Parameters
    ----------
    most_bytes : int
        How much is asked for at once.
    """

    def __init__(self, most_bytes: int) -> None:
        self._free: list[Records] = []
        self._n_blocks = 16
        self._most_bytes = most_bytes

    def take(self, like: Records) -> Records:
        """Give a block with fields of the same types."""
        if not self._free:
            n_blocks = self._n_blocks
            block_bytes = BLOCK_ROWS * sum(field.itemsize for field in like)
            self._n_blocks = max(16, min(2 * n_blocks, self._most_bytes // block_bytes))
            slabs = [np.empty(n_blocks * BLOCK_ROWS, field.dtype) for field in like]
            for start in range(0, n_blocks * BLOCK_ROWS, BLOCK_ROWS):
                self._free.append([slab[start : start + BLOCK_ROWS] for slab in slabs])
        return self._free.pop()

    def give_back(self, block: Records) -> None:
        """Take a block back."""
        self._free.append(block)
