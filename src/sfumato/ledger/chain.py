"""The chain of entries: how one is written as columns, and how it is hashed."""

from __future__ import annotations

import dataclasses
import hashlib
import json

from sfumato.ledger.ledger import Amount, Entry

COLUMNS = (
    "sequence, account, kind, time, key, digest, cost_first, cost_second, note, payload_hash, "
    "spent_first, spent_second, until, holder, previous, hash"
)
FIELDS = tuple(f.name for f in dataclasses.fields(Entry))[:-1]
_encode = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), default=repr).encode


def payload_digest(payload: bytes) -> str:
    """The hash under which an answer is entered."""
    return hashlib.sha256(payload).hexdigest()


def link(*fields: object) -> str:
    """The hash of an entry: SHA-256 of all its other fields in order, the previous hash among them, as one JSON array in ASCII."""
    return hashlib.sha256(_encode(["sfumato-ledger-1", *fields]).encode("ascii")).hexdigest()


def fields(entry: Entry) -> tuple[object, ...]:
    """All fields of an entry but its own hash."""
    return tuple(getattr(entry, name) for name in FIELDS)


def row(entry: Entry) -> tuple[object, ...]:
    """An entry as its columns."""
    e = entry
    before = (e.sequence, e.account, e.kind, e.time, e.key, e.digest, *e.cost, e.note, e.payload_hash, *e.spent)
    return (*before, e.until, e.holder, e.previous, e.hash)


def entry_of(columns: tuple[object, ...]) -> Entry:
    """Columns as an entry, as they are: `verify` judges them."""
    c = columns
    return Entry(*c[:6], (c[6], c[7]), c[8], c[9], (c[10], c[11]), *c[12:])  # type: ignore[arg-type, call-arg]


def opening(rule: str, total: Amount) -> str:
    """What the entry that opens an account says of it, so that the chain covers rule and total."""
    return json.dumps({"rule": rule, "total": list(total)}, ensure_ascii=True)


def binding(protects: str, data: str) -> str:
    """What the entry that binds an account says."""
    return json.dumps({"protects": protects, "data": data}, ensure_ascii=True)


def capping(data: str, rule: str, amount: Amount) -> str:
    """What the entry that sets a data set's ceiling says."""
    return json.dumps({"data": data, "rule": rule, "ceiling": list(amount)}, ensure_ascii=True)
