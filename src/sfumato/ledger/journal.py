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

from dataclasses import replace
from datetime import datetime, timedelta

from sfumato.errors import UsageError, nearest
from sfumato.ledger import refusals
from sfumato.ledger.entries import (
    MIXED,
    NOTHING,
    WIDENED,
    Account,
    Amount,
    Binding,
    Entry,
    Kind,
    MaybeCurve,
    Spender,
    allowed_curve,
    binding,
    capping,
    capping_spender,
    curve_after,
    link_of,
    opening,
    payload_digest,
    state_of,
    terms_in,
    widening,
    worst_event_of,
    written,
)
from sfumato.ledger.store import Caller, PublicRows, Tip
from sfumato.privacy.composition import Composition, State, curves_of


def stamp(time: datetime) -> str:
    """A time in UTC as it is entered. Texts of this form sort as times do; leases rely on it."""
    # Always with microseconds: isoformat() leaves them out where they are 0, and a text without
    # them sorts behind one that has them.
    return time.isoformat(timespec="microseconds")


def lease_end(rows: PublicRows, seconds: float) -> str:
    """When a lease that begins now ends."""
    return stamp(rows.clock() + timedelta(seconds=seconds))


def append(rows: PublicRows, draft: Entry, last: Entry | None = None) -> Entry:
    """Number, date, balance and chain an entry, and write it; parameters as for `numbered`."""
    entry = numbered(rows, draft, last)
    rows.add(entry)
    return entry


def numbered(rows: PublicRows, draft: Entry, last: Entry | None = None) -> Entry:
    """The entry that a draft makes if it is the next of the chain.

    Parameters
    ----------
    rows : PublicRows
    draft : Entry
        What its writer decides; its number is 0. Number, balance and hashes follow from the ledger,
        and so does the time where it has none.
    last : Entry or None
        The entry before it, if this transaction added that to the same account.
    """
    tip = rows.tip(draft.account) if last is None else Tip(last.sequence, last.hash, last.spent)
    # An account that is widened counts in another measure from then on.
    spent = draft.spent if draft.key == WIDENED else plus(tip.spent, draft.cost)
    entry = replace(
        draft,
        sequence=tip.sequence + 1,
        time=draft.time or stamp(rows.clock()),
        spent=spent,
        previous=tip.hash,
    )
    return replace(entry, hash=link_of(entry))


def plus(first: Amount, second: Amount) -> Amount:
    """Add up two amounts, component by component."""
    return first[0] + second[0], first[1] + second[1]


def follow(
    first: Entry,
    kind: Kind,
    *,
    note: str = "",
    payload_hash: str = "",
    until: str = "",
    holder: str = "",
) -> Entry:
    """The draft of a later entry of the key that ``first`` reserved; it costs nothing.

    Only an entry that takes a key over reads the clock. The others are written after the data were
    read: their own time would tell how long that took, and so how many rows there are.
    """
    return Entry(
        0,
        first.account,
        kind,
        "" if kind == "resume" else first.time,
        first.key,
        first.digest,
        note=note,
        payload_hash=payload_hash,
        until=until,
        holder=holder,
    )


def open_account(rows: PublicRows, name: str, rule: str, total: Amount, terms: str = "") -> Account:
    """Write an account and the entry that opens it."""
    # In one transaction: an account without its entry would be a fault of the ledger.
    rows.add_account(name, rule, total, terms)
    append(rows, Entry(0, name, "open", note=opening(rule, total, terms)))
    return Account(name, rule, (total[0], total[1]), NOTHING, terms=terms)


def bind(rows: PublicRows, account: str, protects: str, data: str) -> None:
    """Write what an account protects, and which data set it pays for."""
    entry = numbered(rows, Entry(0, account, "bind", note=binding(protects, data)))
    rows.add_bound(entry, protects, data)


def cap(
    rows: PublicRows, account: str, data: str, rule: str, amount: Amount, terms: str = ""
) -> None:
    """Write the ceiling of a data set."""
    rows.add_ceiling(data, rule, amount, terms)
    append(rows, Entry(0, account, "cap", note=capping(data, rule, amount, terms)))


def cap_spender(rows: PublicRows, spender: Spender) -> None:
    """Write the ceiling of a spender, which takes the place of an older one."""
    note = capping_spender(spender.rule, spender.ceiling, spender.terms)
    draft = Entry(0, spender.account, "cap", note=note, spender=spender.name, own=spender.spent)
    append(rows, draft)


def store_answer(rows: PublicRows, draft: Entry, payload: bytes) -> Entry:
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
        other = f"the data set {binding.data!r}" if binding.data else "a data set without a name"
        raise UsageError(
            f"charging account {account.name!r} for {other}",
            f"it pays for the data set {account.data!r}",
            f"Write name={account.data!r} if this is that data set, or open another account",
        )


