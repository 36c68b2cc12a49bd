"""A subject of the audit, and the small data sets that several subjects share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from sfumato.answers.question import AnyQuestion
from sfumato.audit.runs import Mechanism, Pair, Rows, of_question
from sfumato.audit.selections import LawOf
from sfumato.domain import Domain, Interval
from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure, PureDP
from sfumato.privacy.unit import Neighbours, Unit

LINE = Domain(x=Interval(0, 3, step=1))
ON_LINE: Rows = ((0.5,), (1.0,), (3.0,))
"""A value inside a cell, one on an edge between two cells, and the closed upper end."""
FIRST_DRAWS = (-100, -3, 0, 1, 4, 10, 100)
PURE = PureDP("1")
CONCENTRATED = ZCDP("0.5")
RELATIONS: tuple[Neighbours, ...] = ("add-remove", "replace")
UNITS = [Unit(rows_per_person=r, neighbours=relation) for r, relation in product((1, 2), RELATIONS)]
COSTS: tuple[CentralMeasure, ...] = (PURE, CONCENTRATED)


@dataclass(frozen=True)
class Subject:
    """A mechanism, its privacy claim, and the small data on which the claim is tested.

    Attributes
    ----------
    name : str
    unit : Unit
    claim : PureDP, ApproxDP or ZCDP
    mechanism : callable
        From rows and bits to ``Published``.
    universe : tuple of rows
        The exact audit takes all neighbouring data sets of a few such rows. Empty: the exact audit
        does not apply, and ``pair`` is given.
    pairs : tuple of pairs of data sets
        The pairs for the exact audit, where neighbouring data sets are not made of ``universe`` row
        by row, such as where a row says whose it is.
    first_draws : tuple of int
        Values of the first draw to enumerate, where it decides what comes next.
    pair : pair of data sets, or None
        For the sampled audit. None: the pair with the largest exact loss.
    runs : int
        How often the quick sampled audit runs the mechanism on each data set.
    law : callable or None
        For selections, in place of scripts: from rows to ln P of every outcome.
    least : float
        The share of the claim that the exact audit finds at least. It is below 1 for trees under
        replace: they pay for a count of all rows as if a row was added or removed, but replacing a
        row does not change it.
    weaker : callable or None
        From a number to the same mechanism with that many times less noise than the claim needs: a
        known fault, by which a sampled audit shows its power. Needed if there is no exact audit,
        or if the mechanism may turn out not to be additive.
    """

    name: str
    unit: Unit
    claim: CentralMeasure
    mechanism: Mechanism
    universe: Rows = ()
    first_draws: tuple[int, ...] = (0,)
    pair: Pair | None = None
    runs: int = 3000
    law: LawOf | None = None
    least: float = 0.98
    weaker: Callable[[int], Mechanism] | None = None
    pairs: tuple[Pair, ...] = ()


def claimed(claim: CentralMeasure) -> float:
    """The claim as a number: its epsilon or rho."""
    return float(claim.rho if isinstance(claim, ZCDP) else claim.epsilon)


def less_noise(cost: CentralMeasure, scale: int) -> CentralMeasure:
    """The cost at which the noise is ``scale`` times smaller."""
    match cost:
        case ZCDP(rho=rho):
            return ZCDP(rho * scale**2)
        case ApproxDP(epsilon=epsilon, delta=delta):
            return ApproxDP(epsilon * scale, delta)
        case PureDP(epsilon=epsilon):
            return PureDP(epsilon * scale)


def of(
    name: str,
    question: AnyQuestion,
    unit: Unit,
    cost: CentralMeasure,
    first_draws: tuple[int, ...] = (0,),
) -> Subject:
    """A question over ``LINE`` whose published numbers move one for one with its draws."""
    return Subject(name, unit, cost, of_question(question, LINE, unit, cost), ON_LINE, first_draws)
