"""Records of persons in bounded memory: all records of a person are seen together in the end.

A record has the person's token (see ``persons``) and further fields. Records beyond
``memory_limit()`` bytes go to a temporary file, partitioned by the tokens. One partition is read
back at a time, and a large one is partitioned again by the next bits of the tokens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

import numpy as np

from sfumato.arrays import Array
from sfumato.data.external_partitions import (
    N_PARTITIONS,
    PARTITION_BITS,
    ExternalPartitions,
    memory_limit,
)
from sfumato.data.persons import PersonIds, PersonTokens

MOST_SPLITS = 8
"""A partition that is still too large after so many splits holds rows that are all kept."""

T = TypeVar("T")


class PersonRecords(ABC, Generic[T]):
    """Collects records of persons, and makes something of the persons of each partition.

    Parameters
    ----------
    key : bytes of length 32
        The secret of the tokens.
    """

    def __init__(self, key: bytes) -> None:
        self._tokens = PersonTokens(key)
        self._limit = memory_limit()
        self._partitions = self._new_partitions(0)
        self._token_fields: list[str] = []

    @abstractmethod
    def _reduced(self, records: Array, splits: int) -> Array:
        """Drop or join records that are not needed one by one, of some of a partition's.

        All records of a partition begin with the same ``splits + 1`` groups of bits. The result
        must serve as well as the records themselves, whatever further records come.
        """

    @abstractmethod
    def _finished(self, records: Array, splits: int) -> T:
        """Make of all records of some persons what is wanted of them."""

    def close(self) -> None:
        """Free memory and disk, whatever happened."""
        self._partitions.close()

    def _add(self, persons: PersonIds, fields: Mapping[str, Array]) -> None:
        """Take records of rows all of which have a person."""
        tokens = self._tokens.of_persons(persons)
        self._token_fields = [f"p{i}" for i in range(len(tokens))]
        columns = {**dict(zip(self._token_fields, tokens, strict=True)), **fields}
        records = np.empty(len(persons), [(name, column.dtype) for name, column in columns.items()])
        for name, column in columns.items():
            records[name] = column
        self._partitions.add(_partition(records["p0"], 0), records)

    def _all_finished(self) -> Iterator[T]:
        """Give what is made of each partition. The records are forgotten."""
        return self._drained(self._partitions, 0)

    def _new_partitions(self, splits: int) -> ExternalPartitions:
        # Split partitions share the memory with those that they are read from.
        limit = self._limit // 2 if splits else self._limit
        return ExternalPartitions(limit, lambda records: self._reduced(records, splits))

    def _drained(self, partitions: ExternalPartitions, splits: int) -> Iterator[T]:
        partitions.settle()
        most_bytes = max(self._limit // 4, 2**16)
        for partition in range(N_PARTITIONS):
            n_bytes = partitions.n_bytes(partition)
            if splits < MOST_SPLITS and n_bytes > most_bytes:
                yield from self._split(partitions, partition, splits + 1)
            elif n_bytes:
                records = np.concatenate(list(partitions.read(partition)))
                yield self._finished(records, splits)

    def _split(self, partitions: ExternalPartitions, partition: int, splits: int) -> Iterator[T]:
        """Partition a large partition again, by the next bits of the tokens."""
        finer = self._new_partitions(splits)
        try:
            for records in partitions.read(partition, max(self._limit // 8, 2**15)):
                fewer = self._reduced(records, splits - 1)
                finer.add(_partition(fewer["p0"], splits), fewer)
            yield from self._drained(finer, splits)
        finally:
            finer.close()

    def _token_words(self, records: Array) -> list[Array]:
        """The words of the records' tokens: uint64 ndarrays of shape (records,)."""
        return [np.ascontiguousarray(records[field]) for field in self._token_fields]


def person_numbers(tokens: list[Array]) -> Array:
    """Number the persons of rows that are sorted by person: int64 ndarray of shape (rows,)."""
    is_new = np.zeros(len(tokens[0]), bool)
    for word in tokens:
        is_new[1:] |= word[1:] != word[:-1]
    return np.cumsum(is_new)


def _partition(words: Array, splits: int) -> Array:
    """The partition of each person after some splits: uint8 ndarray of shape (rows,)."""
    next_bits = words << np.uint64(PARTITION_BITS * splits)
    return (next_bits >> np.uint64(64 - PARTITION_BITS)).astype(np.uint8)
