"""Several questions fixed before any answer is seen.

First stands what a plan asks of each question: how accurate it must be, and what it weighs.

*Histograms as one family of tables that add up* (``family_of``).

They become one question, ``sf.Tables``: they count the same rows, are charged once, and agree in
all totals that they share. What a histogram can be that no table of a family is, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypeVar, get_args

import msgspec
from msgspec import UNSET

import sfumato.answers.registry  # noqa: F401  # it knows how questions are decoded
from sfumato.answers import LONGEST, AnyQuestion, Kind, Needs, Question, Within
from sfumato.basics import (
    Exactly,
    ExplainedStruct,
    GivenNumbers,
    fraction,
    positive,
    require_plan,
    whole,
)
from sfumato.domain import DENSE_LIMIT, Domain, Interval, LatticeAxis, named_axes
from sfumato.errors import UsageError, nearest, printable, require_word, shown
from sfumato.privacy import (
    CentralMeasure,
    Event,
    Unit,
    asked_cost,
    share,
    sum_of,
    worst_event,
)
from sfumato.questions.histogram import Histogram
from sfumato.questions.histogram.bins import AxisBins, by_axis, widths_by_axis

if TYPE_CHECKING:
    from sfumato.questions import tables
else:
    from sfumato.basics import Deferred

    tables = Deferred("sfumato.questions.tables")

# --- what a plan asks -----------------------------------------------------------------------------

# Which error of all numbers together the shares make as small as they can be.
Minimised: TypeAlias = Literal["absolute", "squared"]

PlanNoise: TypeAlias = Literal["laplace", "gaussian"]

T = TypeVar("T")
G = TypeVar("G")
W_co = TypeVar("W_co", covariant=True)

# Reads an option of a plan of some questions, or refuses it.
Reader: TypeAlias = Callable[[object, Sequence[AnyQuestion]], object]

Accuracies: TypeAlias = tuple[Within | None, ...]
Weights: TypeAlias = tuple[Fraction, ...]

if TYPE_CHECKING:
    from sfumato.publishing.divisions import Choice

    # What is given; what is stored is one entry for each question, in their order. A Mapping would
    # have to have exactly this type of keys: a dict of histograms would be refused.
    Wanted: TypeAlias = Within | Exactly | None

    class ByQuestion(Protocol[W_co]):
        def items(self) -> Iterable[tuple[AnyQuestion | str, W_co]]: ...

    GivenAccuracies: TypeAlias = ByQuestion[Wanted] | Sequence[Wanted] | Wanted
    GivenWeights: TypeAlias = ByQuestion[Exactly] | Sequence[Exactly | None]
else:
    GivenAccuracies = Accuracies
    GivenWeights = Weights


def read_accuracies(given: object, questions: Sequence[AnyQuestion]) -> Accuracies:
    """Read how accurate each question must be; None for those of which nothing is asked.

    Parameters
    ----------
    given : Within, number, list or dict
        One for all questions, one for each of them in their order, or some of them by question or
        name.

    Raises
    ------
    UsageError
        If one is no accuracy, belongs to no question or to several, or none is given.
    """
    if isinstance(given, Within | str) or not isinstance(given, Mapping | Sequence):
        given = [given] * len(questions)
    accuracies = tuple(map(_within, _by_question(given, questions, "accuracies", "sf.Within(20)")))
    if not any(accuracies):
        raise UsageError(
            "the accuracy of a plan",
            "it asks nothing of any question",
            "Write accuracy=sf.Within(20)",
        )
    return accuracies


def read_weights(given: object, questions: Sequence[AnyQuestion]) -> Weights:
    """Read what the errors of each question weigh; 1 for those of which nothing is said.

    Raises
    ------
    UsageError
        If one is not a number above 0, or belongs to no question or to several.
    """
    if isinstance(given, str) or not isinstance(given, Mapping | Sequence):
        raise UsageError(
            f"weights of type {type(given).__name__}",
            "weights are a list or a dict",
            "Write weights=[2, 1]",
        )
    weights = _by_question(given, questions, "weights", "2")
    return tuple(
        Fraction(1) if weight is None else positive(weight, "a weight")  # type: ignore[arg-type]
        for weight in weights
    )


MOST_ROWS = 10**15  # of a guess


def check_rows(rows: object) -> object:
    """Return a guess of the number of rows, or refuse what is none."""
    if rows is None:
        return None
    return whole(
        rows,
        "rows",
        0,
        MOST_ROWS,
        obstacle="your guess of the number of rows is a whole number from 0 to 10^15",
        remedy="Write rows=100_000",
    )


def _within(given: object) -> Within | None:
    if given is None or isinstance(given, Within):
        return given
    try:
        # Whatever is no number is refused there.
        return Within(given)  # type: ignore[arg-type]
    except UsageError as error:
        raise UsageError(
            f"the accuracy of a plan, {error.asked}",
            error.obstacle,
            "Give a half-width above 0, or sf.Within(20, simultaneous=True)",
        ) from None


def _by_question(
    given: Mapping[object, object] | Sequence[object],
    questions: Sequence[AnyQuestion],
    what: str,
    example: str,
) -> list[object]:
    """Return one entry for each question, in their order; None where nothing is given."""
    number = len(questions)
    if not isinstance(given, Mapping):
        if len(given) != number:
            raise UsageError(
                f"{len(given)} {what} for {number} questions",
                "there is one for each question",
                f'Give one for each, or some by name: {{"{questions[0].title}": {example}}}',
            )
        return list(given)
    entries: list[object] = [None] * number
    for key, value in given.items():
        for i in _places(key, questions, what):
            entries[i] = value
    return entries


def _places(key: object, questions: Sequence[AnyQuestion], what: str) -> list[int]:
    """Return the places of the questions meant by a question, a title or a heading."""
    if not isinstance(key, Question):
        fitting = [question for question in questions if key in _names(question)]
        if not fitting:
            every = [known for question in questions for known in _names(question)]
            raise UsageError(
                f"{what} of {shown(key)}",
                f"no question has that name; {nearest(key, every)}",
                "Name a question by its title",
            )
        # Equal questions may share a name.
        if any(question != fitting[0] for question in fitting):
            raise UsageError(
                f"{what} of {shown(key)}",
                f"{len(fitting)} questions have that name",
                "Give each question a heading= of its own, or a list with one entry for each",
            )
        key = fitting[0]
    places = [i for i, question in enumerate(questions) if question == key]
    if not places:
        raise UsageError(
            f"{what} of {key.title}", "the plan does not ask it", "Name questions of the plan"
        )
    return places


def _names(question: AnyQuestion) -> list[str]:
    captions = question.captions
    heading = "" if captions is None else captions.heading
    return [name for name in (heading, question.title) if name]


# --- histograms as tables -------------------------------------------------------------------------

ADDING_UP = "a plan that adds up"

# What a table of a family cannot be: the field of a histogram, why, and what to do.
OWN: Mapping[str, tuple[str, str]] = {
    "records": ("its bins follow from the data", "Give bins or a width"),
    "selection": ("it selects keys, and a family has none", "Leave selection out"),
    "count": ("a family counts rows", 'Leave count="persons" out, or ask it in another plan'),
    "workload": ("the family has noise of its own", "Leave workload out"),
    "noise": ("the family has noise of its own", "Leave noise out, or ask it in another plan"),
}


def histograms_of(questions: Sequence[AnyQuestion]) -> list[int]:
    """Return the places of a plan's histograms.

    Raises
    ------
    UsageError
        If there are fewer than two, or one is no table of a family.
    """
    places = [at for at, question in enumerate(questions) if isinstance(question, Histogram)]
    if len(places) < 2:
        number = f"{len(places)} histogram{'' if places else 's'}"
        raise UsageError(
            ADDING_UP,
            f"it has {number}, and tables agree in pairs",
            "Leave adds_up out, or add a histogram",
        )
    for at in places:
        question = questions[at]
        for field, (obstacle, remedy) in OWN.items():
            if getattr(question, field) != getattr(_PLAIN, field):
                raise UsageError(f"{ADDING_UP}, {question.title} with {field}", obstacle, remedy)
    return places


# A histogram of which nothing but an axis is said.
_PLAIN = Histogram("x")


def family_of(
    histograms: Sequence[Histogram], domain: Domain, weights: Sequence[float]
) -> tables.Tables:
    """Make the histograms one question.

    Parameters
    ----------
    histograms : sequence of Histogram
    domain : Domain
    weights : sequence of float
        How much the errors of each matter.

    Raises
    ------
    UsageError
        If an axis is one of keys, is divided differently in two of them, or they share no axis.
    """
    _require_common_bins(histograms, domain)
    bins: dict[str, AxisBins] = {}
    width: dict[str, float] = {}
    names: dict[str, str] = {}
    for histogram in histograms:
        intervals = _intervals(histogram, domain)
        bins |= _given(by_axis(histogram.bins, intervals))
        width |= _given(widths_by_axis(histogram.width, intervals))
        names |= histogram.label_names or {}
    headings = [histogram.heading or "" for histogram in histograms]
    joined = "; ".join(dict.fromkeys(headings))
    # The same axis may be given bins in one histogram and a width in another.
    widths_alone = {name: size for name, size in width.items() if name not in bins}
    return tables.Tables(
        [list(named_axes(histogram.axes)) for histogram in histograms],
        bins=bins or None,
        width=widths_alone or None,
        weights=None if len(set(weights)) == 1 else list(weights),
        # None unless each has one, or they are too long.
        heading=joined if all(headings) and len(joined) <= LONGEST else UNSET,
        measured_in=_units(histograms, domain) or UNSET,
        label_names=names or UNSET,
    )


def _require_common_bins(histograms: Sequence[Histogram], domain: Domain) -> None:
    """Refuse axes of keys, and axes that are divided differently in two histograms."""
    axes: dict[str, LatticeAxis] = {}
    for histogram in histograms:
        for axis in histogram.shown_lattice(domain).axes:
            if axis.has_keys:
                raise UsageError(
                    f"{ADDING_UP}, {histogram.title}",
                    f"which keys of {axis.name!r} there are is not known beforehand",
                    "Declare it as Categories with a public list, or ask it in another plan",
                )
            if axes.setdefault(axis.name, axis) != axis:
                raise UsageError(
                    f"{ADDING_UP}, {histogram.title}",
                    f"{printable(axis.name)} has other bins in another histogram",
                    "Give an axis the same bins in all of them",
                )


def _intervals(histogram: Histogram, domain: Domain) -> list[str]:
    intervals = domain.of_kind(Interval)
    return [name for name in domain.select(histogram.axes) if name in intervals]


def _given(by_name: Mapping[str, G | None]) -> dict[str, G]:
    return {name: given for name, given in by_name.items() if given is not None}


# --- words for people -----------------------------------------------------------------------------


def _units(histograms: Sequence[Histogram], domain: Domain) -> dict[str, str]:
    """Return units of measure by axis; one without an axis is that of all Interval axes."""
    units: dict[str, str] = {}
    for histogram in histograms:
        given = histogram.measured_in or {}
        if isinstance(given, str):
            given = dict.fromkeys(_intervals(histogram, domain), given)
        units |= given
    return units


# --- the plan -------------------------------------------------------------------------------------


class Plan(ExplainedStruct, frozen=True, forbid_unknown_fields=True):
    """Ask several questions together, for one charge. They are fixed before any answer is seen.

    Give it to ``Publisher.release`` or ``sf.preview`` in place of a question.

    Parameters
    ----------
    questions : sequence of questions
        At least one.
    shares : sequence of numbers or None
        How the cost is divided: one positive number for each question. The part of each is
        proportional to its number. None: the shares are picked if ``accuracy``, ``weights`` or
        ``minimise`` is given, or the cost has a delta or is a rho; otherwise all are equal.
    accuracy : Within, number, list, dict or None
        How accurate the answers must be. ``sf.Within(20)``, or just 20, asks every number to be
        within +-20 of the truth with 95% confidence. One for all questions, a list with one for
        each (None: nothing is asked), or a dict by question, title or heading. The shares are then
        what each question needs. Without a cost, the least one that suffices is charged.
    weights : list, dict or None
        What the errors of a question weigh beside those of others: numbers above 0; 1 where none
        is given.
    minimise : {"absolute", "squared"} or None
        Which error of all numbers together the picked shares make least: the sum of the
        half-widths, or of their squares. None: "absolute".
    noise : {"laplace", "gaussian"} or None
        The noise under an epsilon with a delta. None: the one whose predicted error is smaller.
    rows : int or None
        Your own public guess of the number of rows, from 0 to 10^15, for accuracies that depend
        on it.

    adds_up : bool or None
        Whether its histograms, at least two, are answered as one family: they count the same rows
        and agree in all totals that they share. One ``TablesRelease`` then stands in place of the
        first of them. Their shares are added up, and their weights are those of its tables.

    Raises
    ------
    UsageError
        If there is no question, there are not as many shares as questions, a share or a weight is
        not positive, an accuracy belongs to no question or to several, or shares are given beside
        what picks them. If a plan that adds up has fewer than two histograms, or one with records,
        keys, a workload, bounded noise or persons that are counted.

    Guarantee: the parts add up to the cost exactly, in the units of the budget (1e-9 of epsilon,
    1e-18 of delta, 1e-12 of rho). What is picked follows from the questions, the domain, the unit
    and the cost alone.

    >>> from sfumato.questions.histogram import Histogram
    >>> from sfumato.privacy.measures import PureDP
    >>> plan = Plan([Histogram("age"), Histogram("hour")], shares=[1, 3])
    >>> [str(cost) for cost in plan.costs(PureDP("1"))]
    ['epsilon = 0.25', 'epsilon = 0.75']

    Or say how accurate each answer must be, and let the cost follow:

    >>> import sfumato as sf
    >>> domain = sf.Domain(age=sf.Interval(0, 100), hour=sf.Interval(0, 24))
    >>> plan = sf.Plan([sf.Histogram("age"), sf.Histogram("hour")], accuracy=[20, 60])
    >>> print(sf.preview(plan, domain=domain, unit=sf.Unit()).choice)
    Epsilon = 0.195514588 is the least cost at which every answer is as accurate as requested.
    """

    questions: Sequence[AnyQuestion]
    shares: GivenNumbers | None = None
    # Absent from files unless given: a plan without them is stored as earlier versions stored it.
    accuracy: GivenAccuracies | msgspec.UnsetType = msgspec.UNSET
    weights: GivenWeights | msgspec.UnsetType | None = msgspec.UNSET
    minimise: Minimised | msgspec.UnsetType | None = msgspec.UNSET
    noise: PlanNoise | msgspec.UnsetType | None = msgspec.UNSET
    rows: int | msgspec.UnsetType | None = msgspec.UNSET
    adds_up: bool | msgspec.UnsetType | None = msgspec.UNSET

    def __post_init__(self) -> None:
        # A msgspec Struct checks types only where it decodes; here a user gives the fields.
        msgspec.structs.force_setattr(self, "questions", _checked_questions(self.questions))
        if self.shares is not None:
            shares = _checked_shares(self.shares, len(self.questions))
            msgspec.structs.force_setattr(self, "shares", shares)
        for name, read in _OPTIONS.items():
            given: object = getattr(self, name)
            if given is not msgspec.UNSET:
                settled = msgspec.UNSET if given is None else read(given, self.questions)
                msgspec.structs.force_setattr(self, name, settled)
        for name in ("accuracy", "weights", "minimise"):
            if self.shares is not None and getattr(self, name) is not msgspec.UNSET:
                raise UsageError(
                    f"a plan with shares and {name}",
                    "each of them says how the cost is divided",
                    "Leave one of them out",
                )
        if self.adds_up is True:
            histograms_of(self.questions)

    def costs(self, cost: CentralMeasure) -> list[CentralMeasure]:
        """What each question may spend by the stated shares, or equal ones; together, the cost.

        Picked shares depend on domain and unit: ``sf.preview(plan, ...).choice`` has them.
        """
        # One question has all of it: a cost is in whole units of the budget already.
        return [cost] if len(self.questions) == 1 else share(cost, self.proportions)

    @property
    def proportions(self) -> list[Fraction]:
        """The stated shares; 1 for each question where none are."""
        if self.shares is None:
            return [Fraction(1)] * len(self.questions)
        return [fraction(part, "a share") for part in self.shares]

    @property
    def accuracies(self) -> Accuracies:
        """How accurate each question must be; None for those of which nothing is asked."""
        if self.accuracy is msgspec.UNSET:
            return (None,) * len(self.questions)
        return read_accuracies(self.accuracy, self.questions)

    @property
    def weighed(self) -> Weights:
        """What the errors of each question weigh."""
        if self.weights is None or self.weights is msgspec.UNSET:
            return (Fraction(1),) * len(self.questions)
        return read_weights(self.weights, self.questions)

    @property
    def is_bare(self) -> bool:
        """Whether it says no more than plans could say before there was anything to pick."""
        return not self.picks_shares and self.noise is msgspec.UNSET and self.guess is None

    @property
    def guess(self) -> int | None:
        """The custodian's public guess of the number of rows."""
        return None if self.rows is msgspec.UNSET else self.rows

    @property
    def picks_shares(self) -> bool:
        """Whether shares are to be picked at any cost."""
        return not all(
            given is msgspec.UNSET for given in (self.accuracy, self.weights, self.minimise)
        )

    def settled(self, domain: Domain) -> Plan:
        """The plan with its histograms as one question, if they are to add up; else itself.

        Raises
        ------
        UsageError
            If they are no family: an axis is one of keys, or has other bins in one of them.
        """
        if self.adds_up is not True:
            return self
        family = histograms_of(self.questions)
        histograms = [question for question in self.questions if isinstance(question, Histogram)]
        weights = [self.weighed[at] for at in family]
        tables = family_of(histograms, domain, list(map(float, weights)))
        accuracies = [self.accuracies[at] for at in family]
        if len(set(accuracies)) > 1:
            raise UsageError(
                f"{ADDING_UP}, an accuracy for some histograms",
                "the tables of a family have their noise together",
                "Give all histograms the same accuracy, or ask sf.Tables(..., accuracy=[...])",
            )
        share_of_all = sum((self.proportions[at] for at in family), Fraction(0))
        mean_weight = sum(weights, Fraction(0)) / len(weights)
        merged: dict[str, tuple[object, ...]] = {
            "questions": _merged(self.questions, family, tables),
            "shares": _merged(self.proportions, family, share_of_all),
            "accuracy": _merged(self.accuracies, family, accuracies[0]),
            "weights": _merged(self.weighed, family, mean_weight),
        }
        unstated = (None, msgspec.UNSET)
        changes = {
            field: entries
            for field, entries in merged.items()
            if getattr(self, field) not in unstated
        }
        return msgspec.structs.replace(self, adds_up=msgspec.UNSET, **changes)

    def needs(self, domain: Domain) -> list[Needs]:
        """Return what each question needs counted.

        Raises
        ------
        UsageError
            If the questions together could not be counted, answered and stored. This is found
            before the charge, which would be lost.
        """
        return self._countable(
            [question.needs(domain) for question in self.settled(domain).questions]
        )

    def needs_at(self, domain: Domain, unit: Unit, costs: Sequence[CentralMeasure]) -> list[Needs]:
        """Return what each question needs counted to be answered at its cost.

        Raises
        ------
        UsageError
            As ``needs``.
        """
        pairs = zip(self.questions, costs, strict=True)
        return self._countable([question.needs_at(domain, unit, cost) for question, cost in pairs])

    def _countable(self, needs: list[Needs]) -> list[Needs]:
        """Refuse what could not be counted, answered and stored together."""
        numbers = sum(need.numbers for need in needs)
        # Equal needs share one cube. Above the limit, a cube holds only the cells with rows.
        distinct = {msgspec.structs.replace(need, numbers=0) for need in needs}
        dense = [need for need in distinct if need.lattice.size <= DENSE_LIMIT]
        counted = sum(need.lattice.size * (1 + need.n_sums) for need in dense)
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


