"""The least cost that is accurate enough, in whole units of the ledger: a search over previews."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import msgspec
import numpy as np

from sfumato.answers.estimate import error_probability
from sfumato.answers.preview import Preview
from sfumato.answers.question import AnyQuestion
from sfumato.domain import Domain
from sfumato.errors import Infeasible, SfumatoError, UsageError, nearest, shown
from sfumato.numbers import EPSILON_UNITS, RHO_UNITS, Exactly, fraction, positive
from sfumato.privacy.measures import (
    LARGEST_EPSILON,
    LARGEST_RHO,
    ZCDP,
    ApproxDP,
    CentralMeasure,
    PureDP,
    rho_with_delta,
)
from sfumato.privacy.unit import Unit
from sfumato.publishing.plan import Plan

ROUNDS = 8  # in which shares of delta follow shares of epsilon


class Within(msgspec.Struct, frozen=True):
    """How accurate is accurate enough? Each number within ``half_width`` of the truth, with this confidence.

    Parameters
    ----------
    half_width : number
        Above 0, in the unit of the answer: rows, for counts.
    confidence : number in (0, 1)
    simultaneous : bool
        False: each interval holds with this confidence. True: all hold together with it.

    >>> str(Within(20, simultaneous=True))
    'within +-20, all at once with 95% confidence'
    """

    half_width: float
    confidence: float = 0.95
    simultaneous: bool = False

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(
            self, "half_width", float(positive(self.half_width, "half_width"))
        )
        msgspec.structs.force_setattr(self, "confidence", 1 - error_probability(self.confidence))
        if not isinstance(self.simultaneous, bool):
            raise UsageError("simultaneous", "it is true or false", "Write simultaneous=True")

    def __str__(self) -> str:
        how = "all at once" if self.simultaneous else "each"
        return (
            f"within +-{self.half_width:,.6g}, {how} with {100 * self.confidence:.6g}% confidence"
        )


@dataclass(frozen=True)
class Wish:
    """A question, where it is asked, and how accurate its answer is to be."""

    question: AnyQuestion
    domain: Domain
    unit: Unit
    rows: int | None
    wish: Within

    def preview(self, cost: CentralMeasure) -> Preview:
        """What the question says of itself at a cost."""
        return self.question.preview(self.domain, self.unit, cost, self.rows)

    def half_width(self, cost: CentralMeasure, simultaneous: bool | None = None) -> float:
        """The largest half-width at a cost, with the wished confidence."""
        together = self.wish.simultaneous if simultaneous is None else simultaneous
        preview = self.preview(cost)
        if not preview.states_accuracy:
            raise UsageError(
                "a window for this question",
                "it cannot say beforehand how accurate its answer would be",
                "Leave it out",
            )
        return float(preview.accuracy(self.wish.confidence, together))

    def met(self, cost: CentralMeasure) -> bool:
        """Whether the answer would be as accurate as wished."""
        return self.half_width(cost) <= self.wish.half_width


@dataclass(frozen=True)
class Kind:
    """A measure of cost, counted in whole units."""

    name: str
    letter: str
    units: int
    most: int
    delta: Fraction = Fraction(0)

    @staticmethod
    def of(measure: str, delta: Exactly = 0) -> Kind:
        """Read a measure by its name; with a delta above 0, "pure" becomes (epsilon, delta)."""
        slack = fraction(delta, "delta")
        if measure not in _KINDS:
            raise UsageError(
                f"measure {shown(measure)}",
                f"it is unknown; {nearest(measure, _KINDS)}",
                'Choose "pure" or "zcdp"',
            )
        if slack and measure == "zcdp":
            raise rho_with_delta()
        kind = _KINDS[measure]
        return (
            Kind("approx", kind.letter, kind.units, kind.most, ApproxDP(1, slack).delta)
            if slack
            else kind
        )

    def cost(self, units: int) -> CentralMeasure:
        """So many units as a cost."""
        level = Fraction(units, self.units)
        match self.name:
            case "zcdp":
                return ZCDP(level)
            case "approx":
                return ApproxDP(level, self.delta)
        return PureDP(level)

    def level(self, cost: CentralMeasure) -> Fraction:
        """A cost as a number: its epsilon or rho."""
        return Fraction(cost.rho if isinstance(cost, ZCDP) else cost.epsilon)

    def between(self, low: Fraction, high: Fraction, points: int) -> list[CentralMeasure]:
        """Costs from low to high, evenly spaced in logarithms."""
        ends = max(float(low), 1 / self.units), min(float(high), self.most / self.units)
        units = [
            min(max(round(level * self.units), 1), self.most)
            for level in np.geomspace(*ends, points).tolist()
        ]
        return [self.cost(each) for each in dict.fromkeys(units)]


_KINDS = {
    "pure": Kind("pure", "epsilon", EPSILON_UNITS, LARGEST_EPSILON * EPSILON_UNITS),
    "zcdp": Kind("zcdp", "rho", RHO_UNITS, LARGEST_RHO * RHO_UNITS),
}


def kind_of(cost: CentralMeasure) -> Kind:
    """The measure of a cost."""
    match cost:
        case ZCDP():
            return _KINDS["zcdp"]
        case ApproxDP(delta=delta):
            return Kind.of("pure", delta)
        case PureDP():
            return _KINDS["pure"]


def shared(plan: Plan, asked: Sequence[Wish], kind: Kind) -> Plan:
    """Solve the shares: each question's is what it needs alone. Shares that the plan states are kept.

    Delta is divided by the same shares, and what a question needs depends on its delta; so a few rounds go back and forth.
    """
    if plan.shares is not None or len(asked) == 1:
        return plan
    weights = [1] * len(asked)
    for _ in range(ROUNDS if kind.delta else 1):
        costs = Plan(plan.questions, weights).costs(kind.cost(kind.units))
        found = [least_alone(one, kind_of(cost)) for one, cost in zip(asked, costs, strict=True)]
        if found == weights:
            break
        weights = found
    return Plan(plan.questions, weights)


def least_alone(one: Wish, kind: Kind) -> int:
    """The least units at which one question is as accurate as wished."""
    return least(lambda units: one.met(kind.cost(units)), kind.units, kind.most, str(one.wish))


def least_total(plan: Plan, asked: Sequence[Wish], kind: Kind) -> int:
    """The least units at which every question of a plan with these shares is as accurate as wished."""

    def met(units: int) -> bool:
        return all(
            one.met(cost) for one, cost in zip(asked, plan.costs(kind.cost(units)), strict=True)
        )

    start = kind.units if plan.shares is None else max(1, int(sum(plan.weights)))
    return least(met, start, kind.most, "; ".join(dict.fromkeys(str(one.wish) for one in asked)))


def least(met: Callable[[int], bool], start: int, most: int, wish: str) -> int:
    """The least units that are enough: they are, and one less is not.

    A refusal counts as not enough; if nothing is, the first refusal is raised, or ``Infeasible``.
    """
    refusals: list[SfumatoError] = []

    def enough(units: int) -> bool:
        try:
            return met(units)
        except SfumatoError as refusal:
            refusals.append(refusal)
            return False

    low, high = _bracket(enough, min(start, most), most)
    if high > most:
        raise (
            refusals[0]
            if refusals
            else Infeasible(
                f"an answer {wish}",
                "no cost that a ledger can count is enough for it",
                "Allow a larger half-width, or ask for fewer cells",
            )
        )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _bracket(enough: Callable[[int], bool], start: int, most: int) -> tuple[int, int]:
    """Units that are not enough, or 0, and units that are, or more than there can be; by doubling or halving."""
    if not enough(start):
        low, high = start, min(2 * start, most)
        while not enough(high):
            if high == most:
                return most, most + 1
            low, high = high, min(2 * high, most)
        return low, high
    if start > 1 and not enough(start - 1):
        return start - 1, start
    low, high = start // 2, start
    while low and enough(low):
        low, high = low // 2, low
    return low, high
