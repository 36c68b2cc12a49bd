"""Sections of a page that are not answers about data: how epsilon was chosen, and an audit.

A rehearsal of local clustering over epsilon and L is one of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from sfumato.basics import rounded
from sfumato.charts import style
from sfumato.local.table import COLUMNS, LocalTable
from sfumato.privacy import belief
from sfumato.questions.persons import Recommendation
from sfumato.reports.headings import Lines, Study, drawn
from sfumato.risk import Choice, Choices
from sfumato.risk.window import Window

Decision: TypeAlias = Choice | Choices | Window | Recommendation | LocalTable


def study(item: Decision, anchor: str) -> Study:
    """Collect what the page shows of a choice, a window or a recommended limit."""
    match item:
        case Choice():
            return _of_choices([item], anchor)
        case Choices():
            return _of_choices(item.values(), anchor)
        case Window():
            return _of_window(item, anchor)
        case Recommendation():
            return _of_recommendation(item, anchor)
        case LocalTable():
            return _of_local_table(item, anchor)


def _of_choices(choices: Sequence[Choice], anchor: str) -> Study:
    title = "Epsilon for a disclosure risk"
    if len({choice.query for choice in choices}) == 1:
        title += f": {choices[0].query}"
    lines = [line for choice in choices for line in str(choice).splitlines()]
    # Notes have a place of their own, where each is shown once.
    sentences = [line for line in lines if not line.startswith("  Note:")]
    notes = dict.fromkeys(note for choice in choices for note in choice.caveats)
    item = choices[0] if len(choices) == 1 else Choices(tuple(choices))
    figures = [(_level(choice.epsilon), _headline(choice)) for choice in choices[:6]]
    return _drawn_study(item, anchor, title, sentences, figures, tuple(notes))


def _headline(choice: Choice) -> str:
    what = f"largest epsilon for one {choice.query}"
    if choice.column:
        what += f" of {choice.column}"
    if choice.epsilon > belief.LARGE:
        return f"{what}: not to be used, above {belief.LARGE} it protects hardly anyone"
    return f"{what}: a membership test then reaches an advantage of {choice.advantage:.3g}"


def _of_window(window: Window, anchor: str) -> Study:
    headings = "; ".join(question.heading or question.title for question in window.plan.questions)
    title = f"Which {window.kind.letter}? {headings}"
    figures = (
        (window.ends[0], f"floor: the least {window.kind.letter} that is accurate enough"),
        (window.ends[1], f"ceiling: the largest {window.kind.letter} that is safe enough"),
        ("open" if window.feasible else "empty", "the window between them"),
    )
    return _drawn_study(window, anchor, title, window.explain().splitlines(), figures)


def _of_recommendation(advice: Recommendation, anchor: str) -> Study:
    title = f"Which limit on a person? {advice.question}"
    figures = [
        (f"{limit:,}", f"{name}, as sf.source takes it") for name, limit in advice.settings.items()
    ]
    figures.append((style.number(advice.error), f"mean error per number, in {advice.noun}"))
    return _drawn_study(advice, anchor, title, advice.explain().splitlines(), figures)


def _of_local_table(table: LocalTable, anchor: str) -> Study:
    title = "Local clustering, rehearsed over epsilon and L"
    figures = (
        (style.number(table.best), "sum of squares without privacy"),
        (style.number(table.even), "sum of squares of even centres, without data"),
    )
    return replace(
        _drawn_study(table, anchor, title, table.facts(), figures),
        columns=COLUMNS,
        rows=tuple(map(tuple, table.lines())),
        warning="these sums of squares were computed from true points. Do not publish them.",
    )


def _drawn_study(
    decision: Decision,
    anchor: str,
    title: str,
    lines: Sequence[str],
    figures: Sequence[tuple[str, str]],
    notes: tuple[str, ...] = (),
) -> Study:
    charts = drawn(decision.plot, title, " ".join(lines), anchor)
    return Study(anchor, title, charts, tuple(figures), _grouped(lines), notes)


def _grouped(lines: Sequence[str]) -> Lines:
    """Sentences, each with the indented lines that follow it."""
    sections: list[tuple[str, tuple[str, ...]]] = []
    for line in lines:
        text = line.strip().replace("+-", "±")
        if line.startswith("  ") and sections:
            sentence, items = sections[-1]
            sections[-1] = sentence, (*items, text)
        else:
            sections.append((text, ()))
    return tuple(sections)


def _level(epsilon: float) -> str:
    if math.isinf(epsilon):
        return "no limit"
    # Rounded down: a larger epsilon would exceed the risk.
    return rounded(epsilon, 4, up=False) if epsilon else "0"
