"""Bound each person to at most r rows per lattice, chosen uniformly at random, in bounded memory.

Each row has a 64-bit priority: a hash, under a fresh and secret key, of the person and of the row's
values (``row_priorities``). Rows of a person that are alike in these values are copies. The first
copy has this priority p, and copy number j = 2, 3, ... has the keyed hash of p and j
(``row_order``). On each lattice, a person keeps the r rows of least priority among the person's own
rows that have a cell there.

Guarantee: on each lattice, at most r rows of a person are counted. Which rows these are depends
only on the key and on that person's own rows: not on other persons, nor on the order of the rows,
on files and batches, or on the format of the table. They are a uniformly random subset of size r of
the person's rows that count.
Holds because: for each key, the choice is a map of each person's rows alone. So if one person is
added or removed, or their rows are replaced, everyone else keeps the same rows, and the cubes
differ by the at most r rows of that person, or r removed and r added. A mechanism that is private
for such cubes is private under each key, hence also on average over keys, whoever knows the key.
The same holds jointly for several lattices. No property of the hash is needed for this.
Uniform because: AES-256 is taken for a pseudorandom function. The rows of a person differ in their
values or in their copy number, so their priorities are as if drawn independently of one
distribution. Then every order of the rows is as likely, and copies lie in the same cells, so it
does not matter which of them has which number. The person is hashed as well, so different persons
with the same rows keep different ones.
The same rows on a lattice and on its refinement: what is hashed are values and not cells, and for
all counts of one release they are the values of the same columns (``publishing.counting`` sees to
this). A row that lacks a value on one lattice only is dropped there, with all its copies, and the
other rows keep their priorities. So a person keeps the same rows in both scans, and parallel
composition may span both.
In parts: rows are partitioned by person tokens (see ``persons``), so all rows of a person meet in
one partition. Copy numbers are known only where all copies of a row are together, so until then no
row is dropped; see ``row_records`` for partitions beyond memory. The r least of a set are the r
least of the r least of its pieces. So once copies have their numbers, pieces may be reduced as
often as wished and in any order, and the rows kept are the same in memory, through files and for
every size of batch.
Exact: up to equal hashes of different rows of one person (probability 2**-64 for each pair),
colliding tokens of text ids (see ``persons``), and AES-256 as a pseudorandom function. Such a tie
is broken by the order in which the person's own rows come, and not by their cells: the number of a
key says which keys of others came before it. So where that order is not fixed, as after a shuffle
of Spark, or where a person's rows are in memory or not, other persons may decide a tie. It matters
at the r-th row of a person alone: for N rows in all, with a probability of at most N * 2**-64.
Not covered: persons who appear under several ids; the time that a scan takes, and the size of its
temporary files.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.data.external_partitions import Records
from sfumato.data.keyed_hash import KeyedHash
from sfumato.data.limiting import LimitedRows, PersonLimits
from sfumato.data.row_form import Cells
from sfumato.data.row_order import first_rows
from sfumato.data.row_priorities import PersonRows
from sfumato.data.row_records import RowRecords
from sfumato.domain.lattice import DROPPED, KeyAxis, Lattice
from sfumato.random import bits

KEY_BYTES = 32


def fresh_key() -> bytes:
    """Draw the secret key of one choice of rows."""
    return bits.current().words(KEY_BYTES // 8).tobytes()


class Bounder(RowRecords[list[list[Array]]]):
    """Remembers what bounding needs of each row until all rows were seen, then gives those kept.

    A record has 8 bytes for the person (16 for text, 4 while all ids are whole numbers below 2^32),
    8 for the priority, and 4 or 8 for each lattice.
    """

    def __init__(self, key: bytes, rows_per_person: int) -> None:
        super().__init__(key, rows_per_person, all_kept=rows_per_person)
        self._rows_per_person = rows_per_person
        self._n_integers: list[int] = []  # of each lattice

    def add(self, persons: PersonRows, cells: list[list[Array]]) -> None:
        """Take a batch.

        Parameters
        ----------
        persons : PersonRows
        cells : list of lists of int ndarray of shape (rows,)
            The packed cells on each lattice (see ``packing``).
        """
        fields = [persons.priorities, *(integers for packed in cells for integers in packed)]
        self._n_integers = [len(packed) for packed in cells]
        self._add_where(_has_cell(cells), persons.tokens, fields)

    def bounded(self) -> Iterator[list[list[Array]]]:
        """Give the packed cells of the rows that each lattice keeps, partition by partition.

        The records are forgotten.
        """
        return self._all_finished()

    def _lattices(self, records: Records) -> list[list[Array]]:
        """The packed cells of records on each lattice."""
        stops = np.cumsum([self._n_tokens + 1, *self._n_integers]).tolist()
        return [records[start:stop] for start, stop in pairwise(stops)]

    def _kept_rows(self, records: Records, splits: int) -> list[Array]:
        """Which records each lattice keeps: int64 ndarrays of shape (kept,)."""
        rows = self._in_order(records, splits)
        lattices = self._lattices(records)
        if len(lattices) == 1:
            # Every record has a cell on it.
            return [rows.order[first_rows(rows.tokens, self._rows_per_person)]]
        kept = []
        for packed in lattices:
            counted = np.flatnonzero(packed[0][rows.order] != DROPPED)
            tokens = [word[counted] for word in rows.tokens]
            kept.append(rows.order[counted[first_rows(tokens, self._rows_per_person)]])
        return kept

    def _finished(self, records: Records, splits: int) -> list[list[Array]]:
        indices = self._kept_rows(records, splits)
        return [
            [integers[rows] for integers in packed]
            for packed, rows in zip(self._lattices(records), indices, strict=True)
        ]

    def _reduced(self, records: Records, splits: int) -> Records:
        """Drop the records that no lattice keeps of these alone.

        None of them would be kept among more records either: these only move a row further back.
        """
        is_kept = np.zeros(len(records[0]), bool)
        for rows in self._kept_rows(records, splits):
            is_kept[rows] = True
        return [field[is_kept] for field in records]


def _has_cell(cells: list[list[Array]]) -> Array | None:
    """Which rows have a cell on some lattice: bool ndarray of shape (rows,); None for all."""
    if any(packed[0].min(initial=0) >= 0 for packed in cells):
        return None
    return np.asarray(np.logical_or.reduce([packed[0] != DROPPED for packed in cells]))


class CellBounder(RowRecords[list[Array]]):
    """The same under limits by cell, for one need: these hold on its own cells alone.

    A record has 8 bytes for the person (16 for text), 8 for the priority, 8 for the choice of cells
    if there is one, 4 or 8 for the cell that the limits are about, and what is counted of the row.
    """

    def __init__(self, key: bytes, rows_per_person: int, limits: PersonLimits) -> None:
        self._limits = limits
        super().__init__(key, rows_per_person, self._limits.all_kept)
        self._n_choice = 0
        self._n_limited = 0
        self._first_counted = 0

    def add(
        self,
        persons: PersonRows,
        limited: list[Array],
        counted: list[Array],
        cell_priorities: Array | None,
    ) -> None:
        """Take a batch.

        Parameters
        ----------
        persons : PersonRows
        limited : list of int ndarray of shape (rows,)
            The packed cells that the limits are about. DROPPED in the first drops the row.
        counted : list of int ndarray of shape (rows,)
            What is given back of each row that is kept. DROPPED in the first drops the row.
        cell_priorities : uint64 ndarray of shape (rows,), or None
            From ``CellChoice``, where the number of cells is limited.
        """
        needed = (limited[0] != DROPPED) & (counted[0] != DROPPED)
        choice = [] if cell_priorities is None else [cell_priorities]
        self._n_choice = len(choice)
        self._n_limited = len(limited)
        self._first_counted = len(persons.tokens) + 1 + len(choice)
        fields = [persons.priorities, *choice]
        # Where the limits are about the cells that are counted, these are remembered once.
        if any(one is not other for one, other in zip(limited, counted, strict=False)):
            fields += limited
            self._first_counted += len(limited)
        self._add_where(needed, persons.tokens, [*fields, *counted])

    def bounded(self) -> Iterator[list[Array]]:
        """Give what is counted of the rows that are kept, partition by partition.

        The records are forgotten.
        """
        return self._all_finished()

    def _sorted_rows(
        self, records: Records, splits: int, *, only_candidates: bool = True
    ) -> tuple[Array, LimitedRows]:
        """The order of the records by person and priority, and their rows in it.

        Records that the limits need not look at are left out.
        """
        rows = self._in_order(records, splits)
        order, tokens = rows.order, rows.tokens
        places = self._limits.candidates(tokens) if only_candidates else None
        if places is not None:
            order, tokens = order[places], [word[places] for word in tokens]
        first = self._n_tokens + 1
        choice = [field[order] for field in records[first : first + self._n_choice]]
        first += self._n_choice
        cells = [field[order] for field in records[first : first + self._n_limited]]
        return order, LimitedRows(tokens, cells, choice[0] if choice else None)

    def _finished(self, records: Records, splits: int) -> list[Array]:
        order, rows = self._sorted_rows(records, splits)
        kept = order[self._limits.kept(rows)]
        return [field[kept] for field in records[self._first_counted :]]

    def _reduced(self, records: Records, splits: int) -> Records:
        order, rows = self._sorted_rows(records, splits)
        kept = order[self._limits.reduced(rows)]
        return [field[kept] for field in records]


class CellChoice:
    """Chooses the cells that a person is counted in: those of least keyed hash.

    Parameters
    ----------
    key : bytes of length 32
    lattice : Lattice
        Of the cells.
    """

    def __init__(self, key: bytes, lattice: Lattice) -> None:
        self._hash = KeyedHash(key, "cells")
        self._lattice = lattice

    def of(self, persons: PersonRows, packed: list[Array], cells: Cells) -> Array:
        """Give the hash of each row's person and cell: uint64 ndarray of shape (rows,).

        A key counts by what it is, and not by its number in order of occurrence.

        Parameters
        ----------
        persons : PersonRows
        packed : list of int ndarray of shape (rows,)
            The packed cells on the lattice.
        cells : Cells
            The cells on its axes.
        """
        if not self._lattice.keyed:
            return self._hash.of([*persons.words, *packed])
        words = [
            persons.key_words[axis] if isinstance(axis, KeyAxis) else cells[axis]
            for axis in self._lattice.axes
        ]
        return self._hash.of([*persons.words, *words])
