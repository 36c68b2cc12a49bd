"""A ledger from the path that a user gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from sfumato.errors import UsageError
from sfumato.ledger import open_ledger
from support import postgres


def test_in_memory_every_ledger_is_its_own():
    with open_ledger(None) as one, open_ledger(":memory:") as other:
        one.open_account("a", "pure", (1, 0))
        assert other.accounts() == []


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ("mysql://someone:hunter2@host/db", r"mysql:\.\.\."),
        (Path("postgresql://someone:hunter2@host/db"), r"postgresql:\.\.\."),
        ("postgres:/someone:hunter2@host/db", r"postgres:\.\.\."),
        ("host=host password=hunter2", "an address"),
    ],
)
def test_another_address_is_refused_without_quoting_it(where, named):
    with pytest.raises(UsageError, match=f"{named}: a ledger is a file") as refusal:
        open_ledger(where)
    assert "hunter2" not in str(refusal.value)


def test_an_address_of_a_database_opens_a_ledger_on_its_server(release):
    with open_ledger(postgres.address()) as ledger:
        ledger.open_account("trips", "marbles", (1000, 0))
        assert release(ledger, "a", b"noisy") == b"noisy"
    with open_ledger(postgres.address(), create=False) as again:
        assert release(again, "a", b"other") == b"noisy"
        assert again.verify().ok
