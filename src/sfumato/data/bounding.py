"""Bounding persons: at most r rows of each person, chosen uniformly at random, per lattice, in bounded memory.

Each row draws a 64-bit priority, independent of everything else, from a keystream whose key is
fresh and secret. For each lattice, a person keeps the r rows of least priority among those of his
own rows that have a cell on it.

Guarantee: on each lattice at most r rows of a person are counted, and which ones depends on that
person's rows and on their priorities only. The set is a uniformly random r-subset of the rows that
count.
Holds because: the rank of a row is taken among the rows of one person, so that given the priorities
the choice is a per-person map. Let D' be D without one person, and give each row of D' the priority
that it has in D. The priorities are independent and alike, so this is how D' would have been drawn;
everyone else keeps the same rows in both, and the cubes differ by the at most r rows of that
person. A mechanism that is private for cubes that differ so is private given the priorities, hence
also on average over them, which the output never shows. The same holds jointly for several
lattices.
Priorities are alike for all lattices of a scan, and for a second scan under the same key of a table
that did not change: what a person keeps on a lattice and on a refinement of it is then the same
rows, so parallel composition may span both.
In parts: rows are dealt by words that stand for their persons (see ``persons``), so that all rows
of a person meet in one part. The r least of a set are the r least of the r least of its pieces:
pieces may be reduced as often as wished, in any order, and the rows kept are the same in memory,
through files and for every size of batch.
Exact: up to ties of two 64-bit priorities of one person (chance 2**-64 a pair), ids of text that
meet (see ``persons``), and AES-256 as a pseudorandom function: N rows read N/2 blocks of one key,
which costs (N/2)**2 / 2**129.
Not covered: persons who appear under several ids; the time that a scan takes, and the size of its
temporary files.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.arrays import Array
from sfumato.data import persons as people
from sfumato.data.external_partitions import PARTS, PARTS_BITS, Parts, memory
from sfumato.lattice import DROPPED
from sfumato.random import bits

KEY_BYTES = 32
DEEPEST = 8  # a part that is still too large after so many splits holds rows that are all kept
_PRIORITY_BITS = 24  # of a sorted word


def fresh_key() -> bytes:
    """Draw the secret of one choice of rows."""
    return bits.current().words(KEY_BYTES // 8).tobytes()


class Priorities:
    """The keystream of one scan: row i of the table gets word i."""

    def __init__(self, key: bytes) -> None:
        self._context = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()

    def take(self, rows: int) -> Array:
        """Return the next words: uint64 ndarray of shape (rows,)."""
        return np.frombuffer(self._context.update(bytes(8 * rows)), dtype=np.uint64)


def kept(persons: Array, priorities: Array, counts: Array, rows_per_person: int) -> Array:
    """Choose each person's rows.

    Parameters
    ----------
    persons : integer ndarray of shape (rows,)
        One number from 0 on per person.
    priorities : uint64 ndarray of shape (rows,)
    counts : bool ndarray of shape (rows,)
        Whether the row has a cell.

    Returns
    -------
    int64 ndarray of shape (kept,)
        Row numbers.

    >>> kept(np.array([0, 0, 1, 0]), np.array([9, 2, 7, 4], np.uint64), np.array([True, True, True, True]), 2).tolist()
    [1, 3, 2]
    """
    words = [persons.astype(np.uint64)]
    order = ranked(words, priorities)
    starts = _starts([word[order] for word in words])
    return np.asarray(order[_first(starts, counts[order], rows_per_person)])


def ranked(persons: list[Array], priorities: Array, common: int = 0) -> Array:
    """Order the rows by person, then by priority: int64 ndarray of shape (rows,).

    One sort of leading bits is several times as fast as a sort by two keys; where it cannot tell
    rows apart, those rows are sorted again by all bits.

    Parameters
    ----------
    persons : list of uint64 ndarray of shape (rows,)
        The words of each row's person.
    common : int
        How many leading bits all persons have in common.
    """
    words = ((persons[0] << np.uint64(common)) >> np.uint64(_PRIORITY_BITS)) << np.uint64(
        _PRIORITY_BITS
    )
    words |= priorities >> np.uint64(64 - _PRIORITY_BITS)
    order = np.argsort(words)
    first = words[order] >> np.uint64(_PRIORITY_BITS)
    unsure = np.unique(first[1:][_disordered([*persons, priorities], order)])
    if len(unsure):
        where = np.flatnonzero(np.isin(first, unsure))
        rows = order[where]
        order[where] = rows[np.lexsort([priorities[rows], *(word[rows] for word in persons[::-1])])]
    return order


def _disordered(columns: list[Array], order: Array) -> Array:
    """Where a row comes before the one above it: bool ndarray of shape (rows - 1,)."""
    below = np.zeros(max(0, len(order) - 1), bool)
    for column in columns[::-1]:
        sorted_ = column[order]
        below = (sorted_[1:] < sorted_[:-1]) | ((sorted_[1:] == sorted_[:-1]) & below)
    return below


def _starts(persons: list[Array]) -> Array:
    """Number of the person of each row, rows being sorted by person: int64 ndarray of shape (rows,)."""
    new = np.zeros(len(persons[0]), bool)
    for word in persons:
        new[1:] |= word[1:] != word[:-1]
    return np.cumsum(new)


def _first(who: Array, counts: Array, rows_per_person: int) -> Array:
    """Places of the first r rows that count, of each run of ``who``: int64 ndarray of shape (kept,)."""
    places = np.flatnonzero(counts)
    who = who[places]
    keep = np.ones(len(who), bool)
    keep[rows_per_person:] = (
        who[rows_per_person:] != who[:-rows_per_person]
    )  # the r-th row before is someone else's
    return places[keep]


class Bounder:
    """Holds what a scan needs to know of each row until all are seen, in parts, by person.

    A record has 8 bytes for the person (16 for text), 8 for the priority, and 4 or 8 for each
    lattice. Records beyond ``spill.memory()`` bytes go to a temporary file; one part is read back
    at a time, and a large part is dealt out again.
    """

    def __init__(self, key: bytes, rows_per_person: int) -> None:
        self._priorities = Priorities(key)
        self._words = people.Words(key)
        self._rows_per_person = rows_per_person
        self._limit = memory()
        self._parts = self._new_parts(0)
        self._fields: list[list[str]] = []  # of each lattice
        self._persons: list[str] = []

    def add(self, persons: pa.Array, keys: list[list[Array]]) -> None:
        """Take a batch: the person column, and the packed cells per lattice (see ``scan.Packing``)."""
        drawn = self._priorities.take(len(persons))
        ids = people.ids(persons)
        useful = np.logical_or.reduce([key[0] != DROPPED for key in keys])
        if ids.null_count:
            useful &= ids.is_valid().to_numpy(zero_copy_only=False)
        if not useful.any():
            return
        if not useful.all():
            ids = ids.filter(pa.array(useful))
            drawn = drawn[useful]
            keys = [[part[useful] for part in key] for key in keys]
        records = self._records(self._words.of(ids), drawn, keys)
        self._parts.add(_part(records["p0"], 0), records)

    def _records(self, words: list[Array], drawn: Array, keys: list[list[Array]]) -> Array:
        self._persons = [f"p{i}" for i in range(len(words))]
        self._fields = [
            [f"c{lattice}.{i}" for i in range(len(key))] for lattice, key in enumerate(keys)
        ]
        columns = dict(zip(self._persons, words, strict=True)) | {"priority": drawn}
        for names, key in zip(self._fields, keys, strict=True):
            columns |= zip(names, key, strict=True)
        records = np.empty(len(drawn), [(name, column.dtype) for name, column in columns.items()])
        for name, column in columns.items():
            records[name] = column
        return records

    def bounded(self) -> Iterator[list[list[Array]]]:
        """Give the packed cells of the rows that each lattice keeps, part by part, and forget the rest."""
        return self._drained(self._parts, 0)

    def close(self) -> None:
        """Give back memory and disk, whatever happened."""
        self._parts.close()

    def _new_parts(self, depth: int) -> Parts:
        return Parts(
            self._limit // 2 if depth else self._limit,
            lambda records: self._reduced(records, depth),
        )

    def _drained(self, parts: Parts, depth: int) -> Iterator[list[list[Array]]]:
        parts.settle()
        for part in range(PARTS):
            if depth < DEEPEST and parts.size(part) > max(self._limit // 4, 2**16):
                yield from self._split(parts, part, depth + 1)
            elif parts.size(part):
                yield self._cells(np.concatenate(list(parts.read(part))), depth)

    def _split(self, parts: Parts, part: int, depth: int) -> Iterator[list[list[Array]]]:
        finer = self._new_parts(depth)
        try:
            for records in parts.read(part, max(self._limit // 8, 2**15)):
                fewer = self._reduced(records, depth - 1)
                finer.add(_part(fewer["p0"], depth), fewer)
            yield from self._drained(finer, depth)
        finally:
            finer.close()

    def _places(self, records: Array, depth: int) -> list[Array]:
        """Which records each lattice keeps: int64 ndarrays of shape (kept,)."""
        words = [np.ascontiguousarray(records[name]) for name in self._persons]
        order = ranked(words, np.ascontiguousarray(records["priority"]), PARTS_BITS * (depth + 1))
        who = _starts([word[order] for word in words])
        counts = (records[names[0]][order] != DROPPED for names in self._fields)
        return [order[_first(who, each, self._rows_per_person)] for each in counts]

    def _cells(self, records: Array, depth: int) -> list[list[Array]]:
        places = self._places(records, depth)
        return [
            [records[name][rows] for name in names]
            for names, rows in zip(self._fields, places, strict=True)
        ]

    def _reduced(self, records: Array, depth: int) -> Array:
        """Drop the records that no lattice keeps of these alone, and hence of no more than these."""
        keep = np.zeros(len(records), bool)
        for rows in self._places(records, depth):
            keep[rows] = True
        return records[keep]


def _part(words: Array, depth: int) -> Array:
    """The part of each person at a depth of splits: uint8 ndarray of shape (rows,)."""
    return ((words << np.uint64(PARTS_BITS * depth)) >> np.uint64(64 - PARTS_BITS)).astype(np.uint8)
