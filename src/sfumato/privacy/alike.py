"""Costs that differ in their last digits only are said once.

Three questions share an epsilon of 1 as 0.333333333, 0.333333333 and 0.333333334, so that nothing
is left over. A reader is told one number that holds for all three.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import msgspec

from sfumato.basics.numbers import rounded
from sfumato.privacy.measures import Measure

NEARLY = Fraction(1, 10**6)
"""By what share of the largest one costs may differ that are said as one."""

DIGITS = 4


class CommonCost(msgspec.Struct, frozen=True):
    """One cost that is said of several answers.

    Attributes
    ----------
    cost : PureDP, ApproxDP, ZCDP or MetricDP
        At least that of each.
    is_rounded : bool
        Whether it is above that of some.
    """

    cost: Measure
    is_rounded: bool

    def __str__(self) -> str:
        return f"{self.cost} (rounded up)" if self.is_rounded else str(self.cost)


def common_cost(costs: Sequence[Measure]) -> CommonCost | None:
    """The cost that may be said of each, rounded up where they differ; None if they differ more.

    Holds because: a promise at some cost holds at each larger one, too.

    >>> from sfumato.privacy.measures import PureDP
    >>> print(common_cost([PureDP("0.333333333"), PureDP("0.333333334")]))
    epsilon = 0.3334 (rounded up)
    >>> common_cost([PureDP("0.3"), PureDP("0.4")]) is None
    True
    """
    first = costs[0]
    if all(cost == first for cost in costs):
        return CommonCost(first, is_rounded=False)
    if any(type(cost) is not type(first) for cost in costs):
        return None
    largest: dict[str, Fraction] = {}
    for field in type(first).__struct_fields__:
        values = [getattr(cost, field) for cost in costs]
        if not all(isinstance(value, Fraction) for value in values):
            return None
        most = max(values)
        if most - min(values) > most * NEARLY:
            return None
        largest[field] = Fraction(rounded(most, DIGITS, up=True)) if most else most
    return CommonCost(msgspec.structs.replace(first, **largest), is_rounded=True)
