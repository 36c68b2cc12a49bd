"""Records of persons in bounded memory: all records of a person are seen together in the end.

A record has the person's token (see ``persons``) and further fields. Records beyond
``memory_limit()`` bytes go to a temporary file, partitioned by the tokens. One partition is read
back at a time, and a large one is partitioned again by the next bits of the tokens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, TypeVar

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.data.external_partitions import (
    N_PARTITIONS,
    PARTITION_BITS,
    ExternalPartitions,
    Records,
    memory_limit,
)

MOST_SPLITS = 8
"""A partition that is still too large after so many splits holds rows that are all kept."""

T = TypeVar("T")


class PersonRecords(ABC, Generic[T]):
    """Collects records of persons, and makes something of the persons of each partition.

    The first fields of a record are the words of the person's token.
    """

    def __init__(self) -> None:
        self._limit = memory_limit()
        self._most_bytes = max(self._limit // 8, 2**16)  # of a partition that is not split
        self._partitions = self._new_partitions(0)
        self._n_tokens = 0

    @abstractmethod
    def _reduced(self, records: Records, splits: int) -> Records:
        """Drop or join records that are not needed one by one, of some of a partition's.

        All records of a partition begin with the same ``splits + 1`` groups of bits. The result
        must serve as well as the records themselves, whatever further records come.
        """

    @abstractmethod
    def _finished(self, records: Records, splits: int) -> T:
        """Make of all records of some persons what is wanted of them."""

    def close(self) -> None:
        """Free memory and disk, whatever happened."""
        self._partitions.close()

    def _add(self, tokens: list[Array], fields: list[Array]) -> None:
        """Take records, of which there is at least one."""
        self._n_tokens = len(tokens)
        self._partitions.add(partition_of(tokens[0], 0), [*tokens, *fields])

    def _all_finished(self) -> Iterator[T]:
        """Give what is made of each partition. The records are forgotten."""
        return self._drained(self._partitions, 0)

    def _new_partitions(self, splits: int) -> ExternalPartitions:
        limit = self._limit // 2 if splits else self._limit
        return ExternalPartitions(limit, lambda records: self._reduced(records, splits))

    def _drained(self, partitions: ExternalPartitions, splits: int) -> Iterator[T]:
        for partition in range(N_PARTITIONS):
            n_bytes = partitions.n_bytes(partition)
            if splits < MOST_SPLITS and n_bytes > self._most_bytes:
                # The memory is for the parts of this partition now.
                partitions.settle()
                yield from self._split(partitions, partition, splits + 1)
            elif n_bytes:
                yield self._finished(partitions.whole(partition), splits)

    def _split(self, partitions: ExternalPartitions, partition: int, splits: int) -> Iterator[T]:
        """Partition a large partition again, by the next bits of the tokens."""
        finer = self._new_partitions(splits)
        try:
            for records in partitions.read(partition, self._most_bytes // 2):
                fewer = self._reduced(records, splits - 1)
                finer.add(partition_of(fewer[0], splits), fewer)
            yield from self._drained(finer, splits)
        finally:
            finer.close()


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
    starts = np.flatnonzero(np.diff(person_numbers(columns), prepend=-1))
    rest = records[n_fields:]
    return [
        *(column[starts] for column in columns),
        *(field[order[starts]] for field in rest[:kept]),
        *(np.add.reduceat(field[order], starts) for field in rest[kept:]),
    ]


def partition_of(words: Array, splits: int) -> Array:
    """The partition of each record after some splits: uint8 ndarray of shape (records,).

    Parameters
    ----------
    words : uint64 ndarray of shape (records,)
        By whose bits the records are partitioned.
    """
    next_bits = words << np.uint64(PARTITION_BITS * splits) if splits else words
    return (next_bits >> np.uint64(64 - PARTITION_BITS)).astype(np.uint8)
