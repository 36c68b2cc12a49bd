"""Records of rows that have a person and a priority, in bounded memory.

The priority of a row is a keyed hash of its person and its values (see ``row_priorities``), so
copies of one row have equal ones. Their numbers, and with these their own priorities, are known
only where all copies are together:

* In a partition by tokens that fits into memory, all rows of a person are.
* In a partition that does not, records are partitioned by the leading bits of their priorities.
  All copies of a row then are in one part. Each part gives every copy its own priority, and drops
  those copies that stand behind ``most`` others of the same row. From then on no two rows of a
  person share a priority, and pieces of a person's rows may be reduced like any others.

Holds because: copies of a row lie in the same cell, and so none of them is kept that stands behind
as many as a person may keep at all.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TypeVar

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.data.external_partitions import (
    N_PARTITIONS,
    PARTITION_BITS,
    ExternalPartitions,
    Records,
    joined,
)
from sfumato.data.person_records import PersonRecords, partition_of
from sfumato.data.row_order import CopyNumbers, OrderedRows, first_rows, ordered_rows, ranges
from sfumato.data.scratch import Scratch

_TOKEN_SPLITS = 2
"""How often a partition is split by tokens before it is split by priorities."""

_MOST_DEPTH = 9
"""How often a partition is split by priorities: 60 of their bits."""

_COPIES_AT_ONCE = 2**18

T = TypeVar("T")


class RowRecords(PersonRecords[T]):
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
        # A piece of a person's rows must not be reduced before copies have their numbers.
        self._partitions = ExternalPartitions(self._limit)

    @abstractmethod
    def _reduced(self, records: Records, splits: int) -> Records:
        """Drop rows that are not needed, of some of a partition's rows.

        No two rows of a person share a priority here.
        """

    def _add_where(self, needed: Array | None, tokens: list[Array], fields: list[Array]) -> None:
        """Take the rows for which a bool ndarray holds; all for None. The priority comes first."""
        if needed is not None and not needed.all():
            tokens = [word[needed] for word in tokens]
            fields = [field[needed] for field in fields]
        if len(tokens[0]):
            self._add(tokens, fields)

    def _in_order(self, records: Records, splits: int) -> OrderedRows:
        """Order records by person, and by the priorities of a person's rows and their copies."""
        priorities = records[self._n_tokens]
        # All tokens of a partition begin with the bits by which it was split.
        tokens = records[: self._n_tokens]
        rows = ordered_rows(tokens, priorities, PARTITION_BITS * (splits + 1), self._scratch)
        self._copy_numbers.number(rows, priorities, self._all_kept)
        return rows

    def _all_finished(self) -> Iterator[T]:
        return self._with_copies(self._partitions, 0)

    def _with_copies(self, partitions: ExternalPartitions, splits: int) -> Iterator[T]:
        """Finish the partitions of rows whose copies have no numbers yet."""
        for partition in range(N_PARTITIONS):
            n_bytes = partitions.n_bytes(partition)
            if n_bytes > self._most_bytes:
                # The memory is for the parts of this partition now.
                partitions.settle()
                is_last = splits + 1 == _TOKEN_SPLITS
                split = self._by_priority if is_last else self._by_person
                yield from split(partitions, partition, splits + 1)
            elif n_bytes:
                yield self._finished(partitions.whole(partition), splits)

    def _by_person(
        self, partitions: ExternalPartitions, partition: int, splits: int
    ) -> Iterator[T]:
        """Partition a large partition by the next bits of the tokens."""
        finer = ExternalPartitions(self._limit // 2)
        try:
            for records in partitions.read(partition, self._most_bytes // 2):
                finer.add(partition_of(records[0], splits), records)
            yield from self._with_copies(finer, splits)
        finally:
            finer.close()

    def _by_priority(
        self, partitions: ExternalPartitions, partition: int, splits: int
    ) -> Iterator[T]:
        """Give copies their numbers part by part; then go on as for any records of persons."""
        numbered = self._new_partitions(splits)
        try:
            for records in self._numbered(partitions, partition, 0):
                numbered.add(partition_of(records[0], splits), records)
            yield from self._drained(numbered, splits)
        finally:
            numbered.close()

    def _numbered(
        self, partitions: ExternalPartitions, partition: int, depth: int
    ) -> Iterator[Records]:
        """Give the rows of a partition with priorities that no two rows of a person share."""
        parts = ExternalPartitions(self._limit // 4)
        try:
            for records in partitions.read(partition, self._most_bytes // 2):
                parts.add(partition_of(records[self._n_tokens], depth), records)
            # What is in the file can be read twice.
            parts.settle()
            for part in range(N_PARTITIONS):
                if not parts.n_bytes(part):
                    continue
                distinct = self._distinct(parts, part, depth)
                if distinct is None:
                    yield from self._numbered(parts, part, depth + 1)
                else:
                    yield from self._copies_of(*distinct)
        finally:
            parts.close()

    def _distinct(
        self, parts: ExternalPartitions, part: int, depth: int
    ) -> tuple[Records, Array] | None:
        """Join the copies of each row of a part: records, and how often each is there.

        None: they take too much memory, and the part can still be split.
        """
        found: list[Records] = []
        counts = np.zeros(0, np.int64)
        for block in parts.read(part, self._most_bytes // 2):
            records = joined([*found, block])
            counts = np.concatenate([counts, np.ones(len(block[0]), np.int64)])
            distinct, counts = self._joined_copies(records, counts, depth)
            n_bytes = sum(field.nbytes for field in distinct)
            if n_bytes > self._most_bytes and depth < _MOST_DEPTH:
                return None
            found = [distinct]
        return found[0], counts

    def _joined_copies(self, records: Records, counts: Array, depth: int) -> tuple[Records, Array]:
        # All tokens, and all priorities, begin with the bits by which the rows were split.
        priorities = records[self._n_tokens] << np.uint64(PARTITION_BITS * (depth + 1))
        tokens = records[: self._n_tokens]
        rows = ordered_rows(tokens, priorities, PARTITION_BITS * _TOKEN_SPLITS)
        is_first = np.ones(len(counts), bool)
        is_first[rows.copies] = False
        starts = np.flatnonzero(is_first)
        distinct = [field[rows.order[starts]] for field in records]
        return distinct, np.add.reduceat(counts[rows.order], starts)

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
            several = [[numbers.astype(np.uint64), priorities]]
            numbers_so_far, priorities_so_far = joined([least, *several])
            order = np.lexsort([priorities_so_far, numbers_so_far])
            in_order = numbers_so_far[order]
            kept = order[first_rows([in_order], self._most)]
            least = [numbers_so_far[kept], priorities_so_far[kept]]
        rows = least[0].astype(np.int64)
        fields = [field[rows] for field in records]
        fields[self._n_tokens] = least[1]
        return fields
