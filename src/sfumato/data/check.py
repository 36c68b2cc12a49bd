"""What a table would lose before anything is paid: for the custodian's screen, and for nobody else.

Everything here is true of the data, and none of it is protected. It enters no release, log, ledger or exception; a
``Check`` can be printed and written as JSON, which says that it is not for publication, and cannot be pickled.

Memory: a batch, what bounding persons remembers (``spill.memory()``, then a temporary file), and at most ``MOST_LABELS``
labels of each axis that are not listed: up to so many they are counted exactly, beyond it the counts are lower bounds.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from sfumato.data import persons as people
from sfumato.data.bounding import Bounder, fresh_key, ranked
from sfumato.data.columns import dictionary_of, numbers, text_of
from sfumato.data.csvfile import CsvFile
from sfumato.data.fields import Losses
from sfumato.data.files import Files
from sfumato.data.hive import Partitioned
from sfumato.data.tables import guarded
from sfumato.domain import (
    DROPPED,
    Axis,
    Categories,
    EdgesAxis,
    GridAxis,
    Interval,
    KeyAxis,
    LabelAxis,
    Lattice,
    LatticeAxis,
    grid_axis,
)
from sfumato.errors import DataError, UsageError, without_frames

if TYPE_CHECKING:
    from sfumato.data.source import Source

MOST_LABELS = 10_000
SHOWN = 5
WIDTH = 80
_LABEL_LENGTH = 60
_HEAD_BYTES = 2**16
Progress = Callable[[int, "int | None"], None]


class Unmatched(msgspec.Struct, frozen=True):
    """A label of the data that is not listed, how many rows have it, and the listed label nearest to it."""

    label: str
    rows: int
    nearest: str | None


class AxisCheck(msgspec.Struct, frozen=True):
    """What one axis does to the rows.

    Attributes
    ----------
    missing : int
        Rows without a value, fields that did not parse included.
    unparsed, not_utf8 : int
        Of these, fields that did not parse; and of those, the ones that are not UTF-8.
    below, above : int
        Rows that are clamped to the lower and to the upper end.
    edges : bool
        Whether these ends are edges of bins, which the question states, and not the bounds of the axis.
    unmatched : int
        Rows whose label is not listed.
    labels : tuple of Unmatched
        The most frequent of these labels.
    exact : bool
        False: there were more labels than are remembered, and the counts of ``labels`` are lower bounds.
    """

    name: str
    missing: int = 0
    unparsed: int = 0
    not_utf8: int = 0
    below: int = 0
    above: int = 0
    edges: bool = False
    unmatched: int = 0
    labels: tuple[Unmatched, ...] = ()
    exact: bool = True


class QuestionCheck(msgspec.Struct, frozen=True):
    """What one question loses: rows dropped for missing or unlisted values, or without a person; and to the limit."""

    title: str
    counted: int
    dropped: int
    beyond_limit: int = 0
    persons: int | None = None
    persons_beyond_limit: int = 0


class Check(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """The custodian's look at a table; see ``Publisher.check``. Print it.

    Attributes
    ----------
    source : str
    rows : int or None
        Rows read; None where the table is refused.
    refused : str or None
        Why a release would be refused.
    wrong_length, unended : int
        Rows of CSV that were dropped: with another number of fields than the header; or too long, or with a
        quotation mark that is not closed.
    without_person : int
    limit : int
        The largest number of rows of one person that are counted.
    axes : tuple of AxisCheck
    questions : tuple of QuestionCheck
    hints : tuple of str
        What the form of the file seems to be.
    """

    source: str
    rows: int | None = None
    refused: str | None = None
    wrong_length: int = 0
    unended: int = 0
    without_person: int = 0
    limit: int = 1
    axes: tuple[AxisCheck, ...] = ()
    questions: tuple[QuestionCheck, ...] = ()
    hints: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return "<Check, not for publication: print it to read it>"

    def __reduce__(self) -> NoReturn:
        raise UsageError("pickling a Check", "it holds true counts", "Print it, and keep it to yourself")

    def __str__(self) -> str:
        from sfumato.data.checkpage import page

        return page(self, WIDTH)

    def to_json(self) -> bytes:
        """The same as JSON, marked as not for publication."""
        plain = {"not_for_publication": True, **msgspec.to_builtins(self)}
        return msgspec.json.format(msgspec.json.encode(plain))


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
        If an axis is not in the domain.
    DataError
        If the file cannot be read at all.
    """
    asked = [("all axes", _everything(source))] if questions is None else list(questions)
    hints = _hints(source)
    try:
        source.require([lattice for _, lattice in asked])
    except DataError as refusal:
        return Check(source.title, refused=str(refusal), hints=hints, limit=source.unit.rows_per_person)
    look = _Look(source, asked)
    try:
        look.at_all(progress)
        return look.found(hints)
    finally:
        look.close()


def _everything(source: Source) -> Lattice:
    return Lattice(tuple(_axis(name, axis) for name, axis in source.domain.items()))


def _axis(name: str, axis: Axis) -> LatticeAxis:
    if isinstance(axis, Interval):
        return grid_axis(name, axis, 1)
    if isinstance(axis, Categories):
        return LabelAxis(name, axis.all_labels, axis.other is not None, axis.missing is not None)
    return KeyAxis(name)


