"""How many rows each person has, counted before any limit and in bounded memory.

Guarantee: one person lies in one cell, and moves no other person's: adding or removing a person
changes one count by one.
Holds because: the number of rows of a person depends on that person's rows alone.
In parts: numbers of rows of a person in several parts add up, so parts may be joined as often as
wished and in any order. The result is the same in memory, through files and for every size of
batch.
Exact: up to colliding tokens of text ids (see ``persons``).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.arrays import Array
from sfumato.data.person_records import PersonRecords, person_numbers
from sfumato.data.persons import PersonIds

_ROWS = "rows"


class RowNumbers(PersonRecords[Array]):
    """Counts the rows of each person.

    A record has 8 bytes for the person (16 for text), and 8 for a number of rows.
    """

    def add(self, persons: PersonIds) -> None:
        """Take a batch. Rows without a person are dropped."""
        if (has_person := persons.has_person) is not None:
            persons = persons.kept(has_person)
        if len(persons):
            self._add(persons, {_ROWS: np.ones(len(persons), np.int64)})

    def of_persons(self) -> Iterator[Array]:
        """Give how many rows each person has, partition by partition: int64 ndarrays.

        No person is in two of them. The records are forgotten.
        """
        return self._all_finished()

    def _finished(self, records: Array, splits: int) -> Array:
        return np.ascontiguousarray(self._reduced(records, splits)[_ROWS])

    def _reduced(self, records: Array, splits: int) -> Array:
        """Join the records of each person into one."""
        tokens = self._token_words(records)
        order = np.argsort(tokens[0]) if len(tokens) == 1 else np.lexsort(tokens[::-1])
        persons = person_numbers([word[order] for word in tokens])
        starts = np.flatnonzero(np.diff(persons, prepend=-1))
        joined = records[order[starts]]
        joined[_ROWS] = np.add.reduceat(records[_ROWS][order], starts)
        return joined
