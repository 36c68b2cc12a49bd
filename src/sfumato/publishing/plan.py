"""Several questions fixed before any answer is seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import msgspec

import sfumato.answers.registry  # noqa: F401  # it knows how questions are decoded
from sfumato.answers.counts import Needs
from sfumato.answers.question import AnyQuestion, Question
from sfumato.basics.numbers import GivenNumbers, fraction, positive, require_plan
from sfumato.domain.cube import DENSE_LIMIT
from sfumato.domain.domain import Domain
from sfumato.errors import ExplainedStruct, UsageError, shown
from sfumato.privacy.allocation import share
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.publishing.plan_family import family_of, histograms_of, one_accuracy
from sfumato.publishing.plan_options import (
    Accuracies,
    GivenAccuracies,
    GivenWeights,
    Minimised,
    PlanNoise,
    Weights,
    check_rows,
    check_word,
    read_accuracies,
    read_weights,
)
from sfumato.questions.histogram import Histogram


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
        self._check_shares()
        if self.adds_up is True:
            histograms_of(self.questions)

    def _check_shares(self) -> None:
        """Refuse shares beside what picks them."""
        for name in ("accuracy", "weights", "minimise"):
            if self.shares is not None and getattr(self, name) is not msgspec.UNSET:
                obstacle = "each of them says how the cost is divided"
                raise UsageError(
                    f"a plan with shares and {name}", obstacle, "Leave one of them out"
                )

    def costs(self, cost: CentralMeasure) -> list[CentralMeasure]:
        """What each question may spend by the stated shares, or equal ones; together, the cost.

        Picked shares depend on domain and unit: ``sf.preview(plan, ...).choice`` has them.
        """
        return share(cost, self.proportions)

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
        first, *merged = family
        kept = [at for at in range(len(self.questions)) if at not in merged]
        histograms = [each for each in self.questions if isinstance(each, Histogram)]
        weights = [self.weighed[at] for at in family]
        tables = family_of(histograms, domain, list(map(float, weights)))
        shares: list[Fraction] = self.proportions
        shares[first] = sum((shares[at] for at in family), Fraction(0))
        within = list(self.accuracies)
        within[first] = one_accuracy([within[at] for at in family])
        weighed = list(self.weighed)
        weighed[first] = sum(weights, Fraction(0)) / len(weights)

        def of_kept(values: Sequence[object], given: object) -> object:
            is_given = given is not None and given is not msgspec.UNSET
            return tuple(values[at] for at in kept) if is_given else given

        changes = {
            "questions": [tables if at == first else self.questions[at] for at in kept],
            "shares": of_kept(shares, self.shares),
            "accuracy": of_kept(within, self.accuracy),
            "weights": of_kept(weighed, self.weights),
            "adds_up": msgspec.UNSET,
        }
        return msgspec.structs.replace(self, **changes)

    def needs(self, domain: Domain) -> list[Needs]:
        """What each question needs counted.

        Raises
        ------
        UsageError
            If the questions together could not be counted, answered and stored. This is found
            before the charge, which would be lost.
        """
        questions = self.settled(domain).questions
        return self._countable([question.needs(domain) for question in questions])

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


def _read_minimise(given: object, _: Sequence[AnyQuestion]) -> object:
    check_word(given, "minimise", Minimised)
    return given


def _read_noise(given: object, _: Sequence[AnyQuestion]) -> object:
    check_word(given, "noise", PlanNoise)
    return given


def _read_rows(given: object, _: Sequence[AnyQuestion]) -> object:
    check_rows(given)
    return given


def _read_adds_up(given: object, _: Sequence[AnyQuestion]) -> object:
    if not isinstance(given, bool):
        obstacle = "it is neither true nor false"
        raise UsageError(f"adds_up = {shown(given)}", obstacle, "Write adds_up=True")
    # A plan that says no is a plan that says nothing.
    return given or msgspec.UNSET


_OPTIONS: Mapping[str, Callable[[object, Sequence[AnyQuestion]], object]] = {
    "accuracy": read_accuracies,
    "weights": read_weights,
    "minimise": _read_minimise,
    "noise": _read_noise,
    "rows": _read_rows,
    "adds_up": _read_adds_up,
}
"""How the options of a plan are read."""


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
