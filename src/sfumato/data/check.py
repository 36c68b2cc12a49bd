"""What a table would lose before anything is paid: for the custodian's screen, and for nobody else.

Everything here is true of the data, and none of it is protected. It enters no release, log, ledger
or exception.

Memory: a batch, what bounding persons remembers (``spill.memory()``, then a temporary file), and at
most ``MOST_LABELS`` labels of each axis that are not listed: up to so many they are counted
exactly, beyond it the counts are lower bounds.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from sfumato.arrays import Array
from sfumato.data import persons as people
from sfumato.data.bounding import Bounder, fresh_key, ranked
from sfumato.data.columns import dictionary_of, numbers, of_known_types, text_of
from sfumato.data.findings import AxisCheck, Check, QuestionCheck, Unmatched
from sfumato.data.guard import guarded, guarded_batches
from sfumato.data.reader import Losses, Progress, RowReader, with_rows
from sfumato.domain import grid_axis
from sfumato.errors import DataError, without_frames
from sfumato.lattice import DROPPED, EdgesAxis, GridAxis, KeyAxis, LabelAxis, Lattice, LatticeAxis

if TYPE_CHECKING:
    from sfumato.data.source import Source

MOST_LABELS = 10_000
SHOWN = 5
_LABEL_LENGTH = 60


@without_frames
def check(
    source: Source,
    questions: Sequence[tuple[str, Lattice]] | None = None,
    progress: Progress | None = None,
) -> Check:
    """Look at a table as questions would see it, in one pass. For the custodian only.

    Parameters
    ----------
    source : Source
    questions : sequence of pairs of str and Lattice, or None
        Title and lattice of each question; None: all axes of the domain together.
    progress : callable or None
        Called with the rows done, and all rows or None.

    Raises
    ------
    UsageError
        If an axis is not in the domain, or the source's engine counts by itself and hands out no
        rows.
    DataError
        If the file cannot be read at all.
    """
    asked = [("all axes", _everything(source))] if questions is None else list(questions)
    reader = with_rows(source._reader, "a check")
    hints = tuple(dict.fromkeys(guarded_batches(reader.name, reader.hints)))
    try:
        source.require([lattice for _, lattice in asked])
    except DataError as refusal:
        return Check(
            source.title, refused=str(refusal), hints=hints, limit=source.unit.rows_per_person
        )
    look = _Look(source, reader, asked)
    try:
        look.at_all(progress)
        return look.found(hints)
    finally:
        look.close()


def _everything(source: Source) -> Lattice:
    one_bin = partial(grid_axis, cells=1)
    return Lattice(tuple(axis.on_lattice(name, one_bin) for name, axis in source.domain.items()))


class _Look:
    """One pass over a table."""

    def __init__(
        self, source: Source, reader: RowReader, asked: Sequence[tuple[str, Lattice]]
    ) -> None:
        self._source = source
        self._reader = reader
        self._titles = [title for title, _ in asked]
        self._lattices = [lattice for _, lattice in asked]
        axes = dict.fromkeys(axis for lattice in self._lattices for axis in lattice.axes)
        self._axes: dict[LatticeAxis, _Numbers | _Labels | _Keys] = {
            axis: _watch(axis) for axis in axes
        }
        self._losses = Losses()
        self._rows = 0
        self._without_person = 0
        self._counted = [0] * len(asked)
        unit = source.unit
        self._persons = None if unit.person is None else _Persons(unit.rows_per_person, len(asked))

    def at_all(self, progress: Progress | None) -> None:
        reader = self._reader
        columns = self._source._columns(self._lattices)
        total = guarded(reader.name, reader.rows) if progress else None
        batches = guarded_batches(
            reader.name, partial(reader.batches_noting, columns, self._losses)
        )
        for batch in of_known_types(reader.name, columns, self._source.unit.person, batches):
            guarded(reader.name, partial(self._at, batch))
            if progress:
                progress(self._rows, total)

    def _at(self, batch: pa.RecordBatch) -> None:
        self._rows += len(batch)
        has_cell = {axis: watch.at(batch[axis.name]) for axis, watch in self._axes.items()}
        useful = [
            np.logical_and.reduce([has_cell[axis] for axis in lattice.axes])
            for lattice in self._lattices
        ]
        if self._persons is not None:
            ids = batch[self._source.unit.person]
            known = people.ids(ids).is_valid().to_numpy(zero_copy_only=False)
            self._without_person += int((~known).sum())
            useful = [each & known for each in useful]
            self._persons.add(
                ids, [[np.where(each, 0, DROPPED).astype(np.int32)] for each in useful]
            )
        for place, each in enumerate(useful):
            self._counted[place] += int(each.sum())

    def found(self, hints: tuple[str, ...]) -> Check:
        losses = self._losses
        persons = (
            self._persons.found() if self._persons is not None else [None] * len(self._lattices)
        )
        if losses.not_utf8:
            hints = (
                *hints,
                "Some fields are not UTF-8. Latin-1 or Windows-1252 is likely: save the file as UTF-8.",
            )
        return Check(
            self._source.title,
            self._rows,
            wrong_length=losses.wrong_length,
            unended=losses.unended,
            without_person=self._without_person,
            limit=self._source.unit.rows_per_person,
            axes=tuple(
                watch.found(losses.unparsed[axis.name], losses.not_utf8[axis.name])
                for axis, watch in self._axes.items()
            ),
            questions=tuple(
                _of_question(title, counted, self._rows, seen)
                for title, counted, seen in zip(self._titles, self._counted, persons, strict=True)
            ),
            hints=hints,
        )

    def close(self) -> None:
        if self._persons is not None:
            self._persons.close()


def _of_question(title: str, counted: int, rows: int, seen: Array | None) -> QuestionCheck:
    if seen is None:
        return QuestionCheck(title, counted, rows - counted)
    kept, persons, beyond = map(int, seen)
    return QuestionCheck(title, kept, rows - counted, counted - kept, persons, beyond)


# --- axes ---------------------------------------------------------------------------------------------------------------


def _watch(axis: LatticeAxis) -> _Numbers | _Labels | _Keys:
    if isinstance(axis, LabelAxis):
        return _Labels(axis)
    return _Keys(axis) if isinstance(axis, KeyAxis) else _Numbers(axis)


class _Numbers:
    def __init__(self, axis: GridAxis | EdgesAxis) -> None:
        self._axis = axis
        self._ends = axis.ends
        self._missing = self._below = self._above = 0

    def at(self, column: pa.Array) -> Array:
        values = numbers(column, self._axis.time)
        missing = np.isnan(values)
        self._missing += int(missing.sum())
        self._below += int((values < self._ends[0]).sum())
        self._above += int((values > self._ends[1]).sum())
        return ~missing if self._axis.missing is None else np.ones(len(values), bool)

    def found(self, unparsed: int, not_utf8: int) -> AxisCheck:
        edges = isinstance(self._axis, EdgesAxis)
        return AxisCheck(
            self._axis.name, self._missing, unparsed, not_utf8, self._below, self._above, edges
        )


class _Labels:
    def __init__(self, axis: LabelAxis) -> None:
        self._axis = axis
        self._missing = self._unmatched = 0
        self._seen = Counter[str]()
        self._exact = True

    def at(self, column: pa.Array) -> Array:
        encoded = dictionary_of(column)
        if pt.is_null(encoded.type):
            self._missing += len(column)
            return np.full(len(column), self._axis.missing)
        values = [_plain(value) for value in _python(encoded.dictionary)]
        listed = self._axis.lookup(values)
        strange = np.array([value is not None for value in values], bool)
        strange &= (listed < 0) | (listed >= len(self._axis.listed))
        indices = encoded.indices.cast(pa.int64()).fill_null(len(values)).to_numpy()
        rows = np.bincount(indices, minlength=len(values) + 1)
        gone = np.append([value is None for value in values], True)
        self._missing += int(rows[gone].sum())
        for place in np.flatnonzero(strange & (rows[:-1] > 0)):
            self._seen[str(values[place])[:_LABEL_LENGTH]] += int(rows[place])
            self._unmatched += int(rows[place])
        if len(self._seen) > 2 * MOST_LABELS:
            self._seen = Counter(dict(self._seen.most_common(MOST_LABELS)))
            self._exact = False
        return np.asarray(np.append(listed, self._axis.missing_cell)[indices] >= 0)

    def found(self, unparsed: int, not_utf8: int) -> AxisCheck:
        listed = [str(label) for label in self._axis.listed]
        labels = tuple(
            Unmatched(label, rows, _nearest(label, listed))
            for label, rows in self._seen.most_common(SHOWN)
        )
        return AxisCheck(
            self._axis.name,
            self._missing,
            unparsed,
            not_utf8,
            unmatched=self._unmatched,
            labels=labels,
            exact=self._exact,
        )


class _Keys:
    def __init__(self, axis: KeyAxis) -> None:
        self._axis = axis
        self._missing = 0

    def at(self, column: pa.Array) -> Array:
        held: Array = column.is_valid().to_numpy(zero_copy_only=False)
        self._missing += int((~held).sum())
        return held

    def found(self, unparsed: int, not_utf8: int) -> AxisCheck:
        return AxisCheck(self._axis.name, self._missing, unparsed, not_utf8)


def _python(dictionary: pa.Array) -> list[object]:
    try:
        return list(dictionary.to_pylist())
    except UnicodeDecodeError:
        raw = dictionary.cast(pa.large_binary()).to_pylist()
        return [None if value is None else text_of(value) for value in raw]


def _plain(value: object) -> object:
    return None if isinstance(value, float) and value != value else value  # noqa: PLR0124


def _nearest(label: str, listed: Sequence[str]) -> str | None:
    """The listed label that a label is likely meant to be: alike but for case and blanks, or nearly alike."""
    for one in listed:
        if one.strip().casefold() == label.strip().casefold():
            return one
    close = difflib.get_close_matches(label, listed, n=1)
    return close[0] if close else None


# --- persons ------------------------------------------------------------------------------------------------------------


class _Persons(Bounder):
    """Counts persons instead of keeping their rows.

    A person's rows are reduced to one more than the limit, which still shows who has more.
    """

    def __init__(self, limit: int, lattices: int) -> None:
        super().__init__(fresh_key(), limit + 1)
        self._most = limit
        self._seen = np.zeros((lattices, 3), np.int64)

    def found(self) -> list[Array | None]:
        """Rows kept, persons, and persons with more rows than the limit, of each lattice."""
        for _ in self.bounded():
            pass
        return list(self._seen)

    def _cells(self, records: Array, depth: int) -> list[list[Array]]:
        del depth
        words = [np.ascontiguousarray(records[name]) for name in self._persons]
        order = ranked(words, np.ascontiguousarray(records["priority"]))
        new = np.zeros(len(order), bool)
        for word in words:
            new[1:] |= word[order][1:] != word[order][:-1]
        who = np.cumsum(new)
        for place, names in enumerate(self._fields):
            rows = np.bincount(who[records[names[0]][order] != DROPPED])
            kept = np.minimum(rows, self._most).sum()
            self._seen[place] += kept, (rows > 0).sum(), (rows > self._most).sum()
        return []
