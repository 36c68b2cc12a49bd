"""Selections are judged by all their outcomes, and trees of counts by what answers follow from."""

import math

import numpy as np
import pytest

from audit.subjects import SUBJECTS
from sfumato.audit.findings import DEEP, examine
from sfumato.audit.runs import NotAdditive, neighbours
from sfumato.audit.selections import Selecting, law_of, run_of, run_of_tree, selection_loss
from sfumato.audit.subjects.subject import CONCENTRATED, LINE, ON_LINE, PURE
from sfumato.mechanisms.noise import count_law
from sfumato.privacy.unit import Unit
from sfumato.questions.quantiles import Quantiles
from sfumato.questions.quantiles.methods import AxisMethod

TREE = next(s for s in SUBJECTS if s.name == "Quartiles, tree of counts")
HALVING = Quantiles("x", method="recursive")


def test_levels_of_a_tree_that_each_take_the_whole_cost_are_caught(monkeypatch):
    assert examine(TREE).exact == pytest.approx(1)
    laws = property(lambda method: [count_law(method.cost, method.unit)] * method.levels)
    monkeypatch.setattr(AxisMethod, "laws", laws)
    found = examine(TREE)
    assert (found.verdict, found.exact) == ("EXCEEDS", pytest.approx(2))


def test_an_answer_that_follows_from_true_counts_is_unbounded(monkeypatch):
    """The noise is drawn as it should be, and then not used."""
    drawn = AxisMethod.draw_with_ranks

    def from_true_counts(method, cells, bits):
        points, gaps = drawn(method, cells, bits)
        return np.full_like(points, int(cells.counts.sum())), gaps

    monkeypatch.setattr(AxisMethod, "draw_with_ranks", from_true_counts)
    assert examine(TREE).exact == "unbounded"


def test_an_answer_with_other_noise_than_its_tree_is_refused(monkeypatch):
    """The audited counts would not be those that the answer rests on."""
    mechanism = run_of_tree(Quantiles("x", method="tree"), LINE, Unit(), PURE)
    drawn = AxisMethod.draw_with_ranks

    def twice(method, cells, bits):
        drawn(method, cells, bits)
        return drawn(method, cells, bits)

    monkeypatch.setattr(AxisMethod, "draw_with_ranks", twice)
    found = examine(
        type(TREE)("twice", Unit(), PURE, mechanism, ON_LINE, runs=40, weaker=TREE.weaker)
    )
    assert found.verdict == "REFUSED"


def test_a_divergence_needs_all_outcomes():
    """Of the complete law, against the definition; of a part of it, refused."""
    pairs = neighbours(ON_LINE, Unit(), 1)
    run = run_of(HALVING, LINE, Unit(), CONCENTRATED)
    law = law_of(HALVING, LINE, Unit(), CONCENTRATED, ())
    found = selection_loss(Selecting(run, law), pairs, CONCENTRATED, DEEP.alphas)
    assert 0.3 < found.loss <= 0.5
    p, q = (np.exp(law(rows)) for rows in found.pair)
    assert p.sum() == pytest.approx(1)
    by_order = [math.log((p**a * q ** (1 - a)).sum()) / (a - 1) / a for a in DEEP.alphas]
    assert found.loss == pytest.approx(max(by_order))
    part = Selecting(run, law_of(HALVING, LINE, Unit(), CONCENTRATED, (0, 1)))
    with pytest.raises(NotAdditive, match="outcomes of a selection have probability"):
        selection_loss(part, pairs, CONCENTRATED, DEEP.alphas)
