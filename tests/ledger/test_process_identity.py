"""Whether a process has surely ended; every doubt counts as no."""

from __future__ import annotations

import pytest

from sfumato.ledger import process_identity


@pytest.mark.skipif(
    not process_identity.current(), reason="this system does not tell which processes run"
)
def test_in_doubt_a_holder_has_not_ended():
    place, number, started = process_identity.current().rsplit("/", 2)
    assert not process_identity.ended(process_identity.current())
    assert process_identity.ended(f"{place}/{number}/1{started}")
    assert process_identity.ended(f"{place}/{2**22 + 1}/{started}")
    for doubtful in (
        "",
        "x",
        f"elsewhere/{number}/1",
        f"{place}/many/{started}",
        f"{place}/1/{process_identity._started(1)}",
    ):
        assert not process_identity.ended(doubtful)
