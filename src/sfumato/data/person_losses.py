"""Count what persons lose to their limits, for a check that only the custodian sees."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from sfumato.answers.counts import Needs
from sfumato.basics.numbers import Array
from sfumato.data.bounding import CellBounder, CellChoice, fresh_key
from sfumato.data.external_partitions import Records
from sfumato.data.packing import Packing
from sfumato.data.person_records import PersonRecords, joined_by, person_numbers
from sfumato.data.row_form import Cells, RowForm, packed_cells
from sfumato.data.row_priorities import PersonRows
from sfumato.data.tallies import limits_within
from sfumato.privacy.limits import Limits
from sfumato.privacy.unit import MOST_ROWS, Unit


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


class PersonCounter(PersonRecords[None]):
    """Counts the rows of each person that each question could count."""

    def __init__(self, limit: int, n_questions: int) -> None:
        super().__init__()
        self._most = limit
        self._totals = np.zeros((n_questions, 3), np.int64)

    def add(self, tokens: list[Array], counted: list[Array]) -> None:
        """Take a batch of rows, all of which have a person.

        Parameters
        ----------
        tokens : list of uint64 ndarray of shape (rows,)
            The words of the person token of each row.
        counted : list of bool ndarray of shape (rows,)
            Whether each question could count the row.
        """
        if len(tokens[0]):
            self._add(tokens, [which.astype(np.int64) for which in counted])

    def per_question(self) -> list[PersonLosses]:
        """What the persons of each question lose."""
        for _ in self._all_finished():
            pass
        return [
            PersonLosses(kept, persons, beyond) for kept, persons, beyond in self._totals.tolist()
        ]

    def _finished(self, records: Records, splits: int) -> None:
        """Count the persons of one partition."""
        numbers = self._reduced(records, splits)[self._n_tokens :]
        for question, n_rows in enumerate(numbers):
            kept = np.minimum(n_rows, self._most).sum()
            self._totals[question] += kept, (n_rows > 0).sum(), (n_rows > self._most).sum()

    def _reduced(self, records: Records, splits: int) -> Records:
        return joined_by(records, self._n_tokens)


def limits_on_cells(needs: Needs, unit: Unit) -> Unit | None:
    """The unit under which a question counts, if its limits are about cells."""
    if needs.counted == "persons" and needs.sums:
        # All rows of a person in a cell make one value together: none of them is left out.
        limits = Limits(cells_per_person=unit.cells_of_person)
        return msgspec.structs.replace(unit, rows_per_person=MOST_ROWS, limits=limits)
    if needs.counted == "persons":
        return unit.counting_persons(unit.cells_of_person)
    return unit if unit.by_cell and needs.counted == "rows" else None


class CellPersonCounter(CellBounder):
    """The same under limits by cell, for one question.

    No row is forgotten before the end: who loses rows can be told only where all of them are seen.
    """

    def __init__(self, needs: Needs, unit: Unit) -> None:
        assert unit.limits is not msgspec.UNSET
        key = fresh_key()
        super().__init__(key, unit.rows_per_person, limits_within(needs, unit))
        self._form = RowForm(msgspec.structs.replace(needs, lattice=needs.row_lattice))
        self._limited = None if needs.cells is None else Packing(needs.cells)
        self._cell_choice = None
        if unit.limits.cells_per_person is not None:
            self._cell_choice = CellChoice(key, needs.cells or needs.row_lattice)
        self._totals = np.zeros(3, np.int64)
        all_rows = unit.rows_per_person == MOST_ROWS
        rows = [] if all_rows else [f"at most {unit.rows_per_person:,} rows"]
        limits = unit.limits
        if needs.norm is not None:
            limits = Limits(norm_in_tables=limits.norm_per_person)
        self._words = ", ".join([*rows, *limits.in_words()])

    def add_cells(self, persons: PersonRows, cells: Cells) -> None:
        """Take a batch."""
        counted = self._form.of(cells)
        limited = counted[: self._form.n_cells]
        if self._limited is not None:
            limited = packed_cells(self._limited, cells)
        choice = (
            None if self._cell_choice is None else self._cell_choice.of(persons, limited, cells)
        )
        self.add(persons, limited, counted, choice)

    def losses(self) -> PersonLosses:
        """What the persons of the question lose."""
        for _ in self.bounded():
            pass
        kept, persons, beyond = self._totals.tolist()
        return PersonLosses(kept, persons, beyond, self._words)

    def _finished(self, records: Records, splits: int) -> list[Array]:
        """Count the persons of one partition; no row is wanted."""
        _, rows = self._sorted_rows(records, splits, only_candidates=False)
        kept = self._limits.kept(rows)
        persons = person_numbers(rows.tokens)
        n_rows = np.bincount(persons)
        n_kept = np.bincount(persons[kept], minlength=len(n_rows))
        self._totals += len(kept), len(n_rows), (n_kept < n_rows).sum()
        return []

    def _reduced(self, records: Records, splits: int) -> Records:
        return records
