"""A question that was paid for in another state of the data is told so, and charges nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.stores import STORES
from sfumato.errors import BudgetExceeded, StoredElsewhere
from sfumato.ledger import Book, Hold, Ledger

PLACE = "the question, of whatever state"


@pytest.fixture(params=STORES)
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    """A ledger over each kind of store, with one account of 1000 units."""
    with Book(STORES[request.param](tmp_path)) as book:
        book.open_account("trips", "marbles", (1000, 0))
        yield book


def ask(ledger: Ledger, state: str, key: str | None = None, *, fresh: bool = False) -> Hold:
    note = "a histogram"
    return ledger.reserve("trips", key, state, (10, 0), note, place=PLACE, fresh=fresh)


def answer(hold: Hold, payload: bytes) -> int:
    with hold:
        hold.store(payload)
    return hold.entry.sequence


def test_another_state_is_told_the_newest_answer_and_charged_nothing(ledger: Ledger) -> None:
    first = answer(ask(ledger, "january"), b"jan")
    with pytest.raises(StoredElsewhere) as told:
        ask(ledger, "february")
    assert (told.value.entry, told.value.day) == (first, ledger._reservation(first).time[:10])
    assert f"entry {first} of account 'trips' paid for it" in told.value.obstacle
    for way in ("stored=True", "version=", "fresh=True", "--stored", "--data-version", "--fresh"):
        assert way in told.value.remedy
    assert ask(ledger, "january").stored == b"jan"
    second = answer(ask(ledger, "february", "0" * 16, fresh=True), b"feb")
    assert ask(ledger, "february").stored == b"feb"
    assert ask(ledger, "january").stored == b"jan"
    with pytest.raises(StoredElsewhere) as told:
        ask(ledger, "march")
    assert told.value.entry == second
    replayed = ledger.newest_answer("trips", "march", PLACE)
    assert replayed is not None
    assert (replayed.entry.sequence, replayed.stored) == (second, b"feb")
    assert ledger.account("trips").spent == (20, 0)
    assert ledger.verify().ok


def test_fresh_pays_in_any_case_and_the_first_of_a_state_is_found_again(ledger: Ledger) -> None:
    for number in range(3):
        answer(ask(ledger, "january", f"{number:032}", fresh=True), str(number).encode())
    assert ledger.account("trips").spent == (30, 0)
    assert ask(ledger, "january").stored == b"0"
    newest = ledger.newest_answer("trips", "january", PLACE)
    assert newest is not None
    assert newest.stored == b"2"


def test_a_charge_without_an_answer_is_told_too_and_goes_on_in_its_own_state(
    ledger: Ledger,
) -> None:
    with ask(ledger, "january") as hold:
        seed = hold.seed
    for _ in range(2):
        with pytest.raises(StoredElsewhere, match="nothing is charged now") as told:
            ask(ledger, "february")
        assert "stored=True" not in told.value.remedy
        assert ledger.newest_answer("trips", "february", PLACE) is None
        with ask(ledger, "january") as hold:
            assert hold.seed == seed
    # The newest charge has no answer: the newest answer is told all the same.
    answer(ask(ledger, "january"), b"jan")
    with ask(ledger, "february", "0" * 16, fresh=True) as pending:
        assert pending.seed != seed
    with pytest.raises(StoredElsewhere) as told:
        ask(ledger, "march")
    assert told.value.entry == hold.entry.sequence
    assert ledger.account("trips").spent == (20, 0)


def test_a_refused_question_was_not_paid_for(ledger: Ledger) -> None:
    for state in ("january", "february", "january"):
        with pytest.raises(BudgetExceeded):
            ledger.reserve("trips", None, state, (2000, 0), "", place=PLACE)
    answer(ask(ledger, "february"), b"feb")
    with pytest.raises(StoredElsewhere):
        ask(ledger, "january")


def test_a_key_names_a_release_of_its_own(ledger: Ledger) -> None:
    answer(ask(ledger, "january", "a"), b"a")
    answer(ask(ledger, "february", "b"), b"b")
    assert ledger.newest_answer("trips", "january", PLACE) is None
    answer(ask(ledger, "march"), b"mar")
    answer(ask(ledger, "april", "c"), b"c")
    with pytest.raises(StoredElsewhere):
        ask(ledger, "april")


def test_an_answer_is_found_by_its_place_or_by_its_own_words(ledger: Ledger) -> None:
    assert ledger.newest_answer("trips", "january", PLACE) is None
    answer(ask(ledger, "january"), b"jan")
    assert ledger.newest_answer("trips", "january", PLACE) is not None
    assert ledger.newest_answer("trips", "january", None) is not None
    assert ledger.newest_answer("trips", "february", None) is None
