"""A server that is stopped at once loses nothing that anybody was told of.

A charge gives its turn to the next one before it is on disk. These servers write nothing down by
themselves for as long as a test takes, so what nobody waited for is lost when they are stopped.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from sfumato.ledger import Book, Hold
from sfumato.ledger.postgres import PostgresStore
from support.servers import PAUSE, Server
from support.workers import HANG

WAITING = (
    "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'sfumato.entries'::regclass"
)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server(wal_writer_delay="10s", autovacuum="off").start()
    with Book(PostgresStore(server.address)) as book:
        book.open_account("trips", "marbles", (100, 0))
        spend(book, "first")
    yield server
    server.close()


def charge(book: Book, key: str) -> Hold:
    return book.reserve("trips", key, f"asked {key}", (1, 0), "", wait=0)


def spend(book: Book, key: str) -> bytes:
    with charge(book, key) as hold:
        return hold.store(key.encode())


def fail(server: Server) -> None:
    """Stop it at once, and start it again."""
    server.stop(signal.SIGQUIT)
    server.start()


def kept(server: Server) -> set[str]:
    """The hashes of all entries, of a ledger that is whole."""
    with Book(PostgresStore(server.address)) as book:
        assert book.verify().ok
        return {entry.hash for entry in book.log()}


def charge_in_a_queue(server: Server, book: Book, key: str) -> Hold:
    """Charge while somebody else has the turn."""
    holds: list[Hold] = []
    with closing(psycopg.connect(server.address)) as other:
        other.execute("LOCK TABLE sfumato.entries IN EXCLUSIVE MODE")
        worker = threading.Thread(target=lambda: holds.append(charge(book, key)))
        worker.start()
        while server.ask(WAITING) != [(1,)]:
            time.sleep(PAUSE)
        other.rollback()
    worker.join(HANG)
    return holds[0]


def test_a_charge_that_waited_for_its_turn_stands_when_its_caller_is_told(server: Server) -> None:
    with Book(PostgresStore(server.address)) as book:
        spend(book, "opened")
        hold = charge_in_a_queue(server, book, "waited")
        fail(server)
        assert hold.entry.hash in kept(server)
        assert hold.store(b"answer") == b"answer"
        assert spend(book, "waited") == b"answer"


def charge_ahead(server: Server, key: str) -> str:
    """A charge that others see, and that is not on disk, as while its caller still waits."""
    store = PostgresStore(server.address)
    with Book(store) as book:
        book.account("trips")
        store.database.apart(lambda ask: ask("SET synchronous_commit = off", ()))
        hold = charge(book, key)
        return hold.entry.hash


def take_a_turn(book: Book, folder: Path) -> None:
    """As whoever goes on with a charge of which they were not told."""
    del folder
    book._store.writing(lambda rows: rows.tip(""))


def answer_another(book: Book, folder: Path) -> None:
    del folder
    spend(book, "another")


def verify(book: Book, folder: Path) -> None:
    del folder
    assert book.verify().ok


def anchor(book: Book, folder: Path) -> None:
    """An anchor may note a charge of somebody else."""
    with Book(book._store, anchor=folder / "anchor") as anchored:
        anchored._parts.anchor_last_entry()


def nothing(book: Book, folder: Path) -> None:
    del folder
    assert len(list(book.log())) == 5


ACTS = {
    "a turn": (take_a_turn, True),
    "an answer": (answer_another, True),
    "a verification": (verify, True),
    "an anchor": (anchor, True),
    "nothing that tells of it": (nothing, False),
}


@pytest.mark.parametrize(("act", "stands"), ACTS.values(), ids=ACTS)
def test_a_charge_that_others_saw_stands_where_it_matters(
    server: Server, tmp_path: Path, act: Callable[[Book, Path], None], stands: bool
) -> None:
    """The last case shows that these servers do lose what nobody waited for."""
    with Book(PostgresStore(server.address)) as book:
        seen = charge_ahead(server, "ahead")
        act(book, tmp_path)
        fail(server)
    assert (seen in kept(server)) is stands
    if act is anchor:
        with Book(PostgresStore(server.address), anchor=tmp_path / "anchor") as anchored:
            spend(anchored, "after")
