"""Pick the noise and the shares of a plan by the accuracy that they lead to, from public facts.

The facts are the questions, the domain, the unit, the cost and the measure of the account. What is
picked is said in sentences, which previews, receipts and reports show.

``reasons`` makes the sentences: what was picked, and why.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import msgspec

from sfumato.answers import AnyQuestion, Kind, Preview, Within, kind_of
from sfumato.basics import decimal
from sfumato.domain import Domain
from sfumato.errors import Infeasible, SfumatoError, UsageError
from sfumato.privacy import ZCDP, ApproxDP, CentralMeasure, Unit, share
from sfumato.publishing.divisions import Candidate, Choice, divide, needed, spent
from sfumato.publishing.plan import Plan

# --- the sentences --------------------------------------------------------------------------------

WORTH_SAYING = 1.005  # times as much

# The places of the questions that are answered within one rho.
Way: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Terms:
    """What a choice is made for.

    Attributes
    ----------
    plan : Plan
    candidates : list of Candidate
        Its questions.
    kind : Kind
        The measure of its cost.
    rule : str or None
        The measure of the account.
    """

    plan: Plan
    candidates: list[Candidate]
    kind: Kind
    rule: str | None

    @property
    def is_open(self) -> list[bool]:
        """Whether each question is one of which no accuracy is asked."""
        return [candidate.is_open for candidate in self.candidates]

    @functools.cached_property
    def ways(self) -> list[Way]:
        """List the questions that may be answered in rho: none; all that can; counts that can."""
        if self.kind.name != "approx" or self.plan.noise == "laplace" or self.rule == "pure":
            return [()]
        in_rho = self._ways_in_rho()
        if self.plan.noise == "gaussian":
            if not in_rho:
                raise UsageError(
                    "Gaussian noise for a plan",
                    "none of its questions can be answered at a rho",
                    "Leave noise out",
                )
            return in_rho
        # An account in rho cannot pay for a question that uses its delta. Where no question can be
        # answered at a rho, it says so when it is charged.
        number = len(self.candidates)
        is_paid_in_rho = self.rule == "zcdp" and all(len(way) < number for way in in_rho)
        return in_rho if in_rho and is_paid_in_rho else [(), *in_rho]

    def _ways_in_rho(self) -> list[Way]:
        """List all questions that can be answered in rho; and those of them that count."""
        able = tuple(i for i, candidate in enumerate(self.candidates) if candidate.takes_rho)
        counts = tuple(i for i in able if self.candidates[i].counts)
        return [way for way in dict.fromkeys([able, counts]) if way]

    @functools.cached_property
    def needs(self) -> dict[Way, Fraction]:
        """Return the epsilon or rho that the accuracies need, on each way that can keep them."""
        needs: dict[Way, Fraction] = {}
        refusals: list[SfumatoError] = []
        for way in self.ways:
            try:
                needs[way] = needed(self.candidates, self.kind, way)
            except SfumatoError as refusal:
                refusals.append(refusal)
        if not needs:
            raise refusals[0]
        return needs

    def at(self, level: Fraction) -> CentralMeasure:
        """Return the cost of an epsilon or rho."""
        return self.kind.cost(int(level * self.kind.units))


def is_picked(plan: Plan, stated: CentralMeasure | Kind) -> bool:
    """Tell whether something is picked for a plan, which otherwise is answered as it is stated."""
    if isinstance(stated, Kind) or plan.picks_shares:
        return True
    if plan.noise is not msgspec.UNSET:
        # Laplace noise at the stated shares is what a plan without a choice has.
        return plan.noise != "laplace" or not isinstance(stated, ApproxDP)
    if len(plan.questions) == 1:
        return False
    return isinstance(stated, ApproxDP) or (isinstance(stated, ZCDP) and plan.shares is None)


def choose(
    plan: Plan,
    domain: Domain,
    unit: Unit,
    stated: CentralMeasure | Kind,
    rule: str | None = None,
) -> Choice | None:
    """Pick the noise and the shares of a plan; None if it is answered as it is stated.

    Parameters
    ----------
    plan : Plan
    domain : Domain
    unit : Unit
    stated : measure or Kind
        The cost; a kind: the least cost of it at which every answer is as accurate as requested.
    rule : {"pure", "approx", "zcdp"} or None
        The measure of the account that pays; None: any one.

    Returns
    -------
    Choice or None

    Raises
    ------
    Infeasible
        If the cost is less than the accuracies need. It says which one they need.
    UsageError
        If a question cannot say beforehand how accurate it would be, or no cost is given and a
        question has no accuracy, or the noise that is stated does not fit the cost.
    """
    if not is_picked(plan, stated):
        return None
    candidates = candidates_of(plan, domain, unit)
    terms = Terms(plan, candidates, _kind(candidates, stated, rule), rule)
    _check_noise(plan, terms.kind, rule)
    cost = terms.at(min(terms.needs.values())) if isinstance(stated, Kind) else stated
    scored = _scored(terms, cost)
    best, _ = min(scored, key=lambda pair: pair[1])
    is_plain = not isinstance(cost, ApproxDP) and list(best.costs) == plan.costs(cost)
    if is_plain and not plan.picks_shares:
        return None
    sentences = reasons(terms, cost, best, scored, is_least=isinstance(stated, Kind))
    return msgspec.structs.replace(best, sentences=sentences)


def candidates_of(plan: Plan, domain: Domain, unit: Unit) -> list[Candidate]:
    """Make the questions of a plan candidates for parts of its cost."""
    stated = [None] * len(plan.questions) if plan.shares is None else plan.proportions
    power = 2 if plan.minimise == "squared" else 1
    starts: dict[tuple[Kind, Within], int] = {}

    def previewing(question: AnyQuestion) -> Callable[[CentralMeasure], Preview]:
        return functools.cache(lambda cost: question.preview(domain, unit, cost, plan.guess))

    return [
        Candidate(question, previewing(question), within, weight, share, power, starts)
        for question, within, weight, share in zip(
            plan.questions, plan.accuracies, plan.weighed, stated, strict=True
        )
    ]


def _kind(candidates: Sequence[Candidate], stated: CentralMeasure | Kind, rule: str | None) -> Kind:
    """Return the measure of the cost: as it was stated, or as the account counts."""
    if not isinstance(stated, Kind):
        return kind_of(stated)
    for candidate in candidates:
        if candidate.is_open:
            raise UsageError(
                "a plan without a cost",
                f"{candidate.question.title} has no accuracy, and any cost would do for it",
                'State the cost, such as epsilon="1", or an accuracy for each question',
            )
    # An account in rho pays for no delta, so what is least is its own rho.
    return Kind.of("zcdp") if rule == "zcdp" else stated


def _check_noise(plan: Plan, kind: Kind, rule: str | None) -> None:
    """Refuse a noise that the cost, or the account, cannot pay for."""
    for stated, unpaid, obstacle, remedy in (
        (
            kind.name,
            ("pure", "gaussian"),
            "Gaussian noise has no pure epsilon",
            'Give delta="1e-6" as well, or a rho',
        ),
        (
            kind.name,
            ("zcdp", "laplace"),
            "a rho pays for Gaussian noise, which has the smaller error",
            "Give an epsilon, or leave noise out",
        ),
        (
            rule,
            ("pure", "gaussian"),
            "the account counts pure epsilon, and Gaussian noise has none",
            "Open an account whose budget has a delta, or a rho",
        ),
    ):
        if (stated, plan.noise) == unpaid:
            raise UsageError(f'a plan with noise="{plan.noise}"', obstacle, remedy)


# --- picking --------------------------------------------------------------------------------------

# A choice, and its predicted error or the cost that it needs: the least one is taken.
Scored: TypeAlias = tuple[Choice, float]


def _scored(terms: Terms, cost: CentralMeasure) -> list[Scored]:
    """Return what each way to spend the cost leads to, for those that are accurate enough."""
    scored: list[Scored] = []
    refusals: list[SfumatoError] = []
    for way in terms.ways:
        try:
            choice = divide(terms.candidates, cost, way)
            if choice is None or not _is_accurate(terms, choice, scored):
                continue
            scored.append((choice, _score(terms, choice, cost)))
        except SfumatoError as refusal:
            refusals.append(refusal)
    if not scored:
        raise refusals[0] if refusals else _too_little(terms, cost)
    return scored


def _is_accurate(terms: Terms, choice: Choice, before: Sequence[Scored]) -> bool:
    """Tell whether every accuracy is kept, and no question is worse off at stated shares.

    Shares that are stated say what each question is worth, so none may be answered worse than with
    Laplace noise.
    """
    pairs = list(zip(terms.candidates, choice.costs, strict=True))
    if not all(candidate.is_met(cost) for candidate, cost in pairs):
        return False
    if terms.plan.shares is None or not before:
        return True
    plain = before[0][0].costs
    return all(
        candidate.loss(cost) <= candidate.loss(other)
        for (candidate, cost), other in zip(pairs, plain, strict=True)
    )


def _score(terms: Terms, choice: Choice, cost: CentralMeasure) -> float:
    """Return the error of the open questions, as a multiple of what it is with equal parts.

    Half-widths of counts are in rows, and are added up before they are compared. Others are in
    units of their own, and are compared question by question. Without open questions: the cost that
    the accuracies need.
    """
    if not any(terms.is_open):
        return float(needed(terms.candidates, terms.kind, choice.in_rho))
    equal = share(cost, [Fraction(1)] * len(choice.costs))
    ours = theirs = others = weight_of_counts = 0.0
    for candidate, own, plain in zip(terms.candidates, choice.costs, equal, strict=True):
        if not candidate.is_open:
            continue
        error = candidate.error(own)
        before = candidate.error(plain)
        if error is None or before is None:
            ratio = candidate.loss(own) / candidate.loss(plain)
            others += float(candidate.weight) * ratio**candidate.power
            continue
        ours += error
        theirs += before
        weight_of_counts += float(candidate.weight)
    return others + (weight_of_counts * ours / theirs if theirs else 0.0)


def _too_little(terms: Terms, cost: CentralMeasure) -> UsageError:
    if all(terms.is_open):
        return UsageError(
            f"a plan at {cost}",
            "some part of it is less than the smallest unit that is counted",
            "Choose a larger cost",
        )
    level = min(terms.needs.values())
    enough = f'{terms.kind.letter}="{decimal(level)}"'
    obstacle = f"the accuracy that is asked for needs {terms.at(level)}"
    remedy = f"Give {enough} or more, or allow larger half-widths"
    if any(terms.is_open):
        obstacle += ", and leaves too little for the other questions"
        remedy = f"Give more than {enough}, or allow larger half-widths"
    return Infeasible(f"a plan at {cost}", obstacle, remedy)


# --- reasons --------------------------------------------------------------------------------------


def reasons(
    terms: Terms,
    cost: CentralMeasure,
    choice: Choice,
    scored: Sequence[Scored],
    *,
    is_least: bool,
) -> tuple[str, ...]:
    """Say what was picked, and why.

    Parameters
    ----------
    terms : Terms
    cost : measure
        Of the whole plan.
    choice : Choice
        The best one.
    scored : sequence of Scored
        All that are accurate enough.
    is_least : bool
        Whether the cost was picked, too.
    """
    needs = {} if any(terms.is_open) else terms.needs
    sentences = [
        _why_this_noise(terms, cost, choice, scored, needs),
        _why_these_shares(terms, cost, choice, needs, is_least),
    ]
    return tuple(f"{said[:1].upper()}{said[1:]}." for said in sentences if said)


def _why_this_noise(
    terms: Terms,
    cost: CentralMeasure,
    choice: Choice,
    scored: Sequence[Scored],
    needs: Mapping[Way, Fraction],
) -> str:
    if not isinstance(cost, ApproxDP):
        return ""
    noise = _noise(terms.candidates, choice.in_rho)
    if needs:
        ways = [way for way in needs if way != choice.in_rho]
        if not ways:
            return f"{noise}, {_only_way(terms)}"
        cheapest = min(ways, key=needs.__getitem__)
        ours, theirs = (_level(terms, needs, way) for way in (choice.in_rho, cheapest))
        return (
            f"{noise}, because the accuracy that is asked for needs {ours} with it and {theirs} "
            f"with {_noise(terms.candidates, cheapest)}"
        )
    rivals = [pair for pair in scored if pair[0] is not choice]
    if not rivals:
        return f"{noise}, {_only_way(terms)}"
    rival, score = min(rivals, key=lambda pair: pair[1])
    own_score = next(own for other, own in scored if other is choice)
    return f"{noise}, because {_errors(terms, cost, choice, rival, score / own_score)}"


def _level(terms: Terms, needs: Mapping[Way, Fraction], way: Way) -> CentralMeasure:
    return spent(terms.candidates, terms.at(needs[way]), way)


def _only_way(terms: Terms) -> str:
    """Say why there was nothing to compare it with."""
    if terms.plan.noise is not msgspec.UNSET:
        return "as the plan states"
    if terms.rule == "pure":
        return "because the account counts epsilon alone"
    if terms.plan.shares is not None:
        return "because with any other some answer would be less accurate, at the stated shares"
    return "because with any other the cost is not enough"


def _noise(candidates: Sequence[Candidate], in_rho: Way) -> str:
    """Name the noise in words, if these questions are answered in rho."""
    number = len(candidates)
    if not in_rho:
        return (
            "Laplace noise"
            if all(candidate.counts for candidate in candidates)
            else "pure epsilon (Laplace noise)"
        )
    is_of_counts = all(candidates[i].counts for i in in_rho)
    name = "Gaussian noise" if is_of_counts else "a common rho (Gaussian noise on counts)"
    return name if len(in_rho) == number else f"{name} for {len(in_rho)} of {number} questions"


def _errors(terms: Terms, cost: CentralMeasure, choice: Choice, rival: Choice, times: float) -> str:
    """Say how accurate two choices are, side by side."""
    with_rival = f"with {_noise(terms.candidates, rival.in_rho)}"
    ours = _open_widths(terms.candidates, choice.costs)
    theirs = _open_widths(terms.candidates, rival.costs)
    if ours is None or theirs is None:
        return f"at {cost} errors are {times:.2f} times as large {with_rival}"
    if len(set(ours)) == len(set(theirs)) == 1:
        number = len(ours)
        have = "one question has" if number == 1 else f"{number:,} questions have"
        return f"{have} +-{ours[0]:,.6g} at {cost} with it and +-{theirs[0]:,.6g} {with_rival}"
    sums = [_total(terms.candidates, costs) for costs in (choice.costs, rival.costs)]
    return (
        f"{_summed(terms.plan)} add up to {sums[0]:,.6g} at {cost} with it and to {sums[1]:,.6g} "
        f"{with_rival}"
    )


def _open_widths(
    candidates: Sequence[Candidate], costs: Sequence[CentralMeasure]
) -> list[float] | None:
    """Return the half-widths of the open questions; None unless all of them are counts."""
    widths = []
    for candidate, cost in zip(candidates, costs, strict=True):
        width = candidate.half_width(cost)
        if not candidate.is_open:
            continue
        if width is None or not candidate.counts:
            return None
        widths.append(width)
    return widths


def _total(candidates: Sequence[Candidate], costs: Sequence[CentralMeasure]) -> float:
    pairs = zip(candidates, costs, strict=True)
    return sum(candidate.error(cost) or 0.0 for candidate, cost in pairs if candidate.is_open)


def _summed(plan: Plan) -> str:
    squares = "squares of the " if plan.minimise == "squared" else ""
    weighted = "weighted " if plan.weights is not msgspec.UNSET else ""
    return f"the {weighted}{squares}half-widths of all counts"


def _why_these_shares(
    terms: Terms,
    cost: CentralMeasure,
    choice: Choice,
    needs: Mapping[Way, Fraction],
    is_least: bool,
) -> str:
    if terms.plan.shares is not None:
        return ""
    if is_least:
        return f"{choice.cost} is the least cost at which every answer is as accurate as requested"
    if not any(terms.is_open):
        return (
            "each question has what it needs for the accuracy that is asked for, and "
            f"{_level(terms, needs, choice.in_rho)} would be enough"
        )
    if not all(terms.is_open):
        return (
            "questions with an accuracy have what they need; with the rest, "
            f"{_summed(terms.plan)} of the others add up to the least"
        )
    return _beside_equal_shares(terms, cost, choice)


def _beside_equal_shares(terms: Terms, cost: CentralMeasure, choice: Choice) -> str:
    """Say what picked shares gain over equal ones, and at whose expense."""
    candidates = terms.candidates
    alike = [dataclasses.replace(candidate, share=Fraction(1)) for candidate in candidates]
    try:
        equal = divide(alike, cost, choice.in_rho)
    except SfumatoError:
        return ""
    least = _total(candidates, choice.costs)
    if equal is None or equal == choice or not least:
        return ""
    said = (
        f"the shares make {_summed(terms.plan)} add up to the least"
        f"{_span(candidates, choice.costs)}"
    )
    times = _total(candidates, equal.costs) / least
    if times < WORTH_SAYING:
        return said
    ones = ", ".join(["1"] * min(len(alike), 3) + ["..."] * (len(alike) > 3))
    return (
        f"{said}: with equal shares, shares=[{ones}], "
        f"they add up to {times:.2f} times as much{_span(candidates, equal.costs)}"
    )


def _span(candidates: Sequence[Candidate], costs: Sequence[CentralMeasure]) -> str:
    """Write the smallest and the largest half-width of a count, in brackets."""
    pairs = zip(candidates, costs, strict=True)
    widths = [
        width
        for candidate, cost in pairs
        if candidate.counts and (width := candidate.half_width(cost)) is not None
    ]
    ends = dict.fromkeys(f"+-{width:,.6g}" for width in (min(widths), max(widths)))
    return f" ({' to '.join(ends)})"
