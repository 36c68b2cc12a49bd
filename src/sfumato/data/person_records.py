"""Records of persons in bounded memory: all records of a person are seen together in the end.

A record has the person's token (see ``priorities``) and further fields. Records beyond
``memory_limit()`` bytes go to a temporary file, partitioned by the tokens. One partition is read
back at a time, and a large one is partitioned again by the next bits of the tokens.

*Records of rows* that have a person and a priority. The priority of a row is a keyed hash of its
person and its values (see ``priorities``), so copies of one row have equal ones. Their numbers, and
with these their own priorities, are known only where all copies are together:

* In a partition by tokens that fits into memory, all rows of a person are.
* In a partition that does not, records are partitioned by the leading bits of their priorities.
  All copies of a row then are in one part. Each part gives every copy its own priority, and drops
  those copies that stand behind ``most`` others of the same row. From then on no two rows of a
  person share a priority, and pieces of a person's rows may be reduced like any others.

Holds because: copies of a row lie in the same cell, and so none of them is kept that stands behind
as many as a person may keep at all.

*How many rows each person has*, counted before any limit.

Guarantee: one person lies in one cell, and moves no other person's: adding or removing a person
changes one count by one.
Holds because: the number of rows of a person depends on that person's rows alone.
In parts: numbers of rows of a person in several parts add up, so parts may be joined as often as
wished and in any order. The result is the same in memory, through files and for every size of
batch.
Exact: up to colliding tokens of text ids (see ``priorities``).

*How a person's rows spread over cells*, in one number: counted before any limit. It is one of
three, for each person: the number of cells with a row of the person, the L2 norm of the person's
counts in the cells (rounded up), or the largest of these counts.

Guarantee: one person lies in one cell, and moves no other person's: adding or removing a person
changes one count by one.
Holds because: the number follows from the rows of that person alone.
In parts: rows of a person in one cell add up, so parts may be joined as often as wished and in any
order. The result is the same in memory, through files and for every size of batch.
Exact: up to colliding tokens of text ids (see ``priorities``), and to persons with more than 10^7
rows in a cell, whose norms may be rounded by floating point.

*Where records are*: in 64 partitions, in memory while they fit, then in one temporary file without
a name.

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
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from io import FileIO
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from sfumato.answers import Counted, Needs
from sfumato.basics import Array
from sfumato.data.packed_counts import Cells, PackedRows, Packing, RenumberedKeys, packed_cells
from sfumato.data.priorities import PersonRows, Scratch
from sfumato.data.row_order import (
    CopyNumbers,
    OrderedRows,
    first_rows,
    ordered_rows,
    ranges,
    run_starts,
)
from sfumato.domain import DROPPED, EdgesAxis, GridAxis
from sfumato.errors import DataError, UsageError

# --- records in partitions ------------------------------------------------------------------------

# How many bytes of records are held before they go to a file, without SFUMATO_MEMORY.
DEFAULT_MEMORY = 2**29

PARTITION_BITS = 6
N_PARTITIONS = 2**PARTITION_BITS
ALL_PARTITIONS = range(N_PARTITIONS)
# How many records a block in memory holds.
BLOCK_ROWS = 2**13

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}

# One array for each field, all of shape (records,).
Records: TypeAlias = list[Array]


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

    def __init__(self, limit: int, reduce: Callable[[Records], Records] | None = None) -> None:
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
        if not self._in_halves:
            return records
        return [(records[0] >> np.uint64(32)).astype(np.uint32), *records[1:]]

    def _hold(self, partition: int, records: Records, indices: Array) -> None:
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
            word_type = self._empty[0].dtype
            if held[0].dtype != word_type:
                held[0] = held[0].astype(word_type) << np.uint64(32)
            yield held
            self._blocks.give_back(block)

    def _flush(self, target: int, partitions: Iterable[int] = ALL_PARTITIONS) -> None:
        """Write records, reduced where that helps, until at most ``target`` bytes are held."""
        with self._lock:
            # Those that are in the file already come first: the others may then stay in memory
            # whole.
            in_turn = sorted(partitions, key=lambda place: not self._pieces[place])
            reduce = self._reduce
            tried = False
            for partition in in_turn:
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


# --- records of persons ---------------------------------------------------------------------------

# A partition that is still too large after so many splits holds rows that are all kept.
MOST_SPLITS = 8

T_co = TypeVar("T_co", covariant=True)


class PersonRecords(ABC, Generic[T_co]):
    """Collects records of persons, and makes something of the persons of each partition.

    The first fields of a record are the words of the person's token.

    Attributes
    ----------
    packings : sequence of (int, Packing)
        Where a record has packed cells, counted from behind the token, and how they are packed.
    """

    packings: Sequence[tuple[int, Packing]] = ()

    def __init__(self) -> None:
        self._n_tokens = 0
        self.share(1)

    def share(self, threads: int) -> None:
        """Hold what one of several threads may hold, before any record is taken."""
        self._threads = threads
        self._limit = memory_limit() // threads
        self._most_bytes = max(self._limit // 8, 2**16)  # of a partition that is not split
        self._partitions = self._new_partitions(0)
        self._shared = JoinedPartitions([self._partitions])

    @abstractmethod
    def _reduced(self, records: Records, splits: int) -> Records:
        """Drop or join records that are not needed one by one, of some of a partition's.

        All records of a partition begin with the same ``splits + 1`` groups of bits. The result
        must serve as well as the records themselves, whatever further records come.
        """

    @abstractmethod
    def _finished(self, records: Records, splits: int) -> T_co:
        """Make of all records of some persons what is wanted of them."""

    def close(self) -> None:
        """Free memory and disk, whatever happened."""
        self._partitions.close()

    def _add(self, needed: Array, tokens: list[Array], fields: list[Array]) -> None:
        """Take the records for which a bool ndarray holds; tokens are of at least one word."""
        records = [*tokens, *fields]
        if not needed.all():
            records = [field[needed] for field in records]
        if len(records[0]):
            self._n_tokens = len(tokens)
            self._partitions.add(partition_of(records[0], 0), records)

    def of_persons(self) -> Iterator[T_co]:
        """Give what is made of each partition; no person is in two. The records are forgotten."""
        return self._drained(self._shared, 0)

    def _renumber(self, key_numbers: RenumberedKeys, records: Records) -> None:
        """Give the keys in records other numbers, in place."""
        for place, packing in self.packings if key_numbers else ():
            first = self._n_tokens + place
            packing.renumber(records[first : first + len(packing.groups)], key_numbers)

    def _new_partitions(self, splits: int) -> ExternalPartitions:
        limit = self._limit // 2 if splits else self._limit
        return ExternalPartitions(limit, lambda records: self._reduced(records, splits))

    def _drained(self, partitions: JoinedPartitions, splits: int) -> Iterator[T_co]:
        for partition in partitions.own:
            n_bytes = partitions.n_bytes(partition)
            if splits < MOST_SPLITS and n_bytes > self._most_bytes:
                # The memory is for the parts of this partition now.
                partitions.settle()
                with closing(self._new_partitions(splits + 1)) as finer:
                    # These were not split by the next bits yet, so they share the former ones only.
                    for records in self._fewer(partitions, partition, splits):
                        finer.add(partition_of(records[0], splits + 1), records)
                    yield from self._drained(JoinedPartitions([finer]), splits + 1)
            elif n_bytes:
                yield self._finished(partitions.whole(partition), splits)

    def _fewer(
        self, partitions: JoinedPartitions, partition: int, splits: int
    ) -> Iterator[Records]:
        """Give the records of a partition, block by block and reduced."""
        for records in partitions.read(partition, self._most_bytes // 2):
            yield self._reduced(records, splits)


def share_partitions(
    several: Sequence[PersonRecords[T_co]], key_numbers: Sequence[RenumberedKeys]
) -> None:
    """Let each of several threads' records finish some partitions of all of them.

    What is made of a partition depends on its records, and not on who took them.

    Parameters
    ----------
    several : sequence of PersonRecords
    key_numbers : sequence of mappings
        Of each thread: the new numbers of the keys in its records, by which keys are alike for all.
    """
    # Records that took nothing do not know the form of one.
    taken = [
        (records, numbers)
        for records, numbers in zip(several, key_numbers, strict=True)
        if records._n_tokens
    ]
    held = [records._partitions for records, _ in taken]
    renumber = [partial(records._renumber, numbers) for records, numbers in taken]
    for first, (records, _) in enumerate(taken):
        # Each partition is in one range, so all records of a person meet in one thread.
        own = range(first, N_PARTITIONS, len(taken))
        records._shared = JoinedPartitions(held, renumber, own)


def person_numbers(tokens: list[Array]) -> Array:
    """Number the persons of rows that are sorted by person: int64 ndarray of shape (rows,)."""
    is_new = np.zeros(len(tokens[0]), bool)
    for word in tokens:
        is_new[1:] |= word[1:] != word[:-1]
    return np.cumsum(is_new)


def joined_by(records: Records, n_fields: int, kept: int = 0) -> Records:
    """Join records that are equal in their first fields into one, sorted by these.

    Parameters
    ----------
    records : Records
    n_fields : int
    kept : int
        How many of the next fields are equal as well, then. The others are added up.
    """
    columns = records[:n_fields]
    order = np.argsort(columns[0]) if n_fields == 1 else np.lexsort(columns[::-1])
    columns = [column[order] for column in columns]
    starts = run_starts(columns)
    rest = records[n_fields:]
    return [
        *(column[starts] for column in columns),
        *(field[order[starts]] for field in rest[:kept]),
        *(np.add.reduceat(field[order], starts) for field in rest[kept:]),
    ]


def partition_of(words: Array, splits: int) -> Array:
    """Return the partition of each record after some splits: uint8 ndarray of shape (records,).

    Parameters
    ----------
    words : uint64 ndarray of shape (records,)
        By whose bits the records are partitioned.
    """
    next_bits = words << np.uint64(PARTITION_BITS * splits) if splits else words
    return (next_bits >> np.uint64(64 - PARTITION_BITS)).astype(np.uint8)


# --- records of rows ------------------------------------------------------------------------------

# How often a partition is split by tokens before it is split by priorities.
_TOKEN_SPLITS = 2

_COPIES_AT_ONCE = 2**18


class RowRecords(PersonRecords[T_co]):
    """Collects rows; all rows of a person come in the order of their priorities in the end.

    Parameters
    ----------
    key : bytes of length 32
        The secret of the copies' priorities.
    most : int
        How many rows of a person are kept at most.
    all_kept : int
        Up to which number of rows of a person all of them are kept, whatever they are. Only there
        the order of a person's rows does not matter, so copies need no numbers.
    """

    def __init__(self, key: bytes, most: int, all_kept: int) -> None:
        super().__init__()
        self._copy_numbers = CopyNumbers(key)
        self._most = most
        self._all_kept = all_kept
        self._scratch = Scratch()

    def _new_partitions(self, splits: int) -> ExternalPartitions:
        # A piece of a person's rows must not be reduced before copies have their numbers.
        if splits < _TOKEN_SPLITS:
            return ExternalPartitions(self._limit // (splits + 1))
        return super()._new_partitions(splits)

    @abstractmethod
    def _reduced(self, records: Records, splits: int) -> Records:
        """Drop rows that are not needed, of some of a partition's rows.

        No two rows of a person share a priority here.
        """

    def _in_order(self, records: Records, splits: int) -> OrderedRows:
        """Order records by person, and by the priorities of a person's rows and their copies."""
        priorities = records[self._n_tokens]
        # All tokens of a partition begin with the bits by which it was split.
        tokens = records[: self._n_tokens]
        rows = ordered_rows(tokens, priorities, PARTITION_BITS * (splits + 1), self._scratch)
        self._copy_numbers.number(rows, priorities, self._all_kept)
        return rows

    def _fewer(
        self, partitions: JoinedPartitions, partition: int, splits: int
    ) -> Iterator[Records]:
        if splits + 1 < _TOKEN_SPLITS:
            return partitions.read(partition, self._most_bytes // 2)
        if splits + 1 == _TOKEN_SPLITS:
            return self._numbered(partitions, partition)
        return super()._fewer(partitions, partition, splits)

    def _numbered(self, partitions: JoinedPartitions, partition: int) -> Iterator[Records]:
        """Give the rows of a partition with priorities that no two rows of a person share."""
        with closing(_Copies()) as copies:
            copies.share(4 * self._threads)
            for records in partitions.read(partition, self._most_bytes // 2):
                copies.add(records, self._n_tokens)
            for distinct, counts in copies.of_persons():
                yield from self._copies_of(distinct, counts)

    def _copies_of(self, records: Records, counts: Array) -> Iterator[Records]:
        """Give every row as often as it is there, with a priority for each copy.

        Of the copies of a row, those of least priority are given, at most ``most``.
        """
        start = 0
        while start < len(counts):
            within = np.cumsum(counts[start:]) <= _COPIES_AT_ONCE
            stop = start + max(1, int(np.count_nonzero(within)))
            yield self._least_copies([field[start:stop] for field in records], counts[start:stop])
            start = stop

    def _least_copies(self, records: Records, counts: Array) -> Records:
        least = [np.zeros(0, np.uint64), np.zeros(0, np.uint64)]  # numbers of rows, priorities
        for first in range(0, int(counts.max()), _COPIES_AT_ONCE):
            last = np.minimum(counts, first + _COPIES_AT_ONCE)
            copies, numbers = ranges(np.minimum(first, counts), last)
            of_rows = records[self._n_tokens][numbers]
            priorities = self._copy_numbers.priorities(of_rows, copies + 1)
            further = [numbers.astype(np.uint64), priorities]
            so_far = [np.concatenate(pair) for pair in zip(least, further, strict=True)]
            order = np.lexsort(so_far[::-1])
            # Copies lie in one cell, so a person never keeps more of them than of rows in all.
            kept = order[first_rows([so_far[0][order]], self._most)]
            least = [field[kept] for field in so_far]
        rows = least[0].astype(np.int64)
        fields = [field[rows] for field in records]
        fields[self._n_tokens] = least[1]
        return fields


class _Copies(PersonRecords[tuple[Records, Array]]):
    """Joins the copies of rows, which have one priority: it is the first word of their records.

    So records are partitioned by priorities, and the copies of a row meet. The last field of a
    record says how many copies it stands for.
    """

    def add(self, rows: Records, n_tokens: int) -> None:
        """Take rows, whose priority stands behind so many words of the person's token."""
        one_each = np.ones(len(rows[0]), np.int64)
        first = [rows[n_tokens], *rows[:n_tokens]]
        self._add(one_each > 0, first, [*rows[n_tokens + 1 :], one_each])

    def _finished(self, records: Records, splits: int) -> tuple[Records, Array]:
        """Give rows of which no two are alike, and how often each of them is there."""
        *rows, counts = self._reduced(records, splits)
        n_tokens = self._n_tokens - 1
        return [*rows[1 : 1 + n_tokens], rows[0], *rows[1 + n_tokens :]], counts

    def _reduced(self, records: Records, splits: int) -> Records:
        return joined_by(records, self._n_tokens, kept=len(records) - self._n_tokens - 1)


# --- numbers of persons ---------------------------------------------------------------------------


def _norms(rows: Array, starts: Array) -> Array:
    """Return the norms of the persons' counts, rounded up."""
    squares = np.add.reduceat(rows.astype(float) ** 2, starts)
    # A square root is rounded: where the number below it is enough, that one is the norm.
    norms = np.ceil(np.sqrt(squares))
    return np.asarray(norms - ((norms - 1) ** 2 >= squares))


# Finds each person's number from the rows of persons in cells, and from where persons begin.
Number: TypeAlias = Callable[[Array, Array], Array]

# Those that cells matter to.
NUMBERS: Mapping[Counted, Number] = {
    "cells of each person": lambda rows, starts: np.diff(starts, append=len(rows)),
    "norm of each person": _norms,
    "largest cell of each person": np.maximum.reduceat,
}


class PersonNumbers(PersonRecords[PackedRows]):
    """Finds the cell of each person's number, which follows from the person's rows in cells.

    A record has 8 bytes for the person (16 for text), 4 or 8 for the cell if it matters, and 8 for
    a number of rows.

    Parameters
    ----------
    needs : sequence of Needs
        All count persons by the same number.
    """

    def __init__(self, needs: Sequence[Needs]) -> None:
        super().__init__()
        need = needs[0]
        axes = [need.lattice.axes[0] for need in needs]
        self._axes = [axis for axis in axes if isinstance(axis, GridAxis | EdgesAxis)]
        self._number: Number = NUMBERS.get(need.counted, np.add.reduceat)
        if need.cells is not None and need.counted in NUMBERS:
            self.packings = [(0, Packing(need.cells))]

    def add(self, persons: PersonRows, cells: Cells) -> None:
        """Take a batch. Rows without a cell are dropped, where cells matter."""
        rows = np.ones(len(persons.tokens[0]), np.int64)
        packed: list[Array] = []
        for _, packing in self.packings:
            packed = packing.narrowed(packed_cells(packing, cells))
        self._add(packed[0] != DROPPED if packed else rows > 0, persons.tokens, [*packed, rows])

    def _finished(self, records: Records, splits: int) -> PackedRows:
        joined = self._reduced(records, splits)
        numbers = self._number(joined[-1], run_starts(joined[: self._n_tokens]))
        return [[axis.locate(numbers.astype(float, copy=False))] for axis in self._axes]

    def _reduced(self, records: Records, splits: int) -> Records:
        """Join the records of each person in a cell into one; they are then sorted by person."""
        return joined_by(records, len(records) - 1)
