"""What a check of a table found, and how it is printed for the custodian's screen.

The numbers are true counts, and none is protected. A ``Check`` can be printed or written as JSON,
which says that it is not for publication. It cannot be pickled.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import NoReturn

import msgspec

from sfumato.errors import UsageError

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
        How many of the missing fields did not parse, and how many of these are not UTF-8.
    below, above : int
        Rows that are clamped to the lower or to the upper end.
    edges : bool
        Whether the ends are edges of bins that the question states; otherwise they are the bounds
        of the axis.
    unmatched : int
        Rows whose label is not listed.
    labels : tuple of Unmatched
        The most frequent of the labels that are not listed.
    exact : bool
        False if there were more such labels than are remembered: the counts of ``labels`` are then
        lower bounds.
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
        What may be wrong with the form of the file.
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

    def __repr__(self) -> str:
        return "<Check, not for publication: print it to read it>"

    def __reduce__(self) -> NoReturn:
        raise UsageError(
            "pickling a Check", "it holds true counts", "Print it, and keep it to yourself"
        )

    def __str__(self) -> str:
        return page(self, WIDTH)

    def to_json(self) -> bytes:
        """Write the check as JSON, marked as not for publication."""
        plain = {"not_for_publication": True, **msgspec.to_builtins(self)}
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
    for hint in check.hints:
        lines += ["", hint]
    lines += ["", ADVICE]
    return "\n".join(part for line in lines for part in _folded(line, width))


def _folded(line: str, width: int) -> list[str]:
    indent = " " * (len(line) - len(line.lstrip()))
    hanging = indent + "  " if indent else ""
    lines = textwrap.wrap(line, width, subsequent_indent=hanging, break_on_hyphens=False)
    return lines or [""]


def _summary(check: Check) -> Iterator[str]:
    if check.rows is None:
        yield f"{printable(check.source)}: a release would be refused, and nothing charged."
        yield printable(check.refused or "")
        return
    yield f"{printable(check.source)}: {check.rows:,} rows"
    for rows, what in (
        (check.wrong_length, "more lines are dropped: another number of fields than the header"),
        (check.unended, "more lines are dropped: too long, or a quotation mark is not closed"),
        (check.not_asked, "rows do not satisfy the conditions (where), and are dropped"),
        (check.without_person, "rows without a person are dropped"),
    ):
        if rows:
            yield f"  {rows:,} {what}"


def _axis(axis: AxisCheck) -> Iterator[str]:
    yield f"{printable(axis.name)}:"
    lines = [f"  {rows:,} {what}" for rows, what in _losses(axis) if rows]
    yield from lines or ["  every row has a value that is listed or within the bounds"]
    at_least = "" if axis.exact else "at least "
    for label in axis.labels:
        rows = "row" if label.rows == 1 else "rows"
        nearest = "" if label.nearest is None else f"; nearest listed: {label.nearest!r}"
        parts = [part.strip() for part in label.label.split(",")]
        if len(parts) > 1 and label.nearest and label.nearest in parts:
            nearest += '. In --axis, write a label with a comma as "a, b"'
        yield f"    {printable(label.label)!r}: {at_least}{label.rows:,} {rows}{printable(nearest)}"


def _losses(axis: AxisCheck) -> list[tuple[int, str]]:
    """How many rows an axis loses, and what becomes of them."""
    no_value = "rows have no value"
    if axis.unparsed:
        no_value += f", {axis.unparsed:,} because the field does not parse"
    if axis.edges:
        below = "rows lie below the first edge, and are counted in the bin there"
        above = "rows lie above the last edge, and are counted in the bin there"
    else:
        below = "rows lie below the lower bound, and are clamped to it"
        above = "rows lie above the upper bound, and are clamped to it"
        if axis.stepped:
            above = "rows lie at or above the upper bound, and count as the last step below it"
    unmatched = "rows lie outside the span" if axis.span else "rows have a label that is not listed"
    return [
        (axis.missing, no_value),
        (axis.not_utf8, "of these fields are not UTF-8"),
        (axis.below, below),
        (axis.above, above),
        (axis.unmatched, unmatched),
    ]


def _question(question: QuestionCheck, check: Check) -> Iterator[str]:
    yield f"{printable(question.title)}:"
    yield f"  {question.counted:,} of {check.rows:,} rows are counted"
    if question.dropped:
        yield f"  {question.dropped:,} are dropped: a missing or unlisted value, or no person"
    if question.persons is not None:
        limit = f"limit of {check.limit:,} a person"
        if question.limits:
            limit = f"limits of a person ({question.limits})"
        yield (
            f"  {question.beyond_limit:,} are beyond the {limit}: "
            f"{question.persons_beyond_limit:,} of {question.persons:,} persons have more"
        )


def printable(text: str) -> str:
    """Write characters that would control a terminal as their escapes."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
