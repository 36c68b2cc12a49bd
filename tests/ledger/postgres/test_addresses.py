"""An address is shown without what opens it."""

from __future__ import annotations

from sfumato.ledger.postgres_server import public_address


def test_what_messages_call_a_server() -> None:
    assert public_address("postgresql://u:p@h:5433/d?sslmode=require") == "postgresql://h:5433/d"
    assert public_address("postgresql:///d") == "postgresql://localhost/d"
