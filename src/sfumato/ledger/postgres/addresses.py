"""Addresses of servers, and the driver that reads them."""

from __future__ import annotations

from types import ModuleType

from sfumato.basics.text import require_clear
from sfumato.errors import UsageError


def public_address(address: str) -> str:
    """An address without what opens it: neither user, nor password, nor parameters.

    Raises
    ------
    UsageError
        If it is none, or it is not clear where its password ends.
    """
    require_clear(address, "the address of a ledger")
    psycopg = driver()
    try:
        parts = psycopg.conninfo.conninfo_to_dict(address)
    except psycopg.Error:
        raise UsageError(
            "the address of a ledger",
            "it is no address of a PostgreSQL database",
            'Write it as in "postgresql://user@host/database"',
        ) from None
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{parts.get('host') or 'localhost'}{port}/{parts.get('dbname') or ''}"


def driver() -> ModuleType:
    """The driver, which the core does not need."""
    try:
        import psycopg
    except ImportError:
        raise UsageError(
            "a ledger in PostgreSQL",
            "psycopg is not installed",
            "Run: pip install 'sfumato[postgres]'",
        ) from None
    return psycopg
