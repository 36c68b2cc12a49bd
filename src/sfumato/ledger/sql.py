"""The public and the secret rows of a ledger in SQL, as SQLite and PostgreSQL both understand it.

A question mark stands for a value. Each database has its tables in a ``book.sql`` and a
``secrets.sql`` of its own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import ClassVar, TypeAlias, cast

from sfumato.ledger.entries import (
    NOTHING,
    WIDENED,
    Account,
    Amount,
    Entry,
    Kind,
    MaybeCurve,
    Spender,
    Step,
    StoredCurve,
    ceiling_of,
    curve_of,
    terms_in,
)
from sfumato.ledger.store import (
    NameRow,
    NameRows,
    Position,
    PublicRows,
    SecretRows,
    StreamRow,
    T,
    Tip,
)
from sfumato.privacy.composition import curves_of

# --- public rows ----------------------------------------------------------------------------------

Row: TypeAlias = tuple[object, ...]

# Runs one statement with the values of its question marks, and gives the rows that it finds.
Ask: TypeAlias = Callable[[str, tuple[object, ...]], Iterable[Row]]

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
# With the terms of its curves, whether it was widened, and the curve of its last event.
ACCOUNTS_BY_CURVES = f"""
    SELECT a.name, a.rule, a.total_first, a.total_second, e.spent_first, e.spent_second,
           coalesce(b.protects, ''), coalesce(b.data, ''), a.terms, w.sequence, c.curve
    FROM accounts a LEFT JOIN bindings b ON b.account = a.name
    JOIN entries e ON e.sequence = (SELECT max(sequence) FROM entries WHERE account = a.name)
    LEFT JOIN entries w ON w.account = a.name AND w.key = '{WIDENED}' AND w.kind = 'open'
    LEFT JOIN entries c ON c.sequence =
      (SELECT max(sequence) FROM entries WHERE account = a.name AND event <> '')
"""

# More rows than a table can have.
ALL = 2**62


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
OWN_CURVE = """
    SELECT own_curve FROM entries
    WHERE account = ? AND spender = ? AND spender <> '' AND event <> ''
    ORDER BY sequence DESC LIMIT 1
"""
DATA_CURVE = """
    SELECT e.data_curve FROM entries e JOIN bindings b ON b.account = e.account
    WHERE b.data = ? AND e.event <> '' ORDER BY e.sequence DESC LIMIT 1
"""


def columns_of(entry: Entry) -> Columns:
    """An entry as its columns, but those of its spender and its event."""
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
    spender = cast("SpenderColumns | tuple[()]", columns[16:19])
    if spender and spender != ("", 0, 0):
        entry = replace(entry, spender=spender[0], own=spender[1:])
    event = cast("tuple[str, StoredCurve, StoredCurve, StoredCurve] | tuple[()]", columns[19:])
    if event and event[0]:
        entry = replace(
            entry,
            event=event[0],
            curve=curve_of(event[1]),
            own_curve=curve_of(event[2]),
            data_curve=curve_of(event[3]),
        )
    return entry


class SQLRows:
    """Rows of either part, which are asked for in SQL."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def _one(self, query: str, *values: object) -> Row | None:
        """The only row that a query finds, or the first."""
        # To its end: a statement that is not would keep an older view of the rows open.
        rows = list(self._ask(query, values))
        return rows[0] if rows else None

    def _made(self, make: Callable[[Row], T], query: str, *values: object) -> T | None:
        row = self._one(query, *values)
        return None if row is None else make(row)


def _bytes(row: Row) -> bytes:
    return cast("bytes", row[0])


