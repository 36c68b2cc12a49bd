"""One release as a section of the page: picture, accuracy, table, guarantee, receipt.

Everything is computed from what the release holds, by what ``Release`` declares; what a kind of release does not have is left out.
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
    """The first rows of the numbers; ``text`` says of each column whether it is text."""

    columns: tuple[str, ...]
    text: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int


@dataclass(frozen=True)
class Accuracy:
    """Half-widths as text, and the sentence that holds them."""

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
    accuracy, frame = _accuracy(release), _frame(release)
    facts = _facts(release, frame)
    counted = release.guarantee.counted
    told = " ".join([*facts, accuracy.sentence if accuracy else "", counted]).strip()
    return Section(
        anchor=anchor,
        title=release.title,
        private=release.guarantee.private,
        measure=str(release.guarantee.measure),
        charts=_charts(release, told or release.title, anchor),
        facts=facts,
        counted=counted,
        accuracy=accuracy,
        table=_table(frame),
        reading=_reading(frame),
        guarantee=_guarantee(release),
        not_covered=release.guarantee.proof.not_covered,
        receipt=_receipt(release),
    )


def _charts(release: Release, told: str, anchor: str) -> tuple[Markup, ...]:
    """The picture for a page, and the same for a phone; none where the release cannot be drawn."""
    if not release.has_picture:
        return ()
    made = []
    for width, name in ((style.WIDE, "wide"), (style.NARROW, "narrow")):
        with style.sized(width):
            ax = release.plot()
        made.append(
            Markup(style.svg(style.figure_of(ax), release.title, told, name=f"{anchor}-{name}"))
        )
    return tuple(made)


def _accuracy(release: Release) -> Accuracy | None:
    sentence = accuracy_sentence(release)
    if sentence is None:
        return None
    each, every = (
        np.asarray(release.accuracy("0.95", simultaneous), float) for simultaneous in (False, True)
    )
    return Accuracy(
        _typeset(sentence),
        _reach(each),
        _reach(every) if each.size > 1 else None,
        each.size,
        release.noun,
    )


def _reach(half: Array) -> str:
    """One half-width, or from the smallest to the largest."""
    return _typeset(reach_text(half))


def _typeset(text: str) -> str:
    return text.replace("+-", "±")


def _number(value: float) -> str:
    return style.number(math.ceil(value) if abs(value) >= 100 else value)


def _frame(release: Release) -> Frame:
    """The numbers by column; times are cut to seconds by Arrow's own printing. Bins stand by their names, without their edges."""
    if not release.has_table:
        return {}
    table = release.to_frame()
    ends = {f"{name}{end}" for name in table.column_names for end in ("_lower", "_upper")}
    return {name: table[name] for name in table.column_names if name not in ends}


def _facts(release: Release, frame: Frame) -> tuple[str, ...]:
    """The largest count, with an interval that survives having been picked, and how many counts show anything at all."""
    counts = np.asarray(release.values).reshape(-1)
    if not isinstance(release, CountsRelease) or not set(TAIL) <= set(frame) or not counts.size:
        return ()
    low, high = (np.asarray(end).reshape(-1) for end in release.interval("0.95", True))
    top = int(np.argmax(counts))
    where = _place(
        {name: column[top].as_py() for name, column in frame.items() if name not in TAIL}
    )
    seen = int((low > 0).sum())
    between = f"(between {_number(low[top])} and {_number(high[top])}) with 95% confidence"
    largest = f"Of {release.guarantee.unit.counted}, the largest noisy count is {style.number(counts[top])} {between}, at {where}."
    shown = f"{seen:,} of {counts.size:,} counts can be told from 0, judged all at once."
    return (largest, shown) if counts.size > 1 else (largest,)


def _place(cells: dict[str, object]) -> str:
    """Name a cell: labels as they are, bounds as a range."""
    parts = []
    for name, value in cells.items():
        if name.endswith("_upper") and f"{name[:-6]}_lower" in cells:
            continue
        if name.endswith("_lower") and f"{name[:-6]}_upper" in cells:
            parts.append(f"{name[:-6]} {_cell(value)} to {_cell(cells[f'{name[:-6]}_upper'])}")
        else:
            parts.append(f"{name} {_cell(value)}")
    return ", ".join(parts)


def _table(frame: Frame) -> Table | None:
    if not frame:
        return None
    columns = [column[:MOST_ROWS].to_pylist() for column in frame.values()]
    text = tuple(any(isinstance(value, str) for value in column) for column in columns)
    rows = tuple(tuple(_cell(value) for value in row) for row in zip(*columns, strict=True))
    return Table(
        tuple(name.replace("_", " ") for name in frame), text, rows, len(next(iter(frame.values())))
    )


def _reading(frame: Frame) -> str:
    """How the columns of the table are to be read."""
    said = []
    if set(INTERVALS) <= set(frame):
        said.append(
            "Low and high bound each number on its own, with 95% confidence, of the rows counted."
        )
    if "rank_error" in frame:
        said.append(
            "By rank error rows the rank of a value may be off, with 95% confidence, among the rows counted."
        )
    if "known" in frame:
        said.append("Where known says no, the number beside it says nothing.")
    return " ".join(said)


def _cell(value: object) -> str:
    """Print one value of a table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or isinstance(value, str):
        return style.plain(value, 80)
    if isinstance(value, int):
        return style.number(value)
    if isinstance(value, float):
        return f"{value:,.6g}".replace("-", "−")
    return str(value)


def _guarantee(release: Release) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The sentences of ``str(guarantee)``, by their headings; what is not covered stands apart."""
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
