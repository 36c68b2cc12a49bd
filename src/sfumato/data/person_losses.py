"""Count what persons lose to their limits, for a check that only the custodian sees."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from sfumato.answers.counts import Needs
from sfumato.arrays import Array
from sfumato.data.bounding import Bounder, CellBounder, fresh_key
from sfumato.data.packing import Packing
from sfumato.data.person_records import person_numbers
from sfumato.data.persons import PersonIds
from sfumato.data.row_form import Cells, RowForm, packed_cells
from sfumato.lattice import DROPPED
from sfumato.privacy.unit import Unit


class PersonLosses(NamedTuple):
    """What the persons of one question lose: true counts.

    Attributes
    ----------
    kept : int
        The rows that are counted.
    persons : int
        The persons with a row that could be counted.
    beyond : int
        How many of them have more rows than the limit.
    limits : str
        The limits by cell in words; empty without any.
    """

    kept: int
    persons: int
    beyond: int
    limits: str = ""


class PersonCounter(Bounder):
    """Counts persons instead of keeping their rows.

    A person's rows may be reduced to one more than the limit: this still shows who has more.
    """

    def __init__(self, limit: int, n_questions: int) -> None:
        super().__init__(fresh_key(), limit + 1)
        self._most = limit
        self._totals = np.zeros((n_questions, 3), np.int64)

    def per_question(self) -> list[PersonLosses]:
        """What the persons of each question lose."""
        for _ in self.bounded():
            pass
        return [
            PersonLosses(kept, persons, beyond) for kept, persons, beyond in self._totals.tolist()
        ]

    def _finished(self, records: Array, splits: int) -> list[list[Array]]:
        """Count the persons of one partition; no cell is wanted."""
        order, persons = self._ranked(records, splits)
        for question, fields in enumerate(self._cell_fields):
            counts = records[fields[0]][order] != DROPPED
            n_rows = np.bincount(persons[counts])
            kept = np.minimum(n_rows, self._most).sum()
            self._totals[question] += kept, (n_rows > 0).sum(), (n_rows > self._most).sum()
        return []


def limits_on_cells(needs: Needs, unit: Unit) -> Unit | None:
    """The unit under which a question counts, if its limits are about cells."""
    if needs.counted == "persons":
        return unit.counting_persons(unit.cells_of_person)
    return unit if unit.by_cell and needs.counted == "rows" else None


class CellPersonCounter(CellBounder):
    """The same under limits by cell, for one question.

    No row is forgotten before the end: who loses rows can be told only where all of them are seen.
    """

    def __init__(self, needs: Needs, unit: Unit) -> None:
        assert unit.limits is not msgspec.UNSET
        super().__init__(fresh_key(), unit.rows_per_person, unit.limits)
        self._form = RowForm(needs)
        self._limited = None if needs.cells is None else Packing(needs.cells)
        self._totals = np.zeros(3, np.int64)
        rows = f"at most {unit.rows_per_person:,} rows"
        self._words = ", ".join([rows, *unit.limits.in_words()])

    def add_cells(self, persons: PersonIds, cells: Cells) -> None:
        """Take a batch."""
        counted = self._form.of(cells)
        limited = counted[: self._form.n_cells]
        if self._limited is not None:
            limited = packed_cells(self._limited, cells)
        self.add(persons, limited, counted)

    def losses(self) -> PersonLosses:
        """What the persons of the question lose."""
        for _ in self.bounded():
            pass
        kept, persons, beyond = self._totals.tolist()
        return PersonLosses(kept, persons, beyond, self._words)

    def _finished(self, records: Array, splits: int) -> list[Array]:
        """Count the persons of one partition; no row is wanted."""
        _, rows = self._sorted_rows(records, splits)
        kept = self._limits.kept(rows)
        persons = person_numbers(rows.tokens)
        n_rows = np.bincount(persons)
        n_kept = np.bincount(persons[kept], minlength=len(n_rows))
        self._totals += len(kept), len(n_rows), (n_kept < n_rows).sum()
        return []

    def _reduced(self, records: Array, splits: int) -> Array:
        return records
