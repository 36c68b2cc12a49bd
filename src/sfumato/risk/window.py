"""The window: from the least cost that is accurate enough to the largest that is safe enough.

The floor is found by previews alone: each question states how accurate it would be at a cost. The
ceiling follows from the guarantee. So it holds for every question, and for all of them together,
whatever noise they add.

In the order of the code: the window itself (``Window``); the least cost of several questions, and
the shares that make each accurate enough (``with_shares``); sentences that can be quoted, which say
what to relax, and by how much, where the window is empty; and how it is found (``window``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec

from sfumato.answers import (
    AccuracyRequest,
    AnyQuestion,
    Kind,
    Within,
    drawn,
    kind_of,
    least,
    least_alone,
)
from sfumato.basics import Exactly, ExplainedStruct, card, decimal, facts, line, rounded
from sfumato.domain import Axis, Domain
from sfumato.errors import SfumatoError, UsageError, explained, explained_methods
from sfumato.privacy import CentralMeasure, Unit, belief
from sfumato.publishing.plan import Plan, as_plan
from sfumato.risk import Choice, Choices, Risk, Worlds

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# --- facts ----------------------------------------------------------------------------------------


class WindowPart(msgspec.Struct, frozen=True):
    """One question of a window.

    Attributes
    ----------
    question : str
    cells : int or None
        How many numbers it releases, at the floor.
    accuracy : Within
        What is requested.
    floor : PureDP, ApproxDP or ZCDP
        What it needs for that: its share of the plan's floor.
    at_ceiling, each_at_ceiling : float or None
        The half-width at the ceiling: as requested, and number by number. None: the question
        refuses that cost.
    half_widths : tuple of float or None
        Along ``Window.costs``.
    """

    question: str
    cells: int | None
    accuracy: Within
    floor: CentralMeasure
    at_ceiling: float | None
    each_at_ceiling: float | None
    half_widths: tuple[float | None, ...]


@explained_methods
class Window(ExplainedStruct, frozen=True, tag="window"):
    """The costs that are accurate enough and safe enough.

    It is computed from public things only, and spends nothing.

    Attributes
    ----------
    plan : Plan
        The questions, with shares that give each what it needs: publish it at any cost within the
        window.
    parts : tuple of WindowPart
        One a question.
    unit : Unit
    risk : Risk
    worlds : Worlds, int or None
        For a disclosure risk.
    floor_cost : PureDP, ApproxDP or ZCDP
        The least cost at which every question is as accurate as requested; one unit less is not.
    ceiling_cost : PureDP, ApproxDP or ZCDP
        The largest cost within the risk.
    risk_at_floor : float
        What the risk is at the floor, in its own terms.
    costs, risks : tuples of float
        The risk along costs, for the picture.

    >>> import sfumato as sf
    >>> domain = sf.Domain(age=sf.Interval(0, 100))
    >>> within, risk = sf.Within(20), sf.Risk(advantage="0.1")
    >>> question = sf.Histogram("age", bins=4)
    >>> window = sf.window(question, domain=domain, unit=sf.Unit(), accuracy=within, risk=risk)
    >>> window.feasible, window.floor, window.ceiling
    (True, 0.146003416, 0.200670695)
    """

    plan: Plan
    parts: tuple[WindowPart, ...]
    unit: Unit
    risk: Risk
    worlds: Worlds | int | None
    floor_cost: CentralMeasure
    ceiling_cost: CentralMeasure
    risk_at_floor: float
    costs: tuple[float, ...]
    risks: tuple[float, ...]

    @property
    def kind(self) -> Kind:
        """The measure in which costs are counted."""
        return kind_of(self.floor_cost)

    @property
    def floor(self) -> float:
        """The least epsilon, or rho, that is accurate enough; its shortest decimal is exact."""
        return float(self.kind.level(self.floor_cost))

    @property
    def ceiling(self) -> float:
        """The largest epsilon, or rho, that is safe enough."""
        return float(self.kind.level(self.ceiling_cost))

    @property
    def ends(self) -> tuple[str, str]:
        """Floor and ceiling in four digits, rounded up and down: what is quoted is inside too."""
        floor, ceiling = map(self.kind.level, (self.floor_cost, self.ceiling_cost))
        return rounded(floor, 4, up=True), rounded(ceiling, 4, up=False)

    @property
    def feasible(self) -> bool:
        """Whether some cost is accurate enough and safe enough."""
        return self.kind.level(self.floor_cost) <= self.kind.level(self.ceiling_cost)

    def explain(self) -> str:
        """Say what the window is and, if it is empty, what to relax and by how much.

        The decision comes first, then what it rests on: a sentence a line.
        """
        kind = self.kind
        lines = _decided(self) if self.feasible else _empty(self)
        lines += [
            f"It rests on: {self.plan.title}, for {self.unit}; accuracy is of {self.unit.counted}.",
            *_floor(self, kind),
        ]
        ceiling = named(kind, kind.level(self.ceiling_cost))
        left = f"{self.risk}{_worlds(self)}"
        lines += [f"Ceiling: {ceiling} is the largest that leaves {left}."]
        return "\n".join([*lines, *(_open(self) if self.feasible else [])])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw error and risk along cost, each as a share of what is allowed; return the Axes."""
        return drawn("risk.draw_window", self, ax)

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        name = self.kind.letter
        floor, ceiling = self.ends
        rows = [
            (f"Least {name}", f"{floor}: below it, the answer is less accurate than requested"),
            (f"Largest {name}", f"{ceiling}: above it, the risk is larger than accepted"),
            ("Feasible", "yes" if self.feasible else "no"),
        ]
        sentences = map(line, self.explain().split("\n"))
        return card(f"Window: {self.plan.title}", facts(rows), *sentences)


