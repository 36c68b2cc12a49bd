"""The stores of the ledger, and rows that the tests of stores begin with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sfumato.ledger import Step, Store, journal
from sfumato.ledger.entries import OVER, Entry, linked, opened, sealed
from sfumato.ledger.postgres import PostgresStore
from sfumato.ledger.sqlite import SQLiteStore
from sfumato.ledger.store import (
    NameRow,
    Position,
    PublicRows,
    SecretRows,
    SecretStore,
    StreamRow,
)
from support import postgres
from support.memory_store import MemoryStore
from support.postgres import schema_of

STORES: dict[str, Callable[[Path], Store]] = {
    "SQLite in a file": lambda folder: SQLiteStore(folder / "book.db"),
    "SQLite in memory": lambda folder: SQLiteStore(None),
    "memory": lambda folder: MemoryStore(),
    "PostgreSQL": lambda folder: PostgresStore(postgres.address(), schema=schema_of(folder)),
}


SHARED = ("SQLite in a file", "PostgreSQL")
"""Stores of which two may be opened on the same rows."""


def filled(store: Store) -> Store:
    """Open an account of 100 units with a binding, a ceiling, an answered key and a pending one."""

    def fill(rows: PublicRows) -> None:
        rows.set_identity("a book")
        journal.open_account(rows, "trips", "marbles", (100, 7))
        journal.bind(rows, "trips", "one row", "n")
        journal.cap(rows, "trips", "n", "marbles", (90, 7))
        first = journal.append(rows, reserve("k", (30, 2)))
        journal.store_answer(rows, journal.follow(first, "store"), b"\0answer\xff")
        journal.append(rows, reserve("left", (1, 0)))

    store.writing(fill)
    return store


def filled_secrets(secrets: SecretStore) -> SecretStore:
    """Name two questions, and take the first two steps of a stream."""

    def fill(rows: SecretRows) -> None:
        rows.add_value("identity", b"a book")
        rows.keep("trips", NameRow("k", b"tag", "digest"), derived=True)
        rows.keep("trips", NameRow("given", b"other", "digest 2"), derived=False)
        rows.add_replaced([(1, "old 1"), (2, "old 2")])
        rows.add_stream(BEGUN)
        assert rows.count(5, b"who") == 1
        assert rows.count(5, b"who") == 2
        assert rows.count(5, b"other") == 1
        assert rows.commit_step(5, BEGUN.at.seal, *step_after(BEGUN.at, "a", b"one", tallied=3))

    secrets.writing(fill)
    secrets.writing(lambda rows: take_step(rows, "", b"two"))
    return secrets


def reserve(key: str, cost: tuple[int, int] = (1, 0)) -> Entry:
    """The draft of a charge."""
    return Entry(
        0, "trips", "reserve", "", key, "digest", cost, "note", until="until", holder="holder"
    )


def seal(step: int, state: bytes, tallied: int, head: str) -> str:
    return sealed(
        5, opened(b"spec", b"" if state == OVER else b"secret"), step, state, tallied, head
    )


BEGUN = StreamRow(
    5, b"spec", b"secret", Position(0, b"state 0", 0, "charge", seal(0, b"state 0", 0, "charge"))
)


def step_after(
    at: Position, event: str, output: bytes, state: bytes = b"state", tallied: int | None = None
) -> tuple[Step, Position]:
    """A step, and the position that it leaves behind."""
    number = at.step + 1
    head = linked(at.head, 5, number, event, output)
    counted = 0 if state == OVER else at.tallied if tallied is None else tallied
    return Step(number, event, output, head), Position(
        number, state, counted, head, seal(number, state, counted, head)
    )


def take_step(rows: SecretRows, event: str, output: bytes, state: bytes = b"state") -> bool:
    at = rows.position(5)
    assert at is not None
    return rows.commit_step(5, at.seal, *step_after(at, event, output, state))


def public_rows(store: Store) -> dict[str, object]:
    """All public rows."""

    def look(rows: PublicRows) -> dict[str, object]:
        return {
            "identity": rows.identity(),
            "entries": list(rows.entries()),
            "accounts": rows.accounts(),
            "totals": dict(rows.totals()),
            "bindings": dict(rows.bindings()),
            "ceilings": dict(rows.ceilings()),
            "answers": sorted(rows.answers()),
            "highest": rows.highest(),
        }

    return store.reading(look)


def secret_rows(store: SecretStore) -> dict[str, object]:
    """All secret rows that a key is known of."""

    def look(rows: SecretRows) -> dict[str, object]:
        return {
            "values": dict(rows.values()),
            "names": [rows.of_key("trips", key) for key in ("k", "given", "new")],
            "replaced": [rows.replaced(number) for number in range(5)],
            "streams": list(rows.streams()),
            "steps": {number: rows.steps(number) for number in rows.stepped()},
            "tallies": dict(rows.tallies()),
        }

    return store.reading(look)
