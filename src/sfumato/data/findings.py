"""What a look at a table found, and how it is printed: for the custodian's screen, and for nobody else.

Everything here is true of the data, and none of it is protected. A ``Check`` can be printed and
written as JSON, which says that it is not for publication, and cannot be pickled.
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
    "Bounds, labels or a limit chosen from these numbers are no longer public: choose them from what is publicly known. "
    "Mending the file, or writing a label as the file does, is no such choice."
)


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
        Whether these ends are edges of bins, which the question states, and not the bounds of the
        axis.
    unmatched : int
        Rows whose label is not listed.
    labels : tuple of Unmatched
        The most frequent of these labels.
    exact : bool
        False: there were more labels than are remembered, and the counts of ``labels`` are lower
        bounds.
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
        Rows of CSV that were dropped: with another number of fields than the header; or too long,
        or with a quotation mark that is not closed.
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
        raise UsageError(
            "pickling a Check", "it holds true counts", "Print it, and keep it to yourself"
        )

    def __str__(self) -> str:
        return page(self, WIDTH)

    def to_json(self) -> bytes:
        """The same as JSON, marked as not for publication."""
        plain = {"not_for_publication": True, **msgspec.to_builtins(self)}
        return msgspec.json.format(msgspec.json.encode(plain))


# --- the page ---------------------------------------------------------------------------------------------------------


def page(check: Check, width: int) -> str:
    """Lay a check out."""
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
    return textwrap.wrap(
        line, width, subsequent_indent=indent and indent + "  ", break_on_hyphens=False
    ) or [""]


def _summary(check: Check) -> Iterator[str]:
    if check.rows is None:
        yield f"{printable(check.source)}: a release would be refused, and nothing charged."
        yield printable(check.refused or "")
        return
    yield f"{printable(check.source)}: {check.rows:,} rows"
    for rows, what in (
        (check.wrong_length, "more lines are dropped: another number of fields than the header"),
        (check.unended, "more lines are dropped: too long, or a quotation mark is not closed"),
        (check.without_person, "rows without a person are dropped"),
    ):
        if rows:
            yield f"  {rows:,} {what}"


def _axis(axis: AxisCheck) -> Iterator[str]:
    yield f"{printable(axis.name)}:"
    first, last = ("first edge", "last edge") if axis.edges else ("lower bound", "upper bound")
    place = "are counted in the bin there" if axis.edges else "are clamped to it"
    found = (
        (
            axis.missing,
            "rows have no value"
            + (f", {axis.unparsed:,} because the field does not parse" if axis.unparsed else ""),
        ),
        (axis.not_utf8, "of these fields are not UTF-8"),
        (axis.below, f"rows lie below the {first}, and {place}"),
        (axis.above, f"rows lie above the {last}, and {place}"),
        (axis.unmatched, "rows have a label that is not listed"),
    )
    lines = [f"  {rows:,} {what}" for rows, what in found if rows]
    yield from lines or ["  every row has a value that is listed or within the bounds"]
    least = "" if axis.exact else "at least "
    for each in axis.labels:
        rows = "row" if each.rows == 1 else "rows"
        meant = "" if each.nearest is None else f"; nearest listed: {each.nearest!r}"
        yield f"    {printable(each.label)!r}: {least}{each.rows:,} {rows}{printable(meant)}"


def _question(question: QuestionCheck, check: Check) -> Iterator[str]:
    yield f"{printable(question.title)}:"
    yield f"  {question.counted:,} of {check.rows:,} rows are counted"
    if question.dropped:
        yield f"  {question.dropped:,} are dropped: a missing or unlisted value, or no person"
    if question.persons is not None:
        yield (
            f"  {question.beyond_limit:,} are beyond the limit of {check.limit:,} a person: "
            f"{question.persons_beyond_limit:,} of {question.persons:,} persons have more"
        )


def printable(text: str) -> str:
    """Write what would steer a terminal as its escape."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )
