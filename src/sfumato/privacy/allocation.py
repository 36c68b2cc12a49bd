"""Sharing a budget between questions and between the levels of a tree, in whole units.

Whole units go in and whole units come out, so the parts add up to their total exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, TypeAlias

import msgspec

from sfumato.basics import (
    DELTA_UNITS,
    EPSILON_UNITS,
    RHO_UNITS,
    Exactly,
    ExplainedStruct,
    Number,
    fraction,
    settle,
    split,
)
from sfumato.errors import UsageError
from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure, PureDP

Allocation: TypeAlias = "Literal['uniform', 'geometric', 'linear'] | Sequence[Exactly]"


def share(measure: CentralMeasure, weights: Sequence[Fraction]) -> list[CentralMeasure]:
    """Share a cost between questions; the parts add up to it exactly.

    Parameters
    ----------
    measure : PureDP, ApproxDP or ZCDP
        The cost of all of them.
    weights : sequence of Fraction
        One above 0 for each question.

    Returns
    -------
    list of PureDP, ApproxDP or ZCDP
        One for each weight.

    >>> [str(part) for part in share(PureDP("1"), [Fraction(1), Fraction(3)])]
    ['epsilon = 0.25', 'epsilon = 0.75']
    """
    parts = split(units_of(measure), list(weights))
    if not isinstance(measure, ApproxDP):
        return [of_units(measure, part) for part in parts]
    deltas = split(int(measure.delta * DELTA_UNITS), list(weights))
    return [
        ApproxDP(Fraction(_counted(measure, part), EPSILON_UNITS), Fraction(delta, DELTA_UNITS))
        for part, delta in zip(parts, deltas, strict=True)
    ]


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

    Source: Cormode, Procopiuc, Srivastava, Shen, Yu, *Differentially Private Spatial
    Decompositions*, ICDE 2012, section 4.

    >>> levels(10**12, 9, allocation="geometric")[:2]
    [28627657615, 36068588438]
    """
    if height < 0 or fanout < 2:
        raise UsageError(
            f"a tree of height {height} and fan-out {fanout}",
            "height is at least 0 and fan-out at least 2",
            "Choose another shape",
        )
    match allocation:
        case "uniform":
            weights = [Fraction(1)] * (height + 1)
        case "linear":
            weights = list(map(Fraction, range(1, height + 2)))
        case "geometric":
            # The weights are public: rounding them costs optimality, never privacy.
            weights = [Fraction(float(fanout) ** (i / 3)) for i in range(height + 1)]
        case str():
            raise UsageError(
                f"allocation {allocation!r}",
                "it is unknown",
                'Choose "uniform", "geometric", "linear" or a list of weights',
            )
        case _:
            weights = [fraction(weight, "a weight of the allocation") for weight in allocation]
    if len(weights) != height + 1:
        raise UsageError(
            f"{len(weights)} weights for {height + 1} levels",
            "each level needs one weight",
            f"Give {height + 1} weights",
        )
    return split(total, weights)


class Shares(ExplainedStruct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a tree of splits spends its cost on: the counts of its cells, its splits, and its nodes.

    Parameters
    ----------
    release : number
        Of the cells' own counts. Above 0.
    partition : number
        Of choosing where nodes are split.
    threshold : number
        Of the counts of nodes above the cells, which decide whether a node is split, and are
        published.

    Raises
    ------
    UsageError
        If ``release`` is not above 0, or another share is negative.

    >>> Shares(release=2, threshold="0.5").weights
    [Fraction(2, 1), Fraction(0, 1), Fraction(1, 2)]
    """

    release: Number = Number(1)
    partition: Number = Number(0)
    threshold: Number = Number(1)

    def __post_init__(self) -> None:
        for name in ("release", "partition", "threshold"):
            value = fraction(getattr(self, name), f"the share {name}")
            if value < 0 or (name == "release" and not value):
                raise UsageError(
                    f"the share {name} = {value}",
                    "no share is negative, and cells need one",
                    "Give release a positive share",
                )
            msgspec.structs.force_setattr(self, name, value)
        settle(self)

    @property
    def weights(self) -> list[Fraction]:
        """Of release, partition and threshold, in this order."""
        return [self.release, self.partition, self.threshold]


class Levels(msgspec.Struct, frozen=True):
    """What each level of a tree may spend, in whole units; cells take what their path left over.

    Attributes
    ----------
    total : int
        Of every path from the root to a cell.
    threshold : list of int, one per level from the root to the deepest
        For counting a node before it is split. The deepest level's goes to the cells: nothing is
        tested there.
    partition : list of int, one per level but the deepest
        For choosing where a node is split.
    """

    total: int
    threshold: list[int]
    partition: list[int]


def units_of(cost: CentralMeasure) -> int:
    """A cost in whole units of epsilon, or of rho."""
    # Rounded down: the parts of a cost may spend less than it, and never more.
    if isinstance(cost, ZCDP):
        return int(cost.rho * RHO_UNITS)
    return int(cost.epsilon * EPSILON_UNITS)


def of_units(cost: CentralMeasure, units: int) -> CentralMeasure:
    """Whole units as a cost in the same measure, delta left out."""
    _counted(cost, units)
    if isinstance(cost, ZCDP):
        return ZCDP(Fraction(units, RHO_UNITS))
    return PureDP(Fraction(units, EPSILON_UNITS))


def _counted(cost: CentralMeasure, units: int) -> int:
    """Refuse a share of no units, and name the cost that was asked."""
    if units <= 0:
        raise UsageError(
            f"a share of {cost}",
            "it is less than the smallest unit that is counted",
            "Choose a larger cost",
        )
    return units


def tree_levels(
    cost: CentralMeasure, shares: Shares, allocation: Allocation, *, depth: int, fanout: int
) -> Levels:
    """Share a cost between the purposes of a tree, and what counting and choosing get over its
    levels.

    Custom weights are one per level, ``depth + 1`` of them; choosing uses all but the last.

    >>> levels = tree_levels(PureDP(1), Shares(), "uniform", depth=1, fanout=2)
    >>> levels.threshold, levels.partition
    ([250000000, 250000000], [0])
    """
    total = units_of(cost)
    _, partition, threshold = split(total, shares.weights)
    # The lowest level is counted and not split any more, so no choice is paid for there.
    above: Allocation = allocation if isinstance(allocation, str) else list(allocation)[:-1]
    choosing = [0] * depth
    if depth and partition:
        choosing = levels(partition, depth - 1, allocation=above, fanout=fanout)
    return Levels(total, levels(threshold, depth, allocation=allocation, fanout=fanout), choosing)
