"""A store in SQLite: public rows in one file, secret rows in a second one beside it; or both in memory."""

from sfumato.ledger.sqlite.store import SQLiteStore

__all__ = ["SQLiteStore"]
