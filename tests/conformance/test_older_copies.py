"""An older copy of a server's files, or a copy that lagged behind, is not spent from."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger.adding import add_one, open_stream
from sfumato.errors import LedgerError
from sfumato.ledger import Book, open_ledger
from support.servers import Server

LACKS = "it lacks what this process saw in it"


@pytest.fixture
def start() -> Iterator[Callable[[Server], Server]]:
    """Starts servers, and stops them at the end."""
    made: list[Server] = []

    def start_one(server: Server) -> Server:
        made.append(server)
        return server.start()

    yield start_one
    for server in made:
        server.close()


def spend(book: Book, key: str) -> bytes:
    with book.reserve("trips", key, f"asked {key}", (10, 0), "") as hold:
        return hold.store(key.encode())


def begin(book: Book) -> Book:
    book.open_account("trips", "marbles", (1000, 0))
    spend(book, "before")
    return book


def either(first: Server, second: Server) -> str:
    """The address of whichever of two servers takes changes."""
    host = f"{first.folder},{second.folder}"
    return f"postgresql://postgres@/postgres?host={host}&target_session_attrs=read-write"


def fail_over(first: Server, follower: Server) -> None:
    """End the first server for good, and let the one that follows it take its place."""
    first.stop(signal.SIGKILL)
    follower.promote()


def test_files_of_before_are_refused(start: Callable[[Server], Server], tmp_path: Path) -> None:
    """By whoever saw what they lack: a process that is still open, or one that has an anchor."""
    server = start(Server())
    anchor = tmp_path / "anchor"
    with open_ledger(server.address, anchor=anchor) as book:
        begin(book)
    server.stop()
    shutil.copytree(server.data, tmp_path / "copy")
    server.start()
    entered = open_ledger(server.address)
    stepped = open_ledger(server.address)
    stream = open_stream(stepped)
    stream.take("a", add_one)
    with open_ledger(server.address, anchor=anchor) as book:
        spend(book, "after")
    spend(entered, "also after")
    server.stop()
    server.put_back(tmp_path / "copy")
    server.start()

    with pytest.raises(LedgerError, match=LACKS):
        spend(entered, "third")
    with pytest.raises(LedgerError, match=LACKS):
        entered.account("trips")
    with pytest.raises(LedgerError, match=LACKS):
        stream.take("b", add_one)
    with open_ledger(server.address, anchor=anchor) as book:
        with pytest.raises(LedgerError, match="an older copy was put back"):
            spend(book, "third")
        assert not book.verify().ok
    # Control: who knows nothing of what is missing cannot notice.
    with open_ledger(server.address) as book:
        spend(book, "third")
        assert book.verify().ok
    entered.close()
    stepped.close()


def test_a_copy_that_lagged_is_refused_when_it_takes_over(
    start: Callable[[Server], Server], tmp_path: Path
) -> None:
    first = start(Server())
    begin(open_ledger(first.address)).close()
    follower = start(first.follow())
    with pytest.raises(LedgerError, match="a copy that follows another"):
        open_ledger(follower.address)
    follower.stop()  # as though its network were cut: it hears of nothing from here on
    anchor = tmp_path / "anchor"
    book = open_ledger(either(first, follower), anchor=anchor)
    spend(book, "told")
    first.stop(signal.SIGKILL)
    follower.start()
    follower.promote()
    with pytest.raises(LedgerError, match=LACKS):
        spend(book, "next")
    book.close()
    with (
        open_ledger(either(first, follower), anchor=anchor) as again,
        pytest.raises(LedgerError, match="an older copy was put back"),
    ):
        spend(again, "next")


def test_a_copy_that_was_waited_for_takes_over(
    start: Callable[[Server], Server], tmp_path: Path
) -> None:
    """Each commit waits until the copy has it on its disk: nothing is missing there."""
    first = start(Server(synchronous_standby_names="'*'"))
    follower = start(first.follow())
    anchor = tmp_path / "anchor"
    with open_ledger(either(first, follower), anchor=anchor) as book:
        begin(book)
        stream = open_stream(book)
        assert stream.take("a", add_one)[0].output == b"1"
        follower.ask("ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()")
        fail_over(first, follower)
        assert spend(book, "before") == b"before"
        assert spend(book, "after") == b"after"
        assert stream.take("b", add_one)[0].output == b"2"
        assert book.verify().ok
    with open_ledger(follower.address, anchor=anchor) as book:
        assert book.account("trips").spent == (30, 0)
        assert spend(book, "more") == b"more"
