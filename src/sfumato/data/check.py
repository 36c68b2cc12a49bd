"""Check what a table would lose, before anything is paid for.

A check is for the custodian's screen only: its numbers are true counts, and none is protected. They
enter no release, log, ledger or exception.

Memory: one batch; what bounding persons remembers (``memory_limit()`` bytes, then a temporary
file); and at most ``MOST_LABELS`` unlisted labels of each axis. Up to so many labels are counted
exactly; beyond, their counts are lower bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sfumato.answers import Needs
from sfumato.basics.numbers import Array
from sfumato.data.bounding import fresh_key
from sfumato.data.cells import RowLocator
from sfumato.data.fields import sentence
from sfumato.data.losses import (
    AxisLosses,
    CellPersonCounter,
    Check,
    PersonCounter,
    PersonLosses,
    QuestionCheck,
    limits_on_cells,
)
from sfumato.data.objects import types_sentences
from sfumato.data.options import stating
from sfumato.data.priorities import RowPriorities, chosen_by, person_ids
from sfumato.data.reader import Losses, Progress, RowReader, guarded, guarded_batches, with_rows
from sfumato.data.schema import KnownTypes
from sfumato.domain import Lattice, LatticeAxis, grid_axis
from sfumato.errors import DataError, without_frames
from sfumato.privacy import Unit

if TYPE_CHECKING:
    from sfumato.data.source import Source

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
    table_pass = _TablePass(source, reader, titled_needs)
    try:
        table_pass.read(progress)
        return table_pass.result(hints, all_labels=all_labels)
    finally:
        table_pass.close()


def _everything(source: Source) -> Needs:
    one_bin = partial(grid_axis, cells=1)
    axes = tuple(axis.on_lattice(name, one_bin) for name, axis in source.domain.items())
    return Needs(Lattice(axes), 1)


def _segments(needs: Sequence[Needs]) -> set[LatticeAxis]:
    """Return the parts of axes in which values are added up: their axis loses rows, not each."""
    segments: set[LatticeAxis] = set()
    for need in needs:
        summed = {summed.axis.name for summed in need.sums}
        segments.update(axis for axis in need.lattice.axes if axis.name in summed)
    return segments


def _counters_by_cell(needs: Sequence[Needs], unit: Unit) -> dict[int, CellPersonCounter]:
    """Return what counts the persons of each question that has limits on cells."""
    limits = {question: limits_on_cells(need, unit) for question, need in enumerate(needs)}
    return {
        question: CellPersonCounter(needs[question], within)
        for question, within in limits.items()
        if within is not None
    }


class _TablePass:
    """One pass over a table, which counts what each axis and each question loses."""

    def __init__(
        self, source: Source, reader: RowReader, titled_needs: Sequence[tuple[str, Needs]]
    ) -> None:
        self._source = source
        self._reader = reader
        self._titles = [title for title, _ in titled_needs]
        self._needs = [needs for _, needs in titled_needs]
        axes = dict.fromkeys(axis for needs in self._needs for axis in needs.columns)
        self._axes = {axis: AxisLosses(axis) for axis in axes}
        self._segments = _segments(self._needs)
        self._losses = Losses()
        self._rows = 0
        self._not_asked = 0
        self._without_person = 0
        self._counted = [0] * len(titled_needs)
        self._persons: PersonCounter | None = None
        self._by_cell: dict[int, CellPersonCounter] = {}
        unit = source.unit
        if unit.person is not None:
            self._persons = PersonCounter(unit.rows_per_person, len(titled_needs))
            self._by_cell = _counters_by_cell(self._needs, unit)
        limited = [self._needs[question] for question in self._by_cell]
        # A key of its own: a check must not show which rows a release keeps.
        key = fresh_key()
        self._locator = RowLocator(
            [axis for needs in limited for axis in needs.columns], chosen_by(limited), key
        )
        self._priorities = RowPriorities(key)

    def read(self, progress: Progress | None) -> None:
        """Read all rows."""
        reader = self._reader
        columns = self._source._required.columns(self._needs)
        all_rows = guarded(reader.name, reader.rows) if progress else None
        types = KnownTypes(reader.name, columns, self._source.unit.person)
        read = guarded_batches(reader.name, reader.batches_noting, columns, self._losses)
        for batch in map(types.checked, read):
            guarded(reader.name, self._add_batch, batch)
            if progress:
                progress(self._rows, all_rows)

    def _add_batch(self, batch: pa.RecordBatch) -> None:
        self._rows += len(batch)
        if self._source._row_filter is not None:
            kept = self._source._row_filter.kept(batch)
            self._not_asked += len(batch) - len(kept)
            batch = kept
        has_cell = {
            axis: losses.add(batch[axis.column_name]) for axis, losses in self._axes.items()
        }
        every_row = np.ones(len(batch), bool)
        counts = [
            np.logical_and.reduce([every_row, *(has_cell[axis] for axis in needs.columns)])
            for needs in self._needs
        ]
        if self._persons is not None:
            counts = self._add_persons(self._persons, batch, counts)
        for question, counted in enumerate(counts):
            self._counted[question] += int(counted.sum())

    def _add_persons(
        self, persons: PersonCounter, batch: pa.RecordBatch, counts: list[Array]
    ) -> list[Array]:
        """Count the persons of a batch; rows without a person count for no question."""
        ids = person_ids(batch, self._source.unit.person_columns)
        has_person = np.ones(len(batch), bool) if ids.has_person is None else ids.has_person
        self._without_person += int((~has_person).sum())
        counts = [counted & has_person for counted in counts]
        if has_person.any():
            cells, values, key_words = self._locator.located(batch).kept(has_person)
            rows = self._priorities.of(ids.kept(has_person), values, key_words)
            persons.add(rows.tokens, [counted[has_person] for counted in counts])
            for counter in self._by_cell.values():
                counter.add(rows, cells)
        return counts

    def result(self, hints: tuple[str, ...], *, all_labels: bool) -> Check:
        """Give what was found; ``hints`` are those on the form of the file."""
        losses = self._losses
        if losses.not_utf8:
            hints = (*hints, NOT_UTF8_HINT)
        for (column, looks), fields in losses.forms.items():
            hints = (*hints, sentence(column, looks, fields))
        hints = (*hints, *types_sentences(losses.types))
        axes = [
            axis_losses.result(
                losses.unparsed[axis.column_name],
                losses.not_utf8[axis.column_name],
                all_labels=all_labels,
            )
            for axis, axis_losses in self._axes.items()
            if axis not in self._segments
        ]
        return Check(
            self._source._table,
            self._rows,
            wrong_length=losses.wrong_length,
            unended=losses.unended,
            not_asked=self._not_asked,
            without_person=self._without_person,
            limit=self._source.unit.rows_per_person,
            # Questions that lay different cells along one axis lose the same rows there.
            axes=tuple(dict.fromkeys(axes)),
            questions=tuple(self._question_checks()),
            hints=hints,
        )

    def _question_checks(self) -> list[QuestionCheck]:
        rows = self._rows - self._not_asked
        dropped = [rows - counted for counted in self._counted]
        if self._persons is None:
            return [
                QuestionCheck(title, counted=self._counted[question], dropped=dropped[question])
                for question, title in enumerate(self._titles)
            ]
        return [
            QuestionCheck(
                self._titles[question],
                counted=losses.kept,
                dropped=dropped[question],
                beyond_limit=self._counted[question] - losses.kept,
                persons=losses.persons,
                persons_beyond_limit=losses.beyond,
                limits=losses.limits,
            )
            for question, losses in enumerate(self._person_losses(self._persons))
        ]

    def _person_losses(self, persons: PersonCounter) -> Iterator[PersonLosses]:
        """Return what persons lose, question by question."""
        for question, losses in enumerate(persons.per_question()):
            if question in self._by_cell:
                yield self._by_cell[question].losses()
            elif self._needs[question].of_each_person:
                # These rows are counted before any limit.
                yield losses._replace(kept=self._counted[question], beyond=0)
            else:
                yield losses

    def close(self) -> None:
        """Free memory and disk."""
        if self._persons is not None:
            self._persons.close()
        for counter in self._by_cell.values():
            counter.close()