# --- costs and shares -----------------------------------------------------------------------------

# Shares of delta follow shares of epsilon, and what a question needs depends on its delta.
ROUNDS = 8


def with_shares(plan: Plan, requests: Sequence[AccuracyRequest], kind: Kind) -> Plan:
    """Give each question of a plan the share that it needs by itself.

    Shares that the plan states are kept.

    Delta is divided by the same shares, and what a question needs depends on its delta. So shares
    and needs are computed in turn, until they agree.
    """
    if plan.shares is not None or len(requests) == 1:
        return plan
    weights = [1] * len(requests)
    for _ in range(ROUNDS if kind.delta else 1):
        costs = Plan(plan.questions, weights).costs(kind.cost(kind.units))
        floors = [
            least_alone(request, kind_of(cost))
            for request, cost in zip(requests, costs, strict=True)
        ]
        if floors == weights:
            break
        weights = floors
    return Plan(plan.questions, weights)


def least_total(plan: Plan, requests: Sequence[AccuracyRequest], kind: Kind) -> int:
    """The least units at which every question of a plan is as accurate as requested."""

    def are_met(units: int) -> bool:
        costs = plan.costs(kind.cost(units))
        return all(request.is_met(cost) for request, cost in zip(requests, costs, strict=True))

    # The shares are what each question needs by itself, so their sum is close to the answer.
    start = kind.units if plan.shares is None else max(1, int(sum(plan.proportions)))
    accuracies = dict.fromkeys(str(request.accuracy) for request in requests)
    return least(are_met, start, kind.most, "; ".join(accuracies))


# --- sentences ------------------------------------------------------------------------------------

DIGITS = 4


def _floor(window: Window, kind: Kind) -> list[str]:
    level = named(kind, kind.level(window.floor_cost), up=True)
    if len(window.parts) == 1:
        (part,) = window.parts
        return [f"Floor: {level} is the least at which {_subject(part)} {part.accuracy}."]
    lines = [f"Floor: {level} is the least at which every question is accurate enough:"]
    needs = {}
    for part in window.parts:
        share = named(kind_of(part.floor), kind.level(part.floor), up=True)
        needs[part.question] = f"{_subject(part)} {part.accuracy}, for {share}"
    for need, questions in _by_text(needs).items():
        of_several = " each" if len(questions) > 1 else ""
        lines.append(f"  {_listed(questions)}: {need}{of_several}.")
    return lines


