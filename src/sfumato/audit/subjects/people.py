"""One person beside two others: tables of people and their rows, counted as publishing counts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product

import numpy as np
import pyarrow as pa

from sfumato.answers.question import AnyQuestion
from sfumato.audit.runs import Mechanism, Pair, Published, Rows, published
from sfumato.data import count, source
from sfumato.domain.cube import Cube
from sfumato.domain.domain import Domain
from sfumato.privacy.limits import Limits, stated_limits
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.publishing.counting import ReleaseCounts
from sfumato.random.bits import Bits

KEY = bytes(32)
"""By which the rows of a person are chosen."""
MANY_ROWS = 10**6
"""More rows of a person than any table here has."""
PERSON = "who"
LIMITS = (
    (4, Limits(norm_per_person=2)),
    (2, Limits(rows_per_cell=1)),
    (4, Limits(rows_per_cell=2, cells_per_person=2)),
)
"""Rows of a person in all, and limits by cell."""

ROWS_IN_GROUPS = ((3,), (0, 0, 0, 0, 3), (1, 1, 1, 1), (0, 0, 0, 0, 1, 1, 1, 1), (2, 1), (2, 2, 1))
"""How many rows people have in each group along y, as many as limits allow, and more.

The first ones have the largest L2 norm in one group, the others the largest L1 norm in several.
"""
IN_FEW_GROUPS: tuple[Rows, ...] = (
    ((0, 0), (3, 1), (0, 1)),
    ((0, 0), (0, 0), (3, 8), (3, 8)),
    # Several rows in a group: a mean and a sum between the bounds, and a sum beyond them.
    ((0, 1), (3, 1), (1, 1), (3, 2), (3, 2)),
    # More groups than anybody is counted in.
    ((3, 0), (0, 1), (3, 2), (0, 2)),
    # Values in two segments of which one hat may be made: each has its own, and both a group.
    ((1.4, 0), (1.6, 0)),
)


def visitors(axes: Sequence[str]) -> tuple[Rows, ...]:
    """People: the values of each of their rows, along these axes."""
    if "y" not in axes:
        in_line = ((0,), (3,), (0, 0, 3), (0, 1, 2), (3, 3, 3, 3), 9 * (1,))
        return tuple(tuple((float(x),) * len(axes) for x in person) for person in in_line)
    found = list(IN_FEW_GROUPS)
    for counts, x in product(ROWS_IN_GROUPS, (0.0, 3.0)):
        found.append(tuple((x, y + 0.5) for y, n in enumerate(counts) for _ in range(n)))
    at = [("x", "y").index(axis) for axis in axes]
    return tuple(tuple(tuple(row[i] for i in at) for row in person) for person in found)


def people(unit: Unit, axes: Sequence[str]) -> tuple[Pair, ...]:
    """Pairs of tables that differ in one person; under replace, that person becomes another one.

    The first column says whose a row is.
    """
    rest = tuple((8.0 + i, *row) for i, row in enumerate((len(axes) * (0.5,), len(axes) * (2.5,))))
    tried = ((), *visitors(axes))
    another = tried if unit.neighbours == "replace" else ((),)
    pairs: list[Pair] = []
    for one, other in product(tried, another):
        first = rest + tuple((0.0, *row) for row in one)
        second = rest + tuple((1.0, *row) for row in other)
        pairs += [(first, second), (second, first)]
    return tuple(pairs)


def of_people(
    question: AnyQuestion, domain: Domain, unit: Unit, cost: CentralMeasure, claim: CentralMeasure
) -> Mechanism:
    """A question's own code from the rows of people to its release, at a cost.

    What is counted, and which rows of a person, is that of the cost that is claimed.
    """
    needs = question.needs_at(domain, unit, claim)
    norm = question.needs_at(domain, unit, cost).norm

    @cache
    def counted(rows: Rows) -> Cube:
        who, *values = np.array(rows, float).reshape(len(rows), 1 + len(domain)).T
        columns = dict(zip(domain, values, strict=True))
        table = pa.table({PERSON: who.astype(np.int64), **columns})
        limits = stated_limits(unit.limits)
        rides = source(table, domain, PERSON, unit.rows_per_person, unit.neighbours, **limits)
        return count(rides, [needs], key=KEY)[0]

    def run(rows: Rows, noise: Bits) -> Published:
        counts = ReleaseCounts(counted(rows), None, domain, norm)
        return published(question.answer(counts, unit, cost, noise))

    return run
