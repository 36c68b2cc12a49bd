"""Pick the noise and the shares of a plan by the accuracy that they lead to, from public facts.

The facts are the questions, the domain, the unit, the cost and the measure of the account. What is
picked is said in sentences, which previews, receipts and reports show.

``Why`` makes the sentences: what was picked, and why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import msgspec

from sfumato.answers import Kind, Within, kind_of
from sfumato.basics.numbers import Exactly, decimal
from sfumato.domain import Domain
from sfumato.errors import Infeasible, SfumatoError, UsageError
from sfumato.privacy import ZCDP, ApproxDP, CentralMeasure, Money, Unit, asked_cost, share
from sfumato.publishing.divisions import Divider, Division, PlannedQuestion
from sfumato.publishing.plan import Plan

# --- the sentences --------------------------------------------------------------------------------

WORTH_SAYING = 1.005  # times as much


@dataclass(frozen=True)
class Offer:
    """One way to spend a cost, and what it leads to.

    Attributes
    ----------
    division : Division
    score : float
        The predicted error, or the cost that is needed: the least one is taken.
    """

    division: Division
    score: float


@dataclass(frozen=True)
class Why:
    """Why the best of several offers is the best.

    Attributes
    ----------
    plan : Plan
    cost : measure
        Of the whole plan.
    divider : Divider
    best : Offer
    offers : tuple of Offer
        All that are accurate enough.
    rule : str or None
        The measure of the account.
    needs : dict
        If every question has an accuracy: the epsilon or rho that they need, by the questions that
        are answered in rho.
    """

    plan: Plan
    cost: CentralMeasure
    divider: Divider
    best: Offer
    offers: tuple[Offer, ...]
    rule: str | None
    needs: Mapping[tuple[int, ...], Fraction]

    def sentences(self, *, is_least: bool) -> tuple[str, ...]:
        """What was picked, and why; ``is_least``: the cost was picked, too."""
        said = [self._of_noise(), self._of_shares(is_least)]
        return tuple(f"{one[:1].upper()}{one[1:]}." for one in said if one)

    # --- noise ------------------------------------------------------------------------------------

    def _of_noise(self) -> str:
        if not isinstance(self.cost, ApproxDP):
            return ""
        picked = self._noise(self.best.division.in_rho)
        if self.needs:
            return f"{picked}, {self._of_needs()}"
        others = [offer for offer in self.offers if offer is not self.best]
        if not others:
            return f"{picked}, {self._only_way()}"
        rival = min(others, key=lambda offer: offer.score)
        with_rival = self._noise(rival.division.in_rho)
        return f"{picked}, because {self._errors(rival, with_rival)}"

    def _of_needs(self) -> str:
        """What the accuracies need with the noise that was picked, and with another."""
        best = self.best.division.in_rho
        others = [way for way in self.needs if way != best]
        if not others:
            return self._only_way()
        rival = min(others, key=self.needs.__getitem__)
        ours, theirs = (self._level(way) for way in (best, rival))
        asked = "because the accuracy that is asked for needs"
        return f"{asked} {ours} with it and {theirs} with {self._noise(rival)}"

    def _level(self, way: tuple[int, ...]) -> CentralMeasure:
        """The cost that the accuracies need."""
        kind = kind_of(self.cost)
        return self.divider.spent(kind.cost(int(self.needs[way] * kind.units)), way)

    def _only_way(self) -> str:
        """Why there was nothing to compare it with."""
        if self.plan.noise is not msgspec.UNSET:
            return "as the plan states"
        if self.rule == "pure":
            return "because the account counts epsilon alone"
        if self.plan.shares is not None:
            return "because with any other some answer would be less accurate, at the stated shares"
        return "because with any other the cost is not enough"

    def _noise(self, in_rho: tuple[int, ...]) -> str:
        """The noise, in words, if these questions are answered in rho."""
        questions = self.divider.questions
        number = len(questions)
        if not in_rho:
            named = "Laplace noise"
            return named if all(each.counts for each in questions) else f"pure epsilon ({named})"
        named = "Gaussian noise"
        if not all(questions[i].counts for i in in_rho):
            named = "a common rho (Gaussian noise on counts)"
        return (
            named if len(in_rho) == number else f"{named} for {len(in_rho)} of {number} questions"
        )

    def _errors(self, rival: Offer, with_rival: str) -> str:
        """How accurate the two are, side by side."""
        ours = self._widths(self.best.division.costs)
        theirs = self._widths(rival.division.costs)
        number = len(self.plan.questions)
        if ours is None or theirs is None:
            times = rival.score / self.best.score
            return f"at {self.cost} errors are {times:.2f} times as large with {with_rival}"
        if len(set(ours)) == len(set(theirs)) == 1:
            each = "one question has" if number == 1 else f"{number:,} questions have"
            return (
                f"{each} +-{ours[0]:,.6g} at {self.cost} with it and +-{theirs[0]:,.6g} "
                f"with {with_rival}"
            )
        sums = [self._total(offer.division.costs) for offer in (self.best, rival)]
        return (
            f"{self._what} add up to {sums[0]:,.6g} at {self.cost} with it "
            f"and to {sums[1]:,.6g} with {with_rival}"
        )

    def _widths(self, costs: Sequence[CentralMeasure]) -> list[float] | None:
        """The half-widths of the open questions; None unless all of them are counts."""
        found = []
        for each, cost in zip(self.divider.questions, costs, strict=True):
            width = each.half_width(cost)
            if each.within is None:
                if width is None or not each.counts:
                    return None
                found.append(width)
        return found

    def _total(self, costs: Sequence[CentralMeasure]) -> float:
        """The error of all open questions that are counts."""
        parts = zip(self.divider.questions, costs, strict=True)
        squared = self.divider.squared
        errors = [each.error(cost, squared=squared) for each, cost in parts if each.within is None]
        return sum(error for error in errors if error is not None)

    @property
    def _what(self) -> str:
        """What is added up."""
        squares = "squares of the " if self.divider.squared else ""
        weighed = "weighted " if self.plan.weights is not msgspec.UNSET else ""
        return f"the {weighed}{squares}half-widths of all counts"

    # --- shares -----------------------------------------------------------------------------------

    def _of_shares(self, is_least: bool) -> str:
        if self.plan.shares is not None:
            return ""
        if is_least:
            least = self.divider.spent(self.cost, self.best.division.in_rho)
            return f"{least} is the least cost at which every answer is as accurate as requested"
        is_open = [each.within is None for each in self.divider.questions]
        if not any(is_open):
            enough = self._level(self.best.division.in_rho)
            return (
                "each question has what it needs for the accuracy that is asked for, and "
                f"{enough} would be enough"
            )
        if not all(is_open):
            return (
                "questions with an accuracy have what they need; with the rest, "
                f"{self._what} of the others add up to the least"
            )
        return self._beside_equal_shares()

    def _beside_equal_shares(self) -> str:
        """What picked shares gain over equal ones, and at whose expense."""
        ours = self.best.division
        shares = [Fraction(1)] * len(self.plan.questions)
        divider = Divider(self.divider.questions, shares, squared=self.divider.squared)
        try:
            equal = divider.divided(self.cost, ours.in_rho)
        except SfumatoError:
            return ""
        if equal is None or equal == ours or not self._total(ours.costs):
            return ""
        least = f"the shares make {self._what} add up to the least{self._reach(ours)}"
        times = self._total(equal.costs) / self._total(ours.costs)
        if times < WORTH_SAYING:
            return least
        ones = ", ".join("1" for _ in shares[:3])
        dots = ", ..." if len(shares) > 3 else ""
        return (
            f"{least}: with equal shares, shares=[{ones}{dots}], "
            f"they add up to {times:.2f} times as much{self._reach(equal)}"
        )

    def _reach(self, division: Division) -> str:
        """The smallest and the largest half-width of a count, in brackets."""
        widths = [
            width
            for each, cost in zip(self.divider.questions, division.costs, strict=True)
            if each.counts and (width := each.half_width(cost)) is not None
        ]
        ends = dict.fromkeys(f"+-{width:,.6g}" for width in (min(widths), max(widths)))
        return f" ({' to '.join(ends)})"


# --- the choice -----------------------------------------------------------------------------------


class PlanChoice(msgspec.Struct, frozen=True):
    """What was picked for a plan, and why.

    Attributes
    ----------
    cost : PureDP, ApproxDP or ZCDP
        Of the whole plan, at most: as it was stated, or the least one that is accurate enough;
        without the delta, if no question uses it.
    costs : tuple of measure
        What each question may spend. Those in rho add up to the rho that their part of an
        (epsilon, delta) allows; all others add up to the rest of it.
    in_rho : tuple of int
        The places of the questions that are answered within one rho, out of an (epsilon, delta).
    sentences : tuple of str
        What was picked, and why.
    """

    cost: CentralMeasure
    costs: tuple[CentralMeasure, ...]
    in_rho: tuple[int, ...]
    block: ApproxDP | None
    sentences: tuple[str, ...]

    def money(self, used: Sequence[CentralMeasure], rule: str) -> Money:
        """The charge for what the questions use, in the units of an account."""
        return Division(self.in_rho, self.costs, self.block).money(used, rule)

    def __str__(self) -> str:
        return " ".join(self.sentences)


class PlanCost(msgspec.Struct, frozen=True):
    """What a plan may cost, as it was stated.

    Attributes
    ----------
    cost : measure or None
        None: the least cost at which every answer is as accurate as requested.
    delta : Fraction
        The delta of that least cost.
    """

    cost: CentralMeasure | None
    delta: Fraction = Fraction(0)

    def parts(self, plan: Plan) -> list[CentralMeasure]:
        """The parts of a plan for which nothing is picked."""
        assert self.cost is not None
        return plan.costs(self.cost)


def plan_cost(
    plan: Plan, *, epsilon: Exactly | None, delta: Exactly, rho: Exactly | None
) -> PlanCost:
    """Read what a plan may cost. A plan with accuracies may leave epsilon and rho out.

    Raises
    ------
    UsageError
        As ``asked_cost``.
    """
    if epsilon is None and rho is None and plan.accuracy is not msgspec.UNSET:
        return PlanCost(None, Kind.of("pure", delta).delta)
    return PlanCost(asked_cost(epsilon=epsilon, delta=delta, rho=rho))


def is_picked(plan: Plan, cost: CentralMeasure | None) -> bool:
    """Whether something is picked for a plan, which otherwise is answered as it is stated."""
    if cost is None or plan.picks_shares:
        return True
    if plan.noise is not msgspec.UNSET:
        # Laplace noise at the stated shares is what a plan without a choice has.
        return plan.noise != "laplace" or not isinstance(cost, ApproxDP)
    if len(plan.questions) == 1:
        return False
    return isinstance(cost, ApproxDP) or (isinstance(cost, ZCDP) and plan.shares is None)


def chosen(
    plan: Plan,
    domain: Domain,
    unit: Unit,
    stated: PlanCost,
    *,
    rule: str | None = None,
) -> PlanChoice | None:
    """Pick the noise and the shares of a plan; None if it is answered as it is stated.

    Parameters
    ----------
    plan : Plan
    domain : Domain
    unit : Unit
    stated : PlanCost
    rule : {"pure", "approx", "zcdp"} or None
        The measure of the account that pays; None: any one.

    Returns
    -------
    PlanChoice or None

    Raises
    ------
    Infeasible
        If the cost is less than the accuracies need. It says which one they need.
    UsageError
        If a question cannot say beforehand how accurate it would be, or no cost is given and a
        question has no accuracy, or the noise that is stated does not fit the cost.
    """
    if not is_picked(plan, stated.cost):
        return None
    return Chooser(plan, domain, unit, stated, rule).choice()


class Chooser:
    """Picks the noise and the shares of one plan; the parameters are those of ``chosen``."""

    def __init__(
        self,
        plan: Plan,
        domain: Domain,
        unit: Unit,
        stated: PlanCost,
        rule: str | None,
    ) -> None:
        asked = zip(plan.questions, plan.accuracies, plan.weighed, strict=True)
        self.plan = plan
        found: dict[tuple[Kind, Within], int] = {}
        self.questions = [
            PlannedQuestion(question, domain, unit, within, weight, plan.guess, found)
            for question, within, weight in asked
        ]
        self.is_open = [each.within is None for each in self.questions]
        self.rule = rule
        self.stated = stated.cost
        self.kind = self._kind(stated)
        _check_noise(plan, self.kind, rule)
        shares = None if plan.shares is None else plan.proportions
        self.divider = Divider(self.questions, shares, squared=plan.minimise == "squared")
        self.ways = self._ways()

    def _kind(self, stated: PlanCost) -> Kind:
        """The measure of the cost: as it was stated, or as the account counts."""
        if stated.cost is not None:
            return kind_of(stated.cost)
        if any(self.is_open):
            open_question = self.questions[self.is_open.index(True)].question
            raise UsageError(
                "a plan without a cost",
                f"{open_question.title} has no accuracy, and any cost would do for it",
                'State the cost, such as epsilon="1", or an accuracy for each question',
            )
        if self.rule == "zcdp":
            # Such an account pays for no delta, so what is least is its own rho.
            return Kind.of("zcdp")
        return Kind.of("pure", stated.delta)

    def _ways(self) -> list[tuple[int, ...]]:
        """The questions that may be answered in rho: none; all that can; all counts that can."""
        if self.kind.name != "approx" or self.plan.noise == "laplace" or self.rule == "pure":
            return [()]
        able = [i for i, each in enumerate(self.questions) if each.takes_rho]
        counts = [i for i in able if self.questions[i].counts]
        rest = set(range(len(self.questions))) - set(able)
        found = [way for way in dict.fromkeys([tuple(able), tuple(counts)]) if way]
        if self.plan.noise == "gaussian":
            if not found:
                raise UsageError(
                    "Gaussian noise for a plan",
                    "none of its questions can be answered at a rho",
                    "Leave noise out",
                )
            return found
        # An account in rho cannot pay for a question that uses its delta.
        return found if self.rule == "zcdp" and rest else [(), *found]

    # --- picking ----------------------------------------------------------------------------------

    def choice(self) -> PlanChoice | None:
        """The way whose predicted error is least, or that needs the least cost."""
        cost = self._least_cost() if self.stated is None else self.stated
        offers = self.offers(cost)
        best = min(offers, key=lambda offer: offer.score)
        division = best.division
        if not self.plan.picks_shares and self._is_plain(cost, division):
            return None
        needs = {} if any(self.is_open) else self._needs()
        why = Why(self.plan, cost, self.divider, best, tuple(offers), self.rule, needs)
        sentences = why.sentences(is_least=self.stated is None)
        spent = self.divider.spent(cost, division.in_rho)
        return PlanChoice(spent, division.costs, division.in_rho, division.block, sentences)

    def _is_plain(self, cost: CentralMeasure, division: Division) -> bool:
        """Whether nothing was picked that a plan without any choice does not have."""
        return not isinstance(cost, ApproxDP) and list(division.costs) == self.plan.costs(cost)

    def offers(self, cost: CentralMeasure) -> list[Offer]:
        """What each way to spend the cost leads to, for those that are accurate enough."""
        found: list[Offer] = []
        refusals: list[SfumatoError] = []
        for way in self.ways:
            try:
                offer = self._offer(cost, way)
            except SfumatoError as refusal:
                refusals.append(refusal)
                continue
            if offer is not None and self._is_welcome(offer, found):
                found.append(offer)
        if not found:
            raise refusals[0] if refusals else self._too_little(cost)
        return found

    def _offer(self, cost: CentralMeasure, way: tuple[int, ...]) -> Offer | None:
        """What one way leads to; None if it is not accurate enough."""
        division = self.divider.divided(cost, way)
        if division is None:
            return None
        parts = list(zip(self.questions, division.costs, strict=True))
        if not all(each.is_met(part) for each, part in parts):
            return None
        if not any(self.is_open):
            return Offer(division, float(self.divider.needed(self.kind, way)))
        return Offer(division, self._error(division.costs, share_equally(cost, len(parts))))

    def _error(self, costs: Sequence[CentralMeasure], equal: Sequence[CentralMeasure]) -> float:
        """The error of the open questions, as a multiple of what it is with equal parts.

        Half-widths of counts are in rows, and are added up before they are compared. Others are in
        units of their own, and are compared question by question.
        """
        ours = others = weight_of_counts = 0.0
        theirs = 0.0
        for each, cost, plain in zip(self.questions, costs, equal, strict=True):
            if each.within is not None:
                continue
            error = each.error(cost, squared=self.divider.squared)
            before = each.error(plain, squared=self.divider.squared)
            if error is None or before is None:
                ratio = each.loss(cost) / each.loss(plain)
                others += float(each.weight) * ratio ** (2 if self.divider.squared else 1)
                continue
            ours += error
            theirs += before
            weight_of_counts += float(each.weight)
        return others + (weight_of_counts * ours / theirs if theirs else 0.0)

    def _is_welcome(self, offer: Offer, before: Sequence[Offer]) -> bool:
        """Whether it may be taken: shares that are stated say what each question is worth, so no
        question may be answered worse than with Laplace noise.
        """
        if self.plan.shares is None or not before:
            return True
        every = zip(self.questions, offer.division.costs, before[0].division.costs, strict=True)
        return all(each.loss(cost) <= each.loss(plain) for each, cost, plain in every)

    # --- costs ------------------------------------------------------------------------------------

    def _least_cost(self) -> CentralMeasure:
        """The least cost, of all ways to spend it, at which every question is accurate enough."""
        return self._cost(self._least_needed())

    def _least_needed(self) -> Fraction:
        """What the questions with an accuracy need, on the way on which it is least."""
        return min(self._needs().values())

    def _needs(self) -> dict[tuple[int, ...], Fraction]:
        """What the questions with an accuracy need, on each way that can be accurate enough."""
        found: dict[tuple[int, ...], Fraction] = {}
        refusals: list[SfumatoError] = []
        for way in self.ways:
            try:
                found[way] = self.divider.needed(self.kind, way)
            except SfumatoError as refusal:
                refusals.append(refusal)
        if not found:
            raise refusals[0]
        return found

    def _cost(self, level: Fraction) -> CentralMeasure:
        return self.kind.cost(int(level * self.kind.units))

    def _too_little(self, cost: CentralMeasure) -> UsageError:
        """The error of a cost that is less than the questions need."""
        if all(self.is_open):
            obstacle = "some part of it is less than the smallest unit that is counted"
            return UsageError(f"a plan at {cost}", obstacle, "Choose a larger cost")
        needed = self._least_needed()
        enough = f'{self.kind.letter}="{decimal(needed)}"'
        obstacle = f"the accuracy that is asked for needs {self._cost(needed)}"
        remedy = f"Give {enough} or more, or allow larger half-widths"
        if any(self.is_open):
            obstacle += ", and leaves too little for the other questions"
            remedy = f"Give more than {enough}, or allow larger half-widths"
        return Infeasible(f"a plan at {cost}", obstacle, remedy)


def share_equally(cost: CentralMeasure, number: int) -> list[CentralMeasure]:
    """Equal parts of a cost."""
    return share(cost, [Fraction(1)] * number)


def _check_noise(plan: Plan, kind: Kind, rule: str | None) -> None:
    """Refuse a noise that the cost, or the account, cannot pay for."""
    if plan.noise is msgspec.UNSET or plan.noise is None:
        return
    asked = f'a plan with noise="{plan.noise}"'
    if kind.name == "pure" and plan.noise == "gaussian":
        obstacle = "Gaussian noise has no pure epsilon"
        raise UsageError(asked, obstacle, 'Give delta="1e-6" as well, or a rho')
    if kind.name == "zcdp" and plan.noise == "laplace":
        obstacle = "a rho pays for Gaussian noise, which has the smaller error"
        raise UsageError(asked, obstacle, "Give an epsilon, or leave noise out")
    if rule == "pure" and plan.noise == "gaussian":
        obstacle = "the account counts pure epsilon, and Gaussian noise has none"
        raise UsageError(asked, obstacle, "Open an account whose budget has a delta, or a rho")