def plan_cost(
    plan: Plan, *, epsilon: Exactly | None, delta: Exactly, rho: Exactly | None
) -> CentralMeasure | Kind:
    """Read what a plan may cost; a kind: the least cost of it that is accurate enough.

    A plan with accuracies may leave epsilon and rho out.

    Raises
    ------
    UsageError
        As ``asked_cost``.
    """
    if epsilon is None and rho is None and plan.accuracy is not msgspec.UNSET:
        return Kind.of("pure", delta)
    return asked_cost(epsilon=epsilon, delta=delta, rho=rho)


def costs_of(
    plan: Plan, stated: CentralMeasure | Kind, choice: Choice | None
) -> list[CentralMeasure]:
    """Return what each question of a plan may spend: as was picked, or as the plan states it."""
    if choice is not None:
        return list(choice.costs)
    assert not isinstance(stated, Kind)  # a least cost is always picked
    return plan.costs(stated)


def event_of(
    plan: Plan,
    domain: Domain,
    unit: Unit,
    costs: Sequence[CentralMeasure],
    used: Sequence[CentralMeasure],
    choice: Choice | None,
) -> Event:
    """Return what all answers of a plan draw together, each at its cost.

    Raises
    ------
    UsageError
        If a question states less than it uses of its cost: accounts by curves are charged by what
        it states.
    """
    events = [
        question.event(domain, unit, cost)
        for question, cost in zip(plan.questions, costs, strict=True)
    ]
    for question, event, cost in zip(plan.questions, events, used, strict=True):
        worst = worst_event(cost)
        if event.epsilon < worst.epsilon or event.delta < worst.delta or event.rho < worst.rho:
            raise UsageError(
                f"answering {question.title}",
                f"it states that it draws {event}, which is less than its cost of {cost}",
                "Let event state all noise, or leave it out",
            )
    return sum_of(events) if choice is None else choice.event(events)


