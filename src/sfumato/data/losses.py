"""What a check of a table found: how it is printed, and how losses of axes and persons are counted.

All of it is true of the data, and serves ``sfumato check`` only: the numbers are true counts, and
none is protected. A ``Check`` can be printed or written as JSON, which says that it is not for
publication. It cannot be pickled.

Each axis of a table loses missing values, clamped numbers and unlisted labels; persons lose rows to
their limits.
"""

from __future__ import annotations

import difflib
import math
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NoReturn

import msgspec
import numpy as np
import pyarrow as pa

from sfumato.answers import Needs
from sfumato.basics import Array, agreeing, array_of, is_valid, ndarray_of, several
from sfumato.data.bounding import CellBounder
from sfumato.data.cells import CellsOfColumn, cells_of
from sfumato.data.columns import dictionary_of, numbers, values_of
from sfumato.data.fields import unlisted_number
from sfumato.data.packed_counts import PackedRows
from sfumato.data.person_records import PersonRecords, Records, joined_by, person_numbers
from sfumato.domain import (
    BinsAndMissing,
    EdgesAxis,
    GridAxis,
    KeyAxis,
    Label,
    LabelAxis,
    LatticeAxis,
)
from sfumato.errors import UsageError
from sfumato.privacy import MOST_ROWS, Limits, Unit

WIDTH = 80
BANNER = "NOT FOR PUBLICATION: true counts, for the custodian's own screen."
ADVICE = (
    "Bounds, labels or a limit chosen from these numbers are no longer public: "
    "choose them from what is publicly known. "
    "Mending the file, or writing a label as the file does, is no such choice."
)


class Unmatched(msgspec.Struct, frozen=True):
    """A label that is not listed, the number of its rows, and the nearest listed label."""

    label: str
    rows: int
    nearest: str | None


