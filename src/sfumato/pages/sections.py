"""One release as a section of the page: picture, accuracy, table, guarantee, receipt.

Everything is computed from what ``Release`` declares. What a kind of release does not have, such as
a picture, is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from markupsafe import Markup

from sfumato.answers.origin import standing
from sfumato.answers.release import CountsRelease, Release, accuracy_sentence, reach_text
from sfumato.arrays import Array
from sfumato.charts import style
from sfumato.pages.spending import moment

if TYPE_CHECKING:
    import pyarrow as pa

Frame: TypeAlias = "dict[str, pa.ChunkedArray]"
"""The numbers of a release by column; empty where it has no table."""

MOST_ROWS = 200
INTERVALS = ("low", "high")
TAIL = ("count", *INTERVALS)


@dataclass(frozen=True)
class Table:
    """The first rows of the numbers.

    Attributes
    ----------
    columns : tuple of str
    text : tuple of bool
        Whether each column is text, which is aligned to the left.
    rows : tuple of tuples of str
    total : int
        How many rows there are, also those not shown.
    """

    columns: tuple[str, ...]
    text: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int


@dataclass(frozen=True)
class Accuracy:
    """How accurate the numbers are, in words.

    Attributes
    ----------
    sentence : str
    each : str
        The half-width for each number separately.
    every : str or None
        The half-width for all numbers at once; None if there is one number only.
    cells : int
        How many numbers there are.
    noun : str
        What a number is, such as "count".
    """

    sentence: str
    each: str
    every: str | None
    cells: int
    noun: str


@dataclass(frozen=True)
class Section:
    """What the template shows of one release."""

    anchor: str
    title: str
    private: bool
    measure: str
    charts: tuple[Markup, ...]
    facts: tuple[str, ...]
    counted: str
    accuracy: Accuracy | None
    table: Table | None
    reading: str
    guarantee: tuple[tuple[str, tuple[str, ...]], ...]
    not_covered: str
    receipt: tuple[tuple[str, str], ...]


def section(release: Release, anchor: str) -> Section:
    """Collect what the page shows of a release."""
    accuracy = _accuracy(release)
    frame = _frame(release)
    facts = _facts(release, frame)
    counted = release.guarantee.counted
    description = " ".join([*facts, accuracy.sentence if accuracy else "", counted]).strip()
    return Section(
        anchor=anchor,
        title=release.title,
        private=release.guarantee.private,
        measure=str(release.guarantee.measure),
        charts=_charts(release, description or release.title, anchor),
        facts=facts,
        counted=counted,
        accuracy=accuracy,
        table=_table(frame),
        reading=_reading(frame),
        guarantee=_guarantee(release),
        not_covered=release.guarantee.proof.not_covered,
        receipt=_receipt(release),
    )


def _charts(release: Release, description: str, anchor: str) -> tuple[Markup, ...]:
    """The picture for a page, and the same for a phone; none if the release cannot be drawn."""
    if not release.has_picture:
        return ()
    made = []
    for width, name in ((style.WIDE, "wide"), (style.NARROW, "narrow")):
        with style.sized(width):
            ax = release.plot()
        figure = style.figure_of(ax)
        made.append(Markup(style.svg(figure, release.title, description, name=f"{anchor}-{name}")))
    return tuple(made)


def _accuracy(release: Release) -> Accuracy | None:
    sentence = accuracy_sentence(release)
    if sentence is None:
        return None
    each = np.asarray(release.accuracy("0.95", False), float)
    every = np.asarray(release.accuracy("0.95", True), float)
    return Accuracy(
        _typeset(sentence),
        _half_width(each),
        _half_width(every) if each.size > 1 else None,
        each.size,
        release.noun,
    )


def _half_width(half_widths: Array) -> str:
    """The half-width as text; if they differ, from the smallest to the largest."""
    return _typeset(reach_text(half_widths))


def _typeset(text: str) -> str:
    return text.replace("+-", "±")


def _number(value: float) -> str:
    return style.number(math.ceil(value) if abs(value) >= 100 else value)


def _frame(release: Release) -> Frame:
    """The numbers by column, without the edges of bins: the name of a bin says them."""
    if not release.has_table:
        return {}
    table = release.to_frame()
    ends = {f"{name}{end}" for name in table.column_names for end in ("_lower", "_upper")}
    return {name: table[name] for name in table.column_names if name not in ends}


def _facts(release: Release, frame: Frame) -> tuple[str, ...]:
    """What a release says in sentences; else, of counts, the largest and how many are not 0.

    The intervals are those that hold for all counts at once, because the largest count was picked
    after looking at all.
    """
    if release.facts:
        return release.facts
    counts = np.asarray(release.values).reshape(-1)
    if not isinstance(release, CountsRelease) or not set(TAIL) <= set(frame) or not counts.size:
        return ()
    low, high = (np.asarray(end).reshape(-1) for end in release.interval("0.95", True))
    top = int(np.argmax(counts))
    axes = {name: column[top].as_py() for name, column in frame.items() if name not in TAIL}
    seen = int((low > 0).sum())
    largest = (
        f"Of {release.guarantee.unit.counted}, "
        f"the largest noisy count is {style.number(counts[top])} "
        f"(between {_number(low[top])} and {_number(high[top])}) with 95% confidence, "
        f"at {_cell_name(axes)}."
    )
    shown = f"{seen:,} of {counts.size:,} counts can be told from 0, judged all at once."
    return (largest, shown) if counts.size > 1 else (largest,)


def _cell_name(values: dict[str, object]) -> str:
    """Name a cell: labels as they are, and columns NAME_lower and NAME_upper as one range."""
    parts = []
    for column, value in values.items():
        name, _, end = column.rpartition("_")
        if end == "upper" and f"{name}_lower" in values:
            # It was named together with its lower end.
            continue
        if end == "lower" and f"{name}_upper" in values:
            parts.append(f"{name} {_cell(value)} to {_cell(values[f'{name}_upper'])}")
        else:
            parts.append(f"{column} {_cell(value)}")
    return ", ".join(parts)


def _table(frame: Frame) -> Table | None:
    if not frame:
        return None
    columns = [column[:MOST_ROWS].to_pylist() for column in frame.values()]
    return Table(
        columns=tuple(name.replace("_", " ") for name in frame),
        text=tuple(any(isinstance(value, str) for value in column) for column in columns),
        rows=tuple(tuple(_cell(value) for value in row) for row in zip(*columns, strict=True)),
        total=len(next(iter(frame.values()))),
    )


def _reading(frame: Frame) -> str:
    """How to read the columns of the table."""
    sentences = []
    if set(INTERVALS) <= set(frame):
        sentences.append(
            "Low and high bound each number separately, with 95% confidence, for the rows counted."
        )
    if "rank_error" in frame:
        sentences.append(
            "The rank of a value among the rows counted may be off by as many rows as rank error "
            "says, with 95% confidence."
        )
    if "known" in frame:
        sentences.append("Where known says no, the number beside it means nothing.")
    return " ".join(sentences)


def _cell(value: object) -> str:
    """Print one value of a table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "–"
    if isinstance(value, str):
        return style.plain(value, 80)
    if isinstance(value, int):
        return style.number(value)
    if isinstance(value, float):
        return f"{value:,.6g}".replace("-", "−")
    return str(value)


def _guarantee(release: Release) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The sentences of ``str(guarantee)``, grouped by their headings."""
    grouped: dict[str, list[str]] = {}
    for line in str(release.guarantee).splitlines():
        heading, _, sentence = line.partition(": ")
        grouped.setdefault(heading, []).append(sentence)
    return tuple((heading, tuple(sentences)) for heading, sentences in grouped.items())


def _receipt(release: Release) -> tuple[tuple[str, str], ...]:
    receipt = release.receipt
    if receipt is None:
        return ()
    rows = [
        ("Account", receipt.account),
        ("Charged", f"{receipt.charged}; this is answer {receipt.part}"),
        ("Time", moment(receipt.time)),
        ("Data", receipt.source),
        ("Key", receipt.key),
        ("Ledger entry", f"{receipt.entry}, hash {receipt.entry_hash}"),
        ("Digest", receipt.digest),
        ("Made by", f"Sfumato {receipt.version}"),
    ]
    if release.replayed:
        rows.append(("Answer", "the stored one, given before; nothing was spent for it again"))
    if origin := standing(release):
        rows.append(("Origin", origin))
    return tuple(rows)
