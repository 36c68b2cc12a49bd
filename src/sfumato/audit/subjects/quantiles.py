"""Quantiles and bins by records: attacked by the law of what is selected, on small data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato.audit.decisions import Decisions
from sfumato.audit.runs import Mechanism, Rows, of_question
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
from sfumato.audit.subjects.subject import LINE, ON_LINE, Attack, Subject, less_noise
from sfumato.domain.domain import Domain, Interval
from sfumato.privacy.measures import ZCDP, CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.questions.histogram import Histogram
from sfumato.questions.quantiles import Quantiles
from sfumato.questions.quantiles.methods import AxisMethod

WIDE = Domain(x=Interval(0, 2**13, step=1))
LOW, NEXT, LATE, LAST = (5.0,), (12.0,), (2.0**13 - 20,), (2.0**13 - 9,)
ON_WIDE: Rows = (LOW, NEXT, LAST)
"""Between NEXT and LATE lie nearly all edges: a selection loses most where one group is wide."""
BETWEEN = (5, 12, 2**13 - 20, 2**13 - 9, 2**13)
EVERY_CELL: tuple[int, ...] = ()
ENDS = (5, 6, 12, 13, 2**13 - 10, 2**13 - 9, 2**13 - 1)
NOISY_ROWS = (-4, 2, 3)
"""As multiples of the records of a bin, numbers of rows that make two bins or three."""
FEW = Domain(x=Interval(0, 12, step=1))
ON_FEW: Rows = ((0.0,), (1.0,), (11.0,))
TWO_LEVELS = Domain(x=Interval(0, 20, step=1))
"""More cells than the fan-out of a tree of counts."""
ON_LINE_ALONE: Rows = (*3 * ((0.5,),), *5 * ((1.5,),), *3 * ((2.5,),))
"""Rows beside which quantiles are far from the ends."""


def quantiles(name: str, question: Quantiles, unit: Unit, cost: CentralMeasure) -> Subject:
    """Quantiles by a selection, or read off a tree of counts.

    The axis is longer than that of examples where that makes a selection lose more.
    """
    if question.method == "tree":
        return _of_tree(name, question, unit, cost)
    if isinstance(cost, ZCDP):
        # The divergence needs all outcomes, so there must be few.
        domain, universe, cells = LINE, ON_LINE, EVERY_CELL
        beside: Rows = ON_LINE_ALONE
    else:
        domain, universe, cells = WIDE, ON_WIDE, BETWEEN
        beside = _crowd(question, unit)
    others = beside * unit.rows_per_person

    def spending(times: int) -> Mechanism:
        spent = less_noise(cost, times)
        return Selecting(
            run_of(question, domain, unit, spent, others),
            law_of(question, domain, unit, spent, cells, others),
        )

    # To choose several edges at once beside a noisy number of rows takes long.
    runs = 50 if question.method == "auto" and len(question.at) > 1 else 500
    return _selecting(name, unit, cost, spending, universe, selection_loss, runs)


def _crowd(question: Quantiles, unit: Unit) -> Rows:
    """Rows of other persons beside which the loss was found to be large."""
    replaced = unit.neighbours == "replace"
    if len(question.at) == 1:
        return (NEXT,) if replaced else (LAST,)
    if question.method == "recursive":
        return (*5 * (NEXT,), *3 * (LAST,)) if replaced else (LAST,)
    # Given a noisy number of rows, a selection loses most where gaps hold about their shares.
    return 3 * (NEXT,) if replaced else 4 * (LOW, NEXT, LATE, LAST)


def _of_tree(name: str, question: Quantiles, unit: Unit, cost: CentralMeasure) -> Subject:
    """Quantiles read off a tree of noisy counts of two levels."""

    def spending(times: int) -> Mechanism:
        return run_of_tree(question, TWO_LEVELS, unit, less_noise(cost, times))

    return Subject(name, unit, cost, spending(1), ((0.5,), (19.5,)), runs=2000, weaker=spending)


def ranks(question: Quantiles, unit: Unit, cost: CentralMeasure) -> Subject:
    """Counts of the rows between quartiles, at the part of the cost that pays for ranks."""
    lattice = question.needs(WIDE).lattice

    def method_at(times: int) -> AxisMethod:
        return axis_method(question, lattice, unit, less_noise(cost, times))

    def spending(times: int) -> Mechanism:
        method = method_at(times)
        edges = method.subcells * np.array([NEXT[0], LATE[0], LAST[0]], np.int64)
        return run_of_gaps(method, lattice, edges)

    claim = method_at(1).rank_cost
    assert claim is not None
    return Subject("Ranks of quartiles", unit, claim, spending(1), ON_WIDE, weaker=spending)


def bins_by_records(name: str, question: Histogram, unit: Unit, cost: CentralMeasure) -> Subject:
    """Bins by records: for noisy numbers of rows, or where the number of rows is stated."""
    if question.rows is not None:

        def few(times: int) -> Mechanism:
            return of_question(question, FEW, unit, less_noise(cost, times))

        return _selecting(name, unit, cost, few, ON_FEW, Decisions())

    assert question.records is not None
    seen = tuple(times * question.records for times in NOISY_ROWS)

    def spending(times: int) -> Mechanism:
        spent = less_noise(cost, times)
        return Selecting(
            run_of_bins(question, WIDE, unit, spent, most=3),
            law_of_bins(bins_of(question, WIDE, unit, spent), ENDS, seen),
        )

    return _selecting(name, unit, cost, spending, ON_WIDE, selection_loss)


def _selecting(
    name: str,
    unit: Unit,
    cost: CentralMeasure,
    spending: Callable[[int], Mechanism],
    universe: Rows,
    exact: Attack,
    runs: int = 500,
) -> Subject:
    return Subject(
        name, unit, cost, spending(1), universe, runs=runs, exact=exact, weaker=spending, least=0.35
    )
