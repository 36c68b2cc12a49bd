"""A stream states the draws of its whole tree, for the worst change of a person's rows."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.privacy.curves import Event, Laplace, curve
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP
from sfumato.privacy.unit import Unit

UNITS = (
    Unit(),
    Unit(rows_per_person=2, person="rider"),
    Unit(neighbours="replace"),
    Unit(rows_per_person=2, neighbours="replace", person="rider"),
)


def settled(unit, cost, horizon=5, **fields):
    domain = sf.Domain(x=sf.Interval(-1, 1, step=1))
    return sf.Counter(horizon, **fields).settle(domain, unit, cost)


def _changes(unit, horizon):
    """All changes of the increments of a counter of rows by one person."""
    rows = [
        increments
        for increments in itertools.product(range(unit.rows_per_person + 1), repeat=horizon)
        if sum(increments) <= unit.rows_per_person
    ]
    if unit.neighbours == "add-remove":
        return rows
    return [tuple(a - b for a, b in zip(new, old, strict=True)) for new in rows for old in rows]


def _shifts(tree, change):
    """By how much each fresh draw has to change so that the outputs stay the same."""
    totals = [0, *itertools.accumulate(change)]
    paths = [(0, *tree.path(step)) for step in range(1, tree.horizon + 1)]
    edges = {edge for path in paths for edge in itertools.pairwise(path)}
    # An elder beyond the horizon is not published: it changes as the last step does.
    return [totals[min(step, 5)] - totals[min(elder, 5)] for elder, step in edges]


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("order", [1536, 12880])
def test_no_change_of_the_increments_tells_more_than_the_event(unit, order):
    opened = settled(unit, PureDP("0.5"))
    scale = opened.mechanism.law.scale
    (stated,) = curve(opened.event, (order,))

    def told(steps):
        return curve(Event.of(Laplace(abs(steps), scale)), (order,))[0] if steps else 0

    for change in _changes(unit, 5):
        shifts = _shifts(opened.mechanism, change)
        assert sum(map(told, shifts)) <= stated + len(shifts)


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_an_event_costs_what_the_stream_costs(unit):
    opened = settled(unit, PureDP("0.5"), horizon=200)
    assert opened.event.epsilon == Fraction(1, 2)
    assert str(settled(unit, ZCDP("0.5"), method="toeplitz").event) == "zcdp(1/2)"
    approximate = settled(unit, ApproxDP("0.5", "1e-6"), method="toeplitz")
    assert str(approximate.event) == "stream(1/2, 1/1000000)"


def test_values_of_both_signs_are_charged_together():
    signed = sf.Interval(-1, 1, step=1)
    opened = settled(Unit(neighbours="replace"), PureDP("0.5"), horizon=200, value=signed)
    ((times, law),) = opened.event.terms
    assert times == opened.mechanism.levels
    assert law.steps * opened.resolution == 2
