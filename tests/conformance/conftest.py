"""Fixtures for the tests of stores: each test runs for every store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conformance.stores import SHARED, STORES, filled, filled_secrets
from sfumato.ledger import Store
from sfumato.ledger.store import (
    SecretStore,
)


@pytest.fixture(params=STORES)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Open a store; opened again, it is another store on the same rows where that is possible."""
    made: list[Store] = []

    def open_store() -> Store:
        if not made or request.param in SHARED:
            made.append(STORES[request.param](tmp_path))
        return made[-1]

    yield open_store
    for store in made:
        store.close()


@pytest.fixture
def store(make: Callable[[], Store]) -> Store:
    """A store with an account of 100 units, a binding, a ceiling, and an answered key."""
    return filled(make())


@pytest.fixture
def secrets(store: Store) -> Iterator[SecretStore]:
    """Its secrets, with names of two questions and a stream of two steps."""
    secrets = filled_secrets(store.secrets(create=True))
    yield secrets
    secrets.close()
