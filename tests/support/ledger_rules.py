"""The rules that every entry must keep, for stores that have no triggers.

They hold even if a fault in the book above breaks its own rules. SQLite has them as triggers, in
``ledger/tables/sqlite/book.sql``, so that they hold against any program that writes to the file.
"""

from __future__ import annotations

import operator

from sfumato.ledger.entries import NOTHING, WIDENED, Entry, allows, curve_text
from sfumato.ledger.store import PublicRows

WRONG_SUM = "the sum of the spender does not follow from the entry before"
FREE_STANDING = ("open", "bind", "cap", "reserve")  # the kinds that follow from no reservation


def broken(rows: PublicRows, entry: Entry) -> str | None:
    """The first rule that an entry would break if it were added now; None if it breaks none."""
    return (
        _chain(rows, entry)
        or _balance(rows, entry)
        or _life(rows, entry)
        or _spender(rows, entry)
        or _curves(rows, entry)
    )


def _chain(rows: PublicRows, entry: Entry) -> str | None:
    tip = rows.tip(entry.account)
    if (entry.sequence, entry.previous) != (tip.sequence + 1, tip.hash):
        return "the entry is not the next of the chain"
    spent = (tip.spent[0] + entry.cost[0], tip.spent[1] + entry.cost[1])
    if entry.key == WIDENED:
        return None
    return None if entry.spent == spent else "the balance does not follow from the entry before"


def _balance(rows: PublicRows, entry: Entry) -> str | None:
    found = rows.totals().get(entry.account)
    if found is None:
        return "the account is not there"
    total = found[1]
    account = rows.account(entry.account)
    if entry.key == WIDENED or (account is not None and account.by_curves):
        return None
    if min(entry.cost) < 0 or entry.spent[0] > total[0] or entry.spent[1] > total[1]:
        return "the account cannot pay"
    return "only a reservation costs" if entry.kind != "reserve" and any(entry.cost) else None


def _life(rows: PublicRows, entry: Entry) -> str | None:
    """Whether an entry may follow what its key has been through."""
    past = rows.of_key(entry.account, entry.key)
    if entry.kind in ("open", "reserve"):
        return "the key is taken" if past else None
    if entry.kind in FREE_STANDING:
        return None
    if not any(one.kind == "reserve" and one.digest == entry.digest for one in past):
        return "the key was never reserved"
    stored = any(one.kind == "store" for one in past)
    if entry.kind == "hand":
        return None if stored else "there is nothing to hand out"
    return "the key is answered" if stored else None


def _spender(rows: PublicRows, entry: Entry) -> str | None:
    """Whether an entry keeps to its spender's ceiling, where its account has spenders."""
    if not entry.spender:
        return _without_spender(rows, entry)
    if entry.kind not in ("reserve", "cap"):
        return "only a charge or a ceiling has a spender"
    found = rows.spender(entry.account, entry.spender)
    before = NOTHING if found is None else found.spent
    if entry.own != (before[0] + entry.cost[0], before[1] + entry.cost[1]):
        return WRONG_SUM
    if entry.kind == "cap":
        return None
    may = found is not None and (
        bool(found.terms) or all(map(operator.le, entry.own, found.ceiling))
    )
    return None if may else "the spender cannot pay"


def _curves(rows: PublicRows, entry: Entry) -> str | None:
    """Whether an entry adds to each filter by curves what its event says, and all of them fit."""
    account = rows.account(entry.account)
    if entry.key == WIDENED:
        return None
    if account is None or not account.by_curves or entry.kind != "reserve":
        return "only a charge of an account by curves has an event" if entry.event else None
    spender = rows.spender(entry.account, entry.spender) if entry.spender else None
    data_terms = rows.ceiling_terms().get(account.data, "")
    filters = [
        (account.terms, account.curve, entry.curve),
        ("" if spender is None else spender.terms, spender and spender.curve, entry.own_curve),
        (data_terms, rows.data_curve(account.data), entry.data_curve),
    ]
    fits = (
        allows(terms, entry.event, curve_text(after), curve_text(before or ()))
        for terms, before, after in filters
    )
    return None if all(fits) else "the account cannot pay"


def _without_spender(rows: PublicRows, entry: Entry) -> str | None:
    if entry.own != NOTHING:
        return WRONG_SUM
    if entry.kind == "reserve" and rows.has_spenders(entry.account):
        return "the account is charged by its spenders only"
    return None
