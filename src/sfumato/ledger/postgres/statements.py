"""Sending the statements of a transaction, as few times as possible.

A statement that finds nothing, such as an insert, waits until the next one that does, or until the
transaction is committed; they are then sent together. Each time that is sent costs a round trip
while others wait for their turn. If one fails, those after it are not carried out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from sfumato.ledger.sql_public import Ask, Row

if TYPE_CHECKING:
    import psycopg
    from psycopg.abc import QueryNoTemplate

    Connection: TypeAlias = psycopg.Connection[Row]

FINDS = "SELECT"


class Statements:
    """The statements of one transaction of a connection."""

    def __init__(self, db: Connection) -> None:
        self._db = db
        self._waiting: list[tuple[QueryNoTemplate, tuple[object, ...]]] = []

    def ask(self, query: str, values: tuple[object, ...]) -> Iterable[Row]:
        """Run a statement with the values of its question marks: the rows that it finds."""
        text = marked(query)
        if query.lstrip().startswith(FINDS):
            return self._send(text, values).fetchall()
        self._waiting.append((text, values))
        return ()

    def commit(self) -> None:
        """Carry out what waits, and commit."""
        self._send("COMMIT", ())

    def _send(self, query: QueryNoTemplate, values: tuple[object, ...]) -> psycopg.Cursor[Row]:
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return self._db.execute(query, values)
        with self._db.pipeline():
            for earlier in waiting:
                self._db.execute(*earlier)
            return self._db.execute(query, values)


def marked(query: str) -> QueryNoTemplate:
    """A query that this library wrote, with its question marks as the driver wants them."""
    return query.replace("%", "%%").replace("?", "%s").encode()


def asking(db: Connection) -> Ask:
    """Runs each statement at once."""

    def ask(query: str, values: tuple[object, ...]) -> Iterable[Row]:
        cursor = db.execute(marked(query), values)
        return cursor.fetchall() if cursor.description else ()

    return ask


def last(db: Connection, queries: str) -> Row:
    """The only row of the last of several queries."""
    cursor = db.execute(plain(queries))
    while cursor.nextset():
        pass
    found = cursor.fetchone()
    assert found is not None
    return found


def plain(query: str) -> QueryNoTemplate:
    """A query that this library wrote: no text of a user is part of it."""
    return query.encode()


def quoted(query: str, name: str) -> QueryNoTemplate:
    """A query with the name of a schema in it."""
    escaped = name.replace('"', '""')
    return plain(query.format(f'"{escaped}"'))
