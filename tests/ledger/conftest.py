"""Ledgers in a file and in memory, and what is often done with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sfumato.ledger import Book, Ledger, open_ledger
from sfumato.ledger.memory import MemoryStore

TOTAL = (1000, 0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a ledger may be."""
    return tmp_path / "budget.db"


@pytest.fixture(params=["file", "memory", "plain"])
def ledger(request: pytest.FixtureRequest, path: Path) -> Iterator[Ledger]:
    """A ledger with one account of 1000 units: in SQLite, or in plain containers."""
    plain = request.param == "plain"
    with (
        Book(MemoryStore())
        if plain
        else open_ledger(path if request.param == "file" else None) as book
    ):
        book.open_account("trips", "marbles", TOTAL)
        yield book


@pytest.fixture
def release() -> Callable[..., bytes]:
    """Reserve, store and hand out in one go."""

    def run(
        book: Ledger, key: str, payload: bytes = b"noisy", cost: tuple[int, int] = (10, 0)
    ) -> bytes:
        with book.reserve("trips", key, f"digest of {key}", cost, "a test") as hold:
            return hold.store(payload)

    return run
