"""``sfumato ledger``: accounts are opened, listed and verified."""

from __future__ import annotations

from collections.abc import Callable

Run = Callable[..., tuple[int, str, str]]


def test_an_account_is_opened_listed_and_verified(sfumato: Run) -> None:
    assert sfumato("ledger", "init", "people", "--epsilon", "2", "--ledger", "b.db")[0] == 0
    assert sfumato("ledger", "init", "people", "--epsilon", "3", "--ledger", "b.db")[0] == 2
    assert sfumato("release", "plan.toml", "--ledger", "b.db")[0] == 0
    code, out, _ = sfumato("ledger", "log", "--ledger", "b.db")
    assert code == 0
    assert [line.split("\t")[3] for line in out.splitlines()[1:]] == [
        "open",
        "bind",
        "reserve",
        "store",
        "hand",
    ]
    code, out, _ = sfumato("ledger", "verify", "--ledger", "b.db")
    assert code == 0
    head = out.split("Head: ")[1].strip()
    assert sfumato("ledger", "verify", "--ledger", "b.db", "--head", head)[0] == 0
    assert sfumato("ledger", "verify", "--ledger", "b.db", "--head", "2:" + "0" * 64)[0] == 5
    assert sfumato("ledger", "show", "--ledger", "none.db")[0] == 5
