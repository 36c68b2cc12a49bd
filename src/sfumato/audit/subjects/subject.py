"""What a subject of the audit is, and the small data that several share."""

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
PURE, CONCENTRATED = PureDP("1"), ZCDP("0.5")
RELATIONS: tuple[Neighbours, ...] = ("add-remove", "replace")
UNITS = [Unit(rows_per_person=r, neighbours=relation) for r, relation in product((1, 2), RELATIONS)]
COSTS: tuple[CentralMeasure, ...] = (PURE, CONCENTRATED)


@dataclass(frozen=True)
class Subject:
    """A mechanism and its promise, and the small data on which the promise is put to the test.

    Attributes
    ----------
    name : str
    unit : Unit
    claim : PureDP, ApproxDP or ZCDP
    mechanism : callable
        From rows and bits to ``Published``.
    universe : tuple of rows
        The exact audit takes all neighbouring data sets of a few such rows. Empty: it does not apply, and ``pair`` is given.
    first_draws : tuple of int
        Values of the first draw to enumerate, where it decides what comes next.
    pair : pair of data sets, or None
        For the sampled audit; None: the worst that the exact audit found.
    runs : int
        How often the quick sampled audit runs the mechanism on each data set.
    law : callable or None
        For selections: from rows to ln P of every outcome, in place of scripts.
    least : float
        Which part of the claim the exact audit finds spent, at least. Under replace a count of all rows costs nothing where one row
        becomes another, so trees, which pay for it as if a row came or went, spend less than they claim.
    weaker : callable or None
        The same code with so many times less noise than the claim allows: a fault, by which a sampled audit shows its power. Needed where
        there is no exact audit, or where there may be none: then a subject that cannot be judged exactly is judged by its outputs alone.
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


def claimed(claim: CentralMeasure) -> float:
    """A claim as a number: epsilon or rho."""
    return float(claim.rho if isinstance(claim, ZCDP) else claim.epsilon)


def less_noise(cost: CentralMeasure, scale: int) -> CentralMeasure:
    """The cost at which noise is so many times smaller."""
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
    """A question whose published numbers move one for one with its draws."""
    return Subject(name, unit, cost, of_question(question, LINE, unit, cost), ON_LINE, first_draws)
