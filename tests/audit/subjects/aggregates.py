"""Means, sums and variances: noise on the sums of each group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from sfumato.answers.counts import Needs
from sfumato.audit.runs import Mechanism, Pair, Published, Rows, published
from sfumato.audit.subjects.subject import (
    Subject,
    less_noise,
)
from sfumato.data import count, source
from sfumato.domain.cube import Cube
from sfumato.domain.domain import Domain, Interval
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Limits, Unit, stated_limits
from sfumato.questions.aggregates import Mean, Sum, Variance
from sfumato.random.bits import Bits

OfPersons: TypeAlias = Mean | Sum | Variance

# --- values of persons ---

VISITS = Domain(ward=Interval(0, 3, step=1), x=Interval(0, 3, step=1))
KEY = bytes(32)
VISITORS: tuple[Rows, ...] = (
    (),
    ((0, 3),),
    ((0, 0), (1, 0)),
    ((0, 3), (0, 3), (1, 3), (1, 3)),
    # Several rows in a ward: a mean and a sum between the bounds, and a sum beyond them.
    ((1, 0), (1, 3), (1, 1), (2, 3), (2, 3)),
    # More wards than anybody is counted in.
    ((0, 3), (1, 0), (2, 3), (2, 0)),
)
"""People: the ward and the value of each of their rows."""
OTHERS: Rows = ((8, 0, 1), (9, 2, 3), (9, 2, 2))
"""Rows of two other persons: the person, the ward and the value."""


@cache
def _counted_people(rows: Rows, needs: Needs, unit: Unit, domain: Domain) -> Cube:
    """People and their rows, counted by the code that publishing uses."""
    rider, ward, x = np.array(rows, float).reshape(len(rows), 3).T
    table = pa.table({"rider": rider.astype(np.int64), "ward": ward, "x": x})
    limits = stated_limits(unit.limits)
    visits = source(table, domain, "rider", unit.rows_per_person, unit.neighbours, **limits)
    return count(visits, [needs], key=KEY)[0]


def of_people(
    question: OfPersons,
    unit: Unit,
    cost: CentralMeasure,
    domain: Domain = VISITS,
    needs: Needs | None = None,
) -> Mechanism:
    """A question's own code from the rows of people to its release.

    Parameters
    ----------
    needs : Needs or None
        What is counted. None: what the question says.
    """
    counted = needs or question.needs_at(domain, unit, cost)

    def run(rows: Rows, noise: Bits) -> Published:
        cube = _counted_people(rows, counted, unit, domain)
        return published(question.answer(cube, unit, cost, noise))

    return run


def people(relation: str, visitors: Sequence[Rows] = VISITORS) -> tuple[Pair, ...]:
    """Pairs of tables that differ in one person; under replace that person becomes another one."""
    another = visitors if relation == "replace" else ((),)
    pairs: list[Pair] = []
    for one, other in product(visitors, another):
        first = OTHERS + tuple((0.0, *row) for row in one)
        second = OTHERS + tuple((1.0, *row) for row in other)
        pairs += [(first, second), (second, first)]
    return tuple(pairs)


def _beside_others(
    name: str,
    unit: Unit,
    cost: CentralMeasure,
    spending: Callable[[int], Mechanism],
    pairs: tuple[Pair, ...],
) -> Subject:
    # A chosen clip publishes many numbers, and takes long.
    runs = 500 if "chosen clip" in name else 2000
    return Subject(name, unit, cost, spending(1), OTHERS, runs=runs, weaker=spending, pairs=pairs)


# --- rows within limits by cell ---

WIDE = Domain(ward=Interval(0, 6, step=1), x=Interval(0, 8, step=1))
LOW, HIGH = 0.0, 8.0
BELOW_KNOT, ON_KNOT = 3.0, 4.0
"""Values in two segments of hats, to both of which the hat of the knot 4 extends."""


def _visitor(rows_in_wards: Sequence[int], x: float) -> Rows:
    """A person with so many rows in each ward, from the first one on, all of one value."""
    return tuple((float(ward), x) for ward, n in enumerate(rows_in_wards) for _ in range(n))


LIMITED: tuple[tuple[int, Limits, tuple[Rows, ...]], ...] = (
    # The largest L2 norm in one ward, the largest L1 norm in four.
    (
        4,
        Limits(norm_per_person=2),
        (
            _visitor((3,), HIGH),
            _visitor((3,), LOW),
            _visitor((0, 0, 3), HIGH),
            _visitor((1, 1, 1, 1), LOW),
            _visitor((1, 1, 1, 1), HIGH),
        ),
    ),
    (
        2,
        Limits(rows_per_cell=1),
        (
            _visitor((2, 1), LOW),
            _visitor((2, 2, 1), HIGH),
            _visitor((0, 0, 1, 1), HIGH),
            # A limit on each segment of a ward would let both of these rows pass.
            _visitor((1,), BELOW_KNOT) + _visitor((1,), ON_KNOT),
        ),
    ),
    (
        4,
        Limits(rows_per_cell=2, cells_per_person=2),
        (_visitor((3, 3), LOW), _visitor((2, 2, 1), HIGH), _visitor((0, 0, 2, 2), HIGH)),
    ),
)
"""Rows in all, limits by cell, and people with as many rows as these allow, and with more."""


def limited(
    question: OfPersons,
    unit: Unit,
    visitors: Sequence[Rows],
    cost: CentralMeasure,
    needs: Needs | None = None,
) -> Subject:
    """One person who may have more rows than the limits allow, beside two others.

    ``needs`` is for ``of_people``.
    """
    clip = ", chosen clip" if question.clip == "auto" else ""
    name = f"{type(question).__name__} under limits by cell{clip}"
    # A chosen clip is laid out for the cost that it is asked at.
    counted = needs or question.needs_at(WIDE, unit, cost)

    def spending(times: int) -> Mechanism:
        return of_people(question, unit, less_noise(cost, times), WIDE, counted)

    printed = question.preview(WIDE, unit, cost).unit
    return _beside_others(name, printed, cost, spending, people(unit.neighbours, visitors))
