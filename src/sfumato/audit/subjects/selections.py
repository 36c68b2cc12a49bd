"""Selections: quantiles, and histogram bins that hold about equally many rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sfumato.audit.runs import Draws, Mechanism, Rows
from sfumato.audit.selections import LawOf, bins_of, law_of, law_of_bins, run_of, run_of_bins
from sfumato.audit.subjects.subject import CONCENTRATED, PURE, UNITS, Subject, less_noise
from sfumato.domain import Domain, Interval
from sfumato.histogram import Histogram
from sfumato.privacy.measures import CentralMeasure, PureDP
from sfumato.privacy.unit import Unit
from sfumato.quantiles import Quantiles

QUESTIONS = (Quantiles,)
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


def _selected(
    name: str, question: Quantiles, unit: Unit, cost: CentralMeasure, background: Rows = ()
) -> Subject:
    """A selection, with rows of other persons beside which its loss was found to be large."""
    # Trees of counts and permute-and-flip look at every cell, so their axis is short.
    if question.method == "tree" or "flip" in name:
        domain = FEW
        universe = ON_FEW
        cells = tuple(range(13))
    else:
        domain = WIDE
        universe = (LOW, NEXT, LAST)
        cells = BETWEEN
    others = background * unit.rows_per_person
    law = None
    if isinstance(cost, PureDP) and question.method != "tree":
        law = law_of(question, domain, unit, cost, cells, others)

    def spending(times: int) -> Mechanism:
        return run_of(question, domain, unit, less_noise(cost, times), others)

    return _subject(name, unit, cost, spending, universe, law)


def _bins(question: Histogram, unit: Unit, cost: CentralMeasure, seen: Draws = ()) -> Subject:
    """Bins by records, for noisy numbers of rows that make 2 bins or 3."""
    law = None
    if isinstance(cost, PureDP):
        law = law_of_bins(bins_of(question, WIDE, unit, cost), ENDS, seen)

    def spending(times: int) -> Mechanism:
        return run_of_bins(question, WIDE, unit, less_noise(cost, times), most=3)

    return _subject("Histogram by records", unit, cost, spending, (LOW, NEXT, LAST), law)


def _subject(
    name: str,
    unit: Unit,
    cost: CentralMeasure,
    spending: Callable[[int], Mechanism],
    universe: Rows,
    law: LawOf | None,
) -> Subject:
    """A subject over three rows: exact where there is a law, else sampled only."""
    one = unit.rows_per_person * universe[:1]
    other = unit.rows_per_person * universe[1:2] if unit.neighbours == "replace" else ()
    rest = universe[2:]
    return Subject(
        name,
        unit,
        cost,
        spending(1),
        universe if law else (),
        pair=None if law else (one + rest, other + rest),
        runs=100,
        law=law,
        weaker=spending,
    )


def subjects() -> Iterator[Subject]:
    """Every subject of this module."""
    for unit in UNITS:
        replaced = unit.neighbours == "replace"
        end: Rows = (NEXT,) if replaced else (LAST,)
        few = ON_FEW[1:2] if replaced else ON_FEW[2:]
        beside: Rows = (NEXT, NEXT, NEXT) if replaced else (LOW, LATE, LAST)
        median = Quantiles("x", at=[0.5])
        halving = Quantiles("x", method="recursive")
        yield _selected("Median, exponential mechanism", median, unit, PURE, end)
        yield _selected("Median, permute-and-flip", median, unit, PURE, few)
        yield _selected("Quartiles, JointExp", Quantiles("x"), unit, PURE, beside)
        yield _selected("Quartiles, by halving", halving, unit, PURE, (LAST,))
        yield _bins(Histogram("x", records=10), unit, PURE, (-40, 20, 30))
        yield _selected("Quartiles, tree of counts", Quantiles("x", method="tree"), unit, PURE)
    for question in (Quantiles("x"), Quantiles("x", method="recursive")):
        yield _selected(f"Quartiles, {question.method}", question, Unit(), CONCENTRATED)
    yield _bins(Histogram("x", records=10, rows=20), Unit(neighbours="replace"), CONCENTRATED)
