"""Cuts at several private quantiles: each node spends the share of its level."""

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.basics.numbers import EPSILON_UNITS, RHO_UNITS
from sfumato.basics.structs import from_bytes, to_bytes
from sfumato.domain.domain import Domain, Interval
from sfumato.mechanisms.selection import joint_sensitivity
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.partition import fixed_depth as multi_quantile
from support.partitions import answer

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


WAGES = Domain(wage=Interval(0, 1000, step=1))
UNEVEN = (Fraction(1, 2), Fraction(9, 10), Fraction(99, 100))


def test_uneven_quantiles_are_where_they_are_asked_for():
    rows = ((float(i),) for i in range(1000))
    question = sf.MultiQuantilePartitioner("wage", depth=1, at=["0.5", 0.9, "99/100"])
    release = answer(question, WAGES, tuple(rows), cost=PureDP(200))
    assert question.quantiles(4) == UNEVEN
    assert sorted(release.lower[:, 0].tolist()) == pytest.approx([0, 500, 900, 990], abs=3)
    assert "1 - the least gap" in release.guarantee.proof.sensitivity
    even = answer(sf.MultiQuantilePartitioner("wage", depth=1), WAGES, ((1.0,),))
    assert even.guarantee.proof == sf.MultiQuantilePartitioner.proof


def test_uneven_cuts_are_chosen_with_the_sensitivity_of_their_least_gap(monkeypatch):
    seen, law = [], multi_quantile.JointLaw
    monkeypatch.setattr(
        multi_quantile,
        "JointLaw",
        lambda *rest, **more: seen.append(rest[1]) or law(*rest, **more),
    )
    answer(sf.MultiQuantilePartitioner("wage", depth=2, at=UNEVEN), WAGES, ((1.0,),) * 9)
    # Nodes of fewer lattice cells than parts are cut everywhere, whatever the quantiles.
    assert set(seen) >= {UNEVEN}
    assert joint_sensitivity(list(UNEVEN), Unit()) == 2 * (1 - Fraction(1, 100))


def test_even_quantiles_are_the_fan_out():
    assert sf.MultiQuantilePartitioner(at=[0.25, 0.5, 0.75]) == sf.MultiQuantilePartitioner()
    assert sf.MultiQuantilePartitioner(at=[0.5]) == sf.MultiQuantilePartitioner(fanout=2)
    uneven = sf.MultiQuantilePartitioner(at=[0.5, 0.9])
    assert uneven.parts == 3
    assert from_bytes(to_bytes(uneven), sf.MultiQuantilePartitioner) == uneven
    assert b'"at"' not in to_bytes(sf.MultiQuantilePartitioner("x", fanout=3))


@pytest.mark.parametrize(
    "fields",
    [
        {"at": []},
        {"at": [0.9, 0.5]},
        {"at": [0, 0.5]},
        {"at": [0.5, 1]},
        {"at": [i / 17 for i in range(1, 17)]},
        {"at": [0.1, 0.5], "fanout": 7},
        {"at": ["x"]},
    ],
    ids=str,
)
def test_quantiles_that_make_no_sense(fields):
    with pytest.raises(sf.UsageError):
        sf.MultiQuantilePartitioner(**fields)
