"""Families of tables: noise on whole tables, or on residuals of which differences are published."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from sfumato.audit.residuals import Residuals
from sfumato.audit.runs import Mechanism, Rows, of_question
from sfumato.audit.subjects.subject import (
    CONCENTRATED,
    LINE,
    ON_LINE,
    PURE,
    UNITS,
    Subject,
    less_noise,
)
from sfumato.domain import Domain, Interval
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.tables import Tables

QUESTIONS = (Tables,)
PLANE = Domain(x=Interval(0, 2, step=1), y=Interval(0, 2, step=1))
IN_PLANE: Rows = ((0.0, 0.0), (0.0, 1.0), (1.0, 1.0))
"""Cells that differ along one axis, and along both."""
FAMILIES = (
    ("Tables, one axis", Tables(["x", []]), LINE, ON_LINE),
    ("Tables, two axes", Tables([["x", "y"], "y"]), PLANE, IN_PLANE),
)


def subjects() -> Iterator[Subject]:
    """Every subject of this module."""
    for (name, question, domain, universe), unit in product(FAMILIES, UNITS):
        yield _subject(name, question, domain, universe, unit, PURE)
        if unit.rows_per_person == 1 or domain is LINE:
            named = f"{name}: residuals"
            yield _subject(named, question, domain, universe, unit, CONCENTRATED)


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