class AxisCheck(msgspec.Struct, frozen=True):
    """How many rows one axis loses or clamps.

    Attributes
    ----------
    missing : int
        Rows without a value; a field that did not parse is one of them.
    unparsed, not_utf8 : int
        How many of the missing values did not parse, and how many of these are not UTF-8. A Python
        object of another kind than the axis declares does not parse either.
    below, above : int
        Rows that are clamped to the lower or to the upper end.
    edges : bool
        Whether the ends are edges of bins that the question states; otherwise they are the bounds
        of the axis.
    unmatched : int
        Rows whose label is not listed.
    labels : tuple of Unmatched
        The most frequent of the labels that are not listed; all of them where that was asked for.
    n_labels : int
        How many labels are not listed.
    exact : bool
        False if there were more such labels than are remembered: ``n_labels`` and the counts of
        ``labels`` are then lower bounds.
    span: bool
        Whether the axis is a span of the calendar: ``unmatched`` are the rows outside.
    stepped : bool
        Whether the axis has a step, so that its upper bound itself counts as the last step below.
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
    n_labels: int = 0
    exact: bool = True
    span: bool = False
    stepped: bool = False


class QuestionCheck(msgspec.Struct, frozen=True):
    """How many rows one question counts, and how many it loses.

    Attributes
    ----------
    title : str
    counted : int
        Rows that are counted.
    dropped : int
        Rows with a missing or unlisted value, or without a person.
    beyond_limit : int
        Rows that are not counted because their person has more than the limit.
    persons : int or None
        Persons with a row that could be counted; None without a person column.
    persons_beyond_limit : int
        How many of them have more rows than the limit.
    limits : str
        The limits by cell that the question counts under, in words; empty without any.
    """

    title: str
    counted: int
    dropped: int
    beyond_limit: int = 0
    persons: int | None = None
    persons_beyond_limit: int = 0
    limits: str = ""


class Check(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """What a table would lose, for the custodian only; see ``Publisher.check``. Print it.

    Attributes
    ----------
    source : str
    rows : int or None
        Rows read; None if the table is refused.
    refused : str or None
        Why a release would be refused.
    wrong_length : int
        Rows of CSV that were dropped because they have another number of fields than the header.
    unended : int
        Rows of CSV that were dropped because they are too long or a quotation mark is not closed.
    not_asked : int
        Rows that do not satisfy the source's conditions. All other numbers are about the rest.
    without_person : int
        Rows without a person.
    limit : int
        How many rows of one person are counted at most.
    axes : tuple of AxisCheck
    questions : tuple of QuestionCheck
    hints : tuple of str
        What may be wrong with the form of the table.
    offer : str
        What to declare in place of labels that cannot be listed, and its price; empty if all are.
    """

    source: str
    rows: int | None = None
    refused: str | None = None
    wrong_length: int = 0
    unended: int = 0
    not_asked: int = 0
    without_person: int = 0
    limit: int = 1
    axes: tuple[AxisCheck, ...] = ()
    questions: tuple[QuestionCheck, ...] = ()
    hints: tuple[str, ...] = ()
    offer: str = ""

    def __repr__(self) -> str:
        return "<Check, not for publication: print it to read it>"

    def __reduce__(self) -> NoReturn:
        raise UsageError(
            "pickling a Check", "it holds true counts", "Print it, and keep it to yourself"
        )

    def __str__(self) -> str:
        return page(self, WIDTH)

    def to_json(self) -> bytes:
        """Write the check as JSON, marked as not for publication.

        Of the labels that are not listed it has the most frequent ones, and never all.
        """
        axes = [msgspec.structs.replace(axis, labels=axis.labels[:SHOWN]) for axis in self.axes]
        brief = msgspec.structs.replace(self, axes=tuple(axes))
        plain = {"not_for_publication": True, **msgspec.to_builtins(brief)}
        return msgspec.json.format(msgspec.json.encode(plain))


# --- the page -----------------------------------------------------------------------------------


def page(check: Check, width: int) -> str:
    """Lay a check out as text of at most ``width`` columns."""
    lines = [BANNER, "", *_summary(check)]
    if check.rows is not None:
        for axis in check.axes:
            lines += ["", *_axis(axis)]
        for question in check.questions:
            lines += ["", *_question(question, check)]
    for paragraph in (*check.hints, ADVICE, check.offer):
        lines += ["", printable(paragraph)] if paragraph else []
    folded: list[str] = []
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()))
        hanging = indent + "  " if indent else ""
        wrapped = textwrap.wrap(line, width, subsequent_indent=hanging, break_on_hyphens=False)
        folded += wrapped or [""]
    return "\n".join(folded)


def _summary(check: Check) -> Iterator[str]:
    if check.rows is None:
        yield f"{printable(check.source)}: a release would be refused, and nothing charged."
        yield printable(check.refused or "")
        return
    yield f"{printable(check.source)}: {several(check.rows, 'row')}"
    for rows, noun, what in (
        (check.wrong_length, "more line", "dropped: another number of fields than the header"),
        (check.unended, "more line", "dropped: too long, or a quotation mark is not closed"),
        (check.not_asked, "row", "dropped: the conditions (where) do not hold"),
        (check.without_person, "row", "dropped: without a person"),
    ):
        if rows:
            yield f"  {several(rows, noun, 'are')} {what}"


def _axis(axis: AxisCheck) -> Iterator[str]:
    yield f"{printable(axis.name)}:"
    lines = [f"  {sentence}" for rows, sentence in _losses(axis) if rows]
    yield from lines or ["  every row has a value that is listed or within the bounds"]
    at_least = "" if axis.exact else "at least "
    for label in axis.labels:
        rows = several(label.rows, "row")
        nearest = printable(_nearest_listed(label))
        yield f"    {printable(label.label)!r}: {at_least}{rows}{nearest}"
    if further := axis.n_labels - len(axis.labels):
        shows = f"; {SHOWS_ALL}" if len(axis.labels) <= SHOWN else ""
        yield f"    and {at_least}{several(further, 'further label')}{shows}"


def _nearest_listed(label: Unmatched) -> str:
    """Say which listed label may have been meant, and how a label with a comma is written."""
    if label.nearest is None:
        return ""
    named = f"; nearest listed: {label.nearest!r}"
    parts = [part.strip() for part in label.label.split(",")]
    if len(parts) > 1 and label.nearest and label.nearest in parts:
        return f'{named}. In --axis, write a label with a comma as "a, b"'
    return named


def _losses(axis: AxisCheck) -> list[tuple[int, str]]:
    """Tell how many rows an axis loses, and what becomes of them."""
    no_value = f"{several(axis.missing, 'row', 'have')} no value"
    if axis.unparsed:
        no_value += f", {axis.unparsed:,} because what stands there does not parse"
    below = several(axis.below, "row", "lie")
    above = several(axis.above, "row", "lie")
    if axis.edges:
        below += " below the first edge: counted in the bin there"
        above += " above the last edge: counted in the bin there"
    elif axis.stepped:
        below += " below the lower bound: clamped to it"
        above += " at or above the upper bound: counted as the last step below it"
    else:
        below += " below the lower bound: clamped to it"
        above += " above the upper bound: clamped to it"
    unlisted = several(axis.unmatched, "row", "have") + " a label that is not listed"
    outside = several(axis.unmatched, "row", "lie") + " outside the span"
    not_utf8 = f"{axis.not_utf8:,} of these fields {agreeing(axis.not_utf8, 'are')} not UTF-8"
    return [
        (axis.missing, no_value),
        (axis.not_utf8, not_utf8),
        (axis.below, below),
        (axis.above, above),
        (axis.unmatched, outside if axis.span else unlisted),
    ]


def _question(question: QuestionCheck, check: Check) -> Iterator[str]:
    yield f"{printable(question.title)}:"
    counted = f"{question.counted:,} of {several(check.rows or 0, 'row')}"
    yield f"  {counted} {agreeing(question.counted, 'are')} counted"
    if question.dropped:
        dropped = f"{question.dropped:,} {agreeing(question.dropped, 'are')} dropped"
        yield f"  {dropped}: a missing or unlisted value, or no person"
    if question.persons is not None:
        limit = f"limit of {check.limit:,} a person"
        if question.limits:
            limit = f"limits of a person ({question.limits})"
        beyond = f"{question.beyond_limit:,} {agreeing(question.beyond_limit, 'are')} beyond"
        persons = f"{question.persons_beyond_limit:,} of {several(question.persons, 'person')}"
        have = agreeing(question.persons_beyond_limit, "have")
        yield f"  {beyond} the {limit}: {persons} {have} more"


def printable(text: str) -> str:
    """Write characters that would control a terminal as their escapes."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


