"""Questions are audited by their examples, also those of other packages."""

from __future__ import annotations

import pytest

from sfumato.audit import audit_question
from sfumato.audit.findings import _examined_alone
from sfumato.audit.runs import Published
from sfumato.audit.subjects import Subject, examples
from sfumato.audit.subjects.subject import ON_LINE
from sfumato.privacy.measures import ZCDP, PureDP
from sfumato.privacy.unit import Unit
from sfumato.random import PublicSeed, override
from support.tally import HalfTally, Tally


@pytest.mark.parametrize(
    ("unit", "cost"), [(Unit(), PureDP("1")), (Unit(2, "replace"), ZCDP("0.5"))], ids=str
)
def test_a_question_spends_its_claim_and_with_half_the_noise_it_is_caught(
    unit: Unit, cost: PureDP | ZCDP
) -> None:
    with override(PublicSeed(f"{unit} {cost}")):
        sound = audit_question(Tally("x"), unit=unit, cost=cost)
        broken = audit_question(HalfTally("x"), unit=unit, cost=cost)
    assert sound.verdict == "ok"
    assert sound.exact == pytest.approx(sound.claimed)
    assert sound.subject == "tally: Tally of x"
    assert broken.verdict == "EXCEEDS"
    assert broken.exact == pytest.approx((4 if isinstance(cost, ZCDP) else 2) * sound.claimed)


def test_numbers_that_do_not_follow_their_noise_are_judged_by_outputs() -> None:
    """Counts that are cut off are sound, and not additive: no exact figure, and no refusal."""
    with override(PublicSeed("cut off")):
        sound = audit_question(Tally("x", positive=True))
        broken = audit_question(HalfTally("x", positive=True))
    assert (sound.exact, sound.failed) == (None, False)
    assert (broken.exact, broken.verdict) == (None, "EXCEEDS")


def test_examples_are_asked_at_every_promise_that_they_can_keep() -> None:
    assert [(found.name, found.unit, found.claim) for found in examples.subjects([HalfTally])] == [
        ("half-tally: Tally of x", unit, cost) for unit, cost in examples.PROMISES
    ]


def test_a_question_that_raises_is_refused_and_stops_no_other() -> None:
    def boom(rows: object, noise: object) -> Published:
        raise AttributeError("epsilon")

    found = _examined_alone(False, Subject("boom", Unit(), PureDP(1), boom, ON_LINE))
    assert found.verdict == "REFUSED"
    assert found.failed
