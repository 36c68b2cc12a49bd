"""Trees of a fixed depth: what their levels, cuts and cells spend."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.audit.runs import count
from sfumato.domain.domain import Domain, Interval
from sfumato.privacy.allocation import Shares, of_units, tree_levels
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.partition import fixed_depth as median
from sfumato.questions.partition import fixed_depth as multi_quantile
from sfumato.random import PublicSeed
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


@pytest.mark.parametrize("cost", COSTS, ids=str)
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(
    "question",
    [sf.MedianPartitioner(depth=4, stop_below=3), sf.MultiQuantilePartitioner(depth=2, fanout=3)],
    ids=lambda q: q.title,
)
def test_paths_with_choices_spend_the_rest_on_them(question, cost, unit):
    release = question.answer(
        count(ROWS, question.needs(PLANE).lattice), unit, cost, PublicSeed("x")
    )
    shares = question.levels(cost).partition
    units = 10**12 if isinstance(cost, ZCDP) else 10**9
    for spent, depth in zip(spent_on_paths(release, unit), release.depth.tolist(), strict=True):
        assert spent + Fraction(sum(shares[:depth]), units) == whole(cost)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(
    ("question", "module", "name"),
    [
        (sf.MedianPartitioner(depth=2), median, "RankLaw"),
        (sf.MultiQuantilePartitioner(depth=2, fanout=3), multi_quantile, "JointLaw"),
    ],
    ids=["median", "multi-quantile"],
)
def test_each_selection_runs_at_the_share_of_its_level(monkeypatch, question, module, name, unit):
    """A cut is chosen at what its path pays: under replace at half of it, as add-remove."""
    made = getattr(module, name)
    asked = []

    def watched(ranks, at, epsilon, unit, **words):
        asked.append((epsilon, unit.neighbours, unit.rows_per_person))
        return made(ranks, at, epsilon, unit, **words)

    monkeypatch.setattr(module, name, watched)
    question.answer(count(ROWS, question.needs(PLANE).lattice), unit, PureDP(1), PublicSeed("x"))
    halves = 2 if unit.neighbours == "replace" else 1
    shares = {Fraction(units, 10**9) / halves for units in question.levels(PureDP(1)).partition}
    assert {epsilon for epsilon, _, _ in asked} == shares
    assert {each[1:] for each in asked} == {("add-remove", unit.rows_per_person)}


@given(
    st.integers(1000, 10**10),
    st.integers(0, 9),
    st.integers(2, 5),
    st.sampled_from(["uniform", "geometric", "linear"]),
    st.tuples(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9)),
)
def test_levels_leave_something_for_every_stop(units, depth, fanout, allocation, shares):
    cost = of_units(PureDP(1), units)
    levels = tree_levels(
        cost, Shares(*map(Fraction, shares)), allocation, depth=depth, fanout=fanout
    )
    assert levels.total == units
    assert len(levels.threshold) == depth + 1
    assert len(levels.partition) == depth
    for stop in range(depth + 1):
        tested = levels.threshold[: stop + 1] if stop < depth else levels.threshold[:depth]
        assert units - sum(tested) - sum(levels.partition[:stop]) > 0


def test_shares_of_their_own_kind():
    assert Shares(release="0.5").weights == [Fraction(1, 2), 0, 1]
    for wrong in ({"release": 0}, {"partition": -1}, {"threshold": "x"}):
        with pytest.raises(sf.UsageError):
            Shares(**wrong)
