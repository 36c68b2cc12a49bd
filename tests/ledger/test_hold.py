"""A reservation, while its caller computes the answer."""

from __future__ import annotations

import pytest

from sfumato.errors import UsageError
from sfumato.ledger import open_ledger

ASK = ("trips", "key", "digest", (10, 0), "a test")


def test_the_reason_for_leaving_stays_visible_when_the_ledger_fails(path):
    ledger = open_ledger(path)
    ledger.open_account("trips", "marbles", (10, 0))

    def fail() -> None:
        with ledger.reserve(*ASK):
            ledger.close()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


def test_an_answer_is_bytes_and_no_message_holds_it(ledger):
    with ledger.reserve("trips", "key", "digest", (1, 0), "") as hold:
        with pytest.raises(UsageError) as refusal:
            hold.store("canary")
        assert "canary" not in str(refusal.value)
        hold.store(b"canary")
        assert "canary" not in repr(hold)
        assert all("canary" not in repr(entry) for entry in ledger.log())