# --- losses of axes -----------------------------------------------------------------------------

# How many unlisted labels of an axis are counted exactly.
MOST_LABELS = 10_000

SHOWS_ALL = "all_labels=True (command line: --all-labels) shows them"
# How many unlisted labels of an axis are shown unless all of them are asked for.
SHOWN = 5

# How often an unlisted label of an axis is compared with a listed one, the most frequent first.
MOST_COMPARISONS = 100_000

# What is shown for numbers that text and objects are not read as: see ``fields.whole_label``.
OTHER_NUMBER = "(another number)"

_LABEL_LENGTH = 60

# The cells of an axis for a check: all of its own in one, and the four that are added.
WITHIN, UNLISTED, MISSING, BELOW, ABOVE = range(5)


class AxisLosses:
    """Counts the rows in the cells that are added to an axis: what it loses or clamps.

    Parameters
    ----------
    axis : LatticeAxis
    """

    def __init__(self, axis: LatticeAxis) -> None:
        has_missing = isinstance(axis, BinsAndMissing)
        self._axis = axis.bins if isinstance(axis, BinsAndMissing) else axis
        self._labels: CellsOfColumn | None = None
        self._ends: list[float] = []
        self._stand_in: int | None = None
        self._spans = False
        # The last value of an axis with a step is one step below its upper bound.
        self._stepped = isinstance(self._axis, GridAxis) and self._axis.step is not None
        self._has_cell = np.array([True, False, False, True, True])
        if isinstance(self._axis, LabelAxis):
            labels = (*self._axis.labels[: self._axis.n_listed], "other", "missing")
            apart = msgspec.structs.replace(self._axis, labels=labels, other=True, missing=True)
            self._labels = cells_of(apart)
            # A span of the calendar lists no labels.
            self._spans = self._axis.calendar is not msgspec.UNSET
            self._has_cell[[UNLISTED, MISSING]] = self._axis.other, self._axis.missing
            self._stand_in = unlisted_number(frozenset(self._axis.listed))
        elif not isinstance(self._axis, KeyAxis):
            lower, upper = self._axis.ends
            # Without steps the upper bound itself lies within, and only larger values are above.
            self._ends = [lower, upper if self._stepped else math.nextafter(upper, math.inf)]
            self._has_cell[MISSING] = has_missing or self._axis.missing is not None
        self._rows = np.zeros(len(self._has_cell), np.int64)
        # Of a label, its beginning; and 0, or a digest of it where it is longer.
        self._seen = Counter[tuple[str, int]]()
        self._n_labels = 0
        self._exact = True

    def add(self, column: pa.Array) -> Array:
        """Count a column; say which rows have a cell: bool ndarray of shape (rows,)."""
        if isinstance(self._axis, LabelAxis):
            assert self._labels is not None
            # Listed labels come first, then those that are not, then missing values.
            cells = np.maximum(self._labels(column) - (self._axis.n_listed - 1), WITHIN)
            self._rows += np.bincount(cells, minlength=len(self._rows))
            unlisted = cells == UNLISTED
            if unlisted.any() and not self._spans:
                self._add_unlisted(column, unlisted)
            return np.asarray(self._has_cell.take(cells))
        if isinstance(self._axis, KeyAxis):
            is_missing = ~is_valid(column)
        else:
            values = numbers(column, self._axis.time)
            is_missing = np.isnan(values)
            lower, end = self._ends
            self._rows[BELOW] += np.count_nonzero(values < lower)
            self._rows[ABOVE] += np.count_nonzero(values >= end)
        self._rows[MISSING] += np.count_nonzero(is_missing)
        return np.ones(len(column), bool) if self._has_cell[MISSING] else ~is_missing

    def _add_unlisted(self, column: pa.Array, unlisted: Array) -> None:
        encoded = dictionary_of(column)
        # A missing value is not among the unlisted rows, so the 0 in its place is not counted.
        n_rows = np.bincount(ndarray_of(encoded.indices, 0)[unlisted])
        present = np.flatnonzero(n_rows)
        labels = values_of(encoded.dictionary.take(array_of(present)))
        for value, rows in zip(labels, n_rows[present].tolist(), strict=True):
            label = OTHER_NUMBER if value == self._stand_in else str(value)
            digest = hash(label) if len(label) > _LABEL_LENGTH else 0
            self._seen[label[:_LABEL_LENGTH], digest] += rows
        self._forget_rare_labels()

    def merge(self, other: AxisLosses) -> None:
        """Add what another thread counted of other rows."""
        self._rows += other._rows
        self._seen += other._seen
        self._n_labels = max(self._n_labels, other._n_labels)
        self._exact &= other._exact
        self._forget_rare_labels()

    def _forget_rare_labels(self) -> None:
        self._n_labels = max(self._n_labels, len(self._seen))
        # Memory is bounded: the rarer half is forgotten, and the counts become lower bounds.
        if len(self._seen) > 2 * MOST_LABELS:
            self._seen = Counter(dict(self._seen.most_common(MOST_LABELS)))
            self._exact = False

    def result(self, unparsed: int, not_utf8: int, *, all_labels: bool = False) -> AxisCheck:
        """Give the counts, with the fields that did not parse and those that are not UTF-8.

        ``all_labels`` gives every label that is not listed, as far as they are remembered.
        """
        axis = self._axis
        nearest = _Nearest(axis.listed if isinstance(axis, LabelAxis) else ())
        # Of labels with as many rows, the order must not depend on which of them was read first.
        frequent = sorted(self._seen.items(), key=lambda seen: (-seen[1], seen[0][0]))
        labels = [
            Unmatched(text + "..." * bool(digest), n_rows, nearest(text))
            for (text, digest), n_rows in frequent[: None if all_labels else SHOWN]
        ]
        _, unmatched, missing, below, above = self._rows.tolist()
        return AxisCheck(
            axis.name,
            missing=missing,
            unparsed=unparsed,
            not_utf8=not_utf8,
            below=below,
            above=above,
            edges=isinstance(axis, EdgesAxis),
            unmatched=unmatched,
            labels=tuple(labels),
            n_labels=self._n_labels,
            exact=self._exact,
            span=self._spans,
            stepped=self._stepped,
        )


