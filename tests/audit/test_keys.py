"""Keys are judged at their delta by all values of their noise; near misses are caught."""

import dataclasses

import numpy as np
import pytest

from audit.subjects import SUBJECTS
from sfumato.audit.keys import KeySelection
from sfumato.audit.runs import NotAdditive, Published, key_masses
from sfumato.mechanisms.gaussian_keys import ThresholdGaussian
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.mechanisms.thresholds import (
    RULES,
    KeyRule,
    TruncatedGeometric,
    key_law,
    law_of_key_counts,
)
from sfumato.privacy.measures import ApproxDP
from sfumato.privacy.unit import Unit
from sfumato.questions.histogram import keys
from sfumato.questions.histogram import question as histogram_question

CLAIM = ApproxDP("1", "0.01")
SUBJECTS_OF_KEYS = {s.name: s for s in SUBJECTS if s.name.startswith("Histogram of keys")}
WIDTH = 2


def loss_of(subject):
    return subject.exact(subject.mechanism, subject.pairs, subject.claim, ()).loss


def shown(threshold, law, *, at_once=False):
    """Noisy counts of two keys, where they reach a threshold."""

    def run(rows, noise):
        counts = np.bincount([int(row[0]) for row in rows], minlength=2)
        held = np.flatnonzero(counts)
        drawn = law.sample(1 if at_once else len(held), noise)
        noisy = dict(zip(held.tolist(), (counts[held] + drawn).tolist(), strict=True))
        numbers = []
        for key in (0, 1):
            is_shown = noisy.get(key, threshold - 1) >= threshold
            numbers += [int(is_shown), noisy[key] if is_shown else 0]
        return Published(tuple(numbers), numbers)

    return run


def losses(mechanism, many=9):
    rest = many * ((0.0,),)
    pairs = [((*rest, (0.0,)), rest), (((1.0,), *rest), rest), (rest, ((1.0,), *rest))]
    return [KeySelection(WIDTH)(mechanism, [pair], CLAIM, ()).loss for pair in pairs]


def test_the_law_by_the_papers_recursion_is_the_one_that_is_drawn():
    law = key_law(CLAIM, Unit())
    assert isinstance(law, TruncatedGeometric)
    values, masses = key_masses(law)
    assert masses.sum() == pytest.approx(1, abs=1e-12)
    tails = masses[::-1].cumsum()[::-1]
    assert np.allclose(law.tail(values), tails, atol=1e-12)


def test_the_threshold_that_delta_asks_for_is_exact():
    """Laplace noise of scale 1: one lower, and a person alone in a key is seen too often."""
    law = key_law(CLAIM, Unit(), "threshold")
    noise = DiscreteLaplace(law.scale)
    assert max(losses(shown(law.threshold, noise))) <= 1
    assert max(losses(shown(law.threshold - 1, noise))) > 1


def test_draws_that_are_shared_are_refused():
    law = DiscreteLaplace(1)
    with pytest.raises(NotAdditive):
        KeySelection(WIDTH)(
            shown(3, law, at_once=True), [((((0.0,),) * 9 + ((1.0,),)), ())], CLAIM, ()
        )


@pytest.mark.parametrize("rule", RULES)
def test_a_key_that_is_shown_for_sure_is_unbounded(monkeypatch, rule):
    """The fault: keys of one row are shown whatever the noise is."""
    subject = SUBJECTS_OF_KEYS[f"Histogram of keys, {rule}"]

    def shows_lone_keys(counts, law, noise):
        held = np.flatnonzero(counts > 0)
        noisy = counts[held] + law.sample(len(held), noise)
        kept = (noisy >= law.threshold) | (counts[held] == 1)
        return held[kept], noisy[kept]

    lone = (((0.0, 0.5),), ())
    alone = dataclasses.replace(subject, pairs=(lone, lone[::-1]))
    assert loss_of(alone) <= 1
    monkeypatch.setattr(keys, "released", shows_lone_keys)
    assert loss_of(alone) == float("inf")


@pytest.mark.parametrize("name", ["truncated-geometric", "threshold"])
def test_a_rule_whose_noise_is_drawn_anew_in_each_evaluation_is_caught(monkeypatch, name):
    """The fault: an engine evaluates each part twice, and a second draw decides, too."""
    subject = SUBJECTS_OF_KEYS[f"Histogram of keys, {name}, by an engine"]
    assert 0.9 < loss_of(subject) <= 1 + 1e-9

    def shown_by_either(rule, parts):
        for part in parts:
            draws = [rule.shown(part) for _ in range(2)]
            yield max(draws, key=len)

    monkeypatch.setattr(KeyRule, "shown_of", shown_by_either)
    with pytest.raises(NotAdditive):
        loss_of(subject)


def test_gaussian_noise_with_a_threshold_one_lower_exceeds_its_claim(monkeypatch):
    """The code that publishes, for a person with one row of each of three keys."""
    subject = SUBJECTS_OF_KEYS["Histogram of keys, one row each"]
    assert 0.9 < loss_of(subject) <= 1 + 1e-9

    def one_lower(cost, unit, rule):
        law = law_of_key_counts(cost, unit, rule)
        return ThresholdGaussian(law.sigma_squared, law.tau - 1)

    monkeypatch.setattr(histogram_question, "law_of_key_counts", one_lower)
    assert loss_of(subject) > 1.02
