"""A charge, or an answer, in a single call writes what it writes step by step."""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sfumato.errors import BudgetExceeded, LedgerError, UsageError
from sfumato.ledger import Binding, Book, Entry
from sfumato.ledger.entries import LARGEST, MIXED
from sfumato.ledger.postgres import PostgresStore
from sfumato.ledger.store import NewCharge, StoreError, Unclear
from support import postgres

BOUND = Binding("one row", "n")
CAPPED = Binding("one row", "n", (50, 5))
SIGNS = 'a "note" \\ with\tsigns: é, 漢, 😀, \x7f ]'


def lead(book: Book) -> list[object]:
    """Charges of all kinds; what the book says, without what differs from time to time."""
    seen: list[object] = [book.open_account("a", "pure", (100, 10))]
    seen += [book.open_account("b", "pure", (100, 10)), book.open_account("c", "pure", (9, 9))]
    seen += [book.open_account(SIGNS, "pure", (9, 9))]

    def spend(account: str, key: str | None, cost: tuple[int, int] = (1, 0), **more: Any) -> None:
        asked = more.pop("asked", f"asked {key}")
        try:
            with book.reserve(account, key, asked, cost, more.pop("note", ""), **more) as hold:
                seen.extend([constant(hold.entry), hold.store(b"answer"), hold.store(b"again")])
        except (BudgetExceeded, UsageError, LedgerError) as error:
            seen.append(
                (type(error), re.sub(r"since [-\d]+, [\d:]+", "since", str(error.args[1:])))
            )

    for key in ("k", None, None, "k"):  # the last two are replayed
        spend("a", key, note=SIGNS, lease=12.5)
    spend("a", SIGNS, asked=SIGNS, note=SIGNS)
    spend(SIGNS, SIGNS, asked=SIGNS, note=SIGNS)
    spend("a", "k", asked="another question")
    spend("a", "the first that is bound", binding=BOUND)
    spend("a", "bound", binding=BOUND)
    spend("a", "others", binding=Binding("one person", "n"))
    spend("a", "other data", binding=Binding("one row", "m"))
    spend("a", "the first that is capped", binding=CAPPED)
    spend("a", "capped", (40, 0), binding=CAPPED)
    spend("a", "under a ceiling of before", binding=BOUND)
    spend("a", "without a binding")
    spend("b", "bound as well", binding=CAPPED)
    for key, cost in (("over", (9, 0)), ("on the second", (0, 6)), ("just", (0, 5))):
        spend("b", key, cost, binding=CAPPED)
    spend("b", "another ceiling", binding=Binding("one row", "n", (51, 5)))
    spend("a", "over the total", (60, 0))
    spend("a", "over any number", (LARGEST, LARGEST))
    for key in ("the first that is mixed", "mixed"):
        spend("c", key, binding=Binding(MIXED, "m"))
    spend("none", "no account")
    with pytest.raises(ZeroDivisionError), book.reserve("a", "left", "q", (1, 0), ""):
        raise ZeroDivisionError
    spend("a", "left", asked="q")
    who = book._store.caller(None).name
    book.add_spender(SIGNS, who, (3, 0))
    spend(SIGNS, "of a spender", (2, 0), note=SIGNS)
    spend(SIGNS, "over their ceiling", (2, 0))
    secrets = book._opened_secrets().store
    names = secrets.reading(lambda rows: sorted((a, d) for a, _, d in rows.names()))
    seen += [names, [constant(entry) for entry in book.log()], book.accounts()]
    assert book.verify().ok, book.verify().faults
    return seen


def constant(entry: Entry) -> Entry:
    """An entry without what is random, and with how long its lease is for its end."""
    key = "derived" if len(entry.key) == 32 else entry.key
    until = ""
    if entry.until:
        lasts = datetime.fromisoformat(entry.until) - datetime.fromisoformat(entry.time)
        until = str(lasts.total_seconds())
    return dataclasses.replace(
        entry, time="", key=key, digest="", until=until, previous="", hash=""
    )