class _Nearest:
    """Finds the listed label that is likely meant: equal but for case and blanks, or nearly."""

    def __init__(self, listed: Sequence[Label]) -> None:
        self._listed = [str(label) for label in listed]
        # Of labels that are alike, the one listed first stays.
        self._alike = {label.strip().casefold(): label for label in reversed(self._listed)}
        self._comparisons = MOST_COMPARISONS

    def __call__(self, label: str) -> str | None:
        if (alike := self._alike.get(label.strip().casefold())) is not None:
            return alike
        # Comparing all labels with all that are listed could take hours.
        if self._comparisons < 0:
            return None
        self._comparisons -= len(self._listed)
        close = difflib.get_close_matches(label, self._listed, n=1)
        return close[0] if close else None


# --- losses of persons --------------------------------------------------------------------------


class PersonCounter(PersonRecords[None]):
    """Counts the rows of each person that each question could count.

    Attributes
    ----------
    totals : int64 ndarray of shape (questions, 3)
        Of the persons that were finished: their rows that are counted, the persons with a row that
        could be counted, and how many of them have more rows than the limit.
    """

    def __init__(self, limit: int, n_questions: int) -> None:
        super().__init__()
        self._most = limit
        self.totals = np.zeros((n_questions, 3), np.int64)

    def add(self, tokens: list[Array], counted: list[Array]) -> None:
        """Take a batch of rows, all of which have a person.

        Parameters
        ----------
        tokens : list of uint64 ndarray of shape (rows,)
            The words of the person token of each row.
        counted : list of bool ndarray of shape (rows,)
            Whether each question could count the row.
        """
        every_row = np.ones(len(tokens[0]), bool)
        self._add(every_row, tokens, [which.astype(np.int64) for which in counted])

    def _finished(self, records: Records, splits: int) -> None:
        numbers = self._reduced(records, splits)[self._n_tokens :]
        for question, n_rows in enumerate(numbers):
            kept = np.minimum(n_rows, self._most).sum()
            self.totals[question] += kept, (n_rows > 0).sum(), (n_rows > self._most).sum()

    def _reduced(self, records: Records, splits: int) -> Records:
        return joined_by(records, self._n_tokens)


