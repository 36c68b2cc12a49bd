"""Every question states what it draws: no less than its cost, and no more than its noise."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

import sfumato as sf
from sfumato.answers.registry import questions
from sfumato.mechanisms.noise import count_law
from sfumato.privacy.curves import CURVE_UNITS, Event, Laplace, curve, laplace_event, worst_event
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP
from sfumato.privacy.unit import Limits, Unit

ORDERS = (1536, 12880, 262144)
COSTS = (PureDP("0.5"), ApproxDP("0.5", "1e-6"), ZCDP("0.125"))
UNITS = (Unit(), Unit(rows_per_person=3, neighbours="replace", person="rider"))
DOMAIN = sf.Domain(x=sf.Interval(0, 3, step=1))
EXAMPLES = [example for kind in questions() for example in kind.examples]


@pytest.mark.parametrize("cost", COSTS, ids=str)
@pytest.mark.parametrize("unit", UNITS, ids=["row", "person"])
@pytest.mark.parametrize("question", EXAMPLES, ids=lambda question: question.title)
def test_an_event_costs_what_the_preview_says_and_draws_no_more_than_the_worst(
    question, unit, cost
):
    try:
        stated = question.preview(DOMAIN, unit, cost).cost
    except sf.UsageError:
        pytest.skip("it cannot be asked at this cost")
    event = question.event(DOMAIN, unit, cost)
    worst = worst_event(stated)
    assert Event.read(str(event)) == event
    assert (event.epsilon, event.delta, event.rho) == (worst.epsilon, worst.delta, worst.rho)
    drawn = curve(event, ORDERS)
    slack = sum(count for count, _ in event.terms)  # of rounding up, a unit a term
    assert all(a <= b + slack for a, b in zip(drawn, curve(worst, ORDERS), strict=True))


def test_counts_state_their_noise():
    table = sf.Histogram("x")
    assert str(table.event(DOMAIN, Unit(), PureDP("0.1"))) == "laplace(1, 10)"
    replaced = Unit(neighbours="replace")
    assert str(table.event(DOMAIN, replaced, PureDP("0.1"))) == "2 laplace(1, 20)"
    many = Unit(rows_per_person=4, person="rider")
    assert str(table.event(DOMAIN, many, PureDP("0.1"))) == "laplace(4, 40)"
    persons = sf.Histogram("x", count="persons")
    # Nobody is in more cells than there are.
    assert str(persons.event(DOMAIN, many, PureDP("0.1"))) == "3 laplace(1, 30)"
    assert str(table.event(DOMAIN, many, ZCDP("0.1"))) == "zcdp(1/10)"


def test_sums_and_tables_state_their_noise():
    unit = Unit(rows_per_person=2)
    ((times, law),) = sf.Mean("x").event(DOMAIN, unit, PureDP("0.1")).terms
    (encoding,) = sf.Mean("x").preview(DOMAIN, unit, PureDP("0.1")).encodings
    assert (times, law.steps, law.scale) == (1, 2 * encoding.basis.unity, encoding.law.scale)
    both = sf.Domain(x=sf.Interval(0, 8, step=1), y=sf.Interval(0, 8, step=1))
    tables = sf.Tables([["x", "y"], "x"]).event(both, Unit(), PureDP("0.1"))
    assert tables.epsilon == Fraction(1, 10)
    assert all(isinstance(term, Laplace) for _, term in tables.terms)


def test_ranges_state_the_noise_of_each_level():
    domain = sf.Domain(x=sf.Interval(0, 100, step=1))
    event = sf.Histogram("x", workload="ranges").event(domain, Unit(), PureDP("0.9"))
    assert str(event) == "laplace(1, 2) + laplace(1, 5/2)"


def _splits(rows, most, cells):
    """All ways in which one person's rows lie in cells."""
    return [split for split in product(range(most + 1), repeat=cells) if sum(split) <= rows]


def _changes(unit, cells):
    """All changes of counts by one person: coming or, under replace, coming and leaving."""
    rows = unit.rows_counted
    come = _splits(rows, min(unit.largest_cell, rows), cells)
    if unit.neighbours == "add-remove":
        return set(come)
    return {tuple(a - b for a, b in zip(new, old, strict=True)) for new in come for old in come}


@pytest.mark.parametrize(
    "unit",
    [
        Unit(),
        Unit(neighbours="replace"),
        Unit(rows_per_person=4, person="rider"),
        Unit(rows_per_person=3, neighbours="replace", person="rider"),
        Unit(rows_per_person=4, person="rider", limits=Limits(rows_per_cell=3)),
        Unit(rows_per_person=3, person="rider", limits=Limits(norm_per_person=2)),
        Unit(
            rows_per_person=3,
            neighbours="replace",
            person="rider",
            limits=Limits(rows_per_cell=1, cells_per_person=3),
        ),
    ],
    ids=str,
)
@pytest.mark.parametrize("order", ORDERS)
def test_no_change_of_the_counts_tells_more_than_the_event(unit, order):
    """Over every split of a person's rows, by the exact law of each cell."""
    scale = count_law(PureDP("1"), unit).scale
    (stated,) = curve(laplace_event(scale, unit), (order,))

    def told(change):
        return sum(
            curve(Event.of(Laplace(abs(steps), scale)), (order,))[0] for steps in change if steps
        )

    worst = max(map(told, _changes(unit, 3)))
    assert worst <= stated + 6
    if not unit.by_cell:
        assert worst >= stated - 6  # the bound is reached


def test_a_replacement_charged_in_one_cell_would_be_dearer():
    (apart,) = curve(Event.read("2 laplace(1, 20)"), (12880,))
    (together,) = curve(Event.read("laplace(2, 20)"), (12880,))
    assert apart < together <= CURVE_UNITS * Fraction(1, 10)