class SQLPublicRows(SQLRows, PublicRows):
    """The public rows within one transaction of a connection.

    A subclass says in ``place`` which column numbers accounts in the order of their opening; in
    ``with_spenders`` whether its table of entries has the columns of spenders. With curves there
    are those of spenders as well.
    """

    place: ClassVar[str]
    with_spenders: bool

    @staticmethod
    @abstractmethod
    def stored(curve: MaybeCurve) -> StoredCurve:
        """A curve as the database keeps it."""

    @property
    def _columns(self) -> str:
        if self.with_curves:
            return f"{COLUMNS}, {SPENDER_COLUMNS}, event, curve, own_curve, data_curve"
        return f"{COLUMNS}, {SPENDER_COLUMNS}" if self.with_spenders else COLUMNS

    def columns(self, entry: Entry) -> Row:
        """An entry as all its columns in this ledger."""
        values: Row = columns_of(entry)
        if self.with_spenders:
            values = (*values, entry.spender, *entry.own)
        if self.with_curves:
            curves = (entry.curve, entry.own_curve, entry.data_curve)
            values = (*values, entry.event, *map(self.stored, curves))
        return values

    # --- what a charge needs ----------------------------------------------------------------------

    def identity(self) -> str | None:
        row = self._one("SELECT value FROM about WHERE name = 'identity'")
        return None if row is None else str(row[0])

    def tip(self, account: str) -> Tip:
        row = self._one(TIP, account)
        if row is None:
            return Tip(0, "", NOTHING)
        sequence, digest, first, second = cast("tuple[int, str, int, int]", row)
        return Tip(sequence, digest, (first, second))

    def entry(self, sequence: int) -> Entry | None:
        return self._made(
            entry_of, f"SELECT {self._columns} FROM entries WHERE sequence = ?", sequence
        )

    def entries(
        self,
        after: int = 0,
        account: str | None = None,
        most: int | None = None,
    ) -> Iterator[Entry]:
        chosen, of_account = ("", ()) if account is None else ("AND account = ?", (account,))
        query = (
            f"SELECT {self._columns} FROM entries "
            f"WHERE sequence > ? {chosen} ORDER BY sequence LIMIT ?"
        )
        values = (after, *of_account, ALL if most is None else most)
        return map(entry_of, self._ask(query, values))

    def of_key(self, account: str, key: str) -> list[Entry]:
        # Ordered by an expression, which no index gives. While a ledger is small, PostgreSQL would
        # otherwise keep a plan that reads all entries of the account, in order, for every key.
        where = "WHERE account = ? AND key = ? ORDER BY sequence + 0"
        rows = self._ask(f"SELECT {self._columns} FROM entries {where}", (account, key))
        return [entry_of(columns) for columns in rows]

    def has(self, account: str, key: str, kind: Kind) -> bool:
        return (
            self._one(
                "SELECT 1 FROM entries WHERE account = ? AND key = ? AND kind = ? LIMIT 1",
                account,
                key,
                kind,
            )
            is not None
        )

    def charged(self) -> bool:
        return self._one("SELECT 1 FROM entries WHERE kind = 'reserve' LIMIT 1") is not None

    def account(self, name: str) -> Account | None:
        return self._made(_account, f"{self._accounts} WHERE a.name = ?", name)

    @property
    def _accounts(self) -> str:
        return ACCOUNTS_BY_CURVES if self.with_curves else ACCOUNTS

    def accounts(self, data: str | None = None) -> list[Account]:
        chosen, values = ("", ()) if data is None else ("WHERE b.data = ?", (data,))
        query = f"{self._accounts} {chosen} ORDER BY a.{self.place}"
        return [_account(columns) for columns in self._ask(query, values)]

    def ceilings(self) -> Mapping[str, tuple[str, Amount]]:
        rows = cast(
            "Iterable[tuple[str, str, int, int]]",
            self._ask("SELECT data, rule, first, second FROM ceilings", ()),
        )
        return {data: (rule, (first, second)) for data, rule, first, second in rows}

    def has_spenders(self, account: str) -> bool:
        return self.with_spenders and self._one(HAS_SPENDERS, account) is not None

    def spender(self, account: str, name: str) -> Spender | None:
        row = self._one(SPENDER, account, name) if self.with_spenders else None
        if row is None:
            return None
        note, rule, first, second = cast("tuple[str, str, int, int]", row)
        spender = Spender(account, name, rule, ceiling_of(note), (first, second))
        terms = terms_in(note) if self.with_curves else ""
        # A ceiling that was set to nothing has no terms, and may be put back beside its curve.
        if not self.with_curves or (not terms and any(spender.ceiling)):
            return spender
        last = self._one(OWN_CURVE, account, name)
        curve = curve_of(cast("StoredCurve", last[0])) if last else ()
        return replace(spender, rule="approx" if terms else rule, terms=terms, curve=curve)

    def data_curve(self, data: str) -> MaybeCurve:
        row = self._one(DATA_CURVE, data) if self.with_curves else None
        return () if row is None else curve_of(cast("StoredCurve", row[0]))

    def spenders(self, account: str) -> list[Spender]:
        names = self._ask(SPENDERS, (account,)) if self.with_spenders else ()
        spenders = [self.spender(account, str(name)) for (name,) in list(names)]
        return [spender for spender in spenders if spender is not None]

    def answer(self, sequence: int) -> bytes | None:
        return self._made(_bytes, "SELECT payload FROM payloads WHERE sequence = ?", sequence)

    # --- what only an audit needs -----------------------------------------------------------------

    def totals(self) -> Mapping[str, tuple[str, Amount]]:
        rows = cast(
            "Iterable[tuple[str, str, int, int]]",
            self._ask(
                f"SELECT name, rule, total_first, total_second FROM accounts ORDER BY {self.place}",
                (),
            ),
        )
        return {name: (rule, (first, second)) for name, rule, first, second in rows}

    def bindings(self) -> Mapping[str, tuple[str, str]]:
        rows = cast(
            "Iterable[tuple[str, str, str]]",
            self._ask("SELECT account, protects, data FROM bindings", ()),
        )
        return {account: (protects, data) for account, protects, data in rows}

    def answers(self) -> Iterator[tuple[int, bytes]]:
        yield from cast(
            "Iterable[tuple[int, bytes]]", self._ask("SELECT sequence, payload FROM payloads", ())
        )

    def terms(self) -> Mapping[str, str]:
        return self._terms("SELECT name, terms FROM accounts WHERE terms <> ''")

    def ceiling_terms(self) -> Mapping[str, str]:
        return self._terms("SELECT data, terms FROM ceilings WHERE terms <> ''")

    def _terms(self, query: str) -> Mapping[str, str]:
        rows = self._ask(query, ()) if self.with_curves else ()
        return dict(cast("Iterable[tuple[str, str]]", rows))

    # --- what is written --------------------------------------------------------------------------

    def set_identity(self, identity: str) -> None:
        self._ask("INSERT INTO about (name, value) VALUES ('identity', ?)", (identity,))

    def add_account(self, name: str, rule: str, total: Amount, terms: str = "") -> None:
        self._insert("accounts", "name, rule, total_first, total_second", name, rule, *total, terms)

    def _insert(self, table: str, columns: str, *values: object) -> None:
        """Add a row whose last value is its terms, which only a ledger with curves keeps."""
        if values[-1] and not self.with_curves:
            self.extend()
        if self.with_curves:
            columns = f"{columns}, terms"
        else:
            values = values[:-1]
        marks = ", ".join("?" * len(values))
        self._ask(f"INSERT INTO {table} ({columns}) VALUES ({marks})", values)

    def add_binding(self, account: str, protects: str, data: str) -> None:
        self._ask(
            "INSERT INTO bindings (account, protects, data) VALUES (?, ?, ?)",
            (account, protects, data),
        )

    def add_ceiling(self, data: str, rule: str, amount: Amount, terms: str = "") -> None:
        self._insert("ceilings", "data, rule, first, second", data, rule, *amount, terms)

    def add(self, entry: Entry) -> None:
        values = self.columns(entry)
        marks = ", ".join("?" * len(values))
        self._ask(f"INSERT INTO entries ({self._columns}) VALUES ({marks})", values)

    def add_answer(self, sequence: int, payload: bytes) -> None:
        self._ask("INSERT INTO payloads (sequence, payload) VALUES (?, ?)", (sequence, payload))


