"""Bound each person to at most r rows per lattice, chosen uniformly at random, in bounded memory.

Each row draws a 64-bit priority from a keystream whose key is fresh and secret. On each lattice, a
person keeps the r rows of least priority among the person's own rows that have a cell there.

Guarantee: on each lattice, at most r rows of a person are counted. Which rows these are depends
only on that person's rows and their priorities. They are a uniformly random subset of size r of the
person's rows that count.
Holds because: the rank of a row is taken among the rows of one person, so for given priorities the
choice is a map of each person alone. Let D' be D without one person, and give each row of D' the
priority that it has in D. The priorities are independent and identically distributed, so D' has
the same distribution as if its priorities had been drawn afresh. Everyone else keeps the same rows
in both, so the cubes differ by the at most r rows of that person. A mechanism that is private for
such cubes is private given the priorities, hence also on average over them, and the output never
shows them. The same holds jointly for several lattices.
Priorities are the same for all lattices of a scan, and for a second scan of an unchanged table
under the same key. A person then keeps the same rows on a lattice and on its refinement, so
parallel composition may span both.
In parts: rows are partitioned by person tokens (see ``persons``), so all rows of a person meet in
one partition. The r least of a set are the r least of the r least of its pieces. So pieces may be
reduced as often as wished and in any order, and the rows kept are the same in memory, through files
and for every size of batch.
Exact: up to equal 64-bit priorities of one person (probability 2**-64 for each pair of rows),
colliding tokens of text ids (see ``persons``), and AES-256 as a pseudorandom function: N rows read
N/2 blocks of one key, which costs (N/2)**2 / 2**129.
Not covered: persons who appear under several ids; the time that a scan takes, and the size of its
temporary files.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.arrays import Array
from sfumato.data.external_partitions import PARTITION_BITS
from sfumato.data.limiting import PersonRows, RowLimits
from sfumato.data.person_records import PersonRecords, person_numbers
from sfumato.data.persons import PersonIds
from sfumato.lattice import DROPPED
from sfumato.privacy.limits import Limits
from sfumato.random import bits

KEY_BYTES = 32
_PRIORITY_BITS = 24  # how many bits of a sorting key are the priority's


def fresh_key() -> bytes:
    """Draw the secret key of one choice of rows."""
    return bits.current().words(KEY_BYTES // 8).tobytes()


class Priorities:
    """The keystream of one scan: row i of the table gets word i."""

    def __init__(self, key: bytes) -> None:
        self._context = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()

    def take(self, n_rows: int) -> Array:
        """Give the priorities of the next rows: uint64 ndarray of shape (n_rows,)."""
        return np.frombuffer(self._context.update(bytes(8 * n_rows)), dtype=np.uint64)


# --- the choice ---------------------------------------------------------------------------------


def kept(persons: Array, priorities: Array, counts: Array, rows_per_person: int) -> Array:
    """Choose the rows that each person keeps.

    Parameters
    ----------
    persons : integer ndarray of shape (rows,)
        One number from 0 on for each person.
    priorities : uint64 ndarray of shape (rows,)
    counts : bool ndarray of shape (rows,)
        Whether the row has a cell.
    rows_per_person : int

    Returns
    -------
    int64 ndarray of shape (kept,)
        Row numbers.

    >>> persons = np.array([0, 0, 1, 0])
    >>> priorities = np.array([9, 2, 7, 4], np.uint64)
    >>> kept(persons, priorities, np.ones(4, bool), rows_per_person=2).tolist()
    [1, 3, 2]
    """
    tokens = [persons.astype(np.uint64)]
    order = ranked(tokens, priorities)
    numbers = person_numbers([word[order] for word in tokens])
    return np.asarray(order[_first_rows(numbers, counts[order], rows_per_person)])


def ranked(tokens: list[Array], priorities: Array, common_bits: int = 0) -> Array:
    """Order the rows by person, then by priority: int64 ndarray of shape (rows,).

    One sort by leading bits is several times as fast as a sort by two keys. Where the leading bits
    cannot tell rows apart, those rows are sorted again by all bits.

    Parameters
    ----------
    tokens : list of uint64 ndarray of shape (rows,)
        The words of the person token of each row.
    priorities : uint64 ndarray of shape (rows,)
    common_bits : int
        How many leading bits the tokens of all rows have in common.
    """
    shift = np.uint64(_PRIORITY_BITS)
    token_bits = (tokens[0] << np.uint64(common_bits)) >> shift
    sorting_keys = token_bits << shift
    sorting_keys |= priorities >> np.uint64(64 - _PRIORITY_BITS)
    order = np.argsort(sorting_keys)
    leading = sorting_keys[order] >> shift
    ambiguous = np.unique(leading[1:][_disordered([*tokens, priorities], order)])
    if len(ambiguous):
        where = np.flatnonzero(np.isin(leading, ambiguous))
        rows = order[where]
        columns = [priorities[rows], *(word[rows] for word in tokens[::-1])]
        order[where] = rows[np.lexsort(columns)]
    return order


def _disordered(columns: list[Array], order: Array) -> Array:
    """Where a row must come before the one above it: bool ndarray of shape (rows - 1,)."""
    disordered = np.zeros(max(0, len(order) - 1), bool)
    # Lexicographic comparison, from the last column to the first.
    for column in columns[::-1]:
        values = column[order]
        less = values[1:] < values[:-1]
        equal = values[1:] == values[:-1]
        disordered = less | (equal & disordered)
    return disordered


def _first_rows(persons: Array, counts: Array, rows_per_person: int) -> Array:
    """Indices of the first r rows that count, of each person: int64 ndarray of shape (kept,).

    The rows are sorted by person, so a row is among the first r of its person if the row that
    stands r rows earlier is another person's.
    """
    counted = np.flatnonzero(counts)
    owners = persons[counted]
    is_kept = np.ones(len(owners), bool)
    is_kept[rows_per_person:] = owners[rows_per_person:] != owners[:-rows_per_person]
    return counted[is_kept]


# --- records ------------------------------------------------------------------------------------


class Bounder(PersonRecords[list[list[Array]]]):
    """Remembers what bounding needs of each row until all rows were seen, then gives those kept.

    A record has 8 bytes for the person (16 for text), 8 for the priority, and 4 or 8 for each
    lattice.
    """

    def __init__(self, key: bytes, rows_per_person: int) -> None:
        super().__init__(key)
        self._priorities = Priorities(key)
        self._rows_per_person = rows_per_person
        self._cell_fields: list[list[str]] = []  # of each lattice

    def add(self, persons: PersonIds, cells: list[list[Array]]) -> None:
        """Take a batch.

        Parameters
        ----------
        persons : PersonIds
        cells : list of lists of int ndarray of shape (rows,)
            The packed cells on each lattice (see ``packing``).
        """
        # Every row draws, whether or not it counts: so row i of the table has word i.
        priorities = self._priorities.take(len(persons))
        needed = np.logical_or.reduce([packed[0] != DROPPED for packed in cells])
        if (has_person := persons.has_person) is not None:
            needed &= has_person
        if not needed.any():
            return
        if not needed.all():
            persons = persons.kept(needed)
            priorities = priorities[needed]
            cells = [[integers[needed] for integers in packed] for packed in cells]
        self._cell_fields = [
            [f"c{lattice}.{i}" for i in range(len(packed))] for lattice, packed in enumerate(cells)
        ]
        fields = {"priority": priorities}
        for names, packed in zip(self._cell_fields, cells, strict=True):
            fields |= zip(names, packed, strict=True)
        self._add(persons, fields)

    def bounded(self) -> Iterator[list[list[Array]]]:
        """Give the packed cells of the rows that each lattice keeps, partition by partition.

        The records are forgotten.
        """
        return self._all_finished()

    def _ranked(self, records: Array, splits: int) -> tuple[Array, Array]:
        """The order of the records by person and priority, and the persons' numbers in it."""
        tokens = self._token_words(records)
        priorities = np.ascontiguousarray(records["priority"])
        # All tokens of a partition begin with the bits by which it was split.
        order = ranked(tokens, priorities, PARTITION_BITS * (splits + 1))
        return order, person_numbers([word[order] for word in tokens])

    def _kept_indices(self, records: Array, splits: int) -> list[Array]:
        """Which records each lattice keeps: int64 ndarrays of shape (kept,)."""
        order, persons = self._ranked(records, splits)
        indices = []
        for fields in self._cell_fields:
            counts = records[fields[0]][order] != DROPPED
            indices.append(order[_first_rows(persons, counts, self._rows_per_person)])
        return indices

    def _finished(self, records: Array, splits: int) -> list[list[Array]]:
        indices = self._kept_indices(records, splits)
        return [
            [records[field][rows] for field in fields]
            for fields, rows in zip(self._cell_fields, indices, strict=True)
        ]

    def _reduced(self, records: Array, splits: int) -> Array:
        """Drop the records that no lattice keeps of these alone.

        None of them would be kept among more records either: these only move a row further back.
        """
        is_kept = np.zeros(len(records), bool)
        for rows in self._kept_indices(records, splits):
            is_kept[rows] = True
        return records[is_kept]


