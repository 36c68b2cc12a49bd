"""One release as a section of the page: picture, accuracy, table.

Everything is computed from what ``Release`` declares. What a kind of release does not have, such as
a picture, is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from sfumato.answers.estimate import reach_text
from sfumato.answers.frames import without_edges
from sfumato.answers.release import CountsRelease, Release, accuracy_sentence
from sfumato.basics.numbers import Array
from sfumato.basics.text import cell
from sfumato.charts import style
from sfumato.pages.families import FamilyTable, family_accuracy, family_tables
from sfumato.pages.headings import heading_of
from sfumato.pages.studies import drawn
from sfumato.pages.tables import INTERVALS, Sheet, sheet

TAIL = ("count", *INTERVALS)


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
    accuracy: Accuracy | None
    table: Sheet | None
    family: tuple[FamilyTable, ...] = ()

    @property
    def is_map(self) -> bool:
        """Whether the picture is a map that can be enlarged."""
        return any('<g class="map" data-extent="' in chart for chart in self.charts)


def section(release: Release, anchor: str) -> Section:
    """Collect what the page shows of a release."""
    named = release.for_people()
    accuracy = _accuracy(named)
    facts = _facts(named)
    title = heading_of(release)
    family = family_tables(named)
    description = " ".join([*facts, accuracy.sentence if accuracy else ""]).strip()
    return Section(
        anchor=anchor,
        title=title,
        private=release.guarantee.private,
        measure=str(release.guarantee.measure),
        charts=_charts(release, title, description or title, anchor),
        facts=facts,
        accuracy=accuracy,
        table=None if family else sheet(named),
        family=family,
    )


def _charts(release: Release, title: str, description: str, anchor: str) -> tuple[Markup, ...]:
    """The picture for a page, and the same for a phone; none if the release cannot be drawn."""
    if not release.has_picture:
        return ()
    return drawn(release.plot, title, description, anchor)


def _accuracy(release: Release) -> Accuracy | None:
    sentence = family_accuracy(release) or accuracy_sentence(release)
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


def _facts(release: Release) -> tuple[str, ...]:
    """What a release says in sentences; else, of counts, the largest and how many are not 0.

    How many are not 0 is said twice: of each judged alone, which the front page says too, and of
    all at once.

    The intervals are those that hold for all counts at once, because the largest count was picked
    after looking at all.
    """
    if release.facts:
        return release.facts
    counts = np.asarray(release.values).reshape(-1)
    if not isinstance(release, CountsRelease) or not release.has_table or not counts.size:
        return ()
    frame = without_edges(release.to_frame())
    if not set(TAIL) <= set(frame.column_names):
        return ()
    low, high = (np.asarray(end).reshape(-1) for end in release.interval("0.95", True))
    told = low > 0
    top = int(np.argmax(counts))
    which = "the largest noisy count"
    if told.any() and not told[top]:
        # Where some counts have far more noise than others, the largest may be noise alone.
        top = int(np.argmax(np.where(told, counts, -np.inf)))
        which = "the largest noisy count that can be told from 0"
    axes = {name: frame[name][top].as_py() for name in frame.column_names if name not in TAIL}
    alone, _ = release.interval("0.95")
    by_themselves = int((np.asarray(alone) > 0).sum())
    largest = (
        f"Of {release.guarantee.unit.counted}, "
        f"{which} is {style.number(counts[top])} "
        f"(between {_number(low[top])} and {_number(high[top])}) with 95% confidence, "
        f"at {_cell_name(release, axes)}."
    )
    shown = (
        f"{by_themselves:,} of {counts.size:,} counts stand out from the noise, each judged alone; "
        f"judged all at once, {int(told.sum()):,}."
    )
    return (largest, shown) if counts.size > 1 else (largest,)


def _cell_name(release: Release, values: dict[str, object]) -> str:
    """Name a cell: labels as they are, and columns NAME_lower and NAME_upper as one range."""
    parts = []
    shown = {name: cell(value, release.kind_of_column(name)) for name, value in values.items()}
    for column, text in shown.items():
        name, _, end = column.rpartition("_")
        if end == "upper" and f"{name}_lower" in values:
            # It was named together with its lower end.
            continue
        if end == "lower" and f"{name}_upper" in values:
            parts.append(f"{name} {text} to {shown[f'{name}_upper']}")
        else:
            parts.append(f"{column} {text}")
    return ", ".join(parts)
