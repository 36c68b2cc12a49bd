"""The few statements of a ledger, each inside a transaction of its caller."""

from __future__ import annotations

import secrets
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime

from sfumato.errors import nearest
from sfumato.ledger.chain import COLUMNS, binding, capping, entry_of, link, opening, row
from sfumato.ledger.ledger import NOTHING, Account, Amount, Entry, Kind

INSERT = f"INSERT INTO entries ({COLUMNS}) VALUES ({', '.join('?' * 16)})"
HEAD = """
    SELECT h.sequence, h.hash, coalesce(b.spent_first, 0), coalesce(b.spent_second, 0) FROM entries h
    LEFT JOIN entries b ON b.sequence = (SELECT max(sequence) FROM entries WHERE account = ?) ORDER BY h.sequence DESC LIMIT 1
"""
OF_KEY = f"SELECT {COLUMNS} FROM entries WHERE account = ? AND key = ? ORDER BY sequence"
ACCOUNTS = """
    SELECT a.name, a.rule, a.total_first, a.total_second, e.spent_first, e.spent_second,
           coalesce(b.protects, ''), coalesce(b.data, '')
    FROM accounts a LEFT JOIN bindings b ON b.account = a.name
    JOIN entries e ON e.sequence = (SELECT max(sequence) FROM entries WHERE account = a.name)
"""
ANSWER = f"SELECT {COLUMNS}, (SELECT payload FROM payloads p WHERE p.sequence = e.sequence) FROM entries e"


def now() -> str:
    """The time of the system's clock in UTC; texts of this form sort as times do."""
    return stamp(datetime.now(UTC))


def stamp(time: datetime) -> str:
    """A time as it is entered."""
    return time.isoformat(timespec="microseconds")


@dataclass(frozen=True, slots=True)
class Draft:
    """What the writer of an entry decides; number, balance and hashes follow from the ledger.

    Without a time, the entry carries that of the clock.
    """

    account: str
    kind: Kind
    key: str = ""
    digest: str = ""
    cost: Amount = NOTHING
    note: str = ""
    payload_hash: str = ""
    until: str = ""
    holder: str = ""
    time: str = ""


def append(db: sqlite3.Connection, draft: Draft) -> Entry:
    """Number, date, balance and chain an entry, and write it."""
    d, cost = draft, draft.cost
    time = d.time or now()
    number, previous, first, second = db.execute(HEAD, (d.account,)).fetchone() or (0, "", 0, 0)
    spent = (first + cost[0], second + cost[1])
    fields = (number + 1, d.account, d.kind, time, d.key, d.digest, cost, d.note, d.payload_hash, spent, d.until, d.holder, previous)
    entry = Entry(*fields, link(*fields))
    db.execute(INSERT, row(entry))
    return entry


def follow(first: Entry, kind: Kind, *, note: str = "", payload_hash: str = "", until: str = "", holder: str = "") -> Draft:
    """A later entry of the key that ``first`` reserved; free of charge.

    Only one that takes a key over reads the clock. The others come after the data were read: their own time would say
    how long that took, and so how many rows there are.
    """
    return Draft(
        first.account,
        kind,
        first.key,
        first.digest,
        note=note,
        payload_hash=payload_hash,
        until=until,
        holder=holder,
        time="" if kind == "resume" else first.time,
    )


def of_key(db: sqlite3.Connection, account: str, key: str) -> list[Entry]:
    """All entries of a key, in order."""
    return [entry_of(columns) for columns in db.execute(OF_KEY, (account, key))]


def has(db: sqlite3.Connection, first: Entry, kind: Kind) -> bool:
    """Whether the key that ``first`` reserved has an entry of a kind."""
    query = "SELECT 1 FROM entries WHERE account = ? AND key = ? AND kind = ?"
    return db.execute(query, (first.account, first.key, kind)).fetchone() is not None


