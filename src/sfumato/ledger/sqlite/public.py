"""The public rows of a ledger in SQL; the tables are in ``book.sql``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from sfumato.ledger.entries import NOTHING, Account, Amount, Entry, Kind
from sfumato.ledger.sqlite.schema import BOOK, damage, differences
from sfumato.ledger.store import PublicRows, Tip

COLUMNS = (
    "sequence, account, kind, time, key, digest, cost_first, cost_second, note, payload_hash, "
    "spent_first, spent_second, until, holder, previous, hash"
)
Columns: TypeAlias = tuple[
    int, str, Kind, str, str, str, int, int, str, str, int, int, str, str, str, str,
]  # fmt: skip
INSERT = f"INSERT INTO entries ({COLUMNS}) VALUES ({', '.join('?' * 16)})"
TIP = """
    SELECT h.sequence, h.hash, coalesce(b.spent_first, 0), coalesce(b.spent_second, 0)
    FROM entries h
    LEFT JOIN entries b ON b.sequence = (SELECT max(sequence) FROM entries WHERE account = ?)
    ORDER BY h.sequence DESC LIMIT 1
"""
ACCOUNTS = """
    SELECT a.name, a.rule, a.total_first, a.total_second, e.spent_first, e.spent_second,
           coalesce(b.protects, ''), coalesce(b.data, '')
    FROM accounts a LEFT JOIN bindings b ON b.account = a.name
    JOIN entries e ON e.sequence = (SELECT max(sequence) FROM entries WHERE account = a.name)
