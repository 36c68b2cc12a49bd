"""The rows of a ledger in PostgreSQL; the tables are in ``book.sql`` and ``secrets.sql``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import ClassVar, cast

from sfumato.ledger import refusals
from sfumato.ledger.chain import binding
from sfumato.ledger.entries import Entry, Step
from sfumato.ledger.name_rows import NameRows
from sfumato.ledger.postgres.failures import NO_SPENDER
from sfumato.ledger.postgres.reached import Reached
from sfumato.ledger.postgres.schema import BOOK, SECRETS, differences
from sfumato.ledger.postgres.statements import Statements, noted
from sfumato.ledger.sql_public import Ask, SQLPublicRows, SQLRows, columns_of
from sfumato.ledger.sql_secret import SQLNameRows, SQLSecretRows
from sfumato.ledger.store import Guard, Named, Position, PublicRows, Verdict

NAME_QUESTION = "SELECT verdict, name_key, name_digest FROM name_question(?, ?, ?, ?, ?)"
IS_OF_STATE = "SELECT is_of_state(?, ?, ?)"
TAKE_STEP = "SELECT take_step(?, ?, ?, ?, ?, ?, ?, ?, ?)"


class PostgresPublicRows(SQLPublicRows):
    """The public rows within one transaction."""

    place: ClassVar[str] = "place"
    with_spenders = True

    def __init__(self, ask: Ask, reached: Reached, secrets: str = "") -> None:
        super().__init__(ask)
        self._reached = reached
        self._secrets = secrets

    def name_rows(self) -> NameRows | None:
        # Words that need no quotes, and hold no mark of a value.
        if not re.fullmatch("[a-z_][a-z0-9_]*", self._secrets):
            return None
        names = SQLNameRows(self._ask)
        names.place = f"{self._secrets}."
        return names

    def foresee(self, look: Callable[[PublicRows], object]) -> None:
        if isinstance(self._ask, Statements):
            asked: list[tuple[str, tuple[object, ...]]] = []
            look(type(self)(noted(asked), self._reached, self._secrets))
            self._ask.foresee(asked)

    def add(self, entry: Entry) -> None:
        super().add(entry)
        self._note(entry)

    def _note(self, entry: Entry) -> None:
        self._reached.written.entry = (entry.sequence, entry.hash)

    def clock(self) -> datetime:
        """The server's time: the clocks of several machines may differ."""
        now = self._reached.now
        if now is None:
            found = self._one("SELECT clock_timestamp()")
            assert found is not None
            now = cast("datetime", found[0])
        return now.astimezone(UTC)

    def highest(self) -> int:
        found = self._one("SELECT sequence FROM reached")
        return 0 if found is None else cast("int", found[0])

    def damage(self, *, thorough: bool) -> list[str]:
        del thorough  # the server looks after its own files
        return differences(self._ask, BOOK)


class PostgresAnalystRows(PostgresPublicRows):
    """The public rows for a role that does not own them: what it adds goes through the guard."""

    def name_rows(self) -> NameRows | None:
        return None

    def guard(self) -> Guard:
        return PostgresGuard(self._ask)

    def add(self, entry: Entry) -> None:
        self._enter(entry, None)

    def add_bound(self, entry: Entry, protects: str, data: str) -> None:
        # The server reads what is bound off the entry, so that one is never there alone.
        assert entry.note == binding(protects, data)
        self._enter(entry, None)

    def add_answered(self, entry: Entry, payload: bytes) -> None:
        self._enter(entry, payload)

    def _enter(self, entry: Entry, payload: bytes | None) -> None:
        values = (*columns_of(entry), entry.spender, *entry.own)
        marks = ", ".join("?" * len(values))
        self._ask(f"SELECT enter(ROW({marks})::entries, ?)", (*values, payload))
        self._note(entry)


class PostgresGuard(SQLRows, Guard):
    """Calls the functions of ``guard.sql``, which alone may look at the secrets."""

    def name(
        self, account: str, key: str | None, asked: Sequence[str], fresh: tuple[str, str]
    ) -> Named:
        import psycopg

        try:
            found = self._one(NAME_QUESTION, account, key, list(asked), *fresh)
        except psycopg.Error as error:
            if error.sqlstate != NO_SPENDER:
                raise
            raise refusals.no_spender_here(account) from None
        return Named._make(cast("tuple[Verdict, str, str]", found))

    def note_state(self, charge: int, state: str) -> None:
        self._one(IS_OF_STATE, charge, state, True)

    def is_of_state(self, charge: int, state: str) -> bool:
        found = self._one(IS_OF_STATE, charge, state, False)
        return found is not None and bool(found[0])


class PostgresSecretRows(SQLSecretRows):
    """The secret rows within one transaction."""

    def __init__(self, ask: Ask, reached: Reached) -> None:
        super().__init__(ask)
        self._reached = reached

    def add_value(self, name: str, value: bytes) -> None:
        super().add_value(name, value)
        self._reached.written.values[name] = value

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