def _by_text(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """The questions of which a text is said, so that it is said once."""
    questions: dict[str, list[str]] = {}
    for question, text in texts.items():
        questions.setdefault(text, []).append(question)
    return questions


def _listed(questions: Sequence[str]) -> str:
    if len(questions) < 3:
        return " and ".join(questions)
    return f"{', '.join(questions[:-1])} and {questions[-1]}"


def named(kind: Kind, level: Fraction, up: bool = False) -> str:
    """Print a cost in four digits, rounded so that what is quoted holds too.

    A floor is rounded up, a ceiling down.
    """
    return f"{kind.letter} = {rounded(level, DIGITS, up=up)}" + (
        f" (delta = {decimal(kind.delta)})" if kind.delta else ""
    )


def _subject(part: WindowPart) -> str:
    if part.cells is None:
        return "every number is"
    return "the number is" if part.cells == 1 else f"all {part.cells:,} numbers are"


def _worlds(window: Window) -> str:
    if window.worlds is None:
        return ""
    if isinstance(window.worlds, int):
        return f", of {window.worlds:,} worlds"
    chosen = f"{window.worlds.size:,} of {window.worlds.records:,}"
    return f", of the worlds in which {chosen} records are the data"


def _decided(window: Window) -> list[str]:
    kind = window.kind
    level = named(kind, kind.level(window.floor_cost), up=True)
    reached = ""
    if window.risk.prior != belief.PRIOR:
        # The sentence about the cost says it for that prior alone.
        reached = f", and {window.risk.what} is at most {_up(window.risk_at_floor)}"
    meaning = f"With it, {belief.sentence(window.floor_cost, window.unit)}{reached}."
    large = belief.warning(window.floor_cost, window.unit)
    return [f"Decision: {level}, the safest that is accurate enough. {large or meaning}"]


def _open(window: Window) -> list[str]:
    floor, ceiling = window.ends
    lines = [
        f"Feasible: any {window.kind.letter} from {floor} to {ceiling} is accurate enough and safe "
        "enough."
    ]
    for part in window.parts:
        if part.at_ceiling is not None and part.at_ceiling > part.accuracy.half_width:
            width = f"+-{_up(part.at_ceiling)}"
            lines += [f"  Not all of it: at the ceiling, {part.question} is within {width} only."]
    return lines


def _empty(window: Window) -> list[str]:
    """Return every single thing that would open the window."""
    kind = window.kind
    floor = named(kind, kind.level(window.floor_cost), up=True)
    ceiling = named(kind, kind.level(window.ceiling_cost))
    lines = [
        "Decision: none. What is accurate enough is not safe enough, until one of these is relaxed:"
    ]
    relaxed = {
        part.question: f"+-{_up(part.at_ceiling)} instead of +-{part.accuracy.half_width:,.6g}"
        for part in window.parts
        if part.at_ceiling is not None
    }
    wider = [
        f"{width} for {_listed(questions)}" if len(window.parts) > 1 else width
        for width, questions in _by_text(relaxed).items()
    ]
    if wider:
        lines += [f"  accuracy: {'; '.join(wider)}, at {ceiling};"]
    if all(part.accuracy.simultaneous and _met_alone(part) for part in window.parts):
        lines += ["  confidence: each number by itself instead of all at once, at the same cost;"]
    lines += [
        f"  risk: {_up(window.risk_at_floor)} instead of {window.risk.limit:.6g}, at {floor};"
    ]
    if window.unit.rows_per_person > 1:
        limit = window.unit.rows_per_person
        lines += [f"  the unit: fewer rows per person than {limit:,}; noise grows with them."]
    return [*lines[:-1], lines[-1].rstrip(";.") + "."]


def _met_alone(part: WindowPart) -> bool:
    return part.each_at_ceiling is not None and part.each_at_ceiling <= part.accuracy.half_width


def _up(value: float) -> str:
    """Print a half-width or a risk, rounded up: a relaxed request must be met by what is quoted."""
    return (
        f"{value:,.0f}" if value == round(value) else rounded(value, 3 if value < 1 else 6, up=True)
    )


# --- the window -----------------------------------------------------------------------------------

POINTS = 49  # of the curves in the picture
BEYOND = 8  # how far the picture goes below and above the window


@explained
def window(
    question: AnyQuestion | Plan | Sequence[AnyQuestion],
    *,
    domain: Domain | Mapping[str, Axis],
    unit: Unit,
    accuracy: Within | Sequence[Within],
    risk: Risk,
    worlds: Worlds | Choice | Choices | int | Sequence[int] | None = None,
    rows: int | None = None,
    measure: str = "pure",
    delta: Exactly = 0,
) -> Window:
    """Which epsilon is accurate enough and safe enough? Reads no data and spends nothing.

    The window reaches from the floor, the least cost that is accurate enough, to the ceiling, the
    largest cost that is safe enough.

    Parameters
    ----------
    question : question, list of questions, or Plan
        Several share the cost so that each is as accurate as requested; shares that a Plan states
        are kept.
    domain : Domain or dict
        The public axes.
    unit : Unit
        Who is protected: ``source.unit``.
    accuracy : Within, or a list with one for each question
        How accurate an answer must be: ``Within(20)`` for +-20 with 95% confidence.
    risk : Risk
        The largest risk that you accept. It applies to the total cost of all questions.
    worlds : (records, size), Choice, Choices or int; for ``Risk(disclosure=...)``
        Which data sets are possible: any ``size`` of so many records; those of a universe (of
        several, the strictest); or how many there are, any two of them neighbours. What ``choose``
        computed for *its* query is not used: see Notes.
    rows : int or None
        Your own public guess of the number of rows, for what depends on it.
    measure : {"pure", "zcdp"}
        The measure of the cost: epsilon, or rho for Gaussian noise.
    delta : number in [0, 1)
        Above 0: the cost is (epsilon, delta), for questions that need it.

    Returns
    -------
    Window
        It has ``floor``, ``ceiling``, ``feasible``, and the ``plan`` to publish. Print it.

    Raises
    ------
    Infeasible
        If no cost is accurate enough, or none is safe enough. A floor above the ceiling raises
        nothing: then ``feasible`` is false.
    UsageError
        If an argument does not fit the others.

    Notes
    -----
    Lee and Clifton's epsilon holds for one query whose noise follows its sensitivity over the
    universe (ISC 2011). A histogram at the same epsilon tells two worlds apart better, because an
    exchange of two persons changes two counts. So the ceiling here is what the guarantee itself
    says about the worlds.

    The floor is found by doubling and halving, then by bisection. If a question's accuracy does not
    improve with every unit (a grid that becomes finer as epsilon grows), the floor is still
    accurate enough and one unit less is not, but an even smaller cost may be accurate enough.

    >>> from sfumato.domain.domain import Interval
    >>> from sfumato.questions.histogram import Histogram
    >>> ages = Domain(age=Interval(0, 100, step=2))
    >>> found = window(
    ...     Histogram("age"),
    ...     domain=ages,
    ...     unit=Unit(),
    ...     accuracy=Within(20, confidence=0.95, simultaneous=True),
    ...     risk=Risk(prior=0.01, posterior=0.05),
    ... )
    >>> found.floor, found.ceiling, found.feasible
    (0.335061611, 1.65068087, True)
    """
    plan = as_plan(question)
    if not isinstance(domain, Domain):
        domain = Domain(domain)
    _require_promise(unit, risk)
    known = _read_worlds(worlds, unit, risk)
    accuracies = _accuracies(plan, accuracy)
    kind = Kind.of(measure, delta)
    requests = [
        AccuracyRequest(question, domain, unit, rows, within)
        for question, within in zip(plan.questions, accuracies, strict=True)
    ]
    plan = with_shares(plan, requests, kind)
    if kind.delta and len(requests) > 1 and not plan.noise:
        # The floor is that of parts of epsilon. Other noise would be another accuracy.
        plan = msgspec.structs.replace(plan, noise="laplace")
    floor = kind.cost(least_total(plan, requests, kind))
    ceiling = risk.largest(kind.cost(1), worlds=known)
    ends = (kind.level(floor), kind.level(ceiling))
    costs = kind.between(min(ends) / BEYOND, max(ends) * BEYOND, POINTS)
    parts = [_part(i, plan, request, (floor, ceiling), costs) for i, request in enumerate(requests)]
    return Window(
        plan=plan,
        parts=tuple(parts),
        unit=unit,
        risk=risk,
        worlds=known,
        floor_cost=floor,
        ceiling_cost=ceiling,
        risk_at_floor=risk.of(floor, worlds=known),
        costs=tuple(float(kind.level(cost)) for cost in costs),
        risks=tuple(risk.of(cost, worlds=known) for cost in costs),
    )


def _part(
    i: int,
    plan: Plan,
    request: AccuracyRequest,
    ends: tuple[CentralMeasure, CentralMeasure],
    costs: Sequence[CentralMeasure],
) -> WindowPart:
    def half_width(total: CentralMeasure, simultaneous: bool | None = None) -> float | None:
        try:
            return request.half_width(plan.costs(total)[i], simultaneous)
        except SfumatoError:  # the question refuses this cost
            return None

    floor, ceiling = ends
    preview = request.preview(plan.costs(floor)[i])
    return WindowPart(
        question=preview.question,
        cells=preview.cells,
        accuracy=request.accuracy,
        floor=plan.costs(floor)[i],
        at_ceiling=half_width(ceiling),
        each_at_ceiling=half_width(ceiling, False),
        half_widths=tuple(half_width(cost) for cost in costs),
    )


def _accuracies(plan: Plan, accuracy: Within | Sequence[Within]) -> list[Within]:
    given = [accuracy] * len(plan.questions) if isinstance(accuracy, Within) else accuracy
    if not isinstance(given, Sequence) or not all(isinstance(within, Within) for within in given):
        raise UsageError(
            "the accuracy of a window",
            "it is not a Within",
            "Write accuracy=sf.Within(20, simultaneous=True)",
        )
    if len(given) != len(plan.questions):
        raise UsageError(
            f"{len(given)} accuracies for {len(plan.questions)} questions",
            "each question needs one",
            "Give one Within for all, or one a question",
        )
    return list(given)


def _require_promise(unit: Unit, risk: Risk) -> None:
    """Refuse what is no risk or no unit of privacy."""
    if not isinstance(risk, Risk):
        raise UsageError(
            f"risk = {type(risk).__name__}",
            "it is not a Risk",
            "Write risk=sf.Risk(prior=.01, posterior=.05)",
        )
    if not isinstance(unit, Unit):
        raise UsageError(
            f"unit = {type(unit).__name__}",
            "it is not a unit of privacy",
            "Write unit=source.unit, or sf.Unit()",
        )


def _read_worlds(
    worlds: Worlds | Choice | Choices | int | Sequence[int] | None, unit: Unit, risk: Risk
) -> Worlds | int | None:
    """Read the worlds that an adversary thinks possible; None if the risk is about none."""
    if worlds is None or risk.disclosure is None:
        return None
    # The probabilities of so many worlds are doubles.
    match worlds:
        case Worlds():
            return worlds.under(unit)
        case Choice():
            return Worlds(worlds.records, worlds.size).under(unit)
        case Choices():
            every = [Worlds(part.records, part.size).under(unit) for part in worlds.values()]
            # The fewest worlds give the largest prior, so that column bounds the risk of all of
            # them.
            return min(every, key=lambda known: known.log_count)
        case [records, size]:
            return Worlds(records, size).under(unit)
        case int() if not isinstance(worlds, bool) and worlds <= 10**300:
            return worlds
    raise UsageError(
        f"worlds of type {type(worlds).__name__}",
        "they are not possible worlds",
        "Write worlds=(1000, 999), or the Choice that sf.choose returned",
    )