class _Look:
    """One pass over a table."""

    def __init__(self, source: Source, asked: Sequence[tuple[str, Lattice]]) -> None:
        self._source = source
        self._titles = [title for title, _ in asked]
        self._lattices = [lattice for _, lattice in asked]
        axes = dict.fromkeys(axis for lattice in self._lattices for axis in lattice.axes)
        self._axes: dict[LatticeAxis, _Numbers | _Labels | _Keys] = {axis: _watch(axis) for axis in axes}
        self._losses = Losses()
        self._rows = 0
        self._without_person = 0
        self._counted = [0] * len(asked)
        unit = source.unit
        self._persons = None if unit.person is None else _Persons(unit.rows_per_person, len(asked))

    def at_all(self, progress: Progress | None) -> None:
        table: Any = self._source._table
        columns = self._source._columns(self._lattices)
        total = table.rows() if progress else None
        more = (self._losses,) if isinstance(table, Files) else ()
        for batch in table.batches(columns, *more):
            guarded(table.name, lambda batch=batch: self._at(batch))  # type: ignore[misc]
            if progress:
                progress(self._rows, total)

    def _at(self, batch: Any) -> None:
        self._rows += len(batch)
        has_cell = {axis: watch.at(batch[axis.name]) for axis, watch in self._axes.items()}
        useful = [np.logical_and.reduce([has_cell[axis] for axis in lattice.axes]) for lattice in self._lattices]
        if self._persons is not None:
            ids = batch[self._source.unit.person]
            known = people.ids(ids).is_valid().to_numpy(zero_copy_only=False)
            self._without_person += int((~known).sum())
            useful = [each & known for each in useful]
            self._persons.add(ids, [[np.where(each, 0, DROPPED).astype(np.int32)] for each in useful])
        for place, each in enumerate(useful):
            self._counted[place] += int(each.sum())

    def found(self, hints: tuple[str, ...]) -> Check:
        losses = self._losses
        persons = self._persons.found() if self._persons is not None else [None] * len(self._lattices)
        if losses.not_utf8:
            hints = (*hints, "Some fields are not UTF-8. Latin-1 or Windows-1252 is likely: save the file as UTF-8.")
        return Check(
            self._source.title,
            self._rows,
            wrong_length=losses.wrong_length,
            unended=losses.unended,
            without_person=self._without_person,
            limit=self._source.unit.rows_per_person,
            axes=tuple(watch.found(losses.unparsed[axis.name], losses.not_utf8[axis.name]) for axis, watch in self._axes.items()),
            questions=tuple(
                _of_question(title, counted, self._rows, seen)
                for title, counted, seen in zip(self._titles, self._counted, persons, strict=True)
            ),
            hints=hints,
        )

    def close(self) -> None:
        if self._persons is not None:
            self._persons.close()


def _of_question(title: str, counted: int, rows: int, seen: np.ndarray | None) -> QuestionCheck:
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
        self._ends = (axis.lower, axis.upper) if isinstance(axis, GridAxis) else (axis.bounds[0], axis.bounds[-1])
        self._missing = self._below = self._above = 0

    def at(self, column: Any) -> np.ndarray:
        values = numbers(column, self._axis.time)
        missing = np.isnan(values)
        self._missing += int(missing.sum())
        self._below += int((values < self._ends[0]).sum())
        self._above += int((values > self._ends[1]).sum())
        return ~missing if self._axis.missing is None else np.ones(len(values), bool)

    def found(self, unparsed: int, not_utf8: int) -> AxisCheck:
        edges = isinstance(self._axis, EdgesAxis)
        return AxisCheck(self._axis.name, self._missing, unparsed, not_utf8, self._below, self._above, edges)


class _Labels:
    def __init__(self, axis: LabelAxis) -> None:
        self._axis = axis
        self._missing = self._unmatched = 0
        self._seen = Counter[str]()
        self._exact = True

    def at(self, column: Any) -> np.ndarray:
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
        labels = tuple(Unmatched(label, rows, _nearest(label, listed)) for label, rows in self._seen.most_common(SHOWN))
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

    def at(self, column: Any) -> np.ndarray:
        held: np.ndarray = column.is_valid().to_numpy(zero_copy_only=False)
        self._missing += int((~held).sum())
        return held

    def found(self, unparsed: int, not_utf8: int) -> AxisCheck:
        return AxisCheck(self._axis.name, self._missing, unparsed, not_utf8)


def _python(dictionary: Any) -> list[object]:
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

    def found(self) -> list[np.ndarray | None]:
        """Rows kept, persons, and persons with more rows than the limit, of each lattice."""
        for _ in self.bounded():
            pass
        return list(self._seen)

    def _cells(self, records: np.ndarray, depth: int) -> list[list[np.ndarray]]:
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


# --- the form of a file -------------------------------------------------------------------------------------------------

_SIGNS = {b";": "semicolons", b"\t": "tabs", b"|": "bars"}


def _hints(source: Source) -> tuple[str, ...]:
    """What the first line of each kind of file seems to be."""
    found = (_hint(part) for part in _texts(source._table))
    return tuple(dict.fromkeys(hint for hints in found for hint in hints))


def _texts(table: Any) -> Iterator[CsvFile]:
    for part in table.parts() if isinstance(table, Files) else ():
        file = part._file if isinstance(part, Partitioned) else part
        if isinstance(file, CsvFile):
            yield file


def _hint(file: CsvFile) -> Iterator[str]:
    head = file.head(_HEAD_BYTES)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        yield "The file seems to be UTF-16: save it as UTF-8."
        return
    line = head.lstrip(b"\xef\xbb\xbf\r\n").partition(b"\n")[0]
    if text_of(line) is None:
        yield "The first line is not UTF-8. Latin-1 or Windows-1252 is likely: save the file as UTF-8."
    commas = line.count(b",")
    sign = max(_SIGNS, key=line.count)
    if line.count(sign) > commas:
        yield f"The first line has {line.count(sign)} {_SIGNS[sign]} and {commas} commas: save the file with commas."
