"""A ledger from the path that a user gives."""

from __future__ import annotations

import pytest

from sfumato.errors import UsageError
from sfumato.ledger import open_ledger


def test_in_memory_every_ledger_is_its_own():
    with open_ledger(None) as one, open_ledger(":memory:") as other:
        one.open_account("a", "pure", (1, 0))
        assert other.accounts() == []


def test_a_ledger_is_a_file_on_this_machine():
    with pytest.raises(UsageError, match="a file on this machine"):
        open_ledger("postgres://host/db")
