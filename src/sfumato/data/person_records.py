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
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from sfumato.answers import Counted, Needs
from sfumato.basics import Array
from sfumato.data.external_partitions import (
    N_PARTITIONS,
    PARTITION_BITS,
    ExternalPartitions,
    JoinedPartitions,
    Records,
    memory_limit,
)
from sfumato.data.hashing import Scratch
from sfumato.data.packed_counts import Cells, PackedRows, Packing, RenumberedKeys, packed_cells
from sfumato.data.priorities import PersonRows
from sfumato.data.row_order import (
    CopyNumbers,
    OrderedRows,
    first_rows,
    ordered_rows,
    ranges,
    run_starts,
)
from sfumato.domain import DROPPED, EdgesAxis, GridAxis

MOST_SPLITS = 8
"""A partition that is still too large after so many splits holds rows that are all kept."""

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
                yield from self._split(partitions, partition, splits + 1)
            elif n_bytes:
                yield self._finished(partitions.whole(partition), splits)

    def _split(self, partitions: JoinedPartitions, partition: int, splits: int) -> Iterator[T_co]:
        """Partition a large partition again, by the next bits of the tokens."""
        with closing(self._new_partitions(splits)) as finer:
            # These were not split by the next bits yet, so they share the former ones only.
            for records in self._fewer(partitions, partition, splits - 1):
                finer.add(partition_of(records[0], splits), records)
            yield from self._drained(JoinedPartitions([finer]), splits)

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

_TOKEN_SPLITS = 2
"""How often a partition is split by tokens before it is split by priorities."""

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


def _numbers_of_rows(rows: Array, starts: Array) -> Array:
    return np.add.reduceat(rows, starts).astype(float)


def _numbers_of_cells(rows: Array, starts: Array) -> Array:
    return np.diff(np.append(starts, len(rows))).astype(float)


def _norms(rows: Array, starts: Array) -> Array:
    """Return the norms of the persons' counts, rounded up."""
    squares = np.add.reduceat(rows.astype(float) ** 2, starts)
    # A square root is rounded: where the number below it is enough, that one is the norm.
    norms = np.ceil(np.sqrt(squares))
    return np.asarray(norms - ((norms - 1) ** 2 >= squares))


def _largest_counts(rows: Array, starts: Array) -> Array:
    return np.maximum.reduceat(rows, starts).astype(float)


NUMBERS: Mapping[Counted, Callable[[Array, Array], Array]] = {
    "cells of each person": _numbers_of_cells,
    "norm of each person": _norms,
    "largest cell of each person": _largest_counts,
}
"""The numbers that cells matter to, from the rows of persons in cells, and where persons begin."""


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
        self._number = NUMBERS.get(need.counted, _numbers_of_rows)
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
        """Locate the numbers of the persons of one partition."""
        joined = self._reduced(records, splits)
        numbers = self._number(joined[-1], run_starts(joined[: self._n_tokens]))
        return [[axis.locate(numbers)] for axis in self._axes]

    def _reduced(self, records: Records, splits: int) -> Records:
        """Join the records of each person in a cell into one; they are then sorted by person."""
        return joined_by(records, len(records) - 1)
