"""The public rows of a ledger in SQL, as SQLite and PostgreSQL both understand it.

A question mark stands for a value. Each database has its tables in a ``book.sql`` of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import ClassVar, TypeAlias, cast

from sfumato.ledger.chain import ceiling_of
from sfumato.ledger.entries import NOTHING, Account, Amount, Entry, Kind, Spender
from sfumato.ledger.store import PublicRows, Tip

Row: TypeAlias = tuple[object, ...]
Ask: TypeAlias = Callable[[str, tuple[object, ...]], Iterable[Row]]
"""Runs one statement with the values of its question marks, and gives the rows that it finds."""

COLUMNS = (
    "sequence, account, kind, time, key, digest, cost_first, cost_second, note, payload_hash, "
    "spent_first, spent_second, until, holder, previous, hash"
)
Columns: TypeAlias = tuple[
    int, str, Kind, str, str, str, int, int, str, str, int, int, str, str, str, str,
]  # fmt: skip
SPENDER_COLUMNS = "spender, own_first, own_second"
SpenderColumns: TypeAlias = tuple[str, int, int]
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
NOBODY: SpenderColumns = ("", 0, 0)
ALL = 2**62
"""More rows than a table can have."""


SPENDER = """
    SELECT c.note, a.rule, o.own_first, o.own_second
    FROM entries c JOIN accounts a ON a.name = c.account
    JOIN entries o ON o.sequence = (SELECT max(sequence) FROM entries
      WHERE account = c.account AND spender = c.spender AND spender <> '')
    WHERE c.sequence = (SELECT max(sequence) FROM entries
      WHERE account = ? AND spender = ? AND spender <> '' AND kind = 'cap')
"""
SPENDERS = """
    SELECT spender FROM entries WHERE account = ? AND kind = 'cap' AND spender <> ''
    GROUP BY spender ORDER BY min(sequence)
"""
HAS_SPENDERS = """
    SELECT 1 FROM entries WHERE account = ? AND kind = 'cap' AND spender <> '' LIMIT 1
"""


def columns_of(entry: Entry) -> Columns:
    """An entry as its columns, but those of its spender."""
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


def entry_of(columns: Row) -> Entry:
    """Columns as an entry, unchecked: an edited file may hold a text for a number."""
    # By position, which is fastest: `verify` and `log` call this for every entry of a ledger.
    c = cast("Columns", columns)
    cost = (c[6], c[7])
    spent = (c[10], c[11])
    entry = Entry(c[0], c[1], c[2], c[3], c[4], c[5], cost, c[8], c[9], spent, *c[12:16])
    spender = cast("SpenderColumns | tuple[()]", columns[16:])
    if not spender or spender == NOBODY:
        return entry
    return replace(entry, spender=spender[0], own=spender[1:])


class SQLRows:
    """Rows of either part, which are asked for in SQL."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def _one(self, query: str, *values: object) -> Row | None:
        """The only row that a query finds, or the first."""
        # To its end: a statement that is not would keep an older view of the rows open.
        found = list(self._ask(query, values))
        return found[0] if found else None