def test_it_writes_the_same(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    charged: list[str] = []
    answered: list[int] = []
    charge, answer = PostgresStore.charge, PostgresStore.answer

    def noted_charge(store: PostgresStore, new: NewCharge) -> Entry | None:
        found = charge(store, new)
        charged.extend([] if found is None else [found.key])
        return found

    def noted_answer(store: PostgresStore, first: Entry, payload: bytes) -> bool:
        found = answer(store, first, payload)
        answered.extend([first.sequence] * found)
        return found

    monkeypatch.setattr(PostgresStore, "charge", noted_charge)
    monkeypatch.setattr(PostgresStore, "answer", noted_answer)
    seen = []
    for calls in (True, False):
        monkeypatch.setattr(PostgresStore, "has_calls", calls)
        schema = postgres.schema_of(tmp_path / str(calls))
        with Book(PostgresStore(postgres.address(), schema=schema)) as book:
            seen.append(lead(book))
    assert seen[0] == seen[1]
    # Whatever is usual was done in a call; what is left of the list is unusual.
    usual = {"k", SIGNS, "bound", "capped", "under a ceiling of before", "just"}
    assert {key for key in charged if len(key) != 32} == usual
    assert len(charged) == len(usual) + 2, "one without a key, and one more with the signs"
    unusual = ("the first that is bound", "the first that is capped", "the first that is mixed")
    unusual += ("without a binding",)
    assert len(answered) == len(charged) + len((*unusual, "bound as well", "left", "of a spender"))


def test_a_name_that_no_index_holds_is_refused_with_a_sentence(
    open_store: Callable[[], PostgresStore],
) -> None:
    with Book(open_store()) as book:
        book.open_account("a", "pure", (2, 0))
        bits = random.Random(0)
        book.reserve("a", bits.randbytes(500).hex(), "q", (1, 0), "").store(b"answer")
        # Keys that cannot be compressed: the index keeps others shorter than they are.
        with pytest.raises(LedgerError, match="at most 1,000 bytes"):
            book.reserve("a", bits.randbytes(2048).hex(), "q", (1, 0), "")
        assert book.account("a").spent == (1, 0)


def test_a_charge_that_was_cut_off_is_known_again(
    open_store: Callable[[], PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call is done on the server, and its answer is lost."""
    charge, answer = PostgresStore.charge, PostgresStore.answer
    done: list[object] = []

    def lost(store: PostgresStore, new: NewCharge) -> None:
        done.append(charge(store, new))
        raise Unclear

    def lost_too(store: PostgresStore, first: Entry, payload: bytes) -> bool:
        done.append(answer(store, first, payload))
        raise Unclear

    with Book(open_store()) as book, Book(open_store()) as other:
        book.open_account("a", "pure", (10, 0))
        monkeypatch.setattr(PostgresStore, "charge", lost)
        monkeypatch.setattr(PostgresStore, "answer", lost_too)
        for key in ("k", None):
            with book.reserve("a", key, "asked", (1, 0), "", wait=0) as hold:
                assert hold.stored is None
                assert hold.store(b"answer") == b"answer"
            assert book.reserve("a", key, "asked", (1, 0), "", wait=0).stored == b"answer"
        assert [bool(each) for each in done] == 2 * [True, True, False]
        assert book.account("a").spent == (2, 0)
        # Somebody else's charge is not taken for it.
        monkeypatch.setattr(PostgresStore, "charge", charge)
        theirs = other.reserve("a", "theirs", "asked", (1, 0), "")
        with pytest.raises(LedgerError, match="another process is answering"):
            book.reserve("a", "theirs", "asked", (1, 0), "", wait=0)
        assert theirs.store(b"theirs") == b"theirs"
        assert book.verify().ok


def test_whoever_was_told_of_an_error_goes_on_with_the_charge_at_once(
    open_store: Callable[[], PostgresStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call was cut off, and the server was out of reach after that; or the call was stopped."""
    charge = PostgresStore.charge
    with Book(open_store()) as book:
        book.open_account("a", "pure", (10, 0))
        for stopped in (Unclear, KeyboardInterrupt):
            key = stopped.__name__

            def lost(store: PostgresStore, new: NewCharge, stopped: Any = stopped) -> None:
                assert charge(store, new) is not None
                raise stopped

            def gone(store: PostgresStore, action: object) -> None:
                raise StoreError("the ledger", "it is gone", "Wait")

            with monkeypatch.context() as patch:
                patch.setattr(PostgresStore, "charge", lost)
                patch.setattr(PostgresStore, "writing", gone)
                with pytest.raises((StoreError, KeyboardInterrupt)):
                    book.reserve("a", key, "asked", (1, 0), "", wait=0)
            with book.reserve("a", key, "asked", (1, 0), "", wait=0) as hold:
                assert hold.store(b"answer") == b"answer"
        assert [entry.kind for entry in book.log()] == ["open", *(2 * ["reserve", "store", "hand"])]
        assert book.account("a").spent == (2, 0)


def test_no_call_charges_a_ledger_that_was_moved(
    open_store: Callable[[], PostgresStore],
) -> None:
    with Book(open_store()) as book:
        book.open_account("a", "pure", (10, 0))
        hold = book.reserve("a", "k", "asked", (1, 0), "")
        secrets = book._opened_secrets().store
        secrets.writing(lambda rows: rows.add_value("moved to", b"elsewhere"))
        for ask in (
            lambda: book.reserve("a", "other", "asked", (1, 0), ""),
            lambda: hold.store(b"answer"),
        ):
            with pytest.raises(LedgerError, match="was moved to elsewhere"):
                ask()
        assert [entry.kind for entry in book.log()] == ["open", "reserve"]


def test_a_seed_is_in_no_file_of_the_server_but_its_log_once_it_is_answered(
    open_store: Callable[[], PostgresStore],
) -> None:
    with psycopg.connect(postgres.address(), autocommit=True) as server:
        (folder,) = server.execute("SHOW data_directory").fetchone() or ("",)

        def files_with(seed: bytes) -> list[Path]:
            server.execute("CHECKPOINT")
            return [path for path in Path(folder, "base").rglob("*") if holds(path, seed)]

        def holds(path: Path, seed: bytes) -> bool:
            try:
                return path.is_file() and seed in path.read_bytes()
            except FileNotFoundError:
                return False  # the server removes files of its own at any time

        with Book(open_store()) as book:
            book.open_account("a", "pure", (9, 0))
            other = book.reserve("a", "other", "q", (1, 0), "").seed
            for key in ("first", "second"):
                with book.reserve("a", key, "q", (1, 0), "") as hold:
                    assert files_with(hold.seed)
                    hold.store(b"answer")
                assert not files_with(hold.seed)
                assert files_with(other)
            assert book.verify().ok
