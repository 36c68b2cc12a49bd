"""Several questions fixed before any answer is seen."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import msgspec

from sfumato.answers.counts import Needs
from sfumato.answers.question import AnyQuestion, Question
from sfumato.cube import DENSE_LIMIT
from sfumato.domain import Domain
from sfumato.errors import UsageError
from sfumato.explained_struct import ExplainedStruct
from sfumato.limits import require_plan
from sfumato.numbers import GivenNumbers, fraction, positive
from sfumato.privacy.allocation import share
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Unit


class Plan(ExplainedStruct, frozen=True, forbid_unknown_fields=True):
    """Ask several questions together, for one charge. They are fixed before any answer is seen.

    Give it to ``Publisher.release`` or ``sf.preview`` in place of a question.

    Parameters
    ----------
    questions : sequence of questions
        At least one.
    shares : sequence of numbers or None
        How the cost is divided: one positive number for each question. The part of each is
        proportional to its number. None: all parts are equal.

    Raises
    ------
    UsageError
        If there is no question, or there are not as many shares as questions, or a share is not
        positive.

    Guarantee: the parts add up to the cost exactly, in the units of the budget (1e-9 of epsilon,
    1e-18 of delta, 1e-12 of rho).

    >>> from sfumato.histogram import Histogram
    >>> from sfumato.privacy.measures import PureDP
    >>> plan = Plan([Histogram("age"), Histogram("hour")], shares=[1, 3])
    >>> [str(cost) for cost in plan.costs(PureDP("1"))]
    ['epsilon = 0.25', 'epsilon = 0.75']
    """

    questions: Sequence[AnyQuestion]
    shares: GivenNumbers | None = None

    def __post_init__(self) -> None:
        # A msgspec Struct checks types only where it decodes; here a user gives the fields.
        msgspec.structs.force_setattr(self, "questions", _checked_questions(self.questions))
        if self.shares is not None:
            shares = _checked_shares(self.shares, len(self.questions))
            msgspec.structs.force_setattr(self, "shares", shares)

    def costs(self, cost: CentralMeasure) -> list[CentralMeasure]:
        """What each question may spend; together, exactly the cost."""
        return share(cost, self.weights)

    @property
    def weights(self) -> list[Fraction]:
        """The part of the cost of each question is proportional to its weight."""
        if self.shares is None:
            return [Fraction(1)] * len(self.questions)
        return [fraction(part, "a share") for part in self.shares]

    def needs(self, domain: Domain) -> list[Needs]:
        """What each question needs counted.

        Raises
        ------
        UsageError
            If the questions together could not be counted, answered and stored. This is found
            before the charge, which would be lost.
        """
        return self._countable([question.needs(domain) for question in self.questions])

    def needs_at(self, domain: Domain, unit: Unit, costs: Sequence[CentralMeasure]) -> list[Needs]:
        """What each question needs counted to be answered at its cost.

        Raises
        ------
        UsageError
            As ``needs``.
        """
        asked = zip(self.questions, costs, strict=True)
        return self._countable([each.needs_at(domain, unit, cost) for each, cost in asked])

    def _countable(self, needs: list[Needs]) -> list[Needs]:
        """Refuse what could not be counted, answered and stored together."""
        numbers = sum(each.numbers for each in needs)
        # Equal needs share one cube. Above the limit, a cube holds only the cells with rows.
        distinct = {msgspec.structs.replace(each, numbers=0) for each in needs}
        dense = [each for each in distinct if each.lattice.size <= DENSE_LIMIT]
        counted = sum(each.lattice.size * (1 + each.n_sums) for each in dense)
        require_plan(f"a plan of {len(self.questions)} questions", numbers, counted)
        return needs

    def require_unit(self, unit: Unit) -> None:
        """Refuse limits by cell that one of the questions could not keep."""
        for question in self.questions:
            question.require_unit(unit)

    @property
    def title(self) -> str:
        """The questions in a few words."""
        return "; ".join(question.title for question in self.questions)


def as_plan(question: AnyQuestion | Plan | Sequence[AnyQuestion]) -> Plan:
    """Read what a publisher was asked: a question, a list of them, or a plan."""
    if isinstance(question, Plan):
        return question
    return Plan((question,) if isinstance(question, Question) else question)


def _checked_questions(questions: object) -> tuple[AnyQuestion, ...]:
    if not isinstance(questions, Question | Sequence) or isinstance(questions, str):
        raise _no_question(questions, "it is neither a question nor a list of questions")
    found = (questions,) if isinstance(questions, Question) else tuple(questions)
    for question in found:
        if not isinstance(question, Question):
            raise _no_question(question, "it is not a question")
    if not found:
        raise UsageError("a plan", "it holds no question", "Add at least one")
    return found


def _no_question(given: object, obstacle: str) -> UsageError:
    """The error of what was given in place of a question."""
    if isinstance(given, type) and issubclass(given, Question):
        asked = f"asking {given.__name__}"
        return UsageError(asked, "it is a class of questions", f'Write sf.{given.__name__}("age")')
    asked = f"asking a value of type {type(given).__name__}"
    if isinstance(given, str):
        return UsageError(
            asked, "a question is an object, and not text", 'Write sf.Histogram("age")'
        )
    return UsageError(asked, obstacle, 'Write sf.Histogram("age") or another question')


def _checked_shares(shares: object, number: int) -> GivenNumbers:
    if not isinstance(shares, Sequence) or isinstance(shares, str):
        raise UsageError(
            f"shares of type {type(shares).__name__}",
            "shares are a list of numbers",
            "Write shares=[2, 1]",
        )
    found = tuple(positive(part, "a share") for part in shares)
    if len(found) != number:
        raise UsageError(
            f"{len(found)} shares for {number} questions",
            "each question needs one share",
            "Give as many shares as questions",
        )
    return found
