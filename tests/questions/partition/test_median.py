"""Private medians: exact likelihood ratios of cuts and counts, and broken mechanisms that fail."""

from itertools import product

import pytest

import sfumato as sf
from sfumato.audit.runs import Scripted, count, neighbours
from sfumato.domain.domain import Domain, Interval
from sfumato.mechanisms.selection import RankLaw
from sfumato.privacy.allocation import Shares
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.partition import fixed_depth as median
from support.partitions import counts_loss, others

FOUR = Domain(x=Interval(0, 4, step=1))
ON_FOUR = ((0.5,), (1.0,), (4.0,))
UNITS = [
    Unit(rows_per_person=r, neighbours=relation)
    for r in (1, 2)
    for relation in ("add-remove", "replace")
]
CLAIM = PureDP("2")
ALONE = Shares(release="1/1000", partition=1, threshold=0)


class Forced:
    """Makes the production code choose given cuts, and adds up their log-probabilities."""

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