def limits_on_cells(needs: Needs, unit: Unit) -> Unit | None:
    """Return the unit under which a question counts, if its limits are about cells."""
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

    Attributes
    ----------
    totals : int64 ndarray of shape (3,)
        As of one question of a ``PersonCounter``.
    limits_in_words : str
    """

    def __init__(self, key: bytes, needs: Needs, unit: Unit) -> None:
        assert unit.limits is not msgspec.UNSET
        super().__init__(key, needs, unit)
        self.totals = np.zeros(3, np.int64)
        all_rows = unit.rows_per_person == MOST_ROWS
        rows = [] if all_rows else [f"at most {unit.rows_per_person:,} rows"]
        limits = unit.limits
        if needs.norm is not None:
            limits = Limits(norm_in_tables=limits.norm_per_person)
        self.limits_in_words = ", ".join([*rows, *limits.in_words()])

    def _finished(self, records: Records, splits: int) -> PackedRows:
        """Count the persons of one partition; no row is wanted."""
        _, rows = self._sorted_rows(records, splits, only_candidates=False)
        kept = self._limits.kept(rows)
        persons = person_numbers(rows.tokens)
        n_rows = np.bincount(persons)
        n_kept = np.bincount(persons[kept], minlength=len(n_rows))
        self.totals += len(kept), len(n_rows), (n_kept < n_rows).sum()
        return []

    def _reduced(self, records: Records, splits: int) -> Records:
        return records
