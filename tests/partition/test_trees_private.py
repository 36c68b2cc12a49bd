"""What trees truly spend, by the production code: exact likelihood ratios on all small neighbours, and broken twins that fail.

A tree's law has two parts. Which boxes come out is a selection: the probability of each choice is taken from the law that the
production code draws from (``Forced``), or found by asking the production code at which noise a box is split (``answers``).
Given the boxes, the published counts are shifted Laplace draws: their loss is the shift over the scale, node by node.
"""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit.likelihoods import pure_loss
from sfumato.audit.runs import Scripted, count, neighbours, of_question, published_counts
from sfumato.domain import Domain, Interval
from sfumato.mechanisms.selection import RankLaw
from sfumato.numbers import EPSILON_UNITS, RHO_UNITS
from sfumato.partition import median, multi_quantile
from sfumato.partition.draft import Draft
from sfumato.privacy.allocation import Shares
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit

LINE = Domain(x=Interval(0, 3, step=1))
FOUR = Domain(x=Interval(0, 4, step=1))
PLANE = Domain(x=Interval(0, 2, step=1), y=Interval(0, 2, step=1))
ON_FOUR = ((0.5,), (1.0,), (4.0,))
ON_PLANE = ((0.0, 0.0), (2.0, 0.0), (1.0, 1.0))
UNITS = [
    Unit(rows_per_person=r, neighbours=relation)
    for r in (1, 2)
    for relation in ("add-remove", "replace")
]
CLAIM = PureDP("2")


def others(unit):
    return 1 if unit.rows_per_person == 1 else 0


# --- trees of counts --------------------------------------------------------------------------------------------------

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


def test_a_binary_partition_under_replace_spends_what_its_unshared_levels_cost():
    """The root's count does not move where one row becomes another; all other levels do, twice."""
    question, unit = (
        sf.BinaryPartitioner(depth=2, shares=Shares(release=9, threshold=1)),
        Unit(neighbours="replace"),
    )
    loss = pure_loss(of_question(question, FOUR, unit, CLAIM), neighbours(ON_FOUR, unit, 1)).loss
    assert 0.9 * 2 <= loss <= 2 * (1 + 1e-9)


# --- selections -------------------------------------------------------------------------------------------------------


class Forced:
    """Makes the production code choose given cuts, and adds up the logarithms of their probabilities."""

    def __init__(self, monkeypatch, cuts):
        self.cuts, self.at, self.log = cuts, 0, 0.0

        class Law(RankLaw):
            def draw(law, bits):  # noqa: N805
                edges = law.log_probabilities()
                first = int(law._ranks.first[0])
                chosen = min(first + self.cuts[self.at % len(self.cuts)], first + len(edges) - 1)
                self.at += 1
                self.log += float(edges[chosen - first])
                return chosen

        monkeypatch.setattr(median, "RankLaw", Law)


def law_given_cuts(monkeypatch, question, domain, unit, rows, cuts):
    forced = Forced(monkeypatch, cuts)
    release = question.answer(count(rows, question.needs(domain).lattice), unit, CLAIM, Scripted())
    return forced.log, release


def median_loss(monkeypatch, question, domain, unit, pairs, choices):
    worst, known = 0.0, {}

    def law(rows, cuts):
        if (rows, cuts) not in known:
            known[rows, cuts] = law_given_cuts(monkeypatch, question, domain, unit, rows, cuts)
        return known[rows, cuts]

    for (one, other), cuts in product(pairs, choices):
        (log_one, here), (log_other, there) = law(one, cuts), law(other, cuts)
        assert here.cover.cut.tolist() == there.cover.cut.tolist()
        worst = max(worst, log_one - log_other + counts_loss(here, there))
    return worst


def counts_loss(here, there):
    """Loss of counts whose noiseless values are these, on the same boxes."""
    which = np.zeros(len(here.noisy), int) if here.which is None else here.which
    loss = sum(
        abs(int(a - b)) / float(here.laws[w].scale)
        for a, b, w in zip(here.noisy, there.noisy, which, strict=True)
    )
    if here.inner is not None:
        inner = zip(here.inner.count, there.inner.count, here.inner.which, strict=True)
        loss += sum(abs(int(a - b)) / float(here.laws[w].scale) for a, b, w in inner)
    return loss


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_medians(monkeypatch, unit):
    question = sf.MedianPartitioner(depth=2)
    choices = [(0, 0, 0), (1, 0, 0), (2, 1, 0), (2, 0, 0)]
    loss = median_loss(
        monkeypatch, question, FOUR, unit, neighbours(ON_FOUR[::2], unit, others(unit)), choices
    )
    assert loss <= 2 * (1 + 1e-9)
    if unit.neighbours == "add-remove":
        assert loss >= 0.85 * 2