def _account(columns: Row) -> Account:
    name, rule, total_first, total_second, spent_first, spent_second, protects, data = cast(
        "tuple[str, str, int, int, int, int, str, str]", columns[:8]
    )
    total = (total_first, total_second)
    account = Account(name, rule, total, (spent_first, spent_second), protects, data)
    if len(columns) == 8 or not columns[8]:
        return account
    terms, widened, last = cast("tuple[str, int | None, StoredCurve]", columns[8:])
    if widened is not None:
        account = replace(account, rule="approx", total=curves_of(terms).total)
    return replace(account, terms=terms, curve=curve_of(last))


# --- secret rows ----------------------------------------------------------------------------------


STREAMS = "SELECT stream, spec, secret, step, state, tallied, head, seal FROM streams"
STEPS = "SELECT step, event, output, hash FROM steps WHERE stream = ?"
VALUE = "SELECT value FROM {}about WHERE name = ?"
NAMES = "SELECT key, tag, digest, place FROM {}requests WHERE account = ?"

SEED = "SELECT seed FROM {}seeds WHERE account = ? AND key = ?"
KEEP = """
    INSERT INTO {}requests (account, key, tag, digest, place, derived) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (account, key) DO UPDATE SET tag = excluded.tag, digest = excluded.digest,
      place = excluded.place, derived = excluded.derived
"""