def answer(db: sqlite3.Connection, first: Entry) -> tuple[Entry, object] | None:
    """The entry that stores a key's answer, and the answer."""
    found = db.execute(f"{ANSWER} WHERE account = ? AND key = ? AND kind = 'store'", (first.account, first.key)).fetchone()
    return None if found is None else (entry_of(found[:-1]), found[-1])


def open_account(db: sqlite3.Connection, name: str, rule: str, total: Amount) -> Account:
    """Write an account and the entry that opens it."""
    db.execute("INSERT INTO accounts VALUES (?, ?, ?, ?)", (name, rule, *total))
    append(db, Draft(name, "open", note=opening(rule, total)))
    return Account(name, rule, (total[0], total[1]), NOTHING)


def account(db: sqlite3.Connection, name: str) -> Account | None:
    """One account with its balance."""
    columns = db.execute(f"{ACCOUNTS} WHERE a.name = ?", (name,)).fetchone()
    return None if columns is None else _account(columns)


def accounts(db: sqlite3.Connection) -> list[Account]:
    """All accounts with their balances, in the order in which they were opened."""
    return [_account(columns) for columns in db.execute(f"{ACCOUNTS} ORDER BY a.rowid")]


def closest(db: sqlite3.Connection, name: str) -> str:
    """Half a sentence that names the account closest to a wrong name."""
    return nearest(name, (known for (known,) in db.execute("SELECT name FROM accounts ORDER BY rowid")))


def _account(c: tuple[str, str, int, int, int, int, str, str]) -> Account:
    return Account(c[0], c[1], (c[2], c[3]), (c[4], c[5]), c[6], c[7])


def bind(db: sqlite3.Connection, account: str, protects: str, data: str) -> None:
    """Write what an account protects, and which data set it pays for."""
    db.execute("INSERT INTO bindings VALUES (?, ?, ?)", (account, protects, data))
    append(db, Draft(account, "bind", note=binding(protects, data)))


def ceiling(db: sqlite3.Connection, data: str) -> tuple[str, Amount] | None:
    """What all accounts of a data set may spend together: the rule it is written in, and the amount."""
    found = db.execute("SELECT rule, first, second FROM ceilings WHERE data = ?", (data,)).fetchone()
    return None if found is None else (found[0], (found[1], found[2]))


def cap(db: sqlite3.Connection, account: str, data: str, rule: str, amount: Amount) -> None:
    """Write the ceiling of a data set."""
    db.execute("INSERT INTO ceilings VALUES (?, ?, ?, ?)", (data, rule, *amount))
    append(db, Draft(account, "cap", note=capping(data, rule, amount)))


def of_data(db: sqlite3.Connection, data: str) -> list[Account]:
    """The accounts that pay for a data set."""
    return [_account(columns) for columns in db.execute(f"{ACCOUNTS} WHERE b.data = ?", (data,))]


def identity_if_any(db: sqlite3.Connection) -> str | None:
    """The ledger's own name for itself."""
    found = db.execute("SELECT value FROM about WHERE name = 'identity'").fetchone()
    return None if found is None else str(found[0])


def identity(db: sqlite3.Connection) -> str:
    """The ledger's own name for itself: random, and made when the file is first written to."""
    found = identity_if_any(db)
    if found is None:
        found = secrets.token_hex(16)
        db.execute("INSERT INTO about VALUES ('identity', ?)", (found,))
    return found


def head(db: sqlite3.Connection) -> tuple[int, str]:
    """The last entry's number and hash."""
    found = db.execute("SELECT sequence, hash FROM entries ORDER BY sequence DESC LIMIT 1").fetchone()
    return found or (0, "")


def hash_of(db: sqlite3.Connection, sequence: int) -> str | None:
    """The hash of an entry; None where there is none of that number."""
    found = db.execute("SELECT hash FROM entries WHERE sequence = ?", (sequence,)).fetchone()
    return None if found is None else str(found[0])