def _merged(entries: Sequence[T], family: Sequence[int], of_family: T) -> tuple[T, ...]:
    """Return the entry of a family in place of that of its first member, and none of the others."""
    first = family[0]
    return tuple(
        of_family if at == first else entry
        for at, entry in enumerate(entries)
        if at == first or at not in family
    )


def as_plan(question: AnyQuestion | Plan | Sequence[AnyQuestion]) -> Plan:
    """Read what a publisher was asked: a question, a list of them, or a plan."""
    if isinstance(question, Plan):
        return question
    return Plan((question,) if isinstance(question, Question) else question)


def _checked_questions(questions: object) -> tuple[AnyQuestion, ...]:
    if not isinstance(questions, Question | Sequence) or isinstance(questions, str):
        raise _no_question(questions, "it is neither a question nor a list of questions")
    listed = (questions,) if isinstance(questions, Question) else tuple(questions)
    for question in listed:
        if not isinstance(question, Question):
            raise _no_question(question, "it is not a question")
    if not listed:
        raise UsageError("a plan", "it holds no question", "Add at least one")
    return listed


def _no_question(given: object, obstacle: str) -> UsageError:
    if isinstance(given, type) and issubclass(given, Question):
        attempt = f"asking {given.__name__}"
        return UsageError(
            attempt, "it is a class of questions", f'Write sf.{given.__name__}("age")'
        )
    attempt = f"asking a value of type {type(given).__name__}"
    if isinstance(given, str):
        return UsageError(
            attempt, "a question is an object, and not text", 'Write sf.Histogram("age")'
        )
    if isinstance(given, Domain):
        obstacle = "it is no question, and the source has the domain already"
    return UsageError(attempt, obstacle, 'Write sf.Histogram("age") or another question')