class SQLPublicRows(SQLRows, PublicRows):
    """The public rows within one transaction of a connection.

    A subclass says in ``place`` which column numbers accounts in the order of their opening, and in
    ``with_spenders`` whether its table of entries has the columns of spenders.
    """

    place: ClassVar[str]
    with_spenders: bool

    @property
    def _columns(self) -> str:
        return f"{COLUMNS}, {SPENDER_COLUMNS}" if self.with_spenders else COLUMNS

    # --- what a charge needs ----------------------------------------------------------------------

    def identity(self) -> str | None:
        found = self._one("SELECT value FROM about WHERE name = 'identity'")
        return None if found is None else str(found[0])

    def tip(self, account: str) -> Tip:
        found = self._one(TIP, account)
        if found is None:
            return Tip(0, "", NOTHING)
        sequence, digest, first, second = cast("tuple[int, str, int, int]", found)
        return Tip(sequence, digest, (first, second))

    def entry(self, sequence: int) -> Entry | None:
        found = self._one(f"SELECT {self._columns} FROM entries WHERE sequence = ?", sequence)
        return None if found is None else entry_of(found)

    def entries(
        self,
        after: int = 0,
        account: str | None = None,
        most: int | None = None,
    ) -> Iterator[Entry]:
        chosen, of_account = ("", ()) if account is None else ("AND account = ?", (account,))
        where = f"WHERE sequence > ? {chosen} ORDER BY sequence LIMIT ?"
        query = f"SELECT {self._columns} FROM entries {where}"
        values = (after, *of_account, ALL if most is None else most)
        return map(entry_of, self._ask(query, values))

    def of_key(self, account: str, key: str) -> list[Entry]:
        # Ordered by an expression, which no index gives. While a ledger is small, PostgreSQL would
        # otherwise keep a plan that reads all entries of the account, in order, for every key.
        where = "WHERE account = ? AND key = ? ORDER BY sequence + 0"
        found = self._ask(f"SELECT {self._columns} FROM entries {where}", (account, key))
        return [entry_of(columns) for columns in found]

    def has(self, account: str, key: str, kind: Kind) -> bool:
        query = "SELECT 1 FROM entries WHERE account = ? AND key = ? AND kind = ? LIMIT 1"
        return self._one(query, account, key, kind) is not None

    def charged(self) -> bool:
        return self._one("SELECT 1 FROM entries WHERE kind = 'reserve' LIMIT 1") is not None

    def account(self, name: str) -> Account | None:
        found = self._one(f"{ACCOUNTS} WHERE a.name = ?", name)
        return None if found is None else _account(found)

    def accounts(self, data: str | None = None) -> list[Account]:
        chosen, values = ("", ()) if data is None else ("WHERE b.data = ?", (data,))
        query = f"{ACCOUNTS} {chosen} ORDER BY a.{self.place}"
        return [_account(columns) for columns in self._ask(query, values)]

    def ceilings(self) -> Mapping[str, tuple[str, Amount]]:
        query = "SELECT data, rule, first, second FROM ceilings"
        found = cast("Iterable[tuple[str, str, int, int]]", self._ask(query, ()))
        return {data: (rule, (first, second)) for data, rule, first, second in found}

    def has_spenders(self, account: str) -> bool:
        return self.with_spenders and self._one(HAS_SPENDERS, account) is not None

    def spender(self, account: str, name: str) -> Spender | None:
        found = self._one(SPENDER, account, name) if self.with_spenders else None
        if found is None:
            return None
        note, rule, first, second = cast("tuple[str, str, int, int]", found)
        return Spender(account, name, rule, ceiling_of(note), (first, second))

    def spenders(self, account: str) -> list[Spender]:
        names = self._ask(SPENDERS, (account,)) if self.with_spenders else ()
        found = [self.spender(account, str(name)) for (name,) in list(names)]
        return [one for one in found if one is not None]

    def answer(self, sequence: int) -> bytes | None:
        found = self._one("SELECT payload FROM payloads WHERE sequence = ?", sequence)
        return None if found is None else cast("bytes", found[0])

    # --- what only an audit needs -----------------------------------------------------------------

    def totals(self) -> Mapping[str, tuple[str, Amount]]:
        query = f"SELECT name, rule, total_first, total_second FROM accounts ORDER BY {self.place}"
        found = cast("Iterable[tuple[str, str, int, int]]", self._ask(query, ()))
        return {name: (rule, (first, second)) for name, rule, first, second in found}

    def bindings(self) -> Mapping[str, tuple[str, str]]:
        query = "SELECT account, protects, data FROM bindings"
        found = cast("Iterable[tuple[str, str, str]]", self._ask(query, ()))
        return {account: (protects, data) for account, protects, data in found}

    def answers(self) -> Iterator[tuple[int, bytes]]:
        query = "SELECT sequence, payload FROM payloads"
        yield from cast("Iterable[tuple[int, bytes]]", self._ask(query, ()))

    # --- what is written --------------------------------------------------------------------------

    def set_identity(self, identity: str) -> None:
        self._ask("INSERT INTO about (name, value) VALUES ('identity', ?)", (identity,))

    def add_account(self, name: str, rule: str, total: Amount) -> None:
        query = "INSERT INTO accounts (name, rule, total_first, total_second) VALUES (?, ?, ?, ?)"
        self._ask(query, (name, rule, *total))

    def add_binding(self, account: str, protects: str, data: str) -> None:
        query = "INSERT INTO bindings (account, protects, data) VALUES (?, ?, ?)"
        self._ask(query, (account, protects, data))

    def add_ceiling(self, data: str, rule: str, amount: Amount) -> None:
        query = "INSERT INTO ceilings (data, rule, first, second) VALUES (?, ?, ?, ?)"
        self._ask(query, (data, rule, *amount))

    def add(self, entry: Entry) -> None:
        values: Row = columns_of(entry)
        if self.with_spenders:
            values = (*values, entry.spender, *entry.own)
        marks = ", ".join("?" * len(values))
        self._ask(f"INSERT INTO entries ({self._columns}) VALUES ({marks})", values)

    def add_answer(self, sequence: int, payload: bytes) -> None:
        self._ask("INSERT INTO payloads (sequence, payload) VALUES (?, ?)", (sequence, payload))


def _account(columns: Row) -> Account:
    name, rule, total_first, total_second, spent_first, spent_second, protects, data = cast(
        "tuple[str, str, int, int, int, int, str, str]", columns
    )
    total = (total_first, total_second)
    spent = (spent_first, spent_second)
    return Account(name, rule, total, spent, protects, data)
