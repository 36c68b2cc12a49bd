"""The secret rows of a ledger in SQL, as SQLite and PostgreSQL both understand it.

A question mark stands for a value. Each database has its tables in a ``secrets.sql`` of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from sfumato.ledger.entries import Step
from sfumato.ledger.name_rows import NameRow, NameRows
from sfumato.ledger.sql_public import Row, SQLRows
from sfumato.ledger.store import Position, SecretRows, StreamRow, StreamRows

POSITION = "SELECT step, state, tallied, head, seal FROM streams WHERE stream = ?"
STREAMS = "SELECT stream, spec, secret, step, state, tallied, head, seal FROM streams"
STEPS = "SELECT step, event, output, hash FROM steps WHERE stream = ?"
VALUE = "SELECT value FROM {}about WHERE name = ?"
NAMES = "SELECT key, tag, digest FROM {}requests WHERE account = ?"
FORGET = "DELETE FROM {}requests WHERE account = ? AND tag = ? AND derived AND key <> ?"
KEEP = """
    INSERT INTO {}requests (account, key, tag, digest, derived) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (account, key) DO UPDATE
    SET tag = excluded.tag, digest = excluded.digest, derived = excluded.derived
"""


class SQLStreamRows(SQLRows, StreamRows):
    """What taking a step needs; each call is one statement, whose rows are all fetched."""

    def position(self, stream: int) -> Position | None:
        found = self._one(POSITION, stream)
        return None if found is None else Position._make(found)

    def step_of(self, stream: int, event: str) -> Step | None:
        found = self._one(f"{STEPS} AND event = ? AND event <> ''", stream, event)
        return None if found is None else _step(found)


class SQLNameRows(SQLRows, NameRows):
    """The names of questions within one transaction of a connection.

    Attributes
    ----------
    place : str
        What precedes the names of the secret tables: a schema and a dot, or nothing.
    """

    place = ""

    def value(self, name: str) -> bytes | None:
        found = self._one(VALUE.format(self.place), name)
        return None if found is None else cast("bytes", found[0])

    def of_key(self, account: str, key: str) -> NameRow | None:
        found = self._one(f"{NAMES.format(self.place)} AND key = ?", account, key)
        return None if found is None else NameRow._make(found)

    def of_tag(self, account: str, tag: bytes) -> NameRow | None:
        found = self._one(f"{NAMES.format(self.place)} AND tag = ? AND derived", account, tag)
        return None if found is None else NameRow._make(found)

    def keep(self, account: str, name: NameRow, *, derived: bool) -> None:
        if derived:
            self._ask(FORGET.format(self.place), (account, name.tag, name.key))
        self._ask(KEEP.format(self.place), (account, name.key, name.tag, name.digest, derived))


class SQLSecretRows(SQLStreamRows, SQLNameRows, SecretRows):
    """The secret rows within one transaction of a connection."""

    # --- names of questions -----------------------------------------------------------------------

    def values(self) -> Mapping[str, bytes]:
        found = cast("Iterable[tuple[str, bytes]]", self._ask("SELECT name, value FROM about", ()))
        return dict(found)

    def add_value(self, name: str, value: bytes) -> None:
        self._ask("INSERT INTO about (name, value) VALUES (?, ?)", (name, value))

    def names(self) -> list[tuple[str, NameRow, bool]]:
        query = "SELECT account, key, tag, digest, derived FROM requests ORDER BY account, key"
        found = cast("Iterable[tuple[str, str, bytes, str, int]]", self._ask(query, ()))
        return [
            (account, NameRow(key, tag, digest), bool(derived))
            for account, key, tag, digest, derived in found
        ]

    def replaced(self, sequence: int) -> str | None:
        found = self._one("SELECT hash FROM replaced WHERE sequence = ?", sequence)
        return None if found is None else str(found[0])

    def add_replaced(self, hashes: Iterable[tuple[int, str]]) -> None:
        for sequence, digest in hashes:
            self._ask("INSERT INTO replaced (sequence, hash) VALUES (?, ?)", (sequence, digest))

    def all_replaced(self) -> Mapping[int, str]:
        query = "SELECT sequence, hash FROM replaced"
        return dict(cast("Iterable[tuple[int, str]]", self._ask(query, ())))

    # --- streams ----------------------------------------------------------------------------------

    def stream(self, number: int) -> StreamRow | None:
        found = self._one(f"{STREAMS} WHERE stream = ?", number)
        return None if found is None else _stream(found)

    def streams(self) -> list[StreamRow]:
        return [_stream(columns) for columns in self._ask(f"{STREAMS} ORDER BY stream", ())]

    def any_stream(self) -> bool:
        return self._one("SELECT 1 FROM streams LIMIT 1") is not None

    def add_stream(self, row: StreamRow) -> None:
        query = (
            "INSERT INTO streams (stream, spec, secret, step, state, tallied, head, seal) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        )
        self._ask(query, (row.number, row.spec, row.secret, *row.at))

    def step(self, stream: int, number: int) -> Step | None:
        found = self._one(f"{STEPS} AND step = ?", stream, number)
        return None if found is None else _step(found)

    def steps(self, stream: int, after: int = 0) -> list[Step]:
        found = self._ask(f"{STEPS} AND step > ? ORDER BY step", (stream, after))
        return [_step(columns) for columns in found]

    def stepped(self) -> set[int]:
        found = cast("Iterable[tuple[int]]", self._ask("SELECT DISTINCT stream FROM steps", ()))
        return {number for (number,) in found}

    def count(self, stream: int, person_token: bytes) -> int:
        where = (stream, person_token)
        found = self._one("SELECT rows FROM tallies WHERE stream = ? AND who = ?", *where)
        if found is None:
            self._ask("INSERT INTO tallies (stream, who, rows) VALUES (?, ?, 1)", where)
            return 1
        self._ask("UPDATE tallies SET rows = rows + 1 WHERE stream = ? AND who = ?", where)
        return cast("int", found[0]) + 1

    def counted(self, stream: int) -> Mapping[bytes, int]:
        query = "SELECT who, rows FROM tallies WHERE stream = ?"
        found = cast("Iterable[tuple[bytes, int]]", self._ask(query, (stream,)))
        return dict(found)

    def tallies(self) -> Mapping[int, int]:
        query = "SELECT stream, sum(rows) FROM tallies GROUP BY stream"
        found = cast("Iterable[tuple[int, int]]", self._ask(query, ()))
        return {stream: int(rows) for stream, rows in found}


def _step(columns: Row) -> Step:
    return Step(*cast("tuple[int, str, bytes, str]", columns))


def _stream(columns: Row) -> StreamRow:
    number, spec, secret, *at = cast("tuple[int, bytes, bytes, int, bytes, int, str, str]", columns)
    return StreamRow(number, spec, secret, Position._make(at))
