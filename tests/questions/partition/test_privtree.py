"""PrivTree: what its tests and counts spend, by the production code."""

import math
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit.likelihoods import pure_loss
from sfumato.audit.runs import Scripted, count, neighbours, published_counts
from sfumato.domain.domain import Domain, Interval
from sfumato.privacy.allocation import units_of
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.random import PublicSeed
from support.partition_growth import spent_on_paths
from support.partitions import counts_loss, whole

PLANE = Domain(x=Interval(0, 8, step=1), y=Interval(0, 8, step=1))
UNITS = [
    Unit(rows_per_person=r, neighbours=relation)
    for r in (1, 2)
    for relation in ("add-remove", "replace")
]
COSTS = [PureDP("1.000000007"), ZCDP("0.123456789012")]
ROWS = tuple(map(tuple, (np.random.default_rng(3).random((60, 2)) ** 2 * 8).tolist()))
LINE = Domain(x=Interval(0, 3, step=1))
FOUR = Domain(x=Interval(0, 4, step=1))
CLAIM = PureDP("2")
YES, NO = 10**6, -(10**6)


@pytest.mark.parametrize("cost", COSTS, ids=str)
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("many", [1, 300], ids=["one block", "many blocks"])
def test_privtree_spends_the_rest_on_its_tests(many, unit, cost):
    question = sf.PrivTreePartitioner()
    release = question.answer(
        count(many * ROWS, question.needs(PLANE).lattice), unit, cost, PublicSeed(5)
    )
    assert len(release.inner.node) > 1 if many > 1 else release.inner.node[0] == 0
    tests = Fraction(16 * (units_of(cost) // 64), 10**12 if isinstance(cost, ZCDP) else 10**9)
    assert {spent + tests for spent in spent_on_paths(release, unit)} == {whole(cost)}
    law, delta = question.test_law(cost, unit)
    per_row = 4 if unit.neighbours == "replace" else 3
    epsilon = unit.rows_per_person * per_row / law.scale
    assert (epsilon**2 / 2 if isinstance(cost, ZCDP) else epsilon) <= tests
    assert delta >= float(law.scale) * np.log(2)


class Answers(Scripted):
    """Gives the tests draws from one list, and counts draws from another, then no noise.

    It tells tests by their law.
    """

    def __init__(self, law, tests, first=()):
        super().__init__()
        self.law, self.tests, self.first, self.asked = law, list(tests), list(first), 0

    def draw(self, law, size):
        if law == self.law:
            found = self.tests[self.asked : self.asked + size] + [-(10**6)] * max(
                0, size - max(0, len(self.tests) - self.asked)
            )
            self.asked += size
            return np.array(found[:size], dtype=np.int64)
        found, self.first = self.first[:size], self.first[size:]
        return np.array(found + [0] * (size - len(found)), dtype=np.int64)


def grown(question, domain, unit, rows, cost, tests, first):
    law, _ = question.test_law(cost, unit)
    noise = Answers(law, tests, first)
    return question.answer(
        count(rows, question.needs(domain).lattice), unit, cost, noise
    ), noise.asked


def answers(question, domain, unit, rows, cost, first=()):
    """Every tree that can come out, with its log-probability.

    The least noise at which each box is split is found by bisection.
    """
    law, _ = question.test_law(cost, unit)
    found = []

    def walk(tests):
        release, asked = grown(question, domain, unit, rows, cost, tests, first)
        if asked <= len(tests):
            found.append((tests, release))
            return
        walk((*tests, -(10**6)))
        walk((*tests, 10**6))

    walk(())
    scale = float(law.scale)
    laws = {}
    for tests, release in found:
        log = 0.0
        for i, test in enumerate(tests):
            low, high = -4000, 4000  # not split at low, split at high
            while high - low > 1:
                middle = (low + high) // 2
                split = grown(
                    question, domain, unit, rows, cost, (*tests[:i], middle, *tests[i + 1 :]), first
                )[0]
                cut = len(split.cover.cut) if test < 0 else -len(split.cover.cut)
                same = len(release.cover.cut) if test < 0 else -len(release.cover.cut)
                moved = (cut != same) if test < 0 else (cut == same)
                low, high = (low, middle) if moved else (middle, high)
            log += log_at_least(high, scale) if test > 0 else log_at_least(1 - high, scale)
        laws[tuple(release.cover.axis.tolist()), tuple(release.cover.cut.tolist())] = (log, release)
    return laws


def log_at_least(k, scale):
    """ln P(Z >= k) of the discrete Laplace law."""
    q = math.exp(-1 / scale)
    return -k / scale - math.log1p(q) if k > 0 else math.log1p(-(q ** (1 - k)) / (1 + q))


def privtree_loss(question, domain, unit, cost, pairs, first=()):
    known, worst = {}, 0.0
    for pair in pairs:
        for rows in pair:
            if rows not in known:
                known[rows] = answers(question, domain, unit, rows, cost, first)
        one, other = (known[rows] for rows in pair)
        assert set(one) == set(other)
        for tree, (log, release) in one.items():
            worst = max(worst, log - other[tree][0] + counts_loss(release, other[tree][1]))
    return worst


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_privtree(unit):
    """One block; 300 noisy rows make boxes split without a handicap, down to three levels."""
    pairs = neighbours(((0.5,), (2.5,))[: 3 - unit.rows_per_person], unit, 0)
    for first in ((), (300,))[: 3 - unit.rows_per_person]:
        loss = privtree_loss(sf.PrivTreePartitioner(), LINE, unit, CLAIM, pairs, first)
        assert loss <= 2 * (1 + 1e-9)
        assert loss >= 0.5 * 2 if unit.neighbours == "add-remove" else loss > 0


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_privtree_in_blocks(unit):
    """Two blocks, of which one is said to hold so many rows that it is split without a handicap."""
    pairs = neighbours(((0.5,), (3.5,))[: 3 - unit.rows_per_person], unit, 0)
    loss = privtree_loss(sf.PrivTreePartitioner(), FOUR, unit, CLAIM, pairs, (900, 0, 40))
    assert loss <= 2 * (1 + 1e-9)
    assert loss >= 0.5 * 2 if unit.neighbours == "add-remove" else loss > 0


def test_a_head_start_that_is_read_off_the_data_is_found_out():
    """With this draw, one more row makes a head start.

    The counts that are shown are taken to be the same.
    """
    more, fewer = ((3.5,),), ()
    loss = privtree_loss(
        sf.PrivTreePartitioner(), FOUR, Unit(), CLAIM, [(more, fewer), (fewer, more)], (900, 0, 28)
    )
    assert loss > 1.2 * 2


def path_loss(question, rows, cost):
    """Loss of the answers on the path to the lowest cell of 64, which one more row changes.

    The answers are yes down to a depth, then no.
    """
    scale, worst, total = float(question.test_law(cost, Unit())[0].scale), 0.0, 0.0
    for depth in range(6):
        more, fewer = (least_noise(question, many, cost, depth) for many in (rows + 1, rows))
        worst = max(worst, log_at_least(1 - fewer, scale) - log_at_least(1 - more, scale) - total)
        total += log_at_least(more, scale) - log_at_least(fewer, scale)
        worst = max(worst, total)
    return worst


def least_noise(question, rows, cost, depth):
    """The least draw at which the lowest box of a level is split, if the boxes above were split.

    The noisy number of rows is small.
    """
    deep, before = (
        Domain(x=Interval(0, 64, step=1)),
        (YES, *(YES, NO) * (depth - 1)) if depth else (),
    )
    low, high = -100, 100
    while high - low > 1:
        middle = (low + high) // 2
        release, _ = grown(
            question, deep, Unit(), rows * ((0.5,),), cost, (*before, middle), (-100,)
        )
        low, high = (low, middle) if int(release.depth.max()) > depth else (middle, high)
    return high


def test_the_answers_of_a_path_and_a_real_delta(monkeypatch):
    """The tests alone have epsilon 8 here, and lambda 3/8."""
    question, cost = sf.PrivTreePartitioner(), PureDP("32")
    law, _ = question.test_law(cost, Unit())
    claim = 3 / float(law.scale)
    assert max(path_loss(question, rows, cost) for rows in (0, 1)) <= claim * (1 + 1e-9)
    monkeypatch.setattr(
        sf.PrivTreePartitioner, "test_law", lambda *_: (law, float(law.scale) * math.log(2))
    )
    assert path_loss(question, 0, cost) > 1.3 * claim


def test_publishing_biased_counts_is_found_out():
    law, delta = sf.PrivTreePartitioner().test_law(CLAIM, Unit())

    def run(rows, noise):
        biased = np.array([max(-delta, len(rows) - depth * delta) for depth in range(6)])
        return published_counts(biased + law.sample(6, noise))

    crowd = 40 * ((0.5,),)
    assert pure_loss(run, [((*crowd, (0.5,)), crowd)]).loss == pytest.approx(6 / float(law.scale))
    assert 6 / float(law.scale) > 3 / float(law.scale)
