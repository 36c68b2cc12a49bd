"""How an entry is numbered, dated, balanced and chained to the one before it.

Every function here runs within a transaction of the public part that writes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sfumato.ledger import chain
from sfumato.ledger.chain import (
    binding,
    capping,
    capping_spender,
    link,
    opening,
    payload_digest,
)
from sfumato.ledger.entries import NOTHING, Account, Amount, Entry, Kind, Spender
from sfumato.ledger.store import PublicRows, Tip


def stamp(time: datetime) -> str:
    """A time in UTC as it is entered. Texts of this form sort as times do; leases rely on it."""
    return time.isoformat(timespec="microseconds")


def lease_end(rows: PublicRows, seconds: float) -> str:
    """When a lease that begins now ends."""
    return stamp(rows.clock() + timedelta(seconds=seconds))


@dataclass(frozen=True, slots=True)
class Draft:
    """What the writer of an entry decides. Number, balance and hashes follow from the ledger.

    Without a time, the entry carries the time of the clock. A spender is given as they stand before
    the entry.
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
    spender: Spender | None = None


def append(rows: PublicRows, draft: Draft, last: Entry | None = None) -> Entry:
    """Number, date, balance and chain an entry, and write it; ``last`` as for `numbered`."""
    entry = numbered(rows, draft, last)
    rows.add(entry)
    return entry


def numbered(rows: PublicRows, draft: Draft, last: Entry | None = None) -> Entry:
    """The entry that a draft makes if it is the next of the chain.

    ``last``: the entry before it, if this transaction added that to the same account.
    """
    tip = rows.tip(draft.account) if last is None else Tip(last.sequence, last.hash, last.spent)
    spent = _plus(tip.spent, draft.cost)
    # In the order of the fields of an entry, which is also the order in which they are hashed.
    fields = (
        tip.sequence + 1,
        draft.account,
        draft.kind,
        draft.time or stamp(rows.clock()),
        draft.key,
        draft.digest,
        draft.cost,
        draft.note,
        draft.payload_hash,
        spent,
        draft.until,
        draft.holder,
        tip.hash,
    )
    entry = Entry(*fields, "")
    if draft.spender is not None:
        own = _plus(draft.spender.spent, draft.cost)
        entry = replace(entry, spender=draft.spender.name, own=own)
    return replace(entry, hash=link(*chain.fields(entry)))


def _plus(first: Amount, second: Amount) -> Amount:
    return first[0] + second[0], first[1] + second[1]


def follow(
    first: Entry,
    kind: Kind,
    *,
    note: str = "",
    payload_hash: str = "",
    until: str = "",
    holder: str = "",
) -> Draft:
    """A later entry of the key that ``first`` reserved; it costs nothing.

    Only an entry that takes a key over reads the clock. The others are written after the data were
    read: their own time would tell how long that took, and so how many rows there are.
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


def open_account(rows: PublicRows, name: str, rule: str, total: Amount) -> Account:
    """Write an account and the entry that opens it."""
    rows.add_account(name, rule, total)
    append(rows, Draft(name, "open", note=opening(rule, total)))
    return Account(name, rule, (total[0], total[1]), NOTHING)


def bind(rows: PublicRows, account: str, protects: str, data: str) -> None:
    """Write what an account protects, and which data set it pays for."""
    entry = numbered(rows, Draft(account, "bind", note=binding(protects, data)))
    rows.add_bound(entry, protects, data)


def cap(rows: PublicRows, account: str, data: str, rule: str, amount: Amount) -> None:
    """Write the ceiling of a data set."""
    rows.add_ceiling(data, rule, amount)
    append(rows, Draft(account, "cap", note=capping(data, rule, amount)))


def cap_spender(rows: PublicRows, spender: Spender) -> None:
    """Write the ceiling of a spender, which takes the place of an older one."""
    note = capping_spender(spender.rule, spender.ceiling)
    append(rows, Draft(spender.account, "cap", note=note, spender=spender))


def store_answer(rows: PublicRows, draft: Draft, payload: bytes) -> Entry:
    """Write an answer, and the entry that a draft of the kind ``store`` makes for it."""
    # The entry holds the answer's hash, and so does every hash after it: an answer that was paid
    # for cannot be exchanged without breaking the chain.
    stored = numbered(rows, replace(draft, payload_hash=payload_digest(payload)))
    rows.add_answered(stored, payload)
    return stored
