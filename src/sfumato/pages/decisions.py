"""How epsilon was chosen, and what an audit saw: the sections of the page that are no answers about data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
from markupsafe import Markup

from sfumato.charts import style
from sfumato.choosing.windows import Window
from sfumato.numbers import rounded
from sfumato.privacy import belief
from sfumato.risk import Choice, Choices

Decision: TypeAlias = Choice | Choices | Window


@runtime_checkable
class Finding(Protocol):
    """One line of an audit, as ``sfumato.audit`` finds it."""

    columns: ClassVar[tuple[str, ...]]

    @property
    def failed(self) -> bool:
        """Whether more was seen to be spent than is claimed, or nothing could be judged."""

    @property
    def ok(self) -> bool:
        """Whether it did not fail, and would have been seen to fail."""

    def row(self) -> tuple[str, ...]:
        """As text, in the order of ``columns``."""


@dataclass(frozen=True)
class Study:
    """What the template shows of a choice or a window: a headline figure or two, the picture, sentences with what is under each."""

    anchor: str
    title: str
    charts: tuple[Markup, ...]
    figures: tuple[tuple[str, str], ...]
    sentences: tuple[tuple[str, tuple[str, ...]], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Audit:
    """The lines of an audit as a table."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    wrong: int
    blind: int


def study(item: Decision, anchor: str) -> Study:
    """Collect what the page shows of a choice or a window."""
    match item:
        case Choice():
            return _of_choices([item], anchor)
        case Choices():
            return _of_choices(item.values(), anchor)
        case Window():
            return _of_window(item, anchor)


def audit(findings: Sequence[Finding]) -> Audit | None:
    """Lay findings out; None, if there are none."""
    if not findings:
        return None
    wrong = sum(finding.failed for finding in findings)
    blind = sum(not finding.ok and not finding.failed for finding in findings)
    return Audit(findings[0].columns, tuple(finding.row() for finding in findings), wrong, blind)


def _of_choices(choices: Sequence[Choice], anchor: str) -> Study:
    title = "Epsilon for a disclosure risk" + (
        f": {choices[0].query}" if len({choice.query for choice in choices}) == 1 else ""
    )
    sentences = tuple(
        line
        for choice in choices
        for line in str(choice).splitlines()
        if not line.startswith("  Note:")
    )
    notes = tuple(dict.fromkeys(note for choice in choices for note in choice.caveats))
    figures = tuple((_level(choice.epsilon), _headline(choice)) for choice in choices[:6])
    told = " ".join(sentences)
    item = choices[0] if len(choices) == 1 else Choices(tuple(choices))
    return Study(
        anchor, title, _charts(item, title, told, anchor), figures, _grouped(sentences), notes
    )


def _headline(choice: Choice) -> str:
    """What stands under the number: what it is for, and whether it may be used."""
    what = f"largest epsilon for one {choice.query}" + (
        f" of {choice.column}" if choice.column else ""
    )
    if choice.epsilon > belief.LARGE:
        return f"{what}: not to be used, above {belief.LARGE} it protects hardly anyone"
    return f"{what}: a membership test then reaches an advantage of {choice.advantage:.3g}"


def _of_window(window: Window, anchor: str) -> Study:
    title = f"Which {window.kind.letter}? {window.plan.title}"
    sentences = tuple(window.explain().splitlines())
    figures = (
        (window.ends[0], f"floor: the least {window.kind.letter} that is accurate enough"),
        (window.ends[1], f"ceiling: the largest {window.kind.letter} that is safe enough"),
        ("open" if window.feasible else "empty", "the window between them"),
    )
    return Study(
        anchor,
        title,
        _charts(window, title, " ".join(sentences), anchor),
        figures,
        _grouped(sentences),
        (),
    )


def _grouped(lines: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Bring indented lines under the one before them."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for line in (line.replace("+-", "±") for line in lines):
        if line.startswith("  ") and found:
            found[-1] = found[-1][0], (*found[-1][1], line.strip())
        else:
            found.append((line.strip(), ()))
    return tuple(found)


def _level(epsilon: float) -> str:
    return "no limit" if math.isinf(epsilon) else rounded(epsilon, 4, up=False) if epsilon else "0"


def _charts(item: Decision, title: str, told: str, anchor: str) -> tuple[Markup, ...]:
    """The picture for a page, and the same for a phone."""
    made = []
    for width, name in ((style.WIDE, "wide"), (style.NARROW, "narrow")):
        with style.sized(width):
            drawn = item.plot()
        first = drawn.flat[0] if isinstance(drawn, np.ndarray) else drawn
        made.append(Markup(style.svg(style.figure_of(first), title, told, name=f"{anchor}-{name}")))
    return tuple(made)