def require_named(rows: PublicRows, account: Account, binding: Binding) -> None:
    """Refuse to bind an account to data without a name in a ledger that limits data sets.

    Those data may be of a data set with a ceiling, which adds up accounts by the name.
    """
    if not account.protects and not binding.data and rows.ceilings():
        raise UsageError(
            f"charging account {account.name!r} for data without a name",
            "data sets of this ledger have ceilings, and these data may belong to one of them",
            "Give sf.source(..., name=...) the public name of the data set",
        )


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
        _state_ceiling(rows, account, data, binding)


def _state_ceiling(rows: PublicRows, account: Account, data: str, binding: Binding) -> None:
    """Write the ceiling that a binding states; one by curves only before the first charge."""
    assert binding.ceiling is not None
    if account.by_curves != bool(binding.terms):
        raise refusals.other_kind_of_ceiling(account, data)
    paid = (account, *rows.accounts(data))
    if binding.terms and any(paying.curve or any(paying.spent) for paying in paid):
        raise UsageError(
            f"a ceiling for the data set {data!r} in account {account.name!r}",
            "a ceiling by curves is fixed before the first answer, and some were paid for",
            "Leave the ceiling out, or state it for a data set of another name",
        )
    cap(rows, account.name, data, account.rule, binding.ceiling, binding.terms)


def require_under_ceiling(
    rows: PublicRows, account: Account, binding: Binding | None, cost: Amount, event: str = ""
) -> MaybeCurve:
    """Refuse a charge that would pass the ceiling of its data set: its curve there, if it has one.

    A charge that says nothing of its data is about those of its account.
    """
    binding = binding or Binding(account.protects, account.data)
    data = account.data if account.protects else binding.data
    if data:
        return _require_together(rows, account, data, binding, cost, event)
    if binding.data and (binding.ceiling is not None or binding.data in rows.ceilings()):
        # The ceiling adds up accounts by their data set. This one has none, so its charges would
        # not be among them.
        raise UsageError(
            f"charging account {account.name!r} for the data set {binding.data!r}",
            "that data set has a ceiling for all its accounts together, and this one was opened "
            "for data without a name",
            f"Open an account by a source that has name={binding.data!r}",
        )
    return ()


def _require_together(
    rows: PublicRows, account: Account, data: str, binding: Binding, cost: Amount, event: str
) -> MaybeCurve:
    """Refuse a charge by which all accounts of one data set would pass its ceiling together."""
    if data not in rows.ceilings():
        if binding.ceiling is None:
            return ()
        # In the transaction of the charge: two processes cannot both be the first to state it.
        _state_ceiling(rows, account, data, binding)
    rule, ceiling = rows.ceilings()[data]
    terms = rows.ceiling_terms().get(data, "")
    others = binding.ceiling is not None and (binding.ceiling, binding.terms) != (ceiling, terms)
    state = _state_under(rows, account, data, rule, terms)
    if state is None or others:
        raise UsageError(
            f"charging account {account.name!r} for the data set {data!r}",
            f"that data set has a ceiling of {written(rule, ceiling)} for all accounts together",
            "Use accounts in that measure, and leave the ceiling out or repeat it exactly",
        )
    composition = curves_of(terms) if terms else Composition(rule, ceiling)
    # In whole units, component by component: no rounding lets a last charge through.
    curve = allowed_curve(composition, state, cost, event)
    if curve is None:
        raise refusals.over(
            account.name,
            f"for the data set {data!r}",
            composition,
            state,
            cost,
            event,
            limit=("its ceiling", ", over all accounts"),
        )
    return curve if terms else ()


def _state_under(
    rows: PublicRows, account: Account, data: str, rule: str, terms: str
) -> State | None:
    """What all accounts have spent of a ceiling; None where they do not add up in its rule."""
    if rule != account.rule or bool(terms) != account.by_curves:
        return None
    if terms:
        return state_of(rows.data_curve(data), curves_of(terms))
    # Amounts of two rules do not add up. An account of another rule that has spent nothing has
    # nothing to add, and may be there.
    # The account itself is not yet among those of the data set if this is its first charge.
    others = [other for other in rows.accounts(data) if other.name != account.name]
    if any(other.rule != rule and any(other.spent) for other in others):
        return None
    together = (*others, account)
    return sum(paying.spent[0] for paying in together), sum(paying.spent[1] for paying in together)


# --- spenders -------------------------------------------------------------------------------------


