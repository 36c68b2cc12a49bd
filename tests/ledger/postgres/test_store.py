"""Charges and answers on a server are those in a file."""

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
from sfumato.ledger.sqlite import SQLiteStore
from support import postgres

BOUND = Binding("one row", "n")
CAPPED = Binding("one row", "n", (50, 5))
SIGNS = 'a "note" \\ with\tsigns: é, 漢, 😀, \x7f ]'


def lead(book: Book, who: str) -> list[object]:
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
            said = " ".join(map(str, error.args[1:])).replace(book.label, "the ledger")
            seen.append((type(error), re.sub(r"since [-\d]+, [\d:]+", "since", said)))

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
    book.add_spender(SIGNS, who, (3, 0))
    spend(SIGNS, "of a spender", (2, 0), note=SIGNS, spender=who)
    spend(SIGNS, "over their ceiling", (2, 0), spender=who)
    secrets = book._opened_secrets().store
    # The name of a refused charge is undone on a server, and left over in a file.
    paid = {entry.digest for entry in book.log()}
    names = secrets.reading(
        lambda rows: sorted((a, d) for a, name, d in rows.names() if name.digest in paid)
    )
    seen += [names, [constant(entry) for entry in book.log()], book.accounts()]
    assert book.verify().ok, book.verify().faults
    return seen


def constant(entry: Entry) -> Entry:
    """An entry without what is random, or a time."""
    key = "derived" if len(entry.key) == 32 else entry.key
    until = ""
    if entry.until:
        assert datetime.fromisoformat(entry.until) > datetime.fromisoformat(entry.time)
        until = "later"
    return dataclasses.replace(
        entry, time="", key=key, digest="", until=until, previous="", hash=""
    )


def test_a_server_writes_what_a_file_does(tmp_path: Path, open_store: Callable[[], PostgresStore]):
    with Book(open_store()) as book:
        who = book._store.caller(None).name
        on_server = lead(book, who)
    with Book(SQLiteStore(tmp_path / "b.db")) as book:
        assert lead(book, who) == on_server


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


def test_no_ledger_that_was_moved_is_charged(
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
