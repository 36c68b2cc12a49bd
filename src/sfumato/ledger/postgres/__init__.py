"""A store in PostgreSQL: public rows in one schema, secret ones in another; for many machines."""

from sfumato.ledger.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
