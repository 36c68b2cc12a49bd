"""Noise with a bound is judged at its delta; near misses are caught."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from audit.subjects import SUBJECTS
from sfumato.audit.findings import audit_question
from sfumato.audit.residuals import bounded_loss, epsilon_at
from sfumato.audit.runs import NotAdditive, Published, masses, of_question
from sfumato.audit.subjects.subject import LINE, ON_LINE
from sfumato.mechanisms.bounded_noise import TruncatedLaplace, bounded_law
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.privacy.measures import ApproxDP
from sfumato.privacy.unit import Unit
from sfumato.questions.histogram import question as question_module

CLAIM = ApproxDP("1", "1e-6")
PAIR = ((), ON_LINE[:1])
BOUNDED = [each for each in SUBJECTS if each.name == "Histogram with bounded noise"]


def loss_of(law: TruncatedLaplace, monkeypatch: pytest.MonkeyPatch) -> float:
    """The loss of the production code with another law."""
    monkeypatch.setattr(question_module, "bounded_law", lambda cost, unit: law)
    question = sf.Histogram("x", bins=3, noise="bounded")
    mechanism = of_question(question, LINE, Unit(), CLAIM)
    return bounded_loss(mechanism, [PAIR, PAIR[::-1]], CLAIM, ()).loss


def test_the_subjects_are_all_units() -> None:
    assert {(each.unit.rows_per_person, each.unit.neighbours) for each in BOUNDED} == {
        (rows, relation) for rows in (1, 2) for relation in ("add-remove", "replace")
    }


def test_the_law_spends_its_epsilon_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.999 < loss_of(bounded_law(CLAIM, Unit()), monkeypatch) <= 1


def test_a_bound_smaller_by_one_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    law = bounded_law(CLAIM, Unit())
    assert loss_of(TruncatedLaplace(law.scale, law.bound - 1), monkeypatch) == math.inf


def test_nine_tenths_of_the_scale_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    law = bounded_law(CLAIM, Unit())
    found = loss_of(TruncatedLaplace(law.scale * Fraction(9, 10), law.bound), monkeypatch)
    assert found == pytest.approx(10 / 9, rel=1e-4)


def test_a_question_of_ones_own_is_audited_at_its_delta() -> None:
    question = sf.Histogram("x", bins=2, noise="bounded")
    found = audit_question(question, unit=Unit(2, "replace"), cost=CLAIM)
    assert found.verdict == "ok"
    assert found.exact == pytest.approx(1, rel=1e-3)
    # Noise without a bound has no exact audit at a delta.
    assert audit_question(sf.Histogram("x", bins=2), cost=CLAIM).exact is None


def test_a_count_that_is_not_noisy_is_caught() -> None:
    def run(rows, noise):  # type: ignore[no-untyped-def]
        drawn = TruncatedLaplace(Fraction(1), 14).sample(1, noise)
        return Published((int(len(rows) + drawn[0]),), (len(rows), int(drawn[0])))

    assert bounded_loss(run, [PAIR], CLAIM, ()).loss == math.inf


def test_other_noise_is_not_judged() -> None:
    def run(rows, noise):  # type: ignore[no-untyped-def]
        drawn = DiscreteLaplace(Fraction(1)).sample(1, noise)
        return Published((int(len(rows) + drawn[0]),), int(len(rows) + drawn[0]))

    with pytest.raises(NotAdditive):
        bounded_loss(run, [PAIR], CLAIM, ())


@pytest.mark.parametrize("shifts", [(1,), (2,), (1, 2), (1, 1, 1)], ids=str)
def test_the_epsilon_is_that_of_all_outputs(shifts: tuple[int, ...]) -> None:
    """Delta by its definition, over all outputs at once, is reached at the epsilon found."""
    law = TruncatedLaplace(Fraction(3), 6)
    values = np.arange(-9, 10)
    one = other = np.ones(1)
    for shift in shifts:
        one = np.multiply.outer(one, masses(law, values)).ravel()
        other = np.multiply.outer(other, masses(law, values - shift)).ravel()
    only_one = float(one[other == 0].sum())
    at_zero = float(np.maximum(one - other, 0).sum())
    delta = (only_one + at_zero) / 2
    found = epsilon_at(law, shifts, delta)
    excess = np.maximum(one - math.exp(found) * other, 0).sum()
    assert found > 0
    assert excess == pytest.approx(delta, abs=1e-9)
