"""The rows of a ledger in PostgreSQL; the tables are in ``book.sql`` and ``secrets.sql``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import ClassVar, cast

from sfumato.ledger.entries import Entry, Step
from sfumato.ledger.postgres.reached import Reached
from sfumato.ledger.postgres.schema import BOOK, SECRETS, differences
from sfumato.ledger.sql_public import Ask, SQLPublicRows
from sfumato.ledger.sql_secret import SQLSecretRows
from sfumato.ledger.store import Position

TAKE_STEP = "SELECT take_step(?, ?, ?, ?, ?, ?, ?, ?, ?)"


class PostgresPublicRows(SQLPublicRows):
    """The public rows within one transaction."""

    place: ClassVar[str] = "place"

    def __init__(self, ask: Ask, reached: Reached) -> None:
        super().__init__(ask)
        self._reached = reached

    def add(self, entry: Entry) -> None:
        super().add(entry)
        self._reached.written.entry = (entry.sequence, entry.hash)

    def clock(self) -> datetime:
        """The server's time: the clocks of several machines may differ."""
        found = self._one("SELECT clock_timestamp()")
        assert found is not None
        return cast("datetime", found[0]).astimezone(UTC)

    def highest(self) -> int:
        found = self._one("SELECT sequence FROM reached")
        return 0 if found is None else cast("int", found[0])

    def damage(self, *, thorough: bool) -> list[str]:
        del thorough  # the server looks after its own files
        return differences(self._ask, BOOK)


class PostgresSecretRows(SQLSecretRows):
    """The secret rows within one transaction."""

    def __init__(self, ask: Ask, reached: Reached) -> None:
        super().__init__(ask)
        self._reached = reached

    def commit_step(self, stream: int, before: str, step: Step, after: Position) -> bool:
        import psycopg

        published = (step.number, step.event, step.output, step.hash)
        values = (stream, before, *published, after.state, after.tallied, after.seal)
        # What a refused step did is undone, and the transaction goes on.
        self._ask("SAVEPOINT step", ())
        try:
            self._ask(TAKE_STEP, values)
        except psycopg.IntegrityError:
            self._ask("ROLLBACK TO SAVEPOINT step", ())
            return False
        self._ask("RELEASE SAVEPOINT step", ())
        self._reached.written.steps[stream] = (step.number, step.hash)
        return True

    def damage(self) -> list[str]:
        return differences(self._ask, SECRETS)
