"""A check as text for a terminal, at most as wide as it is told."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.data.check import AxisCheck, Check, QuestionCheck

BANNER = "NOT FOR PUBLICATION: true counts, for the custodian's own screen."
ADVICE = (
    "Bounds, labels or a limit chosen from these numbers are no longer public: choose them from what is publicly known. "
    "Mending the file, or writing a label as the file does, is no such choice."
)


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
    return textwrap.wrap(line, width, subsequent_indent=indent and indent + "  ", break_on_hyphens=False) or [""]


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
        (axis.missing, "rows have no value" + (f", {axis.unparsed:,} because the field does not parse" if axis.unparsed else "")),
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
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
