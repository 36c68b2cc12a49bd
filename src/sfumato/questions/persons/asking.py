"""Which question tells how much the limits on a person leave out, and what a useful answer costs.

All of it follows from public numbers: nothing is known yet of the persons.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from sfumato.domain import Domain, Interval
from sfumato.errors import InternalError
from sfumato.privacy import ZCDP, CentralMeasure, PureDP, Unit
from sfumato.questions.persons.measured import MEASURED
from sfumato.questions.persons.question import Persons

ENOUGH = Fraction(3, 100)
"""Of all persons: an answer that knows the number of those who lose rows within it is useful."""
FEW_PERSONS = 1_000
MANY_PERSONS = 10_000
"""How many persons there are is not known, so the price is told for two numbers of them."""

_ROUND = [Fraction(digit * 10**exponent, 10**7) for exponent in range(9) for digit in (1, 2, 5)]
_ANY_DOMAIN = Domain(x=Interval(0, 1))
"""Rows of a person are counted on no axis of the data."""


def advice(unit: Unit, *, in_rho: bool, axes: Sequence[str] = ()) -> str:
    """Name the question that tells how much the limits leave out, and its price.

    Parameters
    ----------
    unit : Unit
        That of the answer which the limits cut.
    in_rho : bool
        Whether costs are stated as rho, and not as epsilon.
    axes : sequence of str
        The axes of the answer, in whose cells limits by cell hold.

    Returns
    -------
    str
        A sentence without its end; "" where no limit is kept.

    >>> print(advice(Unit(3, person="rider_id", person_called="rider"), in_rho=False))
    to learn how much that leaves out, ask sf.Persons(most_rows=...) first (sfumato persons): at
    epsilon = 0.5 it tells within 3% how many of 1,000 riders lose rows, at epsilon = 0.05 of 10,000
    """
    if not unit.limits_kept:
        return ""
    few, many = (
        least_cost(unit.neighbours, persons, in_rho) for persons in (FEW_PERSONS, MANY_PERSONS)
    )
    return (
        f"to learn how much that leaves out, ask {_question(unit, axes)} first (sfumato persons): "
        f"at {few} it tells within {int(100 * ENOUGH)}% how many of {FEW_PERSONS:,} "
        f"{unit.several} lose rows, at {many} of {MANY_PERSONS:,}"
    )


def _question(unit: Unit, axes: Sequence[str]) -> str:
    """Return the question about what the limits bound, as it is written in Python."""
    of_limit = {measured.limit: of for of, measured in MEASURED.items()}
    measured = [of_limit[name] for name in unit.limits_kept if name in of_limit]
    by_cell = [of for of in measured if of != "rows"]
    if not by_cell or not axes:
        return "sf.Persons(most_rows=...)"
    return f'sf.Persons(most_rows=..., of="{by_cell[0]}", axes={list(axes)})'


@lru_cache(maxsize=16)
def least_cost(neighbours: str, persons: int, in_rho: bool) -> CentralMeasure:
    """The least round cost at which the answer knows each number of persons closely enough.

    It is that of the number of all persons, the sum of most bins: of those beyond a limit less is
    summed. So the price suffices for every limit.

    Raises
    ------
    InternalError
        If no cost that is tried suffices.
    """
    unit = Unit(1, "replace" if neighbours == "replace" else "add-remove", person="person")
    question = Persons(most_rows=1000)
    for amount in _ROUND:
        cost = ZCDP(amount) if in_rho else PureDP(amount)
        if question.preview(_ANY_DOMAIN, unit, cost).of_everyone() <= ENOUGH * persons:
            return cost
    raise InternalError("No cost tells how many persons there are.")
