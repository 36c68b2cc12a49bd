"""Messages state amounts exactly."""

from __future__ import annotations

import pytest

from sfumato.errors import UsageError


def test_totals_are_written_exactly_in_messages(ledger):
    ledger.open_account("a", "approx", (3 * 10**9, 10**12))
    asked = r"epsilon = 2\.999999999, delta = 0\.000000000000000001: "
    held = r"epsilon = 3, delta = 0\.000001\. "
    with pytest.raises(UsageError, match=f"{asked}.*{held}"):
        ledger.open_account("a", "approx", (3 * 10**9 - 1, 1))
