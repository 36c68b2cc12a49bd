"""Decisions are enumerated by the code that publishes, and broken ones are caught or refused."""

import math

import numpy as np
import pytest

import sfumato as sf
from audit.subjects import SUBJECTS
from sfumato.audit.decisions import Decisions
from sfumato.audit.runs import NotAdditive, Published, neighbours, of_question
from sfumato.domain.domain import Domain, Interval
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, exceeds
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.partition import fixed_depth as median
from sfumato.questions.partition import growth as draft

LINE = Domain(x=Interval(0, 3, step=1))
ONE = PureDP(1)
SCALE = 3
ROW = ((0.5,),)
ALPHAS = (1.5, 8.0)


def crossing(limit=2, twice=False, law=DiscreteLaplace(SCALE)):  # noqa: B008
    """One test of the number of rows, then a noisy number of rows if it was passed."""

    def run(rows, noise):
        true = np.array([len(rows)])
        passed = bool(exceeds(true, law, np.array([limit]), noise)[0])
        if twice:
            passed = passed != bool(exceeds(true, law, np.array([limit + 4]), noise)[0])
        numbers = (true + law.sample(1, noise)).tolist() if passed else []
        return Published(tuple(numbers), {"passed": passed, "numbers": numbers})

    return run


def test_a_test_and_a_count_add_up():
    """A passed test and its count lose 1 / scale each."""
    pairs = [(ROW, ()), ((), ROW)]
    found = Decisions()(crossing(), pairs, ONE, ())
    assert found.loss == pytest.approx(2 / SCALE)
    assert found.pair == (ROW, ())


def test_a_divergence_is_that_of_all_outputs():
    """Against the sum over all outputs, term by term."""
    law = DiscreteGaussian(SCALE)
    values = np.arange(-40, 41)
    mass = np.exp(-(values**2) / (2 * SCALE))
    mass /= mass.sum()

    def outputs(rows):
        passed = mass[values + rows > 2].sum()
        return np.append(passed * np.roll(mass, rows), 1 - passed)[1:]

    p, q = np.log(outputs(1)), np.log(outputs(0))
    for alpha in ALPHAS:
        wanted = np.logaddexp.reduce(alpha * p + (1 - alpha) * q) / (alpha - 1) / alpha
        found = Decisions()(crossing(law=law), [(ROW, ())], ZCDP(1), (alpha,))
        assert found.loss == pytest.approx(wanted, rel=1e-6)


def test_tests_whose_answers_do_not_show_apart_are_refused():
    """Two answers lead to one output: their probabilities do not add up to 1."""
    with pytest.raises(NotAdditive, match="the same output"):
        Decisions()(crossing(twice=True), [(ROW, ())], ONE, ())


def test_numbers_that_follow_no_draw_are_refused():
    run = lambda rows, noise: Published((len(rows),), None)  # noqa: E731
    with pytest.raises(NotAdditive, match="do not follow their draws"):
        Decisions()(run, [(ROW, ())], ONE, ())


def test_a_cut_that_follows_from_the_data_is_unbounded():
    def run(rows, noise):
        noisy = int(len(rows) + DiscreteLaplace(SCALE).sample(1, noise)[0])
        return Published((noisy,), {"cut": len(rows), "noisy": noisy})

    assert Decisions()(run, [(ROW, ())], ONE, ()).loss == math.inf


def subject_named(name, unit=Unit()):  # noqa: B008
    return next(s for s in SUBJECTS if (s.name, s.unit, s.claim) == (name, unit, ONE))


def loss_of(subject):
    """The exact figure, by the code as it stands, however it was patched."""
    return subject.exact(subject.mechanism, subject.pairs, subject.claim, ALPHAS).loss


def test_tests_with_a_quarter_of_their_noise_are_caught(monkeypatch):
    """Also if the counts have all of theirs: tests take a quarter of the cost."""
    relations = ("add-remove", "replace")
    trees = [subject_named("PrivTree", Unit(neighbours=relation)) for relation in relations]
    law_at = sf.PrivTreePartitioner.law_at
    monkeypatch.setattr(
        sf.PrivTreePartitioner,
        "law_at",
        lambda question, paid, unit: law_at(question, PureDP(4 * paid.epsilon), unit),
    )
    for tree in trees:
        assert loss_of(tree) > 1.05


def test_trees_that_forget_the_rows_of_a_person_are_caught(monkeypatch):
    two_rows = subject_named("PrivTree", Unit(2))
    assert 0.8 < loss_of(two_rows) <= 1
    count_law = draft.count_law
    monkeypatch.setattr(draft, "count_law", lambda cost, unit: count_law(cost, Unit()))
    assert loss_of(two_rows) > 1.5


def test_medians_that_forget_the_other_node_are_caught(monkeypatch):
    beside = subject_named("Median partition")
    assert 0.99 < loss_of(beside) <= 1
    monkeypatch.setattr(median, "selection_epsilon", lambda cost: 2 * cost.epsilon)
    assert loss_of(beside) > 1.1


def test_outcomes_that_are_too_many_must_be_named():
    wide = Domain(x=Interval(0, 1024, step=1))
    mechanism = of_question(sf.MedianPartitioner(depth=1), wide, Unit(), ONE)
    with pytest.raises(NotAdditive, match="too many outcomes"):
        Decisions()(mechanism, [(ROW, ())], ONE, ())


@pytest.mark.deep
def test_trees_beside_other_rows_and_at_other_costs():
    """More data sets than the quick audit tries."""
    for unit in (Unit(), Unit(neighbours="replace"), Unit(2), Unit(2, "replace")):
        for epsilon in ("0.5", "2", "4"):
            cost = PureDP(epsilon)
            mechanism = of_question(sf.PrivTreePartitioner(), LINE, unit, cost)
            pairs = neighbours(((0.5,), (2.5,)), unit, 2)
            found = Decisions(((), (300,)))(mechanism, pairs, cost, ())
            assert found.loss <= float(cost.epsilon) * (1 + 1e-9)
