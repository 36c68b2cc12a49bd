"""Questions by their own examples, such as those of other packages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

from sfumato.answers.question import AnyQuestion
from sfumato.answers.registry import tag_of
from sfumato.audit.bounded import bounded_loss
from sfumato.audit.subjects.subject import COSTS, LINE, UNITS, Subject, of
from sfumato.errors import UsageError
from sfumato.privacy.measures import ApproxDP, CentralMeasure
from sfumato.privacy.unit import Unit

PROMISES = tuple(product((UNITS[0], UNITS[3]), COSTS))
"""One row of a person, added or removed, or two, replaced; for epsilon and for rho."""


def subjects(kinds: Iterable[type[AnyQuestion]]) -> Iterator[Subject]:
    """The examples of these kinds of questions, at every promise that they accept."""
    for kind in kinds:
        for question, (unit, cost) in product(kind.examples, PROMISES):
            if _answers(question, unit, cost):
                yield of_example(question, unit, cost)


def of_example(question: AnyQuestion, unit: Unit, cost: CentralMeasure) -> Subject:
    """A question over ``LINE`` as a subject.

    If its numbers do not follow its noise one for one, it is judged by its outputs alone.
    """
    name = f"{tag_of(type(question))}: {question.title}"
    # At a delta, noise with a bound has an exact audit; other noise is judged by its outputs.
    exact = bounded_loss if isinstance(cost, ApproxDP) else None
    return replace(of(name, question, unit, cost), may_be_sampled=True, exact=exact)


def _answers(question: AnyQuestion, unit: Unit, cost: CentralMeasure) -> bool:
    """Whether a question can be asked at this cost, by its preview, which reads no data."""
    try:
        question.preview(LINE, unit, cost)
    except UsageError:
        return False
    return True
