"""How an entry is numbered, dated, balanced and chained to the one before it, and what limits it.

Every function that adds an entry runs within a transaction of the public part that writes.

*What limits a charge besides the total*: whom the account protects, and its data set's ceiling. The
privacy losses of two charges add up only if both protect the same persons by the same relation, and
if both are in one measure. What cannot be added is refused, before anything is entered.

*Who may spend from an account*: named spenders, each up to a ceiling of their own. The custodian of
a ledger names them. From then on every charge of the account belongs to one of them, whatever store
the ledger is kept in. Only a server can check who somebody is; a file takes their word.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sfumato.errors import UsageError, nearest
from sfumato.ledger import entries, refusals
from sfumato.ledger.entries import (
    MIXED,
    NOTHING,
    Account,
    Amount,
    Binding,
    Entry,
    Kind,
    Spender,
    binding,
    capping,
    capping_spender,
    link,
    opening,
    payload_digest,
)
from sfumato.ledger.store import Caller, PublicRows, Tip


def stamp(time: datetime) -> str:
    """A time in UTC as it is entered. Texts of this form sort as times do; leases rely on it."""
    # Always with microseconds: isoformat() leaves them out where they are 0, and a text without
    # them sorts behind one that has them.
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
    return replace(entry, hash=link(*entries.fields(entry)))


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
    # In one transaction: an account without its entry would be a fault of the ledger.
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


# --- what limits a charge -------------------------------------------------------------------------


def require_fit(account: Account, binding: Binding) -> None:
    """Refuse a binding that differs from the account's own, if it has one."""
    if account.protects not in ("", MIXED, binding.protects):
        raise refusals.protects_others(account, binding)
    if account.data and account.data != binding.data:
        raise refusals.other_data(account, binding)


def require_named(rows: PublicRows, account: Account, binding: Binding) -> None:
    """Refuse to bind an account to data without a name in a ledger that limits data sets.

    Those data may be of a data set with a ceiling, which adds up accounts by the name.
    """
    if not account.protects and not binding.data and rows.ceilings():
        raise refusals.nameless(account)


def fix(rows: PublicRows, account: Account, binding: Binding) -> None:
    """Fix with its first charge what the account protects; refuse a later charge that differs."""
    if account.protects:
        require_fit(account, binding)
        return
    require_named(rows, account, binding)
    bind(rows, account.name, binding.protects, binding.data)


def is_capped(rows: PublicRows, account: Account, binding: Binding) -> bool:
    """Whether `cap_once` has nothing to do."""
    data = account.data if account.protects else binding.data
    return not data or binding.ceiling is None or data in rows.ceilings()


def cap_once(rows: PublicRows, account: Account, binding: Binding) -> None:
    """Set the ceiling of a data set, if it has none and the account counts towards it."""
    data = account.data if account.protects else binding.data
    if binding.ceiling is not None and not is_capped(rows, account, binding):
        cap(rows, account.name, data, account.rule, binding.ceiling)


def require_under_ceiling(
    rows: PublicRows, account: Account, binding: Binding | None, cost: Amount
) -> None:
    """Refuse a charge that would pass the ceiling of its data set, if that has one.

    A charge that says nothing of its data is about those of its account.
    """
    binding = binding or Binding(account.protects, account.data)
    data = account.data if account.protects else binding.data
    if data:
        _require_together(rows, account, data, binding.ceiling, cost)
    elif binding.data and (binding.ceiling is not None or binding.data in rows.ceilings()):
        # The ceiling adds up accounts by their data set. This one has none, so its charges would
        # not be among them.
        raise refusals.outside_ceiling(account, binding.data)


def _require_together(
    rows: PublicRows,
    account: Account,
    data: str,
    stated: Amount | None,
    cost: Amount,
) -> None:
    """Refuse a charge by which all accounts of one data set would pass its ceiling together."""
    kept = rows.ceilings().get(data)
    if kept is None:
        if stated is None:
            return
        # In the transaction of the charge: two processes cannot both be the first to state it.
        cap(rows, account.name, data, account.rule, stated)
        kept = (account.rule, stated)
    rule, ceiling = kept
    left = _left(rows, account, data, rule, ceiling)
    if left is None or (stated is not None and stated != ceiling):
        raise refusals.other_ceiling(account, data, rule, ceiling)
    # In whole units, component by component: no rounding lets a last charge through.
    if cost[0] > left[0] or cost[1] > left[1]:
        raise refusals.above_ceiling(account, data, cost, left, ceiling)


def _left(
    rows: PublicRows,
    account: Account,
    data: str,
    rule: str,
    ceiling: Amount,
) -> Amount | None:
    """What is left of a ceiling over all accounts; None where they do not add up in its rule."""
    if rule != account.rule:
        return None
    # Amounts of two rules do not add up. An account of another rule that has spent nothing has
    # nothing to add, and may be there.
    # The account itself is not yet among those of the data set if this is its first charge.
    others = [other for other in rows.accounts(data) if other.name != account.name]
    if any(other.rule != rule and any(other.spent) for other in others):
        return None
    together = (*others, account)
    first = ceiling[0] - sum(other.spent[0] for other in together)
    second = ceiling[1] - sum(other.spent[1] for other in together)
    return first, second


# --- spenders -------------------------------------------------------------------------------------


def require_spender(
    rows: PublicRows, account: Account, caller: Caller, cost: Amount
) -> Spender | None:
    """The spender of a charge, as they stand before it; None where the account has no spenders.

    Raises
    ------
    UsageError
        The account has spenders, and the caller is none of them.
    BudgetExceeded
        The charge would pass the spender's own ceiling.
    """
    must_be_one = caller.stated or not caller.is_custodian
    if not must_be_one and not rows.has_spenders(account.name):
        return None
    if not caller.name:
        raise refusals.unstated_spender(account)
    spender = rows.spender(account.name, caller.name)
    if spender is None:
        names = [spender.name for spender in rows.spenders(account.name)]
        raise refusals.no_spender(account, caller, nearest(caller.name, names) if names else "")
    left = spender.remaining
    if cost[0] > left[0] or cost[1] > left[1]:
        raise refusals.above_own_ceiling(spender, cost)
    return spender


def require_own(first: Entry, caller: Caller) -> None:
    """Refuse to answer a charge of another spender: they paid for a draw of their own."""
    if first.spender != caller.name and (first.spender or not caller.is_custodian):
        raise refusals.of_another_spender(first)


def name_spender(
    rows: PublicRows, account: Account, name: str, ceiling: Amount, *, new: bool
) -> Spender:
    """Name a spender, or change the ceiling of one; the same ceiling again changes nothing.

    Parameters
    ----------
    new : bool
        Whether the spender must be new, rather than known.
    """
    known = rows.spender(account.name, name)
    if known is not None and known.ceiling == ceiling:
        return known
    if new and known is not None:
        raise refusals.spender_differs(known, ceiling)
    if not new and known is None:
        names = (spender.name for spender in rows.spenders(account.name))
        raise UsageError(
            f"the ceiling of {name!r} in account {account.name!r}",
            f"it has no such spender ({nearest(name, names)})",
            "Name the spender first: `sfumato ledger spender add`",
        )
    spent = NOTHING if known is None else known.spent
    spender = Spender(account.name, name, account.rule, ceiling, spent)
    cap_spender(rows, spender)
    return spender
