"""Sharing a budget: between questions, and between the levels of a tree. Whole units in, whole units out."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, TypeAlias

from sfumato.errors import UsageError
from sfumato.exact import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS, Exactly, fraction, split
from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure, PureDP

Allocation: TypeAlias = "Literal['uniform', 'geometric', 'linear'] | Sequence[Exactly]"


def share(measure: CentralMeasure, weights: Sequence[Fraction]) -> list[CentralMeasure]:
    """Share a cost between questions; the parts add up to it exactly.

    >>> [str(part) for part in share(PureDP("1"), [Fraction(1), Fraction(3)])]
    ['epsilon = 0.25', 'epsilon = 0.75']
    """
    w = list(weights)
    match measure:
        case PureDP(epsilon=epsilon):
            return [PureDP(Fraction(part, EPSILON_UNITS)) for part in split(int(epsilon * EPSILON_UNITS), w)]
        case ApproxDP(epsilon=epsilon, delta=delta):
            epsilons, deltas = split(int(epsilon * EPSILON_UNITS), w), split(int(delta * DELTA_UNITS), w)
            pairs = zip(epsilons, deltas, strict=True)
            return [ApproxDP(Fraction(e, EPSILON_UNITS), Fraction(d, DELTA_UNITS)) for e, d in pairs]
        case ZCDP(rho=rho):
            return [ZCDP(Fraction(part, RHO_UNITS)) for part in split(int(rho * RHO_UNITS), w)]


def levels(total: int, height: int, *, allocation: Allocation, fanout: int = 2) -> list[int]:
    """Share whole units over the levels of a tree, root first; they add up to ``total`` exactly.

    Parameters
    ----------
    total : int
        Units to share.
    height : int
        Depth of the leaves; there are ``height + 1`` levels.
    allocation : {"uniform", "geometric", "linear"} or sequence of weights
        Geometric: level i gets a share proportional to ``fanout**(i/3)``, more towards the leaves.
    fanout : int

    Source: Cormode, Procopiuc, Srivastava, Shen, Yu, *Differentially Private Spatial Decompositions*, ICDE 2012, section 4.

    >>> levels(10**12, 9, allocation="geometric")[:2]
    [28627657615, 36068588438]
    """
    if height < 0 or fanout < 2:
        raise UsageError(
            f"a tree of height {height} and fan-out {fanout}", "height is at least 0 and fan-out at least 2", "Choose another shape"
        )
    if isinstance(allocation, str):
        weights = _named_weights(allocation, height, fanout)
    else:
        weights = [fraction(weight, "a weight of the allocation") for weight in allocation]
    if len(weights) != height + 1:
        raise UsageError(f"{len(weights)} weights for {height + 1} levels", "each level needs one weight", f"Give {height + 1} weights")
    return split(total, weights)


def _named_weights(allocation: str, height: int, fanout: int) -> list[Fraction]:
    match allocation:
        case "uniform":
            return [Fraction(1)] * (height + 1)
        case "linear":
            return [Fraction(i + 1) for i in range(height + 1)]
        case "geometric":  # the weights are public; rounding them costs optimality, never privacy
            return [Fraction(float(fanout) ** (i / 3)) for i in range(height + 1)]
        case _:
            raise UsageError(f"allocation {allocation!r}", "it is unknown", 'Choose "uniform", "geometric", "linear" or a list of weights')
