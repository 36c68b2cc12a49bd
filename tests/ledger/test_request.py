"""A request for a charge is checked before the ledger is read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sfumato.errors import UsageError
from sfumato.ledger import Book
from support.memory_store import MemoryStore


@pytest.fixture
def ledger() -> Iterator[Book]:
    """In the store that costs least: no store sees such a request."""
    with Book(MemoryStore()) as book:
        book.open_account("trips", "marbles", (1000, 0))
        yield book


def kinds(ledger):
    return [entry.kind for entry in ledger.log()]


@pytest.mark.parametrize(
    "cost", [(-1, 0), (1.0, 0), (True, 0), (1,), (1, 2, 3), 5, (2**63, 0), ("1", 0), None]
)
def test_an_amount_is_two_whole_numbers(ledger, cost):
    with pytest.raises(UsageError, match="two whole numbers"):
        ledger.reserve("trips", "key", "digest", cost, "")
    if cost is not None:
        with pytest.raises(UsageError, match="two whole numbers"):
            ledger.open_account("other", "marbles", cost)
    assert kinds(ledger) == ["open"]


@pytest.mark.parametrize("text", ["", "a\0b", "x" * 5000, "\ud800", 7])
@pytest.mark.parametrize("name", ["account", "key", "asked"])
def test_names_are_text_that_can_be_kept(ledger, text, name):
    texts = {"account": "trips", "key": "key", "asked": "digest"} | {name: text}
    with pytest.raises(UsageError, match="must be text") as refusal:
        ledger.reserve(**texts, cost=(1, 0), note="")
    assert refusal.value.asked.startswith("an empty") == (text == "")


@pytest.mark.parametrize("lease", [-1, float("nan"), float("inf")])
def test_a_lease_is_a_time(ledger, lease):
    with pytest.raises(UsageError, match="lease"):
        ledger.reserve("trips", "key", "digest", (1, 0), "", lease=lease)
