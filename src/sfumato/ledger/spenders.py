"""Who may spend from an account: named spenders, each up to a ceiling of their own.

The custodian of a ledger names them. From then on every charge of the account belongs to one of
them, whatever store the ledger is kept in. Only a server can check who somebody is; a file takes
their word.
"""

from __future__ import annotations

from sfumato.errors import UsageError, nearest
from sfumato.ledger import journal, refusals
from sfumato.ledger.entries import NOTHING, Account, Amount, Entry, Spender
from sfumato.ledger.store import Caller, PublicRows


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
    found = rows.spender(account.name, caller.name)
    if found is None:
        names = [each.name for each in rows.spenders(account.name)]
        raise refusals.no_spender(account, caller, nearest(caller.name, names) if names else "")
    left = found.remaining
    if cost[0] > left[0] or cost[1] > left[1]:
        raise refusals.above_own_ceiling(found, cost)
    return found


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
    found = rows.spender(account.name, name)
    if found is not None and found.ceiling == ceiling:
        return found
    if new and found is not None:
        raise refusals.spender_differs(found, ceiling)
    if not new and found is None:
        names = (each.name for each in rows.spenders(account.name))
        raise UsageError(
            f"the ceiling of {name!r} in account {account.name!r}",
            f"it has no such spender ({nearest(name, names)})",
            "Name the spender first: `sfumato ledger spender add`",
        )
    spent = NOTHING if found is None else found.spent
    spender = Spender(account.name, name, account.rule, ceiling, spent)
    journal.cap_spender(rows, spender)
    return spender
