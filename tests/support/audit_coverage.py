"""What the audit's subjects reach, by names for a reader: questions, options, limits and laws."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from sfumato.answers.registry import questions, tag_of
from sfumato.audit.runs import Rows, Scripted, Selecting
from sfumato.audit.subjects import Subject
from sfumato.basics.numbers import Array
from sfumato.domain.lattice import KeyAxis
from sfumato.mechanisms.noise import Drawn, Selection
from sfumato.privacy.measures import ApproxDP, CentralMeasure, PureDP
from sfumato.privacy.unit import Unit
from sfumato.random import PublicSeed
from sfumato.random.bits import Words

ORDINARY = {"method": "auto", "noise": None, "count": "rows", "per": "row", "of": "rows"}
"""Options whose value names another mechanism, with the value that goes without saying."""
GIVEN = ("by", "records", "rows", "theta", "partitions", "stop_below", "workload")
"""Options that change the mechanism by being given."""


class Recorder(Scripted):
    """Hands out real draws, from public bits, and keeps the names of the laws that were asked."""

    def __init__(self) -> None:
        super().__init__()
        self.bits = PublicSeed("laws")
        self.names: set[str] = set()

    def words(self, count: int) -> Words:  # type: ignore[override]
        return self.bits.words(count)

    def draw(self, law: Drawn, size: int) -> Array:
        drawn = law.sample(size, self.bits)
        self.names.add(type(law).__name__)
        self.laws += [law] * size
        self.values += drawn.tolist()
        return drawn

    def choose(self, selection: Selection) -> Array:
        """The lowest edges: which ones are chosen decides no law."""
        self.names.add("choice of several edges" if selection.size > 1 else "choice of an edge")
        lowest = np.arange(selection.size) * int(selection.distinct)
        return np.asarray(selection.first + lowest)


@contextmanager
def answers_recorded() -> Iterator[list[tuple[Any, Any, Unit]]]:
    """Which questions are answered meanwhile, from which counts and for which unit."""
    seen: list[tuple[Any, Any, Unit]] = []
    with pytest.MonkeyPatch.context() as patch:
        for kind in questions():
            patch.setattr(kind, "answer", _recording(kind.answer, seen))
        yield seen


def _recording(answer: Any, seen: list[tuple[Any, Any, Unit]]) -> Any:
    def recorded(self: Any, counts: Any, unit: Unit, *more: Any) -> Any:
        seen.append((self, counts, unit))
        return answer(self, counts, unit, *more)

    return recorded


def described(question: Any, counts: Any) -> str:
    """A question's kind, and those of its options that name a mechanism."""
    words = [tag_of(type(question))]
    if any(isinstance(axis, KeyAxis) for axis in counts.lattice.axes):
        beside = len(counts.lattice.axes) > 1
        words.append(f"of keys{' beside an axis' if beside else ''}, {question.selection}")
        words += ["selected in parts"] if isinstance(counts, Selecting) else []
    for option, ordinary in ORDINARY.items():
        value = getattr(question, option, ordinary)
        words += [] if value == ordinary else [f"{option}={value}"]
    words += [option for option in GIVEN if getattr(question, option, None) not in (None, ())]
    words += ["chosen clip"] if getattr(question, "clip", None) == "auto" else []
    return " ".join(words)


def _limited(unit: Unit) -> str:
    if not unit.by_cell:
        return ""
    limits = unit.limits
    given = [name for name in limits.__struct_fields__ if getattr(limits, name) is not None]
    return f" within {' and '.join(given)}"


def cost_of(claim: CentralMeasure) -> str:
    """The kind of a cost."""
    if isinstance(claim, ApproxDP):
        return "delta"
    return "epsilon" if isinstance(claim, PureDP) else "rho"


def reached(subjects: Iterable[Subject]) -> dict[str, set[str]]:
    """What is asked, within which limits, and at which promises and by which laws it is audited."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for subject in subjects:
        recorders = []
        with answers_recorded() as seen:
            for rows in _data(subject):
                recorders.append(Recorder())
                subject.mechanism(rows, recorders[-1])
        laws = {law for recorder in recorders for law in recorder.names}
        promise = f"{cost_of(subject.claim)} {subject.unit.neighbours}"
        names = {described(q, counts) + _limited(unit) for q, counts, unit in seen}
        for name in names or {subject.name.split(": ")[-1]}:
            found[name] |= {promise, *laws}
    return dict(found)


def _data(subject: Subject) -> list[Rows]:
    """A few of the data sets that a subject is audited on, the largest among them."""
    if subject.pairs:
        every = sorted({rows for pair in subject.pairs for rows in pair}, key=len)
        return [every[0], every[-1]]
    return [(), subject.universe, *([3 * subject.universe] if subject.universe else [])]
