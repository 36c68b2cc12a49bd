"""A store in SQLite: public rows in one file, secret ones in another beside it; or in memory."""

from sfumato.ledger.sqlite.store import SQLiteStore

__all__ = ["SQLiteStore"]