class CellBounder(PersonRecords[list[Array]]):
    """The same under limits by cell, for one need: these hold on its own cells alone.

    A record has 8 bytes for the person (16 for text), 8 for the priority, 4 or 8 for the cell that
    the limits are about, and what is counted of the row.
    """

    def __init__(self, key: bytes, rows_per_person: int, limits: Limits) -> None:
        super().__init__(key)
        self._priorities = Priorities(key)
        self._limits = RowLimits(rows_per_person, limits, key)
        self._limited_fields: list[str] = []
        self._counted_fields: list[str] = []

    def add(self, persons: PersonIds, limited: list[Array], counted: list[Array]) -> None:
        """Take a batch.

        Parameters
        ----------
        persons : PersonIds
        limited : list of int ndarray of shape (rows,)
            The packed cells that the limits are about. DROPPED in the first drops the row.
        counted : list of int ndarray of shape (rows,)
            What is given back of each row that is kept. DROPPED in the first drops the row.
        """
        priorities = self._priorities.take(len(persons))
        needed = (limited[0] != DROPPED) & (counted[0] != DROPPED)
        if (has_person := persons.has_person) is not None:
            needed &= has_person
        if not needed.any():
            return
        fields = {"priority": priorities}
        self._counted_fields = [f"c{i}" for i in range(len(counted))]
        fields |= zip(self._counted_fields, counted, strict=True)
        # Where the limits are about the cells that are counted, these are remembered once.
        self._limited_fields = self._counted_fields[: len(limited)]
        if any(one is not other for one, other in zip(limited, counted, strict=False)):
            self._limited_fields = [f"l{i}" for i in range(len(limited))]
            fields |= zip(self._limited_fields, limited, strict=True)
        if not needed.all():
            persons = persons.kept(needed)
            fields = {name: column[needed] for name, column in fields.items()}
        self._add(persons, fields)

    def bounded(self) -> Iterator[list[Array]]:
        """Give what is counted of the rows that are kept, partition by partition.

        The records are forgotten.
        """
        return self._all_finished()

    def _sorted_rows(self, records: Array, splits: int) -> tuple[Array, PersonRows]:
        """The order of the records by person and priority, and their rows in it."""
        tokens = self._token_words(records)
        priorities = np.ascontiguousarray(records["priority"])
        order = ranked(tokens, priorities, PARTITION_BITS * (splits + 1))
        cells = [records[field][order] for field in self._limited_fields]
        return order, PersonRows([word[order] for word in tokens], cells)

    def _finished(self, records: Array, splits: int) -> list[Array]:
        order, rows = self._sorted_rows(records, splits)
        kept = order[self._limits.kept(rows)]
        return [records[field][kept] for field in self._counted_fields]

    def _reduced(self, records: Array, splits: int) -> Array:
        order, rows = self._sorted_rows(records, splits)
        return records[order[self._limits.reduced(rows)]]