class SQLNameRows(SQLRows, NameRows):
    """The names of questions within one transaction of a connection.

    Attributes
    ----------
    schema : str
        What precedes the names of the secret tables: a schema and a dot, or nothing.
    wipe : str
        The statement that wipes a seed.
    """

    schema = ""
    wipe: ClassVar[str] = "DELETE FROM {}seeds WHERE account = ? AND key = ?"

    def value(self, name: str) -> bytes | None:
        rows = [*self._ask(VALUE.format(self.schema), (name,))]
        return cast("bytes", rows[0][0]) if rows else None

    def of_key(self, account: str, key: str) -> NameRow | None:
        rows = [*self._ask(f"{NAMES.format(self.schema)} AND key = ?", (account, key))]
        return NameRow._make(rows[0]) if rows else None

    def of_tag(self, account: str, tag: bytes) -> NameRow | None:
        query = f"{NAMES.format(self.schema)} AND tag = ? AND derived"
        rows = [*self._ask(query, (account, tag))]
        return NameRow._make(rows[0]) if rows else None

    def keep(self, account: str, name: NameRow, *, derived: bool) -> None:
        if derived:
            self._ask(
                f"DELETE FROM {self.schema}requests "
                "WHERE account = ? AND tag = ? AND derived AND key <> ?",
                (account, name.tag, name.key),
            )
        self._ask(KEEP.format(self.schema), (account, *name, derived))

    def keys_of_place(self, account: str, place: bytes) -> list[str]:
        query = (
            f"SELECT key FROM {self.schema}requests WHERE account = ? AND place = ? ORDER BY key"
        )
        return list(map(itemgetter(0), self._ask(query, (account, place))))

    def seed(self, account: str, key: str) -> bytes | None:
        return self._made(_bytes, SEED.format(self.schema), account, key)

    def keep_seed(self, account: str, key: str, seed: bytes) -> None:
        self._ask(
            f"INSERT INTO {self.schema}seeds (account, key, seed) VALUES (?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            (account, key, seed),
        )

    def wipe_seed(self, account: str, key: str) -> None:
        self._ask(self.wipe.format(self.schema), (account, key))


