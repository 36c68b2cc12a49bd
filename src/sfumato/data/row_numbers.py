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

from sfumato.basics.numbers import Array
from sfumato.data.external_partitions import Records
from sfumato.data.person_records import PersonRecords, joined_by


class RowNumbers(PersonRecords[Array]):
    """Counts the rows of each person.

    A record has 8 bytes for the person (16 for text), and 8 for a number of rows.
    """

    def add(self, tokens: list[Array]) -> None:
        """Take a batch of rows, all of which have a person.

        Parameters
        ----------
        tokens : list of uint64 ndarray of shape (rows,)
            The words of the person token of each row.
        """
        if len(tokens[0]):
            self._add(tokens, [np.ones(len(tokens[0]), np.int64)])

    def of_persons(self) -> Iterator[Array]:
        """Give how many rows each person has, partition by partition: int64 ndarrays.

        No person is in two of them. The records are forgotten.
        """
        return self._all_finished()

    def _finished(self, records: Records, splits: int) -> Array:
        return self._reduced(records, splits)[-1]

    def _reduced(self, records: Records, splits: int) -> Records:
        return joined_by(records, self._n_tokens)
