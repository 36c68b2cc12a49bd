"""What is audited: a module of subjects for each kind of mechanism, and questions' examples.

``QUESTIONS`` of a module are the kinds of questions that its subjects ask. A question that no
module asks is audited by its own ``examples``, so a new question needs nothing here.
"""

from collections.abc import Iterable
from itertools import chain

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
    persons,
    publishing,
    selections,
    tables,
)
from sfumato.audit.subjects.subject import Subject

__all__ = ["SUBJECTS", "Subject", "asked", "every"]

MODULES = (
    histograms,
    aggregates,
    tables,
    persons,
    partitions,
    selections,
    clusters,
    counters,
    devices,
    publishing,
)
SUBJECTS: tuple[Subject, ...] = tuple(
    subject for module in MODULES for subject in module.subjects()
)
"""The library's own subjects, in the order in which they are shown."""
WITH_QUESTIONS = (histograms, aggregates, tables, persons, partitions, selections, clusters)


def asked() -> frozenset[type[AnyQuestion]]:
    """The kinds of questions that the library's own subjects ask."""
    kinds: Iterable[tuple[type[AnyQuestion], ...]] = (module.QUESTIONS for module in WITH_QUESTIONS)
    return frozenset(chain.from_iterable(kinds))


def every() -> list[Subject]:
    """All subjects: the library's own, then the examples of questions that none of them asks."""
    others = [kind for kind in questions() if kind not in asked()]
    return [*SUBJECTS, *examples.subjects(others)]
