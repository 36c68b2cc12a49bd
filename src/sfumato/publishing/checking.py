"""What a check counts of each question: it has no cost, and spends nothing."""

from __future__ import annotations

from sfumato.answers.counts import Needs
from sfumato.answers.question import AnyQuestion
from sfumato.domain.domain import Domain
from sfumato.privacy.measures import ZCDP
from sfumato.privacy.unit import Unit
from sfumato.publishing.plan import Plan
from sfumato.questions.tables import Tables

SUPPOSED = ZCDP("0.5")
"""The cost at which a family is checked under a limit on the norm.

Which tables the norm weighs how much depends on the cost only where noise is narrower than a row.
"""


def needs_to_check(plan: Plan, domain: Domain, unit: Unit) -> list[tuple[str, Needs]]:
    """The title of each question of a plan, and what is counted for it.

    Raises
    ------
    UsageError
        If a question does not fit the domain, or a family does not keep limits by cell.
    """
    questions = plan.settled(domain).questions
    return [(each.title, _needs(each, domain, unit)) for each in questions]


def _needs(question: AnyQuestion, domain: Domain, unit: Unit) -> Needs:
    if not isinstance(question, Tables):
        return question.needs(domain)
    question.require_unit(unit)
    return question.needs_at(domain, unit, SUPPOSED)
