"""Check what a table would lose, before anything is paid for.

A check is for the custodian's screen only: its numbers are true counts, and none is protected. They
enter no release, log, ledger or exception.

It is read on as many threads as a scan, and says the same on any number of them.

Memory: one batch and at most ``MOST_LABELS`` unlisted labels of each axis, for each thread; and
what bounding persons remembers (``memory_limit()`` bytes, then temporary files). Up to so many
labels are counted exactly; beyond, their counts are lower bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from sfumato.answers import Needs
from sfumato.basics import is_valid, thread_limit
from sfumato.data.bounding import fresh_key
from sfumato.data.cells import RowLocator
from sfumato.data.fields import sentence
from sfumato.data.losses import (
    AxisCheck,
    AxisLosses,
    CellPersonCounter,
    Check,
    PersonCounter,
    QuestionCheck,
    limits_on_cells,
)
from sfumato.data.objects import types_sentences
from sfumato.data.options import stating
from sfumato.data.packed_counts import RenumberedKeys
from sfumato.data.priorities import chosen_by, person_ids
from sfumato.data.reader import (
    Losses,
    Progress,
    RowReader,
    guarded,
    guarded_batches,
    with_rows,
)
from sfumato.data.scan import Reading
from sfumato.data.source import Source, columns_of
from sfumato.domain import Lattice, grid_axis
from sfumato.errors import DataError, without_frames

NOT_UTF8_HINT = (
    "Some fields are not text of the encoding, which is UTF-8 unless another is stated. If the "
    f"file was written on Windows, add {stating('encoding', 'cp1252')}; or save it as UTF-8."
)


@without_frames
def check(
    source: Source,
    questions: Sequence[tuple[str, Needs]] | None = None,
    progress: Progress | None = None,
    *,
    all_labels: bool = False,
) -> Check:
    """Read a table as questions would, in one pass, and count what they would lose.

    The result is for the custodian only.

    Parameters
    ----------
    source : Source
    questions : sequence of pairs of str and Needs, or None
        Title and needs of each question; None: one question of all axes of the domain.
    progress : callable or None
        Called with the rows done, and all rows or None.
    all_labels : bool
        Whether all labels that are not listed are named, and not the most frequent ones alone.

    Raises
    ------
    UsageError
        If an axis is not in the domain, or the rows of the source stay in their engine.
    DataError
        If the file cannot be read at all.
    """
    titled_needs = [("all axes", _everything(source))] if questions is None else list(questions)
    reader = with_rows(source._reader, "a check")
    # A file that is not there is an error, and no finding about a table.
    guarded(reader.name, reader.label, "check")
    hints = tuple(dict.fromkeys(guarded_batches(reader.name, reader.hints)))
    try:
        source.require([needs for _, needs in titled_needs])
    except DataError as refusal:
        # Hints would repeat what the refusal says.
        return Check(source.title, refused=str(refusal), limit=source.unit.rows_per_person)
    needs = [need for _, need in titled_needs]
    losses = Losses()
    part = _read(source, reader, needs, losses, progress)
    rows = part.rows_done - part.not_asked
    hints_of_losses = [
        *([NOT_UTF8_HINT] if losses.not_utf8 else []),
        *(sentence(column, looks, fields) for (column, looks), fields in losses.forms.items()),
        *types_sentences(losses.types),
    ]
    return Check(
        source._table,
        part.rows_done,
        wrong_length=losses.wrong_length,
        unended=losses.unended,
        not_asked=part.not_asked,
        without_person=part.without_person,
        limit=source.unit.rows_per_person,
        axes=_axis_checks(part, losses, all_labels=all_labels),
        questions=tuple(
            part.question_check(question, title, rows)
            for question, (title, _) in enumerate(titled_needs)
        ),
        hints=(*hints, *hints_of_losses),
    )


def _read(
    source: Source,
    reader: RowReader,
    needs: Sequence[Needs],
    losses: Losses,
    progress: Progress | None,
) -> _Part:
    columns = columns_of(source, needs)
    all_rows = guarded(reader.name, reader.rows) if progress else None
    tell = None if progress is None else lambda rows_done: progress(rows_done, all_rows)
    pieces = guarded(reader.name, reader.pieces_noting, columns, losses)
    # A key of its own: a check must not show which rows a release keeps.
    new_part = partial(_Part, source, needs, fresh_key())
    reading = Reading(reader.name, columns, source.unit.person, pieces, tell)
    return reading.counted(new_part, thread_limit())


def _axis_checks(part: _Part, losses: Losses, *, all_labels: bool) -> tuple[AxisCheck, ...]:
    # The parts of axes in which values are added up: their axis loses rows, not each of them.
    segments = {
        axis
        for need in part.needs
        for axis in need.lattice.axes
        if any(axis.name == summed.axis.name for summed in need.sums)
    }
    checks = [
        axis_losses.result(
            losses.unparsed[axis.column_name],
            losses.not_utf8[axis.column_name],
            all_labels=all_labels,
        )
        for axis, axis_losses in part.axes.items()
        if axis not in segments
    ]
    # Questions that lay different cells along one axis lose the same rows there.
    return tuple(dict.fromkeys(checks))


def _everything(source: Source) -> Needs:
    one_bin = partial(grid_axis, cells=1)
    axes = tuple(axis.on_lattice(name, one_bin) for name, axis in source.domain.items())
    return Needs(Lattice(axes), 1)


class _Part:
    """What one thread counts of the rows that it reads: what each axis and each question loses.

    Parameters
    ----------
    source : Source
    needs : sequence of Needs
        Of each question.
    key : bytes of length 32
        The same for all threads.
    threads : int

    Attributes
    ----------
    locator : RowLocator
    rows_done, not_asked, without_person : int
    axes : dict of LatticeAxis to AxisLosses
    counted : int64 ndarray of shape (questions,)
        The rows that each question could count.
    persons : PersonCounter or None
    by_cell : dict of int to CellPersonCounter
        Of each question that has limits on cells.
    records : list of PersonCounter and CellPersonCounter
        All that remembers persons.
    """

    def __init__(self, source: Source, needs: Sequence[Needs], key: bytes, threads: int) -> None:
        self.needs = needs
        self._unit = source.unit
        self._row_filter = None if source._row_filter is None else source._row_filter.apart()
        self.rows_done = 0
        self.not_asked = 0
        self.without_person = 0
        self.axes = {axis: AxisLosses(axis) for need in needs for axis in need.columns}
        self.counted = np.zeros(len(needs), np.int64)
        self.persons: PersonCounter | None = None
        self.by_cell: dict[int, CellPersonCounter] = {}
        self.records: list[PersonCounter | CellPersonCounter] = []
        limited: list[Needs] = []
        if self._unit.person is not None:
            self.persons = PersonCounter(self._unit.rows_per_person, len(needs))
            self.records.append(self.persons)
            for question, need in enumerate(needs):
                unit = limits_on_cells(need, self._unit)
                if unit is not None:
                    limited.append(need)
                    self.by_cell[question] = CellPersonCounter(key, need, unit)
        self.records += self.by_cell.values()
        self.locator = RowLocator(
            [axis for need in limited for axis in need.columns], chosen_by(limited), key
        )
        for records in self.records:
            records.share(threads)

    def add(self, chunk: pa.RecordBatch) -> None:
        """Count a chunk."""
        self.rows_done += len(chunk)
        if self._row_filter is not None:
            kept = self._row_filter.kept(chunk)
            self.not_asked += len(chunk) - len(kept)
            chunk = kept
        has_cell = {axis: losses.add(chunk[axis.column_name]) for axis, losses in self.axes.items()}
        every_row = np.ones(len(chunk), bool)
        counts = [
            np.logical_and.reduce([every_row, *(has_cell[axis] for axis in need.columns)])
            for need in self.needs
        ]
        if self.persons is not None:
            # Rows without a person count for no question.
            has_person = is_valid(person_ids(chunk, self._unit.person_columns).ids)
            self.without_person += int((~has_person).sum())
            cells, rows = self.locator.located(chunk, self._unit.person_columns)
            self.persons.add(rows.tokens, [counted[has_person] for counted in counts])
            for counter in self.by_cell.values():
                counter.add(rows, cells)
            counts = [counted & has_person for counted in counts]
        self.counted += [int(np.count_nonzero(counted)) for counted in counts]

    def finish(self) -> Iterator[None]:
        """Count the persons, in steps."""
        for counter in self.records:
            for _ in counter.of_persons():
                yield

    def merge(self, other: _Part, key_numbers: RenumberedKeys) -> None:
        """Add what another thread counted of other rows; persons are counted already."""
        del key_numbers
        self.rows_done += other.rows_done
        self.not_asked += other.not_asked
        self.without_person += other.without_person
        self.counted += other.counted
        for axis, losses in self.axes.items():
            losses.merge(other.axes[axis])
        for own, its in zip(self.records, other.records, strict=True):
            own.totals += its.totals

    def question_check(self, question: int, title: str, rows: int) -> QuestionCheck:
        """Tell what a question loses of so many rows, once all parts are merged."""
        counted = int(self.counted[question])
        dropped = rows - counted
        if self.persons is None:
            return QuestionCheck(title, counted=counted, dropped=dropped)
        by_cell = self.by_cell.get(question)
        totals = self.persons.totals[question] if by_cell is None else by_cell.totals
        kept, persons, beyond = totals.tolist()
        if self.needs[question].of_each_person:
            # These rows are counted before any limit.
            kept = counted
            beyond = 0
        return QuestionCheck(
            title,
            counted=kept,
            dropped=dropped,
            beyond_limit=counted - kept,
            persons=persons,
            persons_beyond_limit=beyond,
            limits="" if by_cell is None else by_cell.limits_in_words,
        )
