"""Check what a table would lose, before anything is paid for.

A check is for the custodian's screen only: its numbers are true counts, and none is protected. They
enter no release, log, ledger or exception.

It is read on as many threads as a scan, and says the same on any number of them.

Memory: one batch and at most ``MOST_LABELS`` unlisted labels of each axis, for each thread; and
what bounding persons remembers (``memory_limit()`` bytes, then temporary files). Up to so many
labels are counted exactly; beyond, their counts are lower bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from sfumato.answers import Needs
from sfumato.basics import Array, thread_limit
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
from sfumato.data.person_records import join
from sfumato.data.priorities import RowPriorities, chosen_by, person_ids
from sfumato.data.reader import (
    Losses,
    Piece,
    Progress,
    RowReader,
    guarded,
    guarded_batches,
    with_rows,
)
from sfumato.data.scan import Reading, numbers_of_keys
from sfumato.data.schema import KnownTypes
from sfumato.data.threads import Team
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
    """

    def __init__(self, source: Source, needs: Sequence[Needs], key: bytes, threads: int) -> None:
        self._needs = needs
        self._unit = source.unit
        self._row_filter = None if source._row_filter is None else source._row_filter.apart()
        self.rows_done = 0
        self.not_asked = 0
        self.without_person = 0
        axes = dict.fromkeys(axis for need in needs for axis in need.columns)
        self.axes = {axis: AxisLosses(axis) for axis in axes}
        self.counted = np.zeros(len(needs), np.int64)
        self.persons: PersonCounter | None = None
        if self._unit.person is not None:
            self.persons = PersonCounter(self._unit.rows_per_person, len(needs))
        self.by_cell = _cell_counters(needs, self._unit, key)
        limited = [needs[question] for question in self.by_cell]
        self.locator = RowLocator(
            [axis for need in limited for axis in need.columns], chosen_by(limited), key
        )
        self._priorities = RowPriorities(key)
        for counter in self.counters:
            counter.share(threads)

    @property
    def counters(self) -> list[PersonCounter | CellPersonCounter]:
        """All that remembers persons."""
        return [*([] if self.persons is None else [self.persons]), *self.by_cell.values()]

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
            for need in self._needs
        ]
        if self.persons is not None:
            counts = self._add_persons(self.persons, chunk, counts)
        self.counted += [int(np.count_nonzero(counted)) for counted in counts]

    def _add_persons(
        self, persons: PersonCounter, chunk: pa.RecordBatch, counts: list[Array]
    ) -> list[Array]:
        """Count the persons of a chunk; rows without a person count for no question."""
        ids = person_ids(chunk, self._unit.person_columns)
        has_person = np.ones(len(chunk), bool) if ids.has_person is None else ids.has_person
        self.without_person += int((~has_person).sum())
        counts = [counted & has_person for counted in counts]
        if has_person.any():
            cells, values, key_words = self.locator.located(chunk).kept(has_person)
            rows = self._priorities.of(ids.kept(has_person), values, key_words)
            persons.add(rows.tokens, [counted[has_person] for counted in counts])
            for counter in self.by_cell.values():
                counter.add(rows, cells)
        return counts

    def merge(self, other: _Part) -> None:
        """Add what another thread counted of other rows; persons are counted already."""
        self.rows_done += other.rows_done
        self.not_asked += other.not_asked
        self.without_person += other.without_person
        self.counted += other.counted
        for axis, losses in self.axes.items():
            losses.merge(other.axes[axis])
        for own, its in zip(self.counters, other.counters, strict=True):
            own.totals += its.totals

    def close(self) -> None:
        """Free memory and disk."""
        for counter in self.counters:
            counter.close()


def _cell_counters(needs: Sequence[Needs], unit: Unit, key: bytes) -> dict[int, CellPersonCounter]:
    """Return what counts the cells of each person, for each question that limits them."""
    if unit.person is None:
        return {}
    limits = [limits_on_cells(need, unit) for need in needs]
    return {
        question: CellPersonCounter(key, needs[question], within)
        for question, within in enumerate(limits)
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
        self._segments = _segments(self._needs)
        self._losses = Losses()
        self._parts: list[_Part] = []

    @property
    def _all(self) -> _Part:
        """What was counted of all rows, once they are read."""
        return self._parts[0]

    def read(self, progress: Progress | None) -> None:
        """Read all rows, on as many threads as a scan does."""
        reader = self._reader
        columns = self._source._required.columns(self._needs)
        all_rows = guarded(reader.name, reader.rows) if progress else None
        types = KnownTypes(reader.name, columns, self._source.unit.person)
        threads = thread_limit()
        pieces: Iterable[Piece] = [partial(reader.batches_noting, columns, self._losses)]
        if threads > 1:
            pieces = guarded(reader.name, reader.pieces_noting, columns, self._losses)
        reading = Reading(reader.name, types, pieces)
        # A key of its own: a check must not show which rows a release keeps.
        key = fresh_key()
        n_threads = reading.worth(threads)
        self._parts += (_Part(self._source, self._needs, key, n_threads) for _ in range(n_threads))
        team = Team()
        tell = None if progress is None else lambda rows_done: progress(rows_done, all_rows)
        reading.add_to(self._parts, team, tell)
        self._finish_persons(team)
        for part in self._parts[1:]:
            guarded(reader.name, self._all.merge, part)

    def _finish_persons(self, team: Team) -> None:
        """Count the persons, each on one thread."""
        name = self._reader.name
        numbers = numbers_of_keys(name, [part.locator for part in self._parts])
        if len(self._parts) > 1:
            for counters in zip(*(part.counters for part in self._parts), strict=True):
                join(counters, numbers)

        def finish(part: _Part) -> None:
            for counter in part.counters:
                for _ in guarded_batches(name, counter.of_persons):
                    if team.is_ending:
                        return

        team.work([partial(finish, part) for part in self._parts])

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
            for axis, axis_losses in self._all.axes.items()
            if axis not in self._segments
        ]
        return Check(
            self._source._table,
            self._all.rows_done,
            wrong_length=losses.wrong_length,
            unended=losses.unended,
            not_asked=self._all.not_asked,
            without_person=self._all.without_person,
            limit=self._source.unit.rows_per_person,
            # Questions that lay different cells along one axis lose the same rows there.
            axes=tuple(dict.fromkeys(axes)),
            questions=tuple(self._question_checks()),
            hints=hints,
        )

    def _question_checks(self) -> list[QuestionCheck]:
        rows = self._all.rows_done - self._all.not_asked
        counted = self._all.counted.tolist()
        if self._all.persons is None:
            return [
                QuestionCheck(title, counted=counted[question], dropped=rows - counted[question])
                for question, title in enumerate(self._titles)
            ]
        return [
            QuestionCheck(
                self._titles[question],
                counted=losses.kept,
                dropped=rows - counted[question],
                beyond_limit=counted[question] - losses.kept,
                persons=losses.persons,
                persons_beyond_limit=losses.beyond,
                limits=losses.limits,
            )
            for question, losses in enumerate(self._person_losses(self._all.persons))
        ]

    def _person_losses(self, persons: PersonCounter) -> Iterator[PersonLosses]:
        """Return what persons lose, question by question."""
        for question, losses in enumerate(persons.per_question()):
            if question in self._all.by_cell:
                yield self._all.by_cell[question].losses()
            elif self._needs[question].of_each_person:
                # These rows are counted before any limit.
                yield losses._replace(kept=int(self._all.counted[question]), beyond=0)
            else:
                yield losses

    def close(self) -> None:
        """Free memory and disk."""
        for part in self._parts:
            part.close()
