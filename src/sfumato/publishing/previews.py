"""What a question would cost and how accurate its answer would be, said without any data.

``PlanPreviews`` holds the previews of a plan's questions, with what was picked for the plan. The
end checks a table as questions would read it: that has no cost, and spends nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, overload

import msgspec

from sfumato.answers import AnyQuestion, Kind, Needs, Preview, Question, which_answers
from sfumato.basics import Deferred, DeferredClass, Exactly
from sfumato.domain import Axis, Domain, Keys
from sfumato.errors import UsageError, explained
from sfumato.privacy import (
    ZCDP,
    ApproxDP,
    CentralMeasure,
    CommonCost,
    Unit,
    asked_cost,
    common_cost,
)
from sfumato.publishing.divisions import Choice
from sfumato.publishing.plan import Plan, as_plan, check_rows, costs_of, plan_cost
from sfumato.publishing.plan_choice import choose
from sfumato.questions.histogram import Histogram
from sfumato.questions.histogram.keys import KeysPreview

if TYPE_CHECKING:
    from sfumato.data import Source
    from sfumato.data.losses import Check
    from sfumato.data.reader import Progress
    from sfumato.questions import tables
    from sfumato.questions.counters.question import Counter, CounterPreview
    from sfumato.questions.persons import Persons
else:
    Counter = DeferredClass("sfumato.questions.counters.question", "Counter")
    Persons = DeferredClass("sfumato.questions.persons", "Persons")
    tables = Deferred("sfumato.questions.tables")


class PlanPreviews(tuple[Preview, ...]):
    """One preview for each question, in the order of the plan.

    ``print`` shows them as people read them, what was picked for the plan first, and what all of
    them have in common once.

    Attributes
    ----------
    choice : Choice or None
        What was picked, and why; None: the plan is answered as it is stated.
    """

    choice: Choice | None

    def __new__(cls, previews: Iterable[Preview], choice: Choice | None = None) -> PlanPreviews:
        """Make them of previews in their order."""
        made = super().__new__(cls, previews)
        made.choice = choice
        return made

    def answers(self) -> list[str]:
        """Each preview as text; then what is true of several of them, once."""
        if len(self) < 2:
            return list(map(str, self))
        common = common_cost([preview.cost for preview in self])
        places_of_unit: dict[Unit, list[int]] = {}
        for at, preview in enumerate(self):
            places_of_unit.setdefault(preview.unit, []).append(at)
        texts: dict[int, str] = {}
        in_common = []
        for places in places_of_unit.values():
            shared = _shared_remarks([self[at] for at in places])
            texts |= {at: self._own(at, common, shared) for at in places}
            in_common.append(self._in_common(places, common, shared))
        number = "{}. " if len(in_common) > 1 else ""
        return [*(number.format(at + 1) + texts[at] for at in sorted(texts)), *in_common]

    def _own(self, at: int, common: CommonCost | None, shared: Sequence[str]) -> str:
        """Write what is true of one preview and not of all of its unit."""
        preview = self[at]
        cost = f" at {preview.cost}" if common is None else ""
        risks = [preview.risk] if common is None else []
        remarks = [remark for remark in preview.remarks() if remark not in shared]
        lines = [f"{preview.question}{cost}:", *preview.lines(), *risks, *remarks]
        return "\n  ".join(lines)

    def _in_common(
        self, places: Sequence[int], common: CommonCost | None, shared: Sequence[str]
    ) -> str:
        """Write what is true of all of these previews, which have one unit."""
        first = self[places[0]]
        is_singular = len(places) in (1, len(self))
        cost = ""
        risks: list[str] = []
        if common is not None:
            cost = f"{'has' if is_singular else 'have'} {common} and "
            risks = [msgspec.structs.replace(first, cost=common.cost).risk]
        protects = "protects" if is_singular else "protect"
        line = f"{which_answers(places, len(self))} {cost}{protects} {first.unit}:"
        return "\n  ".join([line, *risks, *shared])

    def __str__(self) -> str:
        said = [] if self.choice is None else [str(self.choice)]
        return "\n".join([*said, *self.answers()])

    def _repr_html_(self) -> str:
        """Show them in a notebook."""
        said = "" if self.choice is None else f"<p>{escape(str(self.choice))}</p>"
        return said + "".join(preview._repr_html_() for preview in self)


def _shared_remarks(previews: list[Preview]) -> list[str]:
    first, *others = [preview.remarks() for preview in previews]
    return [remark for remark in first if all(remark in other for other in others)]


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
    declared = domain if isinstance(domain, Domain) else Domain(domain)
    return previewed(question, declared, unit, rows, epsilon=epsilon, delta=delta, rho=rho)


def previewed(
    question: AnyQuestion | Counter | Plan | Sequence[AnyQuestion],
    domain: Domain,
    unit: Unit,
    rows: int | None,
    rule: str | None = None,
    *,
    epsilon: Exactly | None,
    delta: Exactly,
    rho: Exactly | None,
) -> Preview | PlanPreviews:
    """Preview whatever may be asked; ``rule`` is the measure of the account, if there is one."""
    check_rows(rows)
    if isinstance(question, Counter):
        return question.preview(
            domain, unit, asked_cost(epsilon=epsilon, delta=delta, rho=rho), rows
        )
    plan = as_plan(question)
    stated = plan_cost(plan, epsilon=epsilon, delta=delta, rho=rho)
    single = isinstance(question, Question)
    answers = previews(plan, domain, unit, stated, rows=rows, rule=rule, single=single)
    return answers[0] if single else answers


def previews(
    plan: Plan,
    domain: Domain,
    unit: Unit,
    stated: CentralMeasure | Kind,
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
    stated : measure or Kind
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
    choice = None if single else choose(plan, domain, unit, stated, rule)
    parts = costs_of(plan, stated, choice)
    # What cannot be counted, answered and stored is refused, too.
    plan.needs_at(domain, unit, parts)
    guess = rows if rows is not None else plan.guess
    pairs = zip(plan.questions, parts, strict=True)
    answers = [question.preview(domain, unit, part, guess) for question, part in pairs]
    if any(isinstance(question, Persons) for question in plan.questions):
        return PlanPreviews(answers, choice)
    # Nothing else of the plan tells what the limits leave out.
    advised = zip(plan.questions, answers, strict=True)
    return PlanPreviews((_advised(domain, *both) for both in advised), choice)


def _advised(domain: Domain, question: AnyQuestion, answer: Preview) -> Preview:
    """Return a preview that names the question to ask of the limits, where there are any."""
    if not answer.unit.limits_kept:
        return answer  # nothing is advised
    from sfumato.questions.persons import advice

    lattice = question.needs(domain).lattice
    said = advice(answer.unit, in_rho=isinstance(answer.cost, ZCDP), axes=lattice.names)
    return msgspec.structs.replace(answer, advice=said)


def needs_to_check(plan: Plan, domain: Domain, unit: Unit) -> list[tuple[str, Needs]]:
    """Return the title of each question of a plan, and what is counted for it.

    Raises
    ------
    UsageError
        If a question does not fit the domain, or a family does not keep limits by cell.
    """
    named = []
    for question in plan.settled(domain).questions:
        if isinstance(question, tables.Tables):
            # Which tables a limit on the norm weighs how much depends on the cost only where noise
            # is narrower than a row, so any cost will do.
            question.require_unit(unit)
            needs = question.needs_at(domain, unit, ZCDP("0.5"))
        else:
            needs = question.needs(domain)
        named.append((question.title, needs))
    return named


def checked(
    source: Source,
    questions: Sequence[tuple[str, Needs]] | None,
    progress: Progress | None = None,
    *,
    all_labels: bool = False,
) -> Check:
    """Check a table; where labels are not listed, say what it costs not to list them.

    Parameters
    ----------
    source : Source
    questions : sequence of pairs of str and Needs, or None
        From ``needs_to_check``; None: all axes of the domain together.
    progress : callable or None
    all_labels : bool
        Whether all labels that are not listed are named.
    """
    from sfumato.data.check import check

    losses = check(source, questions, progress, all_labels=all_labels)
    unlisted = dict.fromkeys(axis.name for axis in losses.axes if axis.labels)
    if not unlisted:
        return losses
    return msgspec.structs.replace(losses, offer=_offer_of_keys(list(unlisted), source.unit))


EXAMPLE_COST = ApproxDP("0.5", "1e-6")
CHANCE = 0.95


def _offer_of_keys(names: Sequence[str], unit: Unit) -> str:
    """Say what it costs to declare axes as keys, and how many rows a label then needs."""
    name = names[0]
    try:
        keys = Histogram(name).preview(Domain({name: Keys()}), unit, EXAMPLE_COST, None)
        assert isinstance(keys, KeysPreview)
        shown = f"a label held by {keys.selects.count_kept(CHANCE):,} rows is shown with "
        shown += f"probability at least {CHANCE:.0%}"
    except UsageError as refusal:
        shown = refusal.obstacle
    option = shlex.quote(f"{name}=*")
    return (
        f"If you cannot list the labels of {', '.join(names)} from public knowledge, declare "
        f'sf.Keys() (command line: --axis {option}; plan: type = "keys") and pay for them: for '
        f"example, at {EXAMPLE_COST}, {shown}."
    )
