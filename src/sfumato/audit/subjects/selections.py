"""Selections: quantiles, and bins of a histogram that hold about equally many rows."""

from __future__ import annotations

from collections.abc import Iterator

from sfumato.audit.runs import Draws, Mechanism, Rows
from sfumato.audit.selections import bins_of, law_of, law_of_bins, run_of, run_of_bins
from sfumato.audit.subjects.subject import CONCENTRATED, PURE, UNITS, Subject, less_noise
from sfumato.domain import Domain, Interval
from sfumato.histogram import Histogram
from sfumato.privacy.measures import CentralMeasure, PureDP
from sfumato.privacy.unit import Unit
from sfumato.quantiles import Quantiles

QUESTIONS = (Quantiles,)
WIDE = Domain(x=Interval(0, 2**13, step=1))
LOW, NEXT, LATE, LAST = (5.0,), (12.0,), (2.0**13 - 20,), (2.0**13 - 9,)
"""Nearly all edges lie between the second value and the third: the losses of selections are largest where one group is wide."""
BETWEEN = (5, 12, 2**13 - 20, 2**13 - 9, 2**13)
ENDS = (5, 6, 12, 13, 2**13 - 10, 2**13 - 9, 2**13 - 1)
FEW, ON_FEW = Domain(x=Interval(0, 12, step=1)), ((0.0,), (1.0,), (11.0,))


def _selected(
    name: str, question: Quantiles, unit: Unit, cost: CentralMeasure, background: Rows = ()
) -> Subject:
    """A selection, beside rows of other persons with which it was found to lose much; few cells for what looks at each of them."""
    few = question.method == "tree" or "flip" in name
    domain, universe, cells = (
        (FEW, ON_FEW, tuple(range(13))) if few else (WIDE, (LOW, NEXT, LAST), BETWEEN)
    )
    others = background * unit.rows_per_person
    exact = isinstance(cost, PureDP) and question.method != "tree"
    law = law_of(question, domain, unit, cost, cells, others) if exact else None
    r, rest = unit.rows_per_person, universe[2:]
    pair = (
        r * universe[:1] + rest,
        (r * universe[1:2] if unit.neighbours == "replace" else ()) + rest,
    )

    def spending(times: int) -> Mechanism:
        return run_of(question, domain, unit, less_noise(cost, times), others)

    tried: Rows = universe if law else ()
    return Subject(
        name,
        unit,
        cost,
        spending(1),
        tried,
        pair=None if law else pair,
        runs=100,
        law=law,
        weaker=spending,
    )


def _bins(question: Histogram, unit: Unit, cost: CentralMeasure, seen: Draws = ()) -> Subject:
    """Bins by records: noisy rows on either side of the truth that make 2 bins or 3, every group of edges, every corner of counts."""
    law = (
        law_of_bins(bins_of(question, WIDE, unit, cost), ENDS, seen)
        if isinstance(cost, PureDP)
        else None
    )
    r, universe = unit.rows_per_person, (LOW, NEXT, LAST)
    pair = (
        r * universe[:1] + universe[2:],
        (r * universe[1:2] if unit.neighbours == "replace" else ()) + universe[2:],
    )

    def spending(times: int) -> Mechanism:
        return run_of_bins(question, WIDE, unit, less_noise(cost, times), most=3)

    tried: Rows = universe if law else ()
    worst = None if law else pair
    return Subject(
        "Histogram by records",
        unit,
        cost,
        spending(1),
        tried,
        pair=worst,
        runs=100,
        law=law,
        weaker=spending,
    )


def subjects() -> Iterator[Subject]:
    """Every subject of this room."""
    for unit in UNITS:
        beside = (NEXT, NEXT, NEXT) if unit.neighbours == "replace" else (LOW, LATE, LAST)
        end, few = (NEXT, ON_FEW[1:2]) if unit.neighbours == "replace" else (LAST, ON_FEW[2:])
        yield _selected(
            "Median, exponential mechanism", Quantiles("x", at=[0.5]), unit, PURE, (end,)
        )
        yield _selected("Median, permute-and-flip", Quantiles("x", at=[0.5]), unit, PURE, few)
        yield _selected("Quartiles, JointExp", Quantiles("x"), unit, PURE, beside)
        yield _selected(
            "Quartiles, by halving", Quantiles("x", method="recursive"), unit, PURE, (LAST,)
        )
        yield _bins(Histogram("x", records=10), unit, PURE, (-40, 20, 30))
        yield _selected("Quartiles, tree of counts", Quantiles("x", method="tree"), unit, PURE)
    for question in (Quantiles("x"), Quantiles("x", method="recursive")):
        yield _selected(f"Quartiles, {question.method}", question, Unit(), CONCENTRATED)
    yield _bins(Histogram("x", records=10, rows=20), Unit(neighbours="replace"), CONCENTRATED)
