"""The server of a ledger ends while processes spend from it, and is started again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from sfumato.errors import LedgerError, UsageError
from sfumato.ledger import Book
from sfumato.ledger import postgres_server as database
from sfumato.ledger.postgres import PostgresStore
from sfumato.ledger.secrets import fresh_name
from sfumato.ledger.store import Request, StoreError
from support.servers import Server
from support.storms import begin, judge, published, work
from support.workers import HANG, Worker

PAUSE = 0.005  # between two looks at how far the workers have come; it decides no outcome


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server(wal_buffers="64kB").start()
    yield server
    server.close()


def open_book(server: Server) -> Book:
    return Book(PostgresStore(server.address))


def open_and_say_so(server: Server, place: Path, name: int) -> Book:
    book = open_book(server)
    book._opened_secrets()  # they have a connection of their own
    (place / f"{name}.open").touch()
    return book


def opened(place: Path) -> int:
    return len(list(place.glob("*.open")))


def shown(place: Path) -> int:
    return sum(len(published(place, name)) for name in range(4))


@pytest.mark.parametrize(
    ("spends", "outages"), [(60, 2), pytest.param(3_000, 30, marks=pytest.mark.deep)]
)
def test_a_server_that_ends_while_four_processes_spend(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spends: int, outages: int
) -> None:
    """By SIGQUIT, as for an immediate shutdown, and by SIGKILL of its first process.

    No worker sees an error: each waits until the server is there again. Only who has not reached
    it yet is told at once, so it does not end before all have.
    """
    monkeypatch.setattr(database, "PATIENCE", HANG)
    opening = partial(open_book, server)
    begin(opening, spends)
    workers = [
        Worker(partial(work, partial(open_and_say_so, server, tmp_path, n), tmp_path, n, spends))
        for n in range(4)
    ]
    try:
        for outage in range(1, outages + 1):
            enough = outage * spends // (2 * outages)
            while opened(tmp_path) < len(workers) or shown(tmp_path) < enough:
                assert not any(worker.failed for worker in workers)
                time.sleep(PAUSE)
            server.stop((signal.SIGQUIT, signal.SIGKILL, signal.SIGINT)[outage % 3])
            server.start()
        for worker in workers:
            worker.join()
    finally:
        for worker in workers:
            worker.stop()
    assert judge(opening, tmp_path, 4)["charged"] == spends


def test_who_cannot_wait_is_told_and_finds_the_charge_again(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_book(server) as book:
        book.open_account("trips", "marbles", (10, 0))
        hold = book.reserve("trips", "k", "asked", (3, 0), "")
        server.stop(signal.SIGQUIT)
        monkeypatch.setattr(database, "PATIENCE", 0.0)
        with pytest.raises(
            StoreError, match=r"was cut, again and again\. Ask again, under the same"
        ):
            hold.store(b"answer")
        with pytest.raises(LedgerError, match="the server cannot be reached"):
            open_book(server)
        server.start()
        monkeypatch.undo()
        assert hold.store(b"answer") == b"answer"
        assert book.reserve("trips", "k", "asked", (3, 0), "").stored == b"answer"
        assert book.account("trips").spent == (3, 0)
        assert book.verify().ok


def test_an_answer_that_reached_no_disk_was_never_shown(server: Server) -> None:
    """What one process drew is gone with it; the next one resumes the charge, and pays nothing."""
    pid = os.fork()
    if pid == 0:
        book = open_book(server)
        book.open_account("trips", "marbles", (10, 0))
        book.reserve("trips", "k", "asked", (3, 0), "")
        os._exit(0)
    os.waitpid(pid, 0)
    server.stop(signal.SIGKILL)
    server.start()
    with open_book(server) as book:
        hold = book.reserve("trips", "k", "asked", (3, 0), "")
        assert hold.stored is None
        assert hold.store(b"answer") == b"answer"
        assert book.account("trips").spent == (3, 0)
        assert [entry.kind for entry in book.log()] == [
            "open",
            "reserve",
            "resume",
            "store",
            "hand",
        ]


@pytest.mark.parametrize("after_the_charge", [True, False])
def test_the_name_of_a_question_is_as_durable_as_its_charge(
    server: Server, after_the_charge: bool
) -> None:
    """It is on disk no later than the charge, and may be there without one."""
    with open_book(server) as book:
        book.open_account("trips", "marbles", (10, 0))
        secrets = book._opened_secrets()
        if after_the_charge:
            book.reserve("trips", "k", "asked", (3, 0), "", lease=0)
        else:
            request = Request("trips", "k", "asked", (3, 0), "", 900.0)
            fresh = fresh_name("k")
            secrets.using(None)(partial(secrets.name, request, fresh, lambda _key: False))
        server.stop(signal.SIGKILL)
        server.start()
        if after_the_charge:
            with pytest.raises(UsageError, match="k"):
                book.reserve("trips", "k", "something else", (3, 0), "")
        # Nothing was charged for a name alone, and what is lost of it is written again.
        hold = book.reserve("trips", "k", "asked", (3, 0), "")
        assert hold.store(b"answer") == b"answer"
        assert book.account("trips").spent == (3, 0)
        assert book.verify().ok
