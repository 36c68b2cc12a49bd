"""A subject of the audit, and the small data sets that several subjects share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol

from sfumato.audit.likelihoods import Loss, additive_loss
from sfumato.audit.runs import Mechanism, Pair, Rows
from sfumato.domain import Domain, Interval
from sfumato.privacy import ZCDP, ApproxDP, CentralMeasure, Neighbours, PureDP, Unit

LINE = Domain(x=Interval(0, 3, step=1))
# A value inside a cell, one on an edge between two cells, and the closed upper end.
ON_LINE: Rows = ((0.5,), (1.0,), (3.0,))
PURE = PureDP("1")
CONCENTRATED = ZCDP("0.5")
RELATIONS: tuple[Neighbours, ...] = ("add-remove", "replace")
UNITS = [Unit(rows_per_person=r, neighbours=relation) for r, relation in product((1, 2), RELATIONS)]
COSTS: tuple[CentralMeasure, ...] = (PURE, CONCENTRATED)


class Attack(Protocol):
    """An exact attack on a kind of mechanism that ``likelihoods`` does not cover."""

    def __call__(
        self,
        mechanism: Mechanism,
        pairs: Sequence[Pair],
        claim: CentralMeasure,
        alphas: Sequence[float],
        /,
    ) -> Loss:
        """The largest loss over pairs of data sets, in the unit of the claim."""


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
        The exact audit takes all neighbouring data sets of a few such rows, if no ``pairs`` are
        given.
    pairs : tuple of pairs of data sets
        Where neighbouring data sets are not made of ``universe`` row by row, such as where a row
        says whose it is. Without an exact attack, outputs are sampled on the first of them.
    runs : int
        How often the quick sampled audit runs the mechanism on each data set.
    exact : callable or None
        The exact attack, such as ``decisions.Decisions``. None: outputs alone are judged.
    least : float
        The share of the claim that the exact audit finds at least. It is below 1 where some of the
        cost is paid for what the small data sets do not show, such as, under replace, a count of
        all rows.
    weaker : callable or None
        From a number to the same mechanism with that many times less noise than the claim needs: a
        known fault, which the audit must detect.
    may_be_sampled : bool
        Whether samples alone may judge the mechanism if the exact audit turns out not to apply.
        Otherwise it is then refused.
    """

    name: str
    unit: Unit
    claim: CentralMeasure
    mechanism: Mechanism
    universe: Rows = ()
    runs: int = 3000
    exact: Attack | None = additive_loss
    least: float = 0.98
    weaker: Callable[[int], Mechanism] | None = None
    pairs: tuple[Pair, ...] = ()
    may_be_sampled: bool = False


def claimed(claim: CentralMeasure) -> float:
    """Return the claim as a number: its epsilon or rho."""
    return float(claim.rho if isinstance(claim, ZCDP) else claim.epsilon)


def less_noise(cost: CentralMeasure, scale: int) -> CentralMeasure:
    """Return the cost at which the noise is ``scale`` times smaller."""
    match cost:
        case ZCDP(rho=rho):
            return ZCDP(rho * scale**2)
        case ApproxDP(epsilon=epsilon, delta=delta):
            return ApproxDP(epsilon * scale, delta)
        case PureDP(epsilon=epsilon):
            return PureDP(epsilon * scale)