def require_spender(
    rows: PublicRows, account: Account, caller: Caller, cost: Amount, event: str = ""
) -> tuple[Spender | None, MaybeCurve]:
    """The spender of a charge, as they stand before it, and its curve by their ceiling.

    None where the account has no spenders; () where the ceiling is no curve.

    Raises
    ------
    UsageError
        The account has spenders, and the caller is none of them.
    BudgetExceeded
        The charge would pass the spender's own ceiling.
    """
    must_be_one = caller.stated or not caller.is_custodian
    if not must_be_one and not rows.has_spenders(account.name):
        return None, ()
    if not caller.name:
        raise refusals.charging(
            account,
            "its custodian named who may spend from it, and this charge names nobody",
            'Write spender="NAME" (command line: --spender NAME)',
        )
    spender = rows.spender(account.name, caller.name)
    if spender is None:
        names = [spender.name for spender in rows.spenders(account.name)]
        raise refusals.no_spender(account, caller, nearest(caller.name, names) if names else "")
    curve = allowed_curve(spender.composition, spender.state, cost, event)
    if curve is None:
        raise refusals.over(
            account.name,
            f"to account {account.name!r} by {spender.name!r}",
            spender.composition,
            spender.state,
            cost,
            event,
            limit=("this spender's ceiling", ""),
            remedy="Ask for less, or ask the custodian of the ledger to raise the ceiling",
        )
    return spender, curve if spender.terms else ()


def name_spender(
    rows: PublicRows, account: Account, name: str, ceiling: Amount, terms: str, *, new: bool
) -> Spender:
    """Name a spender, or change the ceiling of one; the same ceiling again changes nothing.

    Parameters
    ----------
    terms : str
        Those of a ceiling by curves; "" of one by sums.
    new : bool
        Whether the spender must be new, rather than known.
    """
    known = rows.spender(account.name, name)
    if known is not None and (known.ceiling, known.terms) == (ceiling, terms):
        return known
    if account.by_curves != bool(terms) and any(ceiling):
        raise refusals.other_kind_of_ceiling(account, name)
    if known is None:
        if not new:
            names = (spender.name for spender in rows.spenders(account.name))
            raise UsageError(
                f"the ceiling of {name!r} in account {account.name!r}",
                f"it has no such spender ({nearest(name, names)})",
                "Name the spender first: `sfumato ledger spender add`",
            )
        spender = Spender(account.name, name, account.rule, ceiling, NOTHING, terms)
    else:
        if new:
            request = f"spender {name!r} with a ceiling of {written(known.rule, ceiling)}"
            raise UsageError(
                f"{request} in account {account.name!r}",
                f"this spender is there, with a ceiling of {written(known.rule, known.ceiling)}",
                "To change the ceiling, run `sfumato ledger spender set`",
            )
        _require_former_terms(rows, account, known, terms)
        # What they paid, also by curves, stands beside the new ceiling.
        spender = replace(known, rule=account.rule, ceiling=ceiling, terms=terms)
    cap_spender(rows, spender)
    return spender


def _require_former_terms(rows: PublicRows, account: Account, known: Spender, terms: str) -> None:
    """Refuse other terms than those by which a spender was charged.

    Orders that are chosen after an answer would let the answer choose how it is counted; so would
    those of a ceiling that was stated and replaced before the first charge. Since that charge no
    other terms were let in, so the last ones are those by which it was counted.
    """
    # A charge in rho alone spends neither epsilon nor delta, and has a curve.
    if not known.curve or not terms:
        return
    caps = [entry for entry in rows.of_key(account.name, "") if entry.spender == known.name]
    former = [stated for entry in caps if (stated := terms_in(entry.note))]
    if terms not in former[-1:]:
        raise UsageError(
            f"another ceiling for {known.name!r} in account {account.name!r}",
            "a ceiling by curves is fixed before the first answer, and this spender has paid for "
            "some",
            "Leave it, set it to 0, or name another spender",
        )


# --- widening -------------------------------------------------------------------------------------


def widen(rows: PublicRows, account: Account) -> Account:
    """Write that an account composes by curves from now on, to the target of its opening.

    What it has spent counts by its worst event: all that its sums say. An account without a target,
    or whose limits were fixed in its measure, is refused.
    """
    if not account.terms or account.by_curves:
        raise refusals.not_widened(
            account.name,
            "no target was stated when it was opened, and none may be chosen after answers",
            "Open another account, with a target or by curves",
        )
    if rows.has_spenders(account.name) or account.data in rows.ceilings():
        raise refusals.not_widened(
            account.name,
            "its spenders or its data set have ceilings in the measure that it counts",
            "Leave it, or open another account by curves",
        )
    composition = curves_of(account.terms)
    whole = worst_event_of(account.rule, account.total)
    if allowed_curve(composition, composition.start, NOTHING, whole) is None:
        raise refusals.not_widened(
            account.name,
            f"its total of {written(account.rule, account.total)} does not fit the target of "
            f"{written('approx', composition.total)}, which was fixed at its opening",
            "Leave it as it is, or open another account by curves",
        )
    event = worst_event_of(account.rule, account.spent)
    curve = curve_after(composition, composition.start, NOTHING, event) if event else ()
    first, second, *_ = state_of(curve, composition)
    draft = Entry(
        0,
        account.name,
        "open",
        key=WIDENED,
        note=widening(account.rule, account.terms),
        spent=(first, second),
        event=event,
        curve=curve,
    )
    append(rows, draft)
    widened = rows.account(account.name)
    assert widened is not None
    return widened
