"""What is the same question is paid for once, however it is written and whatever it is called."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

import sfumato as sf
from sfumato.basics.structs import to_bytes
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
    from sfumato.answers.loading import signed_part
    from sfumato.basics.signing import new_key, public_of, sign

    release = publisher.release(sf.Histogram("year"), epsilon="1")
    edited = sf.Histogram("year", heading="Mine").captions
    key = new_key()
    receipt = named(release.receipt, signer=public_of(key))
    forged = named(release, captions=edited, receipt=receipt)
    receipt = named(receipt, signature=sign(key, signed_part(forged)))
    assert not verify(named(forged, receipt=receipt), publisher.ledger).ok


# --- one question, written in several ways --------------------------------------------------------

FEW = {"year": [1990, 1995, 2010]}
SAME = [
    (sf.Histogram("year", bins=FEW["year"]), sf.Histogram("year", bins=FEW)),
    (sf.Histogram("year"), sf.Histogram(["year"], bins=20)),
    (sf.Histogram("wage"), sf.Histogram("wage", bins={"wage": 10})),
    (sf.Histogram("year", bins=4), sf.Histogram("year", width=5)),
    (sf.Histogram("year", selection="stability"), sf.Histogram("year")),
    (sf.Histogram(["carrier", "year"], bins=4), sf.Histogram(["year", "carrier"], bins=4)),
    (
        sf.Histogram(["year", "wage"], bins=[4, 5]),
        sf.Histogram(["wage", "year"], bins={"year": 4, "wage": 5}),
    ),
    (
        sf.Histogram(["wage", "carrier", "year"], bins=[2, 4]),
        sf.Histogram(["carrier", "year", "wage"], bins=[4, 2]),
    ),
    (sf.Mean("wage", by=["year", "carrier"]), sf.Mean("wage", by=["carrier", "year"])),
    (
        sf.Sum(["wage", "year"], by=["carrier", "day"], clip="auto"),
        sf.Sum(["wage", "year"], by=["day", "carrier"], clip="auto"),
    ),
]
OTHERS = [
    (sf.Histogram("year", bins=4), sf.Histogram("year", bins=5)),
    (sf.Histogram("year", bins=[1990, 2000, 2010]), sf.Histogram("year", bins=2)),
    (sf.Histogram("carrier"), sf.Histogram("carrier", count="persons")),
    (sf.Histogram("year"), sf.Histogram("year", records=100)),
    (sf.Mean("wage", by="carrier"), sf.Sum("wage", by="carrier")),
    (sf.Mean(["wage", "year"]), sf.Mean(["year", "wage"])),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_one_question_written_in_two_ways_is_paid_for_once(one, other, publisher):
    first = publisher.release(one, epsilon="1")
    spent = publisher.account.spent
    second = publisher.release(other, epsilon="1")
    assert publisher.account.spent == spent
    assert second.replayed
    names = second.layout
    assert names == other.layout
    assert second.arranged(first.layout) == first
    for both in (first.values, second.values), (first.accuracy(), second.accuracy()):
        moved = both[0].transpose(_order(first, names, both[0].ndim))
        np.testing.assert_array_equal(moved, both[1])
    assert _rows(second, names) == _rows(first, names)
    assert verify(second, publisher.ledger).ok
    assert publisher.release(one, epsilon="1") == first


def _order(release, names, dimensions):
    """The axes of an array of the release, in the order of these names; values come first."""
    before = dimensions - len(names)
    return [*range(before), *(before + release.layout.index(name) for name in names)]


def _rows(release, names):
    """The rows of its table, in an order of their own."""
    columns = sorted(release.to_frame().column_names)
    return sorted(
        ([str(row[name]) for name in columns] for row in release.to_frame().to_pylist()),
        key=str,
    )


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_another_question_is_paid_for(one, other, publisher):
    publisher.release(one, epsilon="1")
    spent = publisher.account.spent
    assert not publisher.release(other, epsilon="1").replayed
    assert publisher.account.spent > spent


def test_a_selection_of_keys_is_part_of_a_question_about_keys(publisher):
    for selection in ("truncated-geometric", "stability"):
        question = sf.Histogram("shop", selection=selection)
        assert not publisher.release(question, epsilon="1", delta="1e-6").replayed


def test_the_key_of_a_question_fits_it_in_every_order(publisher):
    first = publisher.release(sf.Histogram(["carrier", "day"]), epsilon="1", key="k")
    again = publisher.release(sf.Histogram(["day", "carrier"]), epsilon="1", key="k")
    assert again.arranged(first.layout) == first
    with pytest.raises(sf.UsageError, match="another question"):
        publisher.release(sf.Histogram(["day", "shop"]), epsilon="1", delta="1e-6", key="k")


def test_an_answer_in_another_order_is_signed_anew_and_edited_ones_are_found_out(publisher):
    signer = publisher.ledger.signer(create=True)
    publisher.release(sf.Histogram(["carrier", "day"], bins=4), epsilon="1")
    release = publisher.release(sf.Histogram(["day", "carrier"], bins=4), epsilon="1")
    assert verify_signature(release, signer).ok
    assert verify(release, publisher.ledger).ok
    moved = named(release, counts=release.counts[::-1].copy())
    assert not verify(moved, publisher.ledger).ok


PINNED = [
    (
        sf.Histogram(["carrier", "year"], bins=4),
        '["histogram",[{"type":"grid","name":"year","lower":1990.0,"upper":2010.0,"cells":4,'
        '"snap":true,"step":1.0},{"type":"labels","name":"carrier","labels":["WN","AA","=1+1",'
        '"else"],"other":true}],"rows",""]',
    ),
    (
        sf.Histogram("wage", bins={"wage": [0, 50, 100]}),
        '["histogram",[{"type":"edges","name":"wage","bounds":[0.0,50.0,100.0],"origin":0.0}],'
        '"rows",""]',
    ),
    (
        sf.Histogram(["shop", "day"], bins=2, count="persons"),
        '["histogram",[{"type":"grid","name":"day","lower":20454.0,"upper":20485.0,"cells":2,'
        '"time":"day","snap":true,"step":1.0},{"type":"keys","name":"shop"}],"persons",'
        '"truncated-geometric"]',
    ),
    (
        sf.Mean("wage", by=["carrier", "year"], heading="Pay"),
        '{"type":"mean","value":"wage","by":["year","carrier"]}',
    ),
]


@pytest.mark.parametrize(("question", "form"), PINNED)
def test_the_form_under_which_answers_are_found_stays(question, form):
    """In another form, what was charged under this one would be paid for again."""
    asked = question.uncaptioned().asks(every_kind.DOMAIN)
    assert to_bytes(asked).decode() == form


def test_what_an_earlier_version_charged_is_found(publisher, monkeypatch):
    """It told questions by the way in which they were written."""
    question = sf.Histogram("year", bins={"year": 4})
    monkeypatch.setattr(sf.Histogram, "asks", sf.Question.asks)
    first = publisher.release(question, epsilon="1")
    keyed = publisher.release(sf.Histogram("wage"), epsilon="1", key="k")
    monkeypatch.undo()
    assert publisher.release(question, epsilon="1") == first
    assert publisher.release(sf.Histogram("wage"), epsilon="1", key="k") == keyed
    assert publisher.account.spent == (2 * 10**9, 0)


# --- streams --------------------------------------------------------------------------------------


def counted(publisher, **words):
    counter = sf.Counter(horizon=9, by="carrier", **words)
    with publisher.open(counter, epsilon="1", key="visits") as stream:
        if stream.step == 0:
            stream.push(["WN", "AA"], persons=[1, 2])
        return stream.history()


def test_a_stream_under_other_words_is_the_same_stream(publisher):
    first = counted(publisher, heading="Visits", label_names={"WN": "Southwest"})
    spent = publisher.account.spent
    again = counted(publisher)
    other = counted(publisher, heading="Calls", measured_in="calls")
    assert publisher.account.spent == spent
    assert again == first
    assert (first.heading, other.heading) == ("Visits", "Calls")
    assert first.for_people().names[0] == "Southwest"
    assert other.plot().get_ylabel() == "total so far (calls)"
    assert first.settled.counter == sf.Counter(horizon=9, by="carrier")
    assert verify(first, publisher.ledger).ok
    assert not verify(other, publisher.ledger).ok
    publisher.ledger.signer(create=True)
    assert verify(counted(publisher, heading="Calls"), publisher.ledger).ok


def test_a_misspelt_label_of_a_counter_is_refused_before_the_charge(publisher):
    with pytest.raises(sf.UsageError, match="no label 'WM'"):
        counted(publisher, label_names={"WM": "Southwest"})
    assert publisher.account.spent == (0, 0)


def test_what_was_charged_before_plans_picked_is_not_resumed_at_more(publisher, monkeypatch):
    questions = [sf.Histogram("wage", bins=bins) for bins in range(40, 100, 6)]
    cost = {"epsilon": "1", "delta": "1e-6"}

    def cut_off(*given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as earlier:
        # Earlier versions divided the epsilon, and charged no delta.
        earlier.setattr("sfumato.publishing.publisher.choose", lambda *given, **named: None)
        earlier.setattr("sfumato.publishing.counting.Counting.begin", cut_off)
        with pytest.raises(KeyboardInterrupt):
            publisher.release(questions, **cost)
    assert publisher.account.spent == (10**9, 0)
    assert publisher.preview(questions, **cost).choice.in_rho, "Gaussian noise needs a delta"
    with pytest.raises(sf.errors.LedgerError, match="picked another cost"):
        publisher.release(questions, **cost)
    assert publisher.account.spent == (10**9, 0)
    publisher.release(questions, **cost, fresh=True)
    assert publisher.account.spent == (2 * 10**9, 10**12)
