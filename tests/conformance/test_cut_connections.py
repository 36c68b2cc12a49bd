"""The connection is cut, or its process on the server ended, around each question of a client.

Whatever is cut, the caller goes on without an error, the charge stands once, and whoever asks again
is given the answer that was stored.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from ledger.adding import add_one, open_stream
from ledger.postgres.people import BOUND, settle
from sfumato.errors import LedgerError
from sfumato.ledger import Book
from sfumato.ledger import postgres_server as database
from sfumato.ledger.moving import migrate
from sfumato.ledger.postgres import PostgresStore
from sfumato.ledger.sqlite import SQLiteStore
from support import postgres
from support.servers import Server
from support.wire import HOWS, How, Wire
from support.workers import all_end_well

Chosen = Callable[[int], tuple[How, ...]]
Seen = TypeVar("Seen")


def in_turn(stride: int) -> Chosen:
    """How to break at a question: at each of a stride, by one of the ways."""

    def choose(number: int) -> tuple[How, ...]:
        return () if number % stride else (HOWS[number // stride % len(HOWS)],)

    return choose


def everywhere(number: int) -> tuple[How, ...]:
    """At each question, in all ways."""
    del number
    return HOWS


def afterwards(number: int) -> tuple[How, ...]:
    """At each question, when the server has done what it was asked."""
    del number
    return ("after",)


def places(stride: int) -> pytest.MarkDecorator:
    """Some places in the fast tests, all of them in the long ones."""
    deep = pytest.param(everywhere, marks=pytest.mark.deep, id="everywhere")
    return pytest.mark.parametrize("chosen", [pytest.param(in_turn(stride), id="in turn"), deep])


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server of this module's own: it ends at once, whatever was written to it."""
    server = Server().start()
    yield server
    server.close()


