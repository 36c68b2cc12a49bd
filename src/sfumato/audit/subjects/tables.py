"""Families of tables: noise on whole tables, or on residuals of which differences are published."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from sfumato.answers.counts import Needs
from sfumato.audit.residuals import Residuals
from sfumato.audit.runs import Mechanism, Pair, Published, Rows, of_question, published
from sfumato.audit.subjects.subject import (
    CONCENTRATED,
    LINE,
    ON_LINE,
    PURE,
    RELATIONS,
    UNITS,
    Subject,
    less_noise,
)
from sfumato.data import count, source
from sfumato.domain.domain import Domain, Interval
from sfumato.privacy.limits import Limits, stated_limits
from sfumato.privacy.measures import ZCDP, CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.publishing.counting import ReleaseCounts
from sfumato.random.bits import Bits
from sfumato.tables import Tables

QUESTIONS = (Tables,)
PLANE = Domain(x=Interval(0, 2, step=1), y=Interval(0, 2, step=1))
IN_PLANE: Rows = ((0.0, 0.0), (0.0, 1.0), (1.0, 1.0))
"""Cells that differ along one axis, and along both."""
FAMILIES = (
    ("Tables, one axis", Tables(["x", []]), LINE, ON_LINE),
    ("Tables, two axes", Tables([["x", "y"], "y"]), PLANE, IN_PLANE),
)


SHARP = ZCDP("2")
"""A cost at which two rows in a cell lie within what can be enumerated of the noise."""

KEY = bytes(32)
Visited: TypeAlias = tuple[tuple[int, int], ...]
"""The cells of a person's rows, along x and y."""

OTHERS: Rows = ((8.0, 0.5, 0.5), (9.0, 1.5, 0.5))
"""Rows of two other persons: the person, and the values."""

PEOPLE: tuple[Visited, ...] = (
    ((0, 0),) * 3,
    ((0, 0), (0, 0), (1, 1), (1, 1)),
    ((0, 0), (0, 1), (1, 0), (1, 1)),
    ((1, 1), (1, 1), (1, 0)),
)
"""People with as many rows as a norm of 2 allows, and with more."""


@cache
def _counted_people(rows: Rows, unit: Unit, needs: Needs) -> ReleaseCounts:
    """People and their rows, counted by the code that publishing uses."""
    rider, x, y = np.array(rows, float).reshape(len(rows), 3).T
    table = pa.table({"rider": rider.astype(np.int64), "x": x, "y": y})
    limits = stated_limits(unit.limits)
    rides = source(table, PLANE, "rider", unit.rows_per_person, unit.neighbours, **limits)
    return ReleaseCounts(count(rides, [needs], key=KEY)[0], None, PLANE, needs.norm)


def _of_person(rider: float, visited: Visited) -> Rows:
    return tuple((rider, x + 0.5, y + 0.5) for x, y in visited)


def within_norm(question: Tables, unit: Unit) -> Subject:
    """One person who may have more rows than the norm allows, beside two others."""
    another = PEOPLE if unit.neighbours == "replace" else ((),)
    pairs: list[Pair] = []
    for one, other in product(PEOPLE, another):
        pair = OTHERS + _of_person(0.0, one), OTHERS + _of_person(1.0, other)
        pairs += [pair, pair[::-1]]
    # The rows of a person are chosen for the noise that is claimed.
    needs = question.needs_at(PLANE, unit, SHARP)

    def spending(times: int) -> Mechanism:
        spent = less_noise(SHARP, times)
        norm = question.needs_at(PLANE, unit, spent).norm

        def run(rows: Rows, noise: Bits) -> Published:
            counts = _counted_people(rows, unit, needs)
            counts = ReleaseCounts(counts.on(counts.lattice), None, PLANE, norm)
            return published(question.answer(counts, unit, spent, noise))

        return run

    return Subject(
        "Tables within a norm: residuals",
        question.preview(PLANE, unit, SHARP).unit,
        SHARP,
        spending(1),
        OTHERS,
        exact=Residuals(),
        least=0.94,
        weaker=spending,
        pairs=tuple(pairs),
    )


def subjects() -> Iterator[Subject]:
    """Every subject of this module."""
    for (name, question, domain, universe), unit in product(FAMILIES, UNITS):
        yield _subject(name, question, domain, universe, unit, PURE)
        if unit.rows_per_person == 1 or domain is LINE:
            named = f"{name}: residuals"
            yield _subject(named, question, domain, universe, unit, CONCENTRATED)
    for relation in RELATIONS:
        unit = Unit(4, relation, "rider", Limits(norm_per_person=2))
        yield within_norm(Tables([["x", "y"], "y"]), unit)


def _subject(
    name: str,
    question: Tables,
    domain: Domain,
    universe: Rows,
    unit: Unit,
    cost: CentralMeasure,
) -> Subject:
    def spending(times: int) -> Mechanism:
        return of_question(question, domain, unit, less_noise(cost, times))

    return Subject(
        name,
        unit,
        cost,
        spending(1),
        universe,
        exact=None if cost is PURE else Residuals(),
        # A share of rho is left for the slack of narrow noise, and for what was not enumerated.
        least=0.98 if cost is PURE else 0.75,
        weaker=spending,
    )
