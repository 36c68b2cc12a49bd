"""What a question would cost and how accurate its answer would be, said without any data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import overload

from sfumato.answers.preview import Preview
from sfumato.answers.question import AnyQuestion, Question
from sfumato.basics.numbers import Exactly
from sfumato.domain.domain import Axis, Domain
from sfumato.errors import UsageError, explained
from sfumato.privacy.measures import asked_cost
from sfumato.privacy.unit import Unit
from sfumato.publishing.plan import Plan, as_plan
from sfumato.publishing.plan_choice import PlanCost, chosen, plan_cost
from sfumato.publishing.plan_options import check_rows
from sfumato.publishing.plan_preview import PlanPreviews
from sfumato.questions.counters.question import Counter, CounterPreview


@overload
def preview(
    question: AnyQuestion,
    *,
    domain: Domain | Mapping[str, Axis],
    unit: Unit,
    epsilon: Exactly | None = None,
    delta: Exactly = 0,
    rho: Exactly | None = None,
    rows: int | None = None,
) -> Preview: ...
@overload
def preview(
    question: Counter,
    *,
    domain: Domain | Mapping[str, Axis],
    unit: Unit,
    epsilon: Exactly | None = None,
    delta: Exactly = 0,
    rho: Exactly | None = None,
    rows: int | None = None,
) -> CounterPreview: ...
@overload
def preview(
    question: Plan | Sequence[AnyQuestion],
    *,
    domain: Domain | Mapping[str, Axis],
    unit: Unit,
    epsilon: Exactly | None = None,
    delta: Exactly = 0,
    rho: Exactly | None = None,
    rows: int | None = None,
) -> PlanPreviews: ...
@explained
def preview(
    question: AnyQuestion | Counter | Plan | Sequence[AnyQuestion],
    *,
    domain: Domain | Mapping[str, Axis],
    unit: Unit,
    epsilon: Exactly | None = None,
    delta: Exactly = 0,
    rho: Exactly | None = None,
    rows: int | None = None,
) -> Preview | PlanPreviews:
    """What would this cost, and how accurate would it be? Touches no data, spends nothing.

    Parameters
    ----------
    question : question, list of questions, or Plan
    domain : Domain
    unit : Unit
        What one person can change: that of the source, ``source.unit``.
    epsilon, delta, rho : number or text
        Give epsilon (with delta) or rho. A plan that says how accurate each answer must be may
        leave both out.
    rows : int or None
        Your own public guess of the number of rows, from 0 to 10^15, for accuracies that depend on
        it.

    Returns
    -------
    Preview, or a tuple of them for a list or a plan. The tuple's ``choice`` says what was picked
    for the plan and why; it is None if the plan is answered as it is stated.

    Raises
    ------
    UsageError
        If the question does not fit the domain or the cost.

    >>> from sfumato.domain.domain import Interval
    >>> from sfumato.questions.histogram import Histogram
    >>> ages = Domain(age=Interval(0, 100))
    >>> preview(Histogram("age", bins=10), domain=ages, unit=Unit(), epsilon="0.5").accuracy()
    6
    """
    if not isinstance(unit, Unit):
        raise UsageError(
            f"unit = {type(unit).__name__}",
            "it is not a unit of privacy",
            "Write unit=source.unit, or sf.Unit(rows_per_person=4)",
        )
    check_rows(rows)
    declared = domain if isinstance(domain, Domain) else Domain(domain)
    if isinstance(question, Counter):
        cost = asked_cost(epsilon=epsilon, delta=delta, rho=rho)
        return question.preview(declared, unit, cost, rows)
    plan = as_plan(question)
    stated = plan_cost(plan, epsilon=epsilon, delta=delta, rho=rho)
    single = isinstance(question, Question)
    found = previews(plan, declared, unit, stated, rows=rows, single=single)
    return found[0] if single else found


def previews(
    plan: Plan,
    domain: Domain,
    unit: Unit,
    stated: PlanCost,
    *,
    rows: int | None = None,
    rule: str | None = None,
    single: bool = False,
) -> PlanPreviews:
    """What the questions of a plan would cost, and how accurate their answers would be.

    Parameters
    ----------
    plan : Plan
    domain : Domain
    unit : Unit
    stated : PlanCost
    rows : int or None
    rule : {"pure", "approx", "zcdp"} or None
        The measure of the account; None: any one.
    single : bool
        Whether one question was asked, and no plan.
    """
    plan = plan.settled(domain)
    # What does not fit is refused here, as a release would refuse it.
    plan.require_unit(unit)
    plan.needs(domain)
    choice = None if single else chosen(plan, domain, unit, stated, rule=rule)
    parts = stated.parts(plan) if choice is None else list(choice.costs)
    # What cannot be counted, answered and stored is refused, too.
    plan.needs_at(domain, unit, parts)
    guess = rows if rows is not None else plan.guess
    asked = zip(plan.questions, parts, strict=True)
    return PlanPreviews((each.preview(domain, unit, part, guess) for each, part in asked), choice)
