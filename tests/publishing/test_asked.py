"""What is the same question is paid for once, however it is written and whatever it is called."""

from __future__ import annotations

import msgspec
import pytest

import sfumato as sf
from sfumato.answers.codec import to_bytes
from sfumato.publishing.verifying import verify, verify_signature
from support import every_kind

WORDS = {"heading": "What people earn", "measured_in": "euros"}


@pytest.fixture
def publisher(tmp_path):
    budget = sf.ApproxDP(100, "0.5")
    with sf.Publisher(every_kind.source(), ledger=tmp_path / "b.db", budget=budget) as made:
        yield made


def named(question, **words):
    return msgspec.structs.replace(question, **words)


@pytest.mark.parametrize("kind", every_kind.QUESTIONS)
def test_a_question_under_another_heading_is_the_stored_answer(kind, publisher):
    question, cost = every_kind.QUESTIONS[kind]
    first = publisher.release(named(question, **WORDS), **cost)
    spent = publisher.account.spent
    again = publisher.release(named(question, heading="Wages"), **cost)
    plain = publisher.release(question, **cost)
    assert publisher.account.spent == spent
    assert (first.heading, again.heading) == ("What people earn", "Wages")
    assert again.replayed
    assert again.numbers() == first.numbers()
    assert to_bytes(plain) == to_bytes(first), "without words, the answer is shown as it is stored"


def test_the_stored_question_is_the_one_without_words(publisher):
    release = publisher.release(sf.Histogram("year", **WORDS), epsilon="1")
    assert release.question == sf.Histogram("year")
    assert release.captions.heading == "What people earn"


def test_a_plan_names_each_of_its_answers(publisher):
    plan = [sf.Histogram("year", heading="Years"), sf.Mean("wage")]
    first, second = publisher.release(plan, epsilon="1")
    assert (first.heading, second.heading) == ("Years", "Mean of wage")
    other = [sf.Histogram("year"), sf.Mean("wage", heading="Pay")]
    first, second = publisher.release(other, epsilon="1")
    assert (first.replayed, first.heading, second.heading) == (True, "Years", "Pay")


@pytest.mark.parametrize(
    ("words", "obstacle"),
    [
        ({"label_names": {"WM": "Southwest"}}, "there are 'WN'"),
        ({"measured_in": {"wgae": "euros"}}, "did you mean 'wage'"),
    ],
)
def test_a_misspelt_label_or_axis_is_refused_before_the_charge(words, obstacle, publisher):
    with pytest.raises(sf.UsageError, match=obstacle):
        publisher.release(sf.Histogram("carrier", **words), epsilon="1")
    assert publisher.account.spent == (0, 0)


def test_names_of_keys_are_taken_as_they_come(publisher):
    question = sf.Histogram("shop", label_names={"=shop 1": "Corner", "nowhere": "Nowhere"})
    release = publisher.release(question, epsilon="4", delta="1e-6")
    assert "Corner" in release.for_people().cell_names("shop")
    assert "Nowhere" not in release.for_people().cell_names("shop")


# --- verifying ------------------------------------------------------------------------------------


def test_words_that_are_stored_verify_and_edited_ones_do_not(publisher):
    question = sf.Histogram("carrier", label_names={"WN": "Southwest", "AA": "American"})
    release = publisher.release(question, epsilon="1")
    assert verify(release, publisher.ledger).ok
    swapped = {"WN": "American", "AA": "Southwest"}
    edited = named(release, captions=named(release.captions, label_names=swapped))
    verdict = verify(edited, publisher.ledger)
    assert not verdict.ok
    assert "Its numbers are the answer stored under entry" in verdict.reason
    wrong = named(edited, counts=edited.counts + 1)
    assert "differs" in verify(wrong, publisher.ledger).reason


def test_a_signature_vouches_for_new_words(publisher):
    signer = publisher.ledger.signer(create=True)
    publisher.release(sf.Histogram("year", heading="Old"), epsilon="1")
    release = publisher.release(sf.Histogram("year", heading="New"), epsilon="1")
    assert release.heading == "New"
    assert verify(release, publisher.ledger).ok
    assert verify_signature(release, signer).ok
    edited = named(release, captions=named(release.captions, heading="Newer"))
    assert not verify(edited, publisher.ledger).ok
    assert not verify_signature(edited, signer).ok


def test_a_signature_of_another_key_does_not(publisher):
    from sfumato.answers.origin import signed_part
    from sfumato.signing import new_key, public_of, sign

    release = publisher.release(sf.Histogram("year"), epsilon="1")
    edited = sf.Histogram("year", heading="Mine").captions
    key = new_key()
    receipt = named(release.receipt, signer=public_of(key))
    forged = named(release, captions=edited, receipt=receipt)
    receipt = named(receipt, signature=sign(key, signed_part(forged)))
    assert not verify(named(forged, receipt=receipt), publisher.ledger).ok