def _read_word(name: str, words: object) -> Reader:
    def read(given: object, _: Sequence[AnyQuestion]) -> object:
        require_word(given, name, get_args(words))
        return given

    return read


def _read_adds_up(given: object, _: Sequence[AnyQuestion]) -> object:
    if not isinstance(given, bool):
        raise UsageError(
            f"adds_up = {shown(given)}", "it is neither true nor false", "Write adds_up=True"
        )
    # A plan that says no is a plan that says nothing.
    return given or msgspec.UNSET


# How the options of a plan are read.
_OPTIONS: Mapping[str, Reader] = {
    "accuracy": read_accuracies,
    "weights": read_weights,
    "minimise": _read_word("minimise", Minimised),
    "noise": _read_word("noise", PlanNoise),
    "rows": lambda given, _: check_rows(given),
    "adds_up": _read_adds_up,
}


def _checked_shares(shares: object, number: int) -> GivenNumbers:
    if not isinstance(shares, Sequence) or isinstance(shares, str):
        raise UsageError(
            f"shares of type {type(shares).__name__}",
            "shares are a list of numbers",
            "Write shares=[2, 1]",
        )
    numbers = tuple(positive(part, "a share") for part in shares)
    if len(numbers) != number:
        raise UsageError(
            f"{len(numbers)} shares for {number} questions",
            "each question needs one share",
            "Give as many shares as questions",
        )
    return numbers
