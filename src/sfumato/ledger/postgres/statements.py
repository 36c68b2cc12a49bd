"""Sending the statements of a transaction, as few times as possible.

A statement that finds nothing, such as an insert, waits until the next one that does, or until the
transaction is committed; they are then sent together. Each time that is sent costs a round trip
while others wait for their turn. If one fails, those after it are not carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from sfumato.ledger.sql_public import Ask, Row

if TYPE_CHECKING:
    import psycopg
    from psycopg.abc import QueryNoTemplate

    Connection: TypeAlias = psycopg.Connection[Row]

FINDS = "SELECT"
WRITES = ("INSERT INTO", "DELETE FROM")
"""How a statement begins whose next word is the only table that it changes of those looked at."""


class Statements:
    """The statements of one transaction of a connection; an `Ask`.

    Parameters
    ----------
    db : psycopg.Connection
    opening : sequence of str
        What begins the transaction, sent with its first statement that finds something.
    begun : callable or None
        Given the row that the last statement of the opening finds.
    """

    def __init__(
        self,
        db: Connection,
        opening: Sequence[str] = (),
        begun: Callable[[Row], None] | None = None,
    ) -> None:
        self._db = db
        self._opening = opening
        self._begun = begun
        self._waiting: list[tuple[QueryNoTemplate, tuple[object, ...]]] = []
        self._foreseen: list[tuple[str, tuple[object, ...], list[Row]]] = []

    def __call__(self, query: str, values: tuple[object, ...]) -> Iterable[Row]:
        """Run a statement with the values of its question marks: the rows that it finds."""
        if query.lstrip().startswith(FINDS):
            for known, of, found in self._foreseen:
                if known == query and of == values:
                    return found
            (cursor,) = self._send([(marked(query), values)])
            return cursor.fetchall()
        self._forget(query)
        self._waiting.append((marked(query), values))
        return ()

    def foresee(self, asked: Sequence[tuple[str, tuple[object, ...]]]) -> None:
        """Ask together what will be asked one by one, unless it is written to before.

        Nobody else writes meanwhile: the transaction has its turn.
        """
        cursors = self._send([(marked(query), values) for query, values in asked])
        self._foreseen += [
            (query, values, cursor.fetchall())
            for (query, values), cursor in zip(asked, cursors, strict=True)
        ]

    def _forget(self, query: str) -> None:
        """Drop what was foreseen of a table that is written to; in doubt, everything."""
        first, second, table, *_ = (*query.split(maxsplit=3), "", "", "")
        if f"{first} {second}" not in WRITES:
            self._foreseen = []
        self._foreseen = [each for each in self._foreseen if table not in each[0]]

    def commit(self) -> None:
        """Carry out what waits, and commit."""
        if self._opening:
            # Its row is needed before the commit: it tells how to ask what became of that.
            self._send([])
        self._send([("COMMIT", ())])

    def _send(
        self, queries: Sequence[tuple[QueryNoTemplate, tuple[object, ...]]]
    ) -> list[psycopg.Cursor[Row]]:
        """Send the opening, what waits and some queries: the cursors of these."""
        opening, self._opening = self._opening, ()
        waiting, self._waiting = self._waiting, []
        first = [(plain(query), ()) for query in opening]
        everything = [*first, *waiting, *queries]
        if len(everything) == 1:
            return [self._db.execute(*everything[0])]
        with self._db.pipeline():
            cursors = [self._db.execute(*each) for each in everything]
        if opening and self._begun is not None:
            (row,) = cursors[len(opening) - 1].fetchall()
            self._begun(row)
        return cursors[len(first) + len(waiting) :]


def noted(asked: list[tuple[str, tuple[object, ...]]]) -> Ask:
    """Notes each statement, and finds nothing."""

    def ask(query: str, values: tuple[object, ...]) -> Iterable[Row]:
        asked.append((query, values))
        return ()

    return ask


def marked(query: str) -> QueryNoTemplate:
    """A query that this library wrote, with its question marks as the driver wants them."""
    return query.replace("%", "%%").replace("?", "%s").encode()


def asking(db: Connection) -> Ask:
    """Runs each statement at once."""

    def ask(query: str, values: tuple[object, ...]) -> Iterable[Row]:
        cursor = db.execute(marked(query), values)
        return cursor.fetchall() if cursor.description else ()

    return ask


def plain(query: str) -> QueryNoTemplate:
    """A query that this library wrote: no text of a user is part of it."""
    return query.encode()


def quoted(query: str, name: str) -> QueryNoTemplate:
    """A query with the name of a schema in it."""
    escaped = name.replace('"', '""')
    return plain(query.format(f'"{escaped}"'))
