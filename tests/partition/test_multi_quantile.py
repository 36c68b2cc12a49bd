"""Cuts at several private quantiles: each node spends the share of its level."""

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.domain import Domain, Interval
from sfumato.numbers import EPSILON_UNITS, RHO_UNITS
from sfumato.partition import multi_quantile
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit

UNITS = [
    Unit(rows_per_person=r, neighbours=relation)
    for r in (1, 2)
    for relation in ("add-remove", "replace")
]


@pytest.mark.parametrize("cost", [PureDP("1.000000007"), ZCDP("0.5")], ids=str)
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_joint_cuts_spend_their_level_and_no_more(monkeypatch, cost, unit):
    """Every node chooses as under add-remove: under replace at half of its level's share."""
    seen, law = [], multi_quantile.JointLaw
    monkeypatch.setattr(
        multi_quantile,
        "JointLaw",
        lambda *rest, **more: seen.append(rest[2:4]) or law(*rest, **more),
    )
    question = sf.MultiQuantilePartitioner("x", depth=2, fanout=3)
    wide = Domain(x=Interval(0, 64, step=1))
    sf.Publisher(
        sf.source(
            np.arange(64.0)[:, None],
            wide,
            rows_per_person=unit.rows_per_person,
            neighbours=unit.neighbours,
        ),
        budget=cost,
    ).release(
        question, **({"rho": cost.rho} if isinstance(cost, ZCDP) else {"epsilon": cost.epsilon})
    )
    sides = 2 if unit.neighbours == "replace" else 1
    assert {inner for _, inner in seen} == {Unit(unit.rows_per_person)}
    spent = {
        (sides * epsilon) ** 2 / 8 if isinstance(cost, ZCDP) else sides * epsilon
        for epsilon, _ in seen
    }
    shares = [
        Fraction(units, RHO_UNITS if isinstance(cost, ZCDP) else EPSILON_UNITS)
        for units in question.levels(cost).partition
    ]
    assert len(seen) > 1
    assert len(spent) == len(set(shares)) == 2
    for one, share in zip(sorted(spent), sorted(shares), strict=True):
        assert share * (1 - Fraction(1, 10**6)) <= one <= share
