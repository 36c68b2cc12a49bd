"""How accurate an answer must be, and the least cost at which it is: a search over previews.

Costs are counted in whole units of the ledger.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import msgspec
import numpy as np

from sfumato.answers.estimate import error_probability
from sfumato.answers.preview import Preview
from sfumato.answers.question import AnyQuestion
from sfumato.basics import (
    EPSILON_UNITS,
    RHO_UNITS,
    Exactly,
    ExplainedStruct,
    fraction,
    least_whole,
    positive,
)
from sfumato.domain import Domain
from sfumato.errors import Infeasible, SfumatoError, UsageError, nearest, shown
from sfumato.privacy import (
    LARGEST_EPSILON,
    LARGEST_RHO,
    ZCDP,
    ApproxDP,
    CentralMeasure,
    PureDP,
    Unit,
    rho_with_delta,
)


class Within(ExplainedStruct, frozen=True):
    """How accurate is accurate enough?

    Each number lies within ``half_width`` of the truth, with this confidence.

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


class AccuracyRequest(msgspec.Struct, frozen=True):
    """A question, where it is asked, and how accurate its answer must be."""

    question: AnyQuestion
    domain: Domain
    unit: Unit
    rows: int | None
    accuracy: Within

    def preview(self, cost: CentralMeasure) -> Preview:
        """What the question would publish at a cost, and how accurately."""
        return self.question.preview(self.domain, self.unit, cost, self.rows)

    def half_width(self, cost: CentralMeasure, simultaneous: bool | None = None) -> float:
        """The largest half-width at a cost, with the confidence that is requested.

        Raises
        ------
        UsageError
            If the question cannot state its accuracy beforehand.
        """
        together = self.accuracy.simultaneous if simultaneous is None else simultaneous
        preview = self.preview(cost)
        if not preview.states_accuracy:
            raise UsageError(
                "a window for this question",
                "it cannot say beforehand how accurate its answer would be",
                "Leave it out",
            )
        return float(preview.accuracy(self.accuracy.confidence, together))

    def is_met(self, cost: CentralMeasure) -> bool:
        """Whether the answer would be as accurate as requested."""
        return self.half_width(cost) <= self.accuracy.half_width


class Kind(msgspec.Struct, frozen=True):
    """A measure of cost, counted in the whole units of the ledger.

    Attributes
    ----------
    name : {"pure", "approx", "zcdp"}
    letter : {"epsilon", "rho"}
    units : int
        How many units an epsilon, or rho, of 1 is.
    most : int
        The largest cost that a ledger can hold, in units.
    delta : Fraction
        The delta of every cost, 0 unless it is "approx".
    """

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
        if not slack:
            return kind
        # Read by the measure, which refuses what is no delta.
        return Kind("approx", kind.letter, kind.units, kind.most, ApproxDP(1, slack).delta)

    def cost(self, units: int) -> CentralMeasure:
        """The cost of this many units."""
        level = Fraction(units, self.units)
        match self.name:
            case "zcdp":
                return ZCDP(level)
            case "approx":
                return ApproxDP(level, self.delta)
        return PureDP(level)

    def level(self, cost: CentralMeasure) -> Fraction:
        """The epsilon or rho of a cost."""
        return Fraction(cost.rho if isinstance(cost, ZCDP) else cost.epsilon)

    def between(self, low: Fraction, high: Fraction, points: int) -> list[CentralMeasure]:
        """Costs from low to high, evenly spaced in logarithms."""
        least = max(float(low), 1 / self.units)
        largest = min(float(high), self.most / self.units)
        levels = np.geomspace(least, largest, points).tolist()
        units = [min(max(round(level * self.units), 1), self.most) for level in levels]
        return [self.cost(unit) for unit in dict.fromkeys(units)]


_KINDS = {
    "pure": Kind("pure", "epsilon", EPSILON_UNITS, LARGEST_EPSILON * EPSILON_UNITS),
    "zcdp": Kind("zcdp", "rho", RHO_UNITS, LARGEST_RHO * RHO_UNITS),
}


def kind_of(cost: CentralMeasure) -> Kind:
    """The measure of a cost."""
    if isinstance(cost, ApproxDP):
        return Kind.of("pure", cost.delta)
    return _KINDS["zcdp" if isinstance(cost, ZCDP) else "pure"]


def least_alone(request: AccuracyRequest, kind: Kind, start: int | None = None) -> int:
    """The least units at which one question is as accurate as requested.

    ``start`` is where the search begins: what a similar question needed, or nothing.
    """
    accuracy = str(request.accuracy)
    first = start or kind.units
    return least(lambda units: request.is_met(kind.cost(units)), first, kind.most, accuracy)


def least(is_met: Callable[[int], bool], start: int, most: int, accuracy: str) -> int:
    """Search the least units that are enough: these are, and one unit less is not.

    Parameters
    ----------
    is_met : function of units
        Whether they are enough. If it refuses them with a ``SfumatoError``, they are not.
    start : int
        Where the search begins.
    most : int
        The largest units there are.
    accuracy : str
        What is requested, for the message.

    Raises
    ------
    Infeasible
        If not even the most are enough. If some units were refused, the first refusal instead.
    """
    refusals: list[SfumatoError] = []

    def enough(units: int) -> bool:
        try:
            return is_met(units)
        except SfumatoError as refusal:
            # A cost that the question refuses is not enough. The first refusal is told if no cost
            # is.
            refusals.append(refusal)
            return False

    low, high = _bracket(enough, min(start, most), most)
    if high > most and refusals:
        raise refusals[0]
    if high > most:
        raise Infeasible(
            f"an answer {accuracy}",
            "no cost that a ledger can count is enough for it",
            "Allow a larger half-width, or ask for fewer cells",
        )
    # ``high`` is enough and ``low`` is not, or is 0, which is no cost at all.
    return least_whole(enough, low, high)


def _bracket(enough: Callable[[int], bool], start: int, most: int) -> tuple[int, int]:
    """Enclose the least units by doubling or halving.

    Returns
    -------
    tuple of two int
        Units that are not enough, or 0, and units that are; ``most + 1`` if none are.
    """
    if not enough(start):
        low = start
        high = min(2 * start, most)
        while not enough(high):
            if high == most:
                return most, most + 1
            low = high
            high = min(2 * high, most)
        return low, high
    # The start is often the answer itself: then one more look is enough.
    if start > 1 and not enough(start - 1):
        return start - 1, start
    low = start // 2
    high = start
    while low and enough(low):
        high = low
        low = low // 2
    return low, high
