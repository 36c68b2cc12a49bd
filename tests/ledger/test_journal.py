"""How entries are dated."""

from __future__ import annotations

from datetime import UTC, datetime

from sfumato.ledger import open_ledger
from sfumato.ledger.store import PublicRows


def test_entries_that_follow_a_charge_carry_its_time(path, monkeypatch):
    """When an answer was ready says how long it took, and so how many rows there are."""
    ticks = iter(datetime(2026, 1, 1, 0, 0, n, tzinfo=UTC) for n in range(60))
    monkeypatch.setattr(PublicRows, "clock", lambda rows: next(ticks))
    with open_ledger(path) as book:
        book.open_account("a", "marbles", (10, 0))
        with book.reserve("a", None, "asked", (1, 0), "") as hold:
            hold.store(b"x")
        with book.reserve("a", "left", "asked", (1, 0), ""):
            pass
        times = [(entry.kind, entry.time) for entry in book.log()]
        charged = {entry.key: entry.time for entry in book.log() if entry.kind == "reserve"}
        followed = [entry for entry in book.log() if entry.kind in ("store", "hand", "abandon")]
        assert len(followed) == 3, times
        assert all(entry.time == charged[entry.key] for entry in followed)
