"""Ledgers in a file and in memory, and what is often done with them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger.adding import add_one, open_stream
from sfumato.ledger import Book, Ledger, open_ledger
from support.memory_store import MemoryStore

TOTAL = (1000, 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a ledger may be."""
    return tmp_path / "budget.db"


@pytest.fixture(params=["file", "memory", "plain"])
def ledger(request: pytest.FixtureRequest, path: Path) -> Iterator[Ledger]:
    """A ledger with one account of 1000 units: in SQLite, or in plain containers."""
    kinds: dict[str, Callable[[], Book]] = {
        "file": lambda: open_ledger(path),
        "memory": lambda: open_ledger(None),
        "plain": lambda: Book(MemoryStore()),
    }
    with kinds[request.param]() as book:
        book.open_account("trips", "marbles", TOTAL)
        yield book


def release_one(
    book: Ledger, key: str, payload: bytes = b"noisy", cost: tuple[int, int] = (10, 0)
) -> bytes:
    """Reserve, store and hand out in one go."""
    with book.reserve("trips", key, f"digest of {key}", cost, "a test") as hold:
        return hold.store(payload)


@pytest.fixture
def release() -> Callable[..., bytes]:
    """Reserves, stores and hands out in one go."""
    return release_one


@pytest.fixture(scope="session")
def charged_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `charged_path` copies."""
    path = tmp_path_factory.mktemp("charged") / "budget.db"
    with open_ledger(path) as ledger:
        ledger.open_account("trips", "marbles", TOTAL)
        release_one(ledger, "a", b"first answer")
        release_one(ledger, "b", b"second answer")
        ledger.open_account("visits", "marbles", (50, 0))
        with ledger.reserve("trips", "c", "digest", (100, 0), "left without an answer"):
            pass
        ledger.reserve("trips", "d", "digest", (200, 0), "still at work")
        assert ledger.verify().ok
        assert ledger.verify().entries == 11
    return path


@pytest.fixture
def charged_path(path: Path, charged_ledger: Path) -> Path:
    """A closed ledger of 11 entries.

    It has two accounts, the answered keys a and b (entries 2 to 4 and 5 to 7), a lease that was
    ended and one that runs.
    """
    return copied(charged_ledger, path)


@pytest.fixture(scope="session")
def stream_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `stream_path` copies."""
    path = tmp_path_factory.mktemp("stream") / "budget.db"
    with open_ledger(path) as ledger:
        ledger.open_account("trips", "marbles", TOTAL)
        stream = open_stream(ledger)
        for number in range(5):
            tokens = [] if number % 2 else [b"someone"]
            assert stream.take(f"e{number}", add_one, tokens)[1]
        assert ledger.verify().ok
    return path


@pytest.fixture
def stream_path(path: Path, stream_ledger: Path) -> Path:
    """A closed ledger with a stream of five steps (entry 2); three of them count a person."""
    return copied(stream_ledger, path)


def copied(ledger: Path, path: Path) -> Path:
    """Copy a closed ledger, with its secrets: to make it anew waits for the disk many times."""
    for file in ledger.parent.iterdir():
        shutil.copy2(file, path.with_name(file.name))
    return path
