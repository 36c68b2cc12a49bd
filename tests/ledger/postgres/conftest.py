"""Ledgers on the tests' own server, each in a schema of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sfumato.ledger.postgres import PostgresStore
from support import postgres


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Callable[[], PostgresStore]]:
    """Open a store; opened again, it is another one on the same rows."""
    made: list[PostgresStore] = []

    def make() -> PostgresStore:
        made.append(PostgresStore(postgres.address(), schema=postgres.schema_of(tmp_path)))
        return made[-1]

    yield make
    for store in made:
        store.close()