"""


def columns_of(entry: Entry) -> Columns:
    """An entry as its columns."""
    return (
        entry.sequence,
        entry.account,
        entry.kind,
        entry.time,
        entry.key,
        entry.digest,
        *entry.cost,
        entry.note,
        entry.payload_hash,
        *entry.spent,
        entry.until,
        entry.holder,
        entry.previous,
        entry.hash,
    )


def entry_of(columns: Columns) -> Entry:
    """Columns as an entry, unchecked: an edited file may hold a text for a number."""
    # By position, which is fastest: `verify` and `log` call this for every entry of a ledger.
    c = columns
    cost = (c[6], c[7])
    spent = (c[10], c[11])
    return Entry(c[0], c[1], c[2], c[3], c[4], c[5], cost, c[8], c[9], spent, *c[12:])


def all_entries(db: sqlite3.Connection) -> list[Entry]:
    """All entries of a file, in order."""
    query = f"SELECT {COLUMNS} FROM entries ORDER BY sequence"
    return [entry_of(columns) for columns in db.execute(query).fetchall()]


class SQLitePublicRows(PublicRows):
    """The public rows within one transaction of a connection."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    # --- what a charge needs ----------------------------------------------------------------------

    def identity(self) -> str | None:
        found = self._db.execute("SELECT value FROM about WHERE name = 'identity'").fetchone()
        return None if found is None else str(found[0])

    def tip(self, account: str) -> Tip:
        found = self._db.execute(TIP, (account,)).fetchone()
        if found is None:
            return Tip(0, "", NOTHING)
        return Tip(found[0], found[1], (found[2], found[3]))

    def entry(self, sequence: int) -> Entry | None:
        query = f"SELECT {COLUMNS} FROM entries WHERE sequence = ?"
        found = self._db.execute(query, (sequence,)).fetchone()
        return None if found is None else entry_of(found)

    def entries(
        self,
        after: int = 0,
        account: str | None = None,
        most: int | None = None,
    ) -> Iterator[Entry]:
        chosen = "" if account is None else "AND account = :account"
        where = f"WHERE sequence > :after {chosen} ORDER BY sequence LIMIT :most"
        query = f"SELECT {COLUMNS} FROM entries {where}"
        values = {"after": after, "account": account, "most": -1 if most is None else most}
        return (entry_of(columns) for columns in self._db.execute(query, values))

    def of_key(self, account: str, key: str) -> list[Entry]:
        query = f"SELECT {COLUMNS} FROM entries WHERE account = ? AND key = ? ORDER BY sequence"
        return [entry_of(columns) for columns in self._db.execute(query, (account, key))]

    def has(self, account: str, key: str, kind: Kind) -> bool:
        query = "SELECT 1 FROM entries WHERE account = ? AND key = ? AND kind = ?"
        return self._db.execute(query, (account, key, kind)).fetchone() is not None

    def charged(self) -> bool:
        query = "SELECT 1 FROM entries WHERE kind = 'reserve' LIMIT 1"
        return self._db.execute(query).fetchone() is not None

    def account(self, name: str) -> Account | None:
        found = self._db.execute(f"{ACCOUNTS} WHERE a.name = ?", (name,)).fetchone()
        return None if found is None else _account(found)

    def accounts(self, data: str | None = None) -> list[Account]:
        chosen = "" if data is None else "WHERE b.data = :data"
        query = f"{ACCOUNTS} {chosen} ORDER BY a.rowid"
        return [_account(columns) for columns in self._db.execute(query, {"data": data})]

    def ceilings(self) -> Mapping[str, tuple[str, Amount]]:
        found = self._db.execute("SELECT data, rule, first, second FROM ceilings").fetchall()
        return {data: (rule, (first, second)) for data, rule, first, second in found}

    def answer(self, sequence: int) -> bytes | None:
        query = "SELECT payload FROM payloads WHERE sequence = ?"
        found = self._db.execute(query, (sequence,)).fetchone()
        return None if found is None else found[0]

    # --- what only an audit needs -----------------------------------------------------------------

    def totals(self) -> Mapping[str, tuple[str, Amount]]:
        return totals_of(self._db)

    def bindings(self) -> Mapping[str, tuple[str, str]]:
        found = self._db.execute("SELECT account, protects, data FROM bindings").fetchall()
        return {account: (protects, data) for account, protects, data in found}

    def answers(self) -> Iterator[tuple[int, bytes]]:
        yield from self._db.execute("SELECT sequence, payload FROM payloads")

    def highest(self) -> int:
        return highest_of(self._db)

    def damage(self, *, thorough: bool) -> list[str]:
        found = differences(self._db, BOOK)
        return [*damage(self._db), *found] if thorough else found

    # --- what is written --------------------------------------------------------------------------

    def set_identity(self, identity: str) -> None:
        self._db.execute("INSERT INTO about VALUES ('identity', ?)", (identity,))

    def add_account(self, name: str, rule: str, total: Amount) -> None:
        self._db.execute("INSERT INTO accounts VALUES (?, ?, ?, ?)", (name, rule, *total))

    def add_binding(self, account: str, protects: str, data: str) -> None:
        self._db.execute("INSERT INTO bindings VALUES (?, ?, ?)", (account, protects, data))

    def add_ceiling(self, data: str, rule: str, amount: Amount) -> None:
        self._db.execute("INSERT INTO ceilings VALUES (?, ?, ?, ?)", (data, rule, *amount))

    def add(self, entry: Entry) -> None:
        self._db.execute(INSERT, columns_of(entry))

    def add_answer(self, sequence: int, payload: bytes) -> None:
        query = "INSERT INTO payloads (sequence, payload) VALUES (?, ?)"
        self._db.execute(query, (sequence, payload))


def totals_of(db: sqlite3.Connection) -> Mapping[str, tuple[str, Amount]]:
    """The rule and total of each account of a file, in the order in which they were opened."""
    query = "SELECT name, rule, total_first, total_second FROM accounts ORDER BY rowid"
    return {name: (rule, (first, second)) for name, rule, first, second in db.execute(query)}


def highest_of(db: sqlite3.Connection) -> int:
    """The highest number that was ever given to an entry of a file."""
    found = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'entries'").fetchone()
    return found[0] if found else 0


def _account(columns: tuple[str, str, int, int, int, int, str, str]) -> Account:
    name, rule, total_first, total_second, spent_first, spent_second, protects, data = columns
    total = (total_first, total_second)
    spent = (spent_first, spent_second)
    return Account(name, rule, total, spent, protects, data)
