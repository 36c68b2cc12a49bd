"""What a question would cost and how accurate its answer would be, said without any data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import overload

from sfumato.answers.preview import Preview
from sfumato.answers.question import AnyQuestion, Question
from sfumato.counters.question import Counter, CounterPreview
from sfumato.domain import Axis, Domain
from sfumato.errors import UsageError, explained
from sfumato.numbers import Exactly
from sfumato.privacy.measures import asked_cost
from sfumato.privacy.unit import Unit
from sfumato.publishing.plan import Plan, as_plan

MOST_ROWS = 10**15


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
) -> tuple[Preview, ...]: ...
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
) -> Preview | tuple[Preview, ...]:
    """What would this cost, and how accurate would it be? Touches no data, spends nothing.

    Parameters
    ----------
    question : question, list of questions, or Plan
    domain : Domain
    unit : Unit
        What one person can change: that of the source, ``source.unit``.
    epsilon, delta, rho : number or text
        Give epsilon (with delta) or rho.
    rows : int or None
        Your own public guess of the number of rows, from 0 to 10^15, for accuracies that depend on
        it.

    Returns
    -------
    Preview, or a tuple of them for a list or a plan.

    Raises
    ------
    UsageError
        If the question does not fit the domain or the cost.

    >>> from sfumato.domain import Interval
    >>> from sfumato.histogram import Histogram
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
    _check_rows(rows)
    declared = domain if isinstance(domain, Domain) else Domain(domain)
    cost = asked_cost(epsilon=epsilon, delta=delta, rho=rho)
    if isinstance(question, Counter):
        return question.preview(declared, unit, cost, rows)
    plan = as_plan(question)
    parts = plan.costs(cost)
    # What cannot be counted, answered and stored is refused here, as a release would refuse it.
    plan.require_unit(unit)
    plan.needs_at(declared, unit, parts)
    found = tuple(
        each.preview(declared, unit, part, rows)
        for each, part in zip(plan.questions, parts, strict=True)
    )
    return found[0] if isinstance(question, Question) else found


def _check_rows(rows: object) -> None:
    if rows is None:
        return
    if isinstance(rows, int) and not isinstance(rows, bool) and 0 <= rows <= MOST_ROWS:
        return
    raise UsageError(
        "rows",
        "your guess of the number of rows is a whole number from 0 to 10^15",
        "Write rows=100_000",
    )
