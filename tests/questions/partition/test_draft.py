"""What a draft publishes spends the cost on every path, to the last unit, and no more."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit.likelihoods import pure_loss
from sfumato.audit.runs import count, neighbours, of_question
from sfumato.domain.domain import Domain, Interval
from sfumato.privacy.allocation import Shares
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.partition.growth import Draft
from sfumato.random import PublicSeed
from support.partition_growth import spent_on_paths
from support.partitions import others, whole

UNITS = [
    Unit(rows_per_person=r, neighbours=relation)
    for r in (1, 2)
    for relation in ("add-remove", "replace")
]
COSTS = [PureDP("1.000000007"), ZCDP("0.123456789012")]
ROWS = tuple(map(tuple, (np.random.default_rng(3).random((60, 2)) ** 2 * 8).tolist()))
QUESTIONS = [
    sf.AdaptiveGridPartitioner(),
    sf.AutoPartitioner(),
    sf.BinaryPartitioner(depth=5, stop_below=4),
    sf.BinaryPartitioner(depth=0),
]
FOUR = Domain(x=Interval(0, 4, step=1))
PLANE = Domain(x=Interval(0, 2, step=1), y=Interval(0, 2, step=1))
ON_FOUR = ((0.5,), (1.0,), (4.0,))
ON_PLANE = ((0.0, 0.0), (2.0, 0.0), (1.0, 1.0))
CLAIM = PureDP("2")
COUNTED = [
    sf.BinaryPartitioner(depth=2, stop_below=1),
    sf.BinaryPartitioner(
        depth=2,
        stop_below=1,
        allocation="uniform",
        shares=Shares(release=1, partition=2, threshold=3),
    ),
    sf.BinaryPartitioner(depth=3),
    sf.AdaptiveGridPartitioner(),
    sf.AutoPartitioner(),
]


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("cost", COSTS, ids=str)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.title)
def test_paths_of_counts_spend_the_cost(question, cost, unit):
    domain = Domain(x=Interval(0, 64, step=1), y=Interval(0, 8, step=1))
    release = question.answer(
        count(ROWS, question.needs(domain).lattice), unit, cost, PublicSeed("x")
    )
    assert set(spent_on_paths(release, unit)) == {whole(cost)}


def check_counts(question, unit, universe, background):
    firsts = (-3, 40)
    loss = pure_loss(
        of_question(question, FOUR, unit, CLAIM), neighbours(universe, unit, background), firsts
    ).loss
    assert loss <= 2 * (1 + 1e-9)
    assert loss >= 0.99 * 2 or unit.neighbours == "replace"


@pytest.mark.parametrize("unit", UNITS[::3], ids=str)
@pytest.mark.parametrize("question", COUNTED, ids=str)
def test_trees_of_counts(question, unit):
    check_counts(question, unit, ON_FOUR[::2], 0)


@pytest.mark.deep
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("question", COUNTED, ids=str)
def test_trees_of_counts_on_more_data(question, unit):
    check_counts(question, unit, ON_FOUR, others(unit))
    small = pure_loss(
        of_question(question, PLANE, unit, CLAIM), neighbours(ON_PLANE, unit, 0), (-3, 0, 40)
    ).loss
    assert small <= 2 * (1 + 1e-9)


def test_cells_that_take_the_budgets_of_the_deepest_levels_are_found_out(monkeypatch):
    """A published fault: what a path saved was looked up from the wrong end."""
    question, unit = sf.BinaryPartitioner(depth=3, stop_below=5), Unit()

    monkeypatch.setattr(Draft, "left", lambda draft: np.full(len(draft.growth.axis), draft.total))
    loss = pure_loss(
        of_question(question, FOUR, unit, CLAIM), neighbours(ON_FOUR[:1], unit, 0), (-3, 40)
    ).loss
    assert loss > 2.02