class SQLSecretRows(SQLNameRows, SecretRows):
    """The secret rows within one transaction of a connection."""

    # --- names of questions -----------------------------------------------------------------------

    def values(self) -> Mapping[str, bytes]:
        return dict(
            cast("Iterable[tuple[str, bytes]]", self._ask("SELECT name, value FROM about", ()))
        )

    def add_value(self, name: str, value: bytes) -> None:
        self._ask("INSERT INTO about (name, value) VALUES (?, ?)", (name, value))

    def names(self) -> list[tuple[str, NameRow, bool]]:
        rows = self._ask(
            "SELECT account, derived, key, tag, digest, place FROM requests ORDER BY account, key",
            (),
        )
        return [
            (str(account), NameRow._make(name), bool(derived)) for account, derived, *name in rows
        ]

    def seeds(self) -> Mapping[tuple[str, str], bytes]:
        rows = cast(
            "Iterable[tuple[str, str, bytes]]",
            self._ask("SELECT account, key, seed FROM seeds ORDER BY account, key", ()),
        )
        return {(account, key): seed for account, key, seed in rows}

    def replaced(self, sequence: int) -> str | None:
        row = self._one("SELECT hash FROM replaced WHERE sequence = ?", sequence)
        return None if row is None else str(row[0])

    def add_replaced(self, hashes: Iterable[tuple[int, str]]) -> None:
        for sequence, digest in hashes:
            self._ask("INSERT INTO replaced (sequence, hash) VALUES (?, ?)", (sequence, digest))

    def all_replaced(self) -> Mapping[int, str]:
        return dict(
            cast("Iterable[tuple[int, str]]", self._ask("SELECT sequence, hash FROM replaced", ()))
        )

    # --- streams ----------------------------------------------------------------------------------

    def stream(self, number: int) -> StreamRow | None:
        return self._made(_stream, f"{STREAMS} WHERE stream = ?", number)

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

    def position(self, stream: int) -> Position | None:
        return self._made(
            Position._make,
            "SELECT step, state, tallied, head, seal FROM streams WHERE stream = ?",
            stream,
        )

    def step_of(self, stream: int, event: str) -> Step | None:
        return self._made(Step._make, f"{STEPS} AND event = ? AND event <> ''", stream, event)

    def step(self, stream: int, number: int) -> Step | None:
        return self._made(Step._make, f"{STEPS} AND step = ?", stream, number)

    def steps(self, stream: int, after: int = 0) -> list[Step]:
        rows = self._ask(f"{STEPS} AND step > ? ORDER BY step", (stream, after))
        return list(map(Step._make, rows))

    def stepped(self) -> set[int]:
        rows = cast("Iterable[tuple[int]]", self._ask("SELECT DISTINCT stream FROM steps", ()))
        return {number for (number,) in rows}

    def count(self, stream: int, person_token: bytes) -> int:
        where = (stream, person_token)
        row = self._one("SELECT rows FROM tallies WHERE stream = ? AND who = ?", *where)
        if row is None:
            self._ask("INSERT INTO tallies (stream, who, rows) VALUES (?, ?, 1)", where)
            return 1
        self._ask("UPDATE tallies SET rows = rows + 1 WHERE stream = ? AND who = ?", where)
        return cast("int", row[0]) + 1

    def counted(self, stream: int) -> Mapping[bytes, int]:
        return dict(
            cast(
                "Iterable[tuple[bytes, int]]",
                self._ask("SELECT who, rows FROM tallies WHERE stream = ?", (stream,)),
            )
        )

    def tallies(self) -> Mapping[int, int]:
        sums = cast(
            "Iterable[tuple[int, int]]",
            self._ask("SELECT stream, sum(rows) FROM tallies GROUP BY stream", ()),
        )
        return {stream: int(rows) for stream, rows in sums}


def _stream(columns: Row) -> StreamRow:
    number, spec, secret, *at = cast("tuple[int, bytes, bytes, int, bytes, int, str, str]", columns)
    return StreamRow(number, spec, secret, Position._make(at))
