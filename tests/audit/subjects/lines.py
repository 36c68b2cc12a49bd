"""Subjects about one axis, whose published numbers move one for one with their draws."""

from __future__ import annotations

from sfumato.answers import AnyQuestion
from sfumato.audit.runs import Mechanism, of_question
from sfumato.audit.subjects.subject import LINE, ON_LINE, Subject, less_noise
from sfumato.privacy import CentralMeasure, Unit


def of(name: str, question: AnyQuestion, unit: Unit, cost: CentralMeasure) -> Subject:
    """A question over ``LINE``."""

    def spending(times: int) -> Mechanism:
        return of_question(question, LINE, unit, less_noise(cost, times))

    return Subject(name, unit, cost, spending(1), ON_LINE, weaker=spending)
