"""What a ledger says when it refuses a charge or an answer.

Each message says what was asked, what stands in the way, and what to do. None quotes an answer.
"""

from __future__ import annotations

from sfumato.errors import BudgetExceeded, LedgerError, StoredElsewhere, UsageError
from sfumato.ledger.entries import (
    WRITTEN,
    Account,
    Amount,
    Binding,
    Entry,
    charge_in_words,
    written,
)
from sfumato.ledger.store import Caller
from sfumato.privacy.composition import Composition, Curves, State
from sfumato.privacy.curves import Event

TO_BE_NAMED = "Ask the custodian of the ledger to run `sfumato ledger spender add`"
SPENT = "Ask for less, or stop publishing from this data set: what is spent is never given back"


def differs(account: Account, rule: str, total: Amount | None, terms: str = "") -> UsageError:
    """An account exists with another rule, total or composition than the one asked for."""
    request = f"rule {rule!r}" if total is None else f"a budget of {written(rule, total)}"
    has = f"its budget is {written(account.rule, account.total)}"
    to_use = "to use that account"
    if total is not None and rule != account.rule:
        parts = WRITTEN.get(account.rule)
        named = " and ".join(name for name, _ in parts or ())
        counted = named or f"by rule {account.rule!r}"
        has = f"counts {counted}: {has}"
        to_use = f"and give {counted} {to_use}"
    elif terms != account.terms:
        composition = "composition: by sums"
        if account.by_curves:
            composition = "composition: by curves, fixed at its opening"
        elif account.terms:
            composition = "target to be widened to, fixed at its opening"
        has = f"{has}, with another {composition}"
    return UsageError(
        f"account {account.name!r} with {request}",
        f"it exists, and {has}",
        f"Leave the budget out {to_use}, or choose another name (command line: --account NAME)",
    )


def exceeded(account: Account, cost: Amount, event: str = "") -> BudgetExceeded:
    """The account cannot pay."""
    whose = f"to account {account.name!r}"
    return over(account.name, whose, account.composition, account.state, cost, event)


def over(
    account: str,
    whose: str,
    composition: Composition,
    state: State,
    cost: Amount,
    event: str,
    *,
    limit: tuple[str, str] = ("", ""),
    remedy: str = SPENT,
) -> BudgetExceeded:
    """A charge does not fit a filter.

    ``limit`` names the filter, unless it is the account's, and ends the sentence about it.
    """
    rho = Event.read(event).rho_units if event else 0
    left = composition.left(state)
    most = written(composition.rule, composition.total)
    # By curves, what is left is the largest epsilon of one more answer, and the delta set aside.
    if not isinstance(composition, Curves):
        of = f"{limit[0]} of " if limit[0] else ""
        stands = f"{written(composition.rule, left)} is left of {of}{most}"
    elif cost[1] > left[1]:
        _, _, delta = written("approx", left).partition(", ")
        stands = f"by curves {delta} is left for answers that have a delta"
    else:
        stands = f"by curves the largest that fits is {written('pure', (left[0], 0))}"
    if isinstance(composition, Curves):
        stands = f"{stands}; {limit[0] or 'the total'} is {most}"
    return BudgetExceeded(
        f"a charge of {charge_in_words(composition.rule, cost, rho)} {whose}",
        f"{stands}{limit[1]}",
        remedy,
        # By curves an answer in rho costs neither epsilon nor delta.
        requested=cost if any(cost) else (rho, 0),
        remaining=left,
        account=account,
    )


def conflict(first: Entry) -> UsageError:
    """A key stands for another question."""
    since = f"{first.time[:10]}, {first.time[11:19]} UTC"
    return UsageError(
        f"key {first.key!r} in account {first.account!r}",
        f"since {since}, it stands for another question, cost, unit or source",
        "Choose another key, or ask exactly what was asked before, of a source of the same name",
    )


