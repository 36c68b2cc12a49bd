"""Selections: quantiles, and histogram bins that hold about equally many rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from sfumato.audit.decisions import Decisions
from sfumato.audit.runs import Draws, Mechanism, Rows, of_question
from sfumato.audit.selections import (
    Selecting,
    axis_method,
    bins_of,
    law_of,
    law_of_bins,
    run_of,
    run_of_bins,
    run_of_gaps,
    run_of_tree,
    selection_loss,
)
from sfumato.audit.subjects.subject import (
    CONCENTRATED,
    COSTS,
    LINE,
    ON_LINE,
    PURE,
    UNITS,
    Attack,
    Subject,
    less_noise,
)
from sfumato.domain.domain import Domain, Interval
from sfumato.privacy.measures import ZCDP, CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.questions.histogram import Histogram
from sfumato.questions.quantiles import Quantiles
from sfumato.questions.quantiles.methods import AxisMethod

WIDE = Domain(x=Interval(0, 2**13, step=1))
LOW = (5.0,)
NEXT = (12.0,)
LATE = (2.0**13 - 20,)
LAST = (2.0**13 - 9,)
"""Between NEXT and LATE lie nearly all edges: a selection loses most where one group is wide."""
BETWEEN = (5, 12, 2**13 - 20, 2**13 - 9, 2**13)
ENDS = (5, 6, 12, 13, 2**13 - 10, 2**13 - 9, 2**13 - 1)
FEW = Domain(x=Interval(0, 12, step=1))
ON_FEW: Rows = ((0.0,), (1.0,), (11.0,))
MANY: Rows = (*3 * ((0.5,),), *5 * ((1.5,),), *3 * ((2.5,),))
"""On ``LINE``: quartiles that are far from the ends."""
SPREAD: Rows = 5 * ((0.5,), (1.0,), (1.5,), (3.0,))
"""On ``LINE``: gaps between quartiles can hold about their shares."""
TWO_LEVELS = Domain(x=Interval(0, 20, step=1))
"""More cells than the fan-out of a tree of counts."""


def _selected(
    name: str, question: Quantiles, unit: Unit, cost: CentralMeasure, background: Rows = ()
) -> Subject:
    """A selection, with rows of other persons beside which its loss was found to be large."""
    domain, universe, cells = _axis(name, cost)
    others = background * unit.rows_per_person

    def spending(times: int) -> Mechanism:
        spent = less_noise(cost, times)
        return Selecting(
            run_of(question, domain, unit, spent, others),
            law_of(question, domain, unit, spent, cells, others),
        )

    subject = _subject(name, unit, cost, spending, universe, selection_loss)
    # To choose several edges at once beside a noisy number of rows takes long.
    is_joint = question.method == "auto" and len(question.at) > 1
    return replace(subject, runs=50) if is_joint else subject


def _axis(name: str, cost: CentralMeasure) -> tuple[Domain, Rows, tuple[int, ...]]:
    """An axis, rows on it, and the cells whose edges are the outcomes."""
    if isinstance(cost, ZCDP):
        # The divergence needs all outcomes, so there must be few.
        return LINE, ON_LINE, ()
    if "flip" in name:
        # Permute-and-flip looks at every edge, so its axis is short.
        return FEW, ON_FEW, tuple(range(13))
    return WIDE, (LOW, NEXT, LAST), BETWEEN


def _tree(unit: Unit, cost: CentralMeasure) -> Subject:
    """Quartiles read off a tree of noisy counts of two levels."""

    def spending(times: int) -> Mechanism:
        question = Quantiles("x", method="tree")
        return run_of_tree(question, TWO_LEVELS, unit, less_noise(cost, times))

    name = "Quartiles, tree of counts"
    return Subject(name, unit, cost, spending(1), ((0.5,), (19.5,)), runs=2000, weaker=spending)


def _bins(unit: Unit, seen: Draws) -> Subject:
    """Bins by records, for noisy numbers of rows that make 2 bins or 3."""
    question = Histogram("x", records=10)

    def spending(times: int) -> Mechanism:
        spent = less_noise(PURE, times)
        return Selecting(
            run_of_bins(question, WIDE, unit, spent, most=3),
            law_of_bins(bins_of(question, WIDE, unit, spent), ENDS, seen),
        )

    return _subject("Histogram by records", unit, PURE, spending, (LOW, NEXT, LAST), selection_loss)


def _two_bins(unit: Unit, cost: CentralMeasure) -> Subject:
    """Bins by records where the number of rows is stated: one cut, then the counts."""
    question = Histogram("x", records=10, rows=20)

    def spending(times: int) -> Mechanism:
        return of_question(question, FEW, unit, less_noise(cost, times))

    name = "Histogram by records, rows stated"
    return _subject(name, unit, cost, spending, ON_FEW, Decisions())


def _gaps(unit: Unit, cost: CentralMeasure) -> Subject:
    """Counts of the rows between quartiles, at the part of the cost that pays for ranks."""
    lattice = Quantiles("x").needs(WIDE).lattice

    def method_at(times: int) -> AxisMethod:
        return axis_method(Quantiles("x"), lattice, unit, less_noise(cost, times))

    def spending(times: int) -> Mechanism:
        method = method_at(times)
        edges = method.subcells * np.array([NEXT[0], LATE[0], LAST[0]], np.int64)
        return run_of_gaps(method, lattice, edges)

    claim = method_at(1).rank_cost
    assert claim is not None
    universe = (LOW, NEXT, LAST)
    return Subject("Ranks of quartiles", unit, claim, spending(1), universe, weaker=spending)


def _subject(
    name: str,
    unit: Unit,
    cost: CentralMeasure,
    spending: Callable[[int], Mechanism],
    universe: Rows,
    exact: Attack,
) -> Subject:
    """A subject that selects, over three rows."""
    return Subject(
        name, unit, cost, spending(1), universe, runs=500, exact=exact, weaker=spending, least=0.35
    )


def subjects() -> Iterator[Subject]:
    """Every subject of this module."""
    for unit in UNITS:
        replaced = unit.neighbours == "replace"
        end: Rows = (NEXT,) if replaced else (LAST,)
        few = ON_FEW[1:2] if replaced else ON_FEW[2:]
        # Given a noisy number of rows, a selection loses most where gaps hold about their shares.
        beside: Rows = 3 * (NEXT,) if replaced else 4 * (LOW, NEXT, LATE, LAST)
        median = Quantiles("x", at=[0.5])
        halving = Quantiles("x", method="recursive")
        yield _selected("Median, exponential mechanism", median, unit, PURE, end)
        yield _selected("Median, permute-and-flip", median, unit, PURE, few)
        yield _selected("Quartiles, JointExp", Quantiles("x"), unit, PURE, beside)
        crowd: Rows = (*5 * (NEXT,), *3 * (LAST,)) if replaced else (LAST,)
        yield _selected("Quartiles, by halving", halving, unit, PURE, crowd)
        yield _bins(unit, (-40, 20, 30))
        yield _tree(unit, PURE)
        for cost in COSTS:
            yield _gaps(unit, cost)
    recursive = Quantiles("x", method="recursive")
    yield _selected("Quartiles, auto", Quantiles("x"), Unit(), CONCENTRATED, SPREAD)
    yield _selected("Quartiles, recursive", recursive, Unit(), CONCENTRATED, MANY)
    yield _tree(Unit(neighbours="replace"), CONCENTRATED)
    yield _two_bins(Unit(), CONCENTRATED)
    yield _two_bins(Unit(neighbours="replace"), CONCENTRATED)
