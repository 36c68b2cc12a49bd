"""``sfumato doctor``: every check is named, and passes here."""

from __future__ import annotations

import json
from collections.abc import Callable

Run = Callable[..., tuple[int, str, str]]


def test_every_check_passes_on_this_machine(sfumato: Run) -> None:
    code, out, _ = sfumato("doctor", "--json")
    assert code == 0
    assert {entry["check"] for entry in json.loads(out)} == {
        "sfumato",
        "libraries",
        "extras",
        "spark",
        "randomness",
        "disk",
        "ledger",
    }