def of_key(first: Entry, obstacle: str, remedy: str) -> LedgerError:
    """A charge is not answered, or its answer is not handed out."""
    return LedgerError(f"key {first.key!r}", obstacle, remedy, account=first.account)


# What stands in the way of a charge that was made, and what to do.
UNKNOWN = (
    "it was charged, and the ledger's secrets do not say what for: "
    "they are not the ones it was charged with",
    "Put back the secrets of the ledger, or choose another key",
)
DAMAGED_ANSWER = (
    "its stored answer is missing or was edited",
    "Verify the ledger, and restore the latest whole copy",
)


def protects_others(account: Account, binding: Binding) -> UsageError:
    """An account is charged for other persons, or another relation, than before."""
    request = f"charging account {account.name!r} to protect {binding.protects}"
    another = 'open another account for this: account="NAME" (command line: --account NAME)'
    if account.protects.casefold() == binding.protects.casefold():
        # They are most likely the same persons, on whom another account would spend once more.
        return UsageError(
            request,
            f"it protects {account.protects}: only capital letters differ",
            "If these are the same persons, name the column as before in the table; if not, "
            f"{another}",
        )
    return UsageError(
        request,
        f"the account protects {account.protects}, and the two costs do not add up",
        f"Name the same person column as before (command line: --person COLUMN), or {another}",
    )


def charging(account: Account, obstacle: str, remedy: str) -> UsageError:
    """An account cannot be charged as it was asked to be."""
    return UsageError(f"charging account {account.name!r}", obstacle, remedy)


def stored_elsewhere(first: Entry, *, is_answered: bool) -> StoredElsewhere:
    """A question was paid for when the data were in another state."""
    day = first.time[:10]
    paid = f"entry {first.sequence} of account {first.account!r} paid for it on {day}"
    unanswered = "" if is_answered else ", and has no answer"
    stored = "stored=True for the answer of that day, " if is_answered else ""
    return StoredElsewhere(
        f"asking for {first.note}",
        f"{paid}, when the data were in another state{unanswered}; nothing is charged now",
        f"Ask with {stored}with a version= of the data to pay for an answer about that version, "
        "or with fresh=True to pay for one in any case (command line: --stored; --data-version, "
        "or version in the plan; --fresh)",
        entry=first.sequence,
        day=day,
    )


# --- curves ---------------------------------------------------------------------------------------


def other_kind_of_ceiling(account: Account, whose: str) -> UsageError:
    """A ceiling composes in another way than the account."""
    how = "by curves" if account.by_curves else "by sums"
    return UsageError(
        f"a ceiling for {whose!r} in account {account.name!r}",
        f"the account composes {how}, and so must its ceilings",
        "Write the ceiling as the budget is written",
    )


def not_widened(account: str, obstacle: str, remedy: str) -> UsageError:
    """An account cannot be widened."""
    return UsageError(f"widening account {account!r}", obstacle, remedy)


# --- spenders and roles ---------------------------------------------------------------------------


def no_spender(account: Account, caller: Caller, similar: str) -> UsageError:
    """An account is charged by somebody who is none of its spenders."""
    if caller.is_custodian and not caller.stated:
        name = f"`sfumato ledger spender add {caller.name} --account {account.name} --ceiling ...`"
        return UsageError(
            f"charging account {account.name!r} as {caller.name!r}",
            "its custodian named who may spend from it, and is none of them",
            f"Name yourself too: {name}",
        )
    known = f" ({similar})" if similar else ""
    return UsageError(
        f"charging account {account.name!r} as {caller.name!r}",
        f"it has no such spender{known}",
        TO_BE_NAMED,
    )


def custodians_only(request: str, caller: Caller, remedy: str) -> LedgerError:
    """Somebody asks for what only the custodian of the ledger may do."""
    role = f"an {caller.role}" if caller.role != "custodian" else "the custodian"
    return LedgerError(
        request,
        f"{caller.name!r} is {role} of this ledger, and only its custodian may do that",
        remedy,
    )
