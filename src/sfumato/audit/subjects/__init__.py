"""What is audited: rooms of subjects, each made for its mechanism, and examples of other questions.

A room's ``QUESTIONS`` are the kinds of questions that its subjects ask. A question that no room
asks needs nothing here.
"""

from collections.abc import Iterable

from sfumato.answers.question import AnyQuestion
from sfumato.answers.registry import questions
from sfumato.audit.subjects import (
    aggregates,
    clusters,
    counters,
    devices,
    examples,
    histograms,
    partitions,
    publishing,
    selections,
)
from sfumato.audit.subjects.subject import Subject

__all__ = ["SUBJECTS", "Subject", "asked", "every"]

ROOMS = (histograms, aggregates, partitions, selections, clusters, counters, devices, publishing)
SUBJECTS: tuple[Subject, ...] = tuple(subject for room in ROOMS for subject in room.subjects())
"""Every subject of the rooms, in the order in which they are shown."""
ASKING = (histograms, aggregates, partitions, selections, clusters)


def asked() -> frozenset[type[AnyQuestion]]:
    """The kinds of questions that rooms ask."""
    kinds: Iterable[tuple[type[AnyQuestion], ...]] = (room.QUESTIONS for room in ASKING)
    return frozenset(kind for of_room in kinds for kind in of_room)


def every() -> list[Subject]:
    """All subjects: those of the rooms, then the examples of questions that no room asks."""
    others = [kind for kind in questions() if kind not in asked()]
    return [*SUBJECTS, *examples.subjects(others)]
