"""The secret rows of a ledger in SQL; the tables are in ``secrets.sql``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from sfumato.ledger.entries import Step
from sfumato.ledger.sqlite.database import Execute
from sfumato.ledger.sqlite.schema import SECRETS, damage, differences
from sfumato.ledger.store import NameRow, Position, SecretRows, StreamRow, StreamRows

POSITION = "SELECT step, state, tallied, head, seal FROM streams WHERE stream = ?"
STREAMS = "SELECT stream, spec, secret, step, state, tallied, head, seal FROM streams"
STEPS = "SELECT step, event, output, hash FROM steps WHERE stream = ?"
COMMIT_STEP = "INSERT INTO moves VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


class SQLiteStreamRows(StreamRows):
    """What taking a step needs; each call is one statement.

    All rows of a query are fetched at once: a statement that is not at its end would keep an older
    view of the file open, and the next one would read from that.
    """

    def __init__(self, execute: Execute) -> None:
        self._execute = execute

    def position(self, stream: int) -> Position | None:
        found = self._execute(POSITION, (stream,)).fetchall()
        return Position(*found[0]) if found else None

    def step_of(self, stream: int, event: str) -> Step | None:
        found = self._execute(f"{STEPS} AND event = ? AND event <> ''", (stream, event)).fetchall()
        return Step(*found[0]) if found else None

    def commit_step(self, stream: int, before: str, step: Step, after: Position) -> bool:
        published = (step.number, step.event, step.output, step.hash)
        values = (stream, before, *published, after.state, after.tallied, after.seal)
        # A row for the view `moves` takes the step: its trigger compares the seal, adds the step
        # and replaces the stream's row, all in this one statement.
        try:
            self._execute(COMMIT_STEP, values)
        except sqlite3.IntegrityError:
            return False
        return True


class SQLiteSecretRows(SQLiteStreamRows, SecretRows):
    """The secret rows within one transaction of a connection."""

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__(db.execute)
        self._db = db

    # --- names of questions -----------------------------------------------------------------------

    def values(self) -> Mapping[str, bytes]:
        return dict(self._db.execute("SELECT name, value FROM about").fetchall())

    def add_value(self, name: str, value: bytes) -> None:
        self._db.execute("INSERT INTO about VALUES (?, ?)", (name, value))

    def of_key(self, account: str, key: str) -> NameRow | None:
        query = "SELECT key, tag, digest FROM requests WHERE account = ? AND key = ?"
        found = self._db.execute(query, (account, key)).fetchone()
        return None if found is None else NameRow(*found)

    def of_tag(self, account: str, tag: bytes) -> NameRow | None:
        query = "SELECT key, tag, digest FROM requests WHERE account = ? AND tag = ? AND derived"
        found = self._db.execute(query, (account, tag)).fetchone()
        return None if found is None else NameRow(*found)

    def keep(self, account: str, name: NameRow, *, derived: bool) -> None:
        values = (account, name.key, name.tag, name.digest, derived)
        self._db.execute("INSERT OR REPLACE INTO requests VALUES (?, ?, ?, ?, ?)", values)

    def replaced(self, sequence: int) -> str | None:
        query = "SELECT hash FROM replaced WHERE sequence = ?"
        found = self._db.execute(query, (sequence,)).fetchone()
        return None if found is None else str(found[0])

    def add_replaced(self, hashes: Iterable[tuple[int, str]]) -> None:
        self._db.executemany("INSERT INTO replaced VALUES (?, ?)", hashes)

    # --- streams ----------------------------------------------------------------------------------

    def stream(self, number: int) -> StreamRow | None:
        found = self._db.execute(f"{STREAMS} WHERE stream = ?", (number,)).fetchone()
        return None if found is None else _stream(found)

    def streams(self) -> list[StreamRow]:
        return [_stream(columns) for columns in self._db.execute(f"{STREAMS} ORDER BY stream")]

    def any_stream(self) -> bool:
        return self._db.execute("SELECT 1 FROM streams LIMIT 1").fetchone() is not None

    def add_stream(self, row: StreamRow) -> None:
        columns = (row.number, row.spec, row.secret, *row.at)
        self._db.execute("INSERT INTO streams VALUES (?, ?, ?, ?, ?, ?, ?, ?)", columns)

    def step(self, stream: int, number: int) -> Step | None:
        found = self._db.execute(f"{STEPS} AND step = ?", (stream, number)).fetchone()
        return None if found is None else Step(*found)

    def steps(self, stream: int, after: int = 0) -> list[Step]:
        found = self._db.execute(f"{STEPS} AND step > ? ORDER BY step", (stream, after))
        return [Step(*columns) for columns in found]

    def stepped(self) -> set[int]:
        return {number for (number,) in self._db.execute("SELECT DISTINCT stream FROM steps")}

    def count(self, stream: int, person_token: bytes) -> int:
        where = (stream, person_token)
        query = "SELECT rows FROM tallies WHERE stream = ? AND who = ?"
        found = self._db.execute(query, where).fetchone()
        if found is None:
            self._db.execute("INSERT INTO tallies VALUES (?, ?, 1)", where)
            return 1
        self._db.execute("UPDATE tallies SET rows = rows + 1 WHERE stream = ? AND who = ?", where)
        return int(found[0]) + 1

    def tallies(self) -> Mapping[int, int]:
        found = self._db.execute("SELECT stream, sum(rows) FROM tallies GROUP BY stream")
        return dict(found.fetchall())

    def damage(self) -> list[str]:
        return [*damage(self._db), *differences(self._db, SECRETS)]


def _stream(columns: tuple[int, bytes, bytes, int, bytes, int, str, str]) -> StreamRow:
    return StreamRow(*columns[:3], Position(*columns[3:]))
