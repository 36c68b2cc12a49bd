"""Exact audits: each basis spends its whole claim, and no more, on all small neighbouring data sets."""

from __future__ import annotations

from itertools import product

import pytest

import sfumato as sf
from sfumato.audit.likelihoods import pure_loss, renyi_loss
from sfumato.audit.runs import Mechanism, Published, Rescanned, Rows, neighbours
from sfumato.audit.subjects.subject import less_noise
from sfumato.privacy.measures import CentralMeasure
from sfumato.random.bits import Bits

DOMAIN = sf.Domain(g=sf.Interval(0, 2, step=1), x=sf.Interval(0, 3, step=1))
UNIVERSE: Rows = ((0.0, 0.0), (0.0, 1.0), (0.0, 2.0), (1.0, 2.0))
UNITS = [sf.Unit(r, relation) for r, relation in product((1, 2), ("add-remove", "replace"))]
KINDS = [sf.Mean, sf.Sum, sf.Variance]


def mechanism(question: sf.Question, unit: sf.Unit, cost: CentralMeasure) -> Mechanism:
    """The production code from rows to the published integers."""
    lattice = question.needs(DOMAIN).lattice

    def run(rows: Rows, noise: Bits) -> Published:
        release = question.answer(Rescanned(rows, lattice), unit, cost, noise)
        return Published(release.numbers(), release)

    return run


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_epsilon_is_spent_exactly(kind: type, unit: sf.Unit) -> None:
    cost = sf.PureDP("1")
    pairs = neighbours(UNIVERSE, unit, others=1 if unit.rows_per_person == 1 else 0)
    loss = pure_loss(mechanism(kind("x", by="g"), unit, cost), pairs).loss
    assert 0.99 <= loss <= 1 + 1e-9
    half = pure_loss(mechanism(kind("x", by="g"), unit, less_noise(cost, 2)), pairs).loss
    assert half > 1.9


@pytest.mark.parametrize("unit", UNITS[::3], ids=str)
def test_rho_is_never_exceeded(unit: sf.Unit) -> None:
    cost = sf.ZCDP("0.5")
    pairs = neighbours(UNIVERSE, unit, others=0)
    for kind in (sf.Mean, sf.Variance):
        loss = renyi_loss(mechanism(kind("x", by="g"), unit, cost), pairs, (1.5, 8.0)).loss
        assert 0.98 * 0.5 <= loss <= 0.5 * (1 + 1e-9)
