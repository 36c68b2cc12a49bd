"""The binary partition: every path spends the cost, wherever splitting stops."""

from itertools import product

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit.likelihoods import pure_loss
from sfumato.audit.runs import Scripted, count, neighbours, of_question
from sfumato.domain.domain import Domain, Interval
from sfumato.privacy.allocation import Shares, units_of
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from support.partition_growth import spent_on_paths
from support.partitions import whole

PLANE = Domain(x=Interval(0, 8, step=1), y=Interval(0, 8, step=1))
UNITS = [
    Unit(rows_per_person=r, neighbours=relation)
    for r in (1, 2)
    for relation in ("add-remove", "replace")
]
COSTS = [PureDP("1.000000007"), ZCDP("0.123456789012")]
ROWS = tuple(map(tuple, (np.random.default_rng(3).random((60, 2)) ** 2 * 8).tolist()))
FOUR = Domain(x=Interval(0, 4, step=1))
ON_FOUR = ((0.5,), (1.0,), (4.0,))
CLAIM = PureDP("2")


@pytest.mark.parametrize(
    ("unit", "cost", "allocation"),
    [
        (UNITS[0], COSTS[0], "geometric"),
        (UNITS[3], COSTS[1], "uniform"),
        (UNITS[1], COSTS[0], [3, 0, 2, 1]),
        (UNITS[2], COSTS[1], [1, 1, 0, 0]),
    ],
    ids=str,
)
def test_binary_paths_spend_the_cost_for_every_stop_pattern(unit, cost, allocation):
    """The tests of the first nodes are forced to every pattern of stops in turn."""
    stop = None if not isinstance(allocation, str) else 1
    question = sf.BinaryPartitioner(
        depth=3,
        stop_below=stop,
        allocation=allocation,
        shares=Shares(release=2, partition=1, threshold=3),
    )
    for pattern in product((-(10**6), 10**6), repeat=7) if stop else [()]:
        release = question.answer(
            count(ROWS, question.needs(PLANE).lattice), unit, cost, Scripted(pattern)
        )
        assert set(spent_on_paths(release, unit)) == {whole(cost)}
        assert units_of(release.cost) == units_of(cost)
        assert set(release.spent.tolist()) == {float(whole(cost))}


def test_a_binary_partition_under_replace_spends_what_its_unshared_levels_cost():
    """The root's count does not move where one row becomes another; all other levels do, twice."""
    question, unit = (
        sf.BinaryPartitioner(depth=2, shares=Shares(release=9, threshold=1)),
        Unit(neighbours="replace"),
    )
    loss = pure_loss(of_question(question, FOUR, unit, CLAIM), neighbours(ON_FOUR, unit, 1)).loss
    assert 0.9 * 2 <= loss <= 2 * (1 + 1e-9)