@pytest.fixture
def wire(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """A way to it that breaks."""
    monkeypatch.setattr(database, "LONGEST_PAUSE", 2 * database.SHORTEST_PAUSE)
    wire = Wire(server.address)
    yield wire
    wire.close()


def break_each(
    wire: Wire,
    chosen: Chosen,
    act: Callable[[str], Seen],
    judge: Callable[[str, Seen], None],
) -> int:
    """Do something again and again, broken once each time; how many questions it asks."""
    for number in itertools.count(1):
        for how in chosen(number):
            name = f"n{number}_{HOWS.index(how)}"
            wire.break_at(number, how)
            found = act(name)
            broken, asked = wire.broken, wire.asked
            wire.break_at(0)
            judge(name, found)
            if not broken:
                return asked
    raise AssertionError


def spend(book: Book, key: str) -> bytes:
    """Charge, draw an answer and store it; or find the answer of before."""
    with book.reserve("trips", key, f"asked {key}", (3, 1), "") as hold:
        return hold.store(os.urandom(16))


@places(2)
def test_a_charge(
    server: Server,
    wire: Wire,
    chosen: Chosen,
) -> None:
    schema = f"charge_{chosen.__name__}"
    spent = 0
    with (
        Book(PostgresStore(wire.address, schema=schema)) as book,
        Book(PostgresStore(server.address, schema=schema)) as other,
    ):
        book.open_account("trips", "marbles", (10_000, 10_000))
        spend(book, "first")

        def judge(key: str, answer: bytes) -> None:
            nonlocal spent
            spent += 1
            assert spend(other, key) == answer

        assert break_each(wire, chosen, lambda key: spend(book, key), judge) == 4
        assert other.account("trips").spent == (3 * spent + 3, spent + 1)
        assert other.verify().ok


def kept_out(address: str, schema: str, key: str) -> None:
    """Ask in another process."""
    with (
        Book(PostgresStore(address, schema=schema)) as book,
        pytest.raises(LedgerError, match="another process is answering"),
    ):
        book.reserve("trips", key, f"asked {key}", (3, 1), "", wait=0)


@pytest.mark.parametrize("chosen", [afterwards, pytest.param(everywhere, marks=pytest.mark.deep)])
def test_who_is_told_of_an_error_goes_on_with_the_charge_at_once(
    server: Server, wire: Wire, monkeypatch: pytest.MonkeyPatch, chosen: Chosen
) -> None:
    """Whoever cannot wait for the server is not told whether the charge stands.

    Asking again in the same process goes on with it, charged or not; no other process may.
    """
    schema = f"told_{chosen.__name__}"
    untold: list[str] = []
    with (
        Book(PostgresStore(wire.address, schema=schema)) as book,
        Book(PostgresStore(server.address, schema=schema)) as other,
    ):
        book.open_account("trips", "marbles", (10_000, 10_000))
        spend(book, "first")

        def ask(key: str) -> bytes | None:
            with monkeypatch.context() as patch:
                patch.setattr(database, "PATIENCE", 0.0)
                try:
                    hold = book.reserve("trips", key, f"asked {key}", (3, 1), "", wait=0)
                except LedgerError:
                    return None
            return hold.store(os.urandom(16))

        def judge(key: str, answer: bytes | None) -> None:
            charged = {entry.key for entry in other.log("trips") if entry.kind == "reserve"}
            if answer is None and key in charged:
                untold.append(key)
                all_end_well([partial(kept_out, server.address, schema, key)])
            with book.reserve("trips", key, f"asked {key}", (3, 1), "", wait=0) as hold:
                answer = hold.store(answer or b"drawn again")
            assert spend(other, key) == answer

        break_each(wire, chosen, ask, judge)
        assert untold
        kinds = [entry.kind for entry in other.log("trips")]
        charged = kinds.count("reserve")
        assert kinds == ["open", *["reserve", "store", "hand"] * charged]
        assert other.account("trips").spent == (3 * charged, charged)
        assert other.verify().ok


@places(4)
def test_a_charge_of_an_analyst(tmp_path: Path, chosen: Chosen) -> None:
    """It passes through functions of the server, which find and write the question's name, too."""
    people = settle(tmp_path)
    wire = Wire(postgres.address())
    address = wire.address.replace("postgres:@", f"{people.name('ben')}:@")
    charged: list[str] = []

    def ask(book: Book, key: str) -> bytes:
        with book.reserve("trips", key, f"asked {key}", (1, 0), "", binding=BOUND) as hold:
            return hold.store(os.urandom(16).hex().encode())

    with (
        Book(PostgresStore(address, schema=people.schema, create=False)) as book,
        people.book("carl") as custodian,
    ):
        custodian.set_spender("trips", people.name("ben"), (100, 0))
        ask(book, "first")

        def judge(key: str, answer: bytes) -> None:
            charged.append(key)
            assert ask(custodian, key) == answer

        assert break_each(wire, chosen, lambda key: ask(book, key), judge) > 4
        assert custodian.account("trips").spent == (len(charged) + 1, 0)
        assert custodian.verify().ok
    wire.close()


@places(2)
@pytest.mark.parametrize("persons", [[], [b"someone"]], ids=["rows", "persons"])
def test_a_step(server: Server, wire: Wire, chosen: Chosen, persons: list[bytes]) -> None:
    schema = f"step_{chosen.__name__}_{len(persons)}"
    with (
        Book(PostgresStore(wire.address, schema=schema)) as book,
        Book(PostgresStore(server.address, schema=schema)) as other,
    ):
        book.open_account("trips", "marbles", (10, 0))
        stream = open_stream(book)
        same = open_stream(other)

        def judge(event: str, output: bytes) -> None:
            step, fresh = same.take(event, add_one, persons)
            assert (step.output, fresh) == (output, False)
            assert same.head()[0] == int(output)

        asked = break_each(
            wire, chosen, lambda event: stream.take(event, add_one, persons)[0].output, judge
        )
        assert asked > 1
        assert other.verify().ok


@places(11)
def test_an_opening_of_a_stream(server: Server, wire: Wire, chosen: Chosen) -> None:
    schema = f"stream_{chosen.__name__}"
    with (
        Book(PostgresStore(wire.address, schema=schema)) as book,
        Book(PostgresStore(server.address, schema=schema)) as other,
    ):
        book.open_account("trips", "marbles", (10_000, 0))

        def judge(key: str, number: int) -> None:
            assert open_stream(other, key).entry.sequence == number
            assert open_stream(other, key).take("a", add_one)[0].output == b"1"

        break_each(wire, chosen, lambda key: open_stream(book, key).entry.sequence, judge)
        charged = [entry for entry in other.log("trips") if entry.kind == "reserve"]
        assert other.account("trips").spent == (10 * len(charged), 0)
        assert len(charged) == len({entry.key for entry in charged})
        assert other.verify().ok


@places(21)
def test_an_opening_of_a_ledger(server: Server, wire: Wire, chosen: Chosen) -> None:
    """From nothing to the first answer."""

    def act(schema: str) -> bytes:
        with Book(PostgresStore(wire.address, schema=schema)) as book:
            book.open_account("trips", "marbles", (10, 10))
            return spend(book, "k")

    def judge(schema: str, answer: bytes) -> None:
        with Book(PostgresStore(server.address, schema=schema)) as book:
            assert spend(book, "k") == answer
            assert book.account("trips").spent == (3, 1)
            assert [entry.kind for entry in book.log()] == ["open", "reserve", "store", "hand"]
            assert book.verify().ok

    assert break_each(wire, chosen, act, judge) > 20


@places(25)
def test_a_move_from_a_file(server: Server, wire: Wire, tmp_path: Path, chosen: Chosen) -> None:
    def act(name: str) -> bytes:
        path = tmp_path / name
        with Book(SQLiteStore(path)) as book:
            book.open_account("trips", "marbles", (100, 10))
            answer = spend(book, "k")
            open_stream(book).take("a", add_one)
        with (
            closing(SQLiteStore(path)) as source,
            closing(PostgresStore(wire.address, schema=f"moved_{name}")) as target,
        ):
            migrate(source, target)
        return answer

    def judge(name: str, answer: bytes) -> None:
        with Book(PostgresStore(server.address, schema=f"moved_{name}")) as book:
            assert spend(book, "k") == answer
            assert open_stream(book).take("b", add_one)[0].output == b"2"
            assert book.account("trips").spent == (13, 1)
            assert book.verify().ok
        with (
            Book(SQLiteStore(tmp_path / name)) as left,
            pytest.raises(LedgerError, match="was moved to"),
        ):
            spend(left, "new")

    assert break_each(wire, chosen, act, judge) > 40
