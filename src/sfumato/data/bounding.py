"""Bounding persons: at most r rows of each person, chosen uniformly at random, per lattice.

Each row draws a 64-bit priority, independent of everything else, from a keystream whose key is fresh and secret. For each
lattice, a person keeps the r rows of least priority among those of his own rows that have a cell on it.

Guarantee: on each lattice at most r rows of a person are counted, and which ones depends on that person's rows and on
their priorities only. The set is a uniformly random r-subset of the rows that count.
Holds because: the rank of a row is taken among the rows of one person, so that given the priorities the choice is a
per-person map. Let D' be D without one person, and give each row of D' the priority that it has in D. The priorities are
independent and alike, so this is how D' would have been drawn; everyone else keeps the same rows in both, and the cubes
differ by the at most r rows of that person. A mechanism that is private for cubes that differ so is private given the
priorities, hence also on average over them, which the output never shows. The same holds jointly for several lattices.
Priorities are alike for all lattices of a scan, and for a second scan under the same key of a table that did not change:
what a person keeps on a lattice and on a refinement of it is then the same rows, so parallel composition may span both.
Exact: up to ties of two 64-bit priorities of one person (file order decides; chance 2**-64 a pair), and AES-256 as a
pseudorandom function.
Not covered: persons who appear under several ids.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sfumato.data.columns import decoded
from sfumato.domain import DROPPED
from sfumato.random import bits

KEY_BYTES = 32


def fresh_key() -> bytes:
    """Draw the secret of one choice of rows."""
    return bits.current().words(KEY_BYTES // 8).tobytes()


class Priorities:
    """The keystream of one scan: row i of the table gets word i."""

    def __init__(self, key: bytes) -> None:
        self._context = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()

    def take(self, rows: int) -> np.ndarray:
        """Return the next words: uint64 ndarray of shape (rows,)."""
        return np.frombuffer(self._context.update(bytes(8 * rows)), dtype=np.uint64)


def kept(persons: np.ndarray, priorities: np.ndarray, counts: np.ndarray, rows_per_person: int) -> np.ndarray:
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
    return _first(ranked(persons, priorities), persons, counts, rows_per_person)


def ranked(persons: np.ndarray, priorities: np.ndarray) -> np.ndarray:
    """Order the rows by person, then by priority: int64 ndarray of shape (rows,).

    One sort of person and leading bits of the priority is four times as fast as a sort by two keys, and gives the same
    order unless two of these words are equal.
    """
    bits_of_person = int(persons.max()).bit_length() if len(persons) else 0
    words = priorities >> np.uint64(bits_of_person)
    if bits_of_person:
        high = persons.astype(np.uint64)
        high <<= np.uint64(64 - bits_of_person)
        words |= high
        del high
    order = np.argsort(words)
    words = words[order]
    return np.lexsort((priorities, persons)) if (words[1:] == words[:-1]).any() else order


def _first(order: np.ndarray, persons: np.ndarray, counts: np.ndarray, rows_per_person: int) -> np.ndarray:
    order = order[counts[order]]
    who = persons[order]
    keep = np.ones(len(who), bool)
    keep[rows_per_person:] = who[rows_per_person:] != who[:-rows_per_person]  # the r-th row before is someone else's
    return order[keep]


class Bounder:
    """Holds what a scan needs to know of each row until all are seen.

    Held are 12 bytes a row (text: a number, and the distinct ids of each part), and 4 or 8 for each lattice; the sort at
    the end needs about 40 for a while. Measured: 65 bytes a row at the peak with 10 rows a person, 75 with ids of text.
    """

    def __init__(self, key: bytes, rows_per_person: int) -> None:
        self._priorities = Priorities(key)
        self._rows_per_person = rows_per_person
        self._persons: list[Any] = []
        self._drawn: list[np.ndarray] = []
        self._keys: list[list[list[np.ndarray]]] = []

    def add(self, persons: Any, keys: list[list[np.ndarray]]) -> None:
        """Take a batch: the person column, and the packed cells per lattice (see ``scan.Packing``)."""
        drawn = self._priorities.take(len(persons))
        ids = _ids(persons)
        useful = np.logical_or.reduce([key[0] != DROPPED for key in keys])
        useful &= ids.is_valid().to_numpy(zero_copy_only=False)
        ids = ids.filter(pa.array(useful))
        self._persons.append(ids if pt.is_integer(ids.type) else ids.dictionary_encode())
        self._drawn.append(drawn[useful])
        self._keys.append([[part[useful] for part in key] for key in keys])

    def bounded(self) -> list[list[np.ndarray]]:
        """Return the packed cells of the rows that each lattice keeps, and forget the rest."""
        if not self._persons:
            return []
        persons, self._persons = _codes(self._persons), []
        priorities, self._drawn = np.concatenate(self._drawn), []
        order = ranked(persons, priorities)
        del priorities
        result = []
        for lattice in range(len(self._keys[0])):
            key = [np.concatenate(parts) for parts in zip(*(batch[lattice] for batch in self._keys), strict=True)]
            rows = _first(order, persons, key[0] != DROPPED, self._rows_per_person)
            result.append([part[rows] for part in key])
        self._keys = []
        return result


def _ids(column: Any) -> Any:
    """Bring ids of persons to one form, missing ones null: NaN is missing, and the two zeros are one person."""
    ids = decoded(column)
    if pt.is_floating(ids.type):
        ids = ids.cast(pa.float64())
        return pc.if_else(pc.is_nan(ids), None, pc.add(ids, 0.0))
    return ids.cast(pa.int8()) if pt.is_null(ids.type) else ids


def _codes(ids: list[Any]) -> np.ndarray:
    """Number the persons, the same id alike in all parts: int32 ndarray of shape (rows,)."""
    whole = pa.chunked_array(ids)
    whole = whole.unify_dictionaries() if pt.is_dictionary(whole.type) else whole.dictionary_encode()
    return np.concatenate([np.zeros(0, np.int32), *(part.indices.to_numpy() for part in whole.chunks)])