ALONE = Shares(release="1/1000", partition=1, threshold=0)


def lone_median_loss():
    """Many edges get worse by a row on their far side, and a few get better."""
    wide, rows = Domain(x=Interval(0, 1024, step=1)), 2 * ((1020.5,),)
    pairs = [((*rows, (1023.5,)), rows), (rows, (*rows, (1023.5,)))]
    with pytest.MonkeyPatch.context() as patch:
        return median_loss(
            patch,
            sf.MedianPartitioner(depth=1, shares=ALONE),
            wide,
            Unit(),
            pairs,
            [(0,), (1020,), (1022,)],
        )


def nested_medians_loss():
    """A row leaves one node, where it hurt most edges, and enters another, where it helps most."""
    wide, rows = Domain(x=Interval(0, 1024, step=1)), (*2 * ((508.5,),), *2 * ((514.5,),))
    pairs = [((*rows, (511.5,)), (*rows, (1023.5,))), ((*rows, (1023.5,)), (*rows, (511.5,)))]
    question = sf.MedianPartitioner(depth=2, shares=ALONE, allocation=["1/1000", 1, 1])
    with pytest.MonkeyPatch.context() as patch:
        return median_loss(
            patch, question, wide, Unit(neighbours="replace"), pairs, [(511, 508, 0), (511, 0, 500)]
        )


def test_medians_spend_their_share_and_no_more(monkeypatch):
    assert 0.9 * 2 <= lone_median_loss() <= 2
    assert 0.9 * 2 <= nested_medians_loss() <= 2
    monkeypatch.setattr(median, "selection_epsilon", lambda cost: 2 * cost.epsilon)
    assert lone_median_loss() > 2.02, "the median that spends 2 epsilon is found out"
    monkeypatch.undo()
    monkeypatch.setattr(median, "nested", lambda unit, epsilon: (Unit(), epsilon))
    assert nested_medians_loss() > 2.02, (
        "add-remove selections at the full share, in nodes under replace, are found out"
    )


def test_cells_that_take_the_budgets_of_the_deepest_levels_are_found_out(monkeypatch):
    """A published fault: what a path saved was looked up from the wrong end."""
    question, unit = sf.BinaryPartitioner(depth=3, stop_below=5), Unit()

    monkeypatch.setattr(Draft, "left", lambda draft: np.full(len(draft.growth.axis), draft.total))
    loss = pure_loss(
        of_question(question, FOUR, unit, CLAIM), neighbours(ON_FOUR[:1], unit, 0), (-3, 40)
    ).loss
    assert loss > 2.02


# --- PrivTree ---------------------------------------------------------------------------------------------------------


class Answers(Scripted):
    """Draws of the tests from a list, and of counts from another, then no noise; tells tests by their law."""

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
    """Every tree that can come out, with its log-probability: the least noise at which each box is split is searched for."""
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
    """With this draw it is the one more row that makes a head start, while the counts that are shown are taken to be the same."""
    more, fewer = ((3.5,),), ()
    loss = privtree_loss(
        sf.PrivTreePartitioner(), FOUR, Unit(), CLAIM, [(more, fewer), (fewer, more)], (900, 0, 28)
    )
    assert loss > 1.2 * 2


YES, NO = 10**6, -(10**6)


def path_loss(question, rows, cost):
    """Loss of the answers on the path to the lowest cell of 64, which one row more than ``rows`` changes: yes down to a depth, then no."""
    scale, worst, total = float(question.test_law(cost, Unit())[0].scale), 0.0, 0.0
    for depth in range(6):
        more, fewer = (least_noise(question, many, cost, depth) for many in (rows + 1, rows))
        worst = max(worst, log_at_least(1 - fewer, scale) - log_at_least(1 - more, scale) - total)
        total += log_at_least(more, scale) - log_at_least(fewer, scale)
        worst = max(worst, total)
    return worst


def least_noise(question, rows, cost, depth):
    """The least draw at which the lowest box of a level is split, the boxes above it having been; the noisy number of rows is small."""
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


@pytest.mark.parametrize("cost", [PureDP("1.000000007"), ZCDP("0.5")], ids=str)
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_joint_cuts_spend_their_level_and_no_more(monkeypatch, cost, unit):
    """Every node chooses for one added or removed person: under replace at half of its level's share."""
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
