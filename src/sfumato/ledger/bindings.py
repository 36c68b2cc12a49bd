"""What limits a charge beside the total: whom the account protects, and its data set's ceiling."""

from __future__ import annotations

from sfumato.ledger import journal, refusals
from sfumato.ledger.entries import MIXED, Account, Amount, Binding
from sfumato.ledger.store import PublicRows


def require_fit(account: Account, wish: Binding) -> None:
    """Refuse a binding that differs from the account's own, if it has one."""
    if account.protects not in ("", MIXED, wish.protects):
        raise refusals.protects_others(account, wish)
    if account.data and account.data != wish.data:
        raise refusals.other_data(account, wish)


def fix(rows: PublicRows, account: Account, wish: Binding) -> None:
    """Fix what the account protects with its first charge, and refuse what would not add up."""
    if account.protects:
        require_fit(account, wish)
    else:
        journal.bind(rows, account.name, wish.protects, wish.data)


def cap_once(rows: PublicRows, account: Account, wish: Binding) -> None:
    """Set the ceiling of a data set, if it has none and the account counts towards it."""
    data = account.data if account.protects else wish.data
    if data and wish.ceiling is not None and data not in rows.ceilings():
        journal.cap(rows, account.name, data, account.rule, wish.ceiling)


def require_under_ceiling(rows: PublicRows, account: Account, wish: Binding, cost: Amount) -> None:
    """Hold a charge under the ceiling of its data set, if it has one."""
    data = account.data if account.protects else wish.data
    if data:
        _hold(rows, account, data, wish.ceiling, cost)
    elif wish.data and (wish.ceiling is not None or wish.data in rows.ceilings()):
        # The charges of this account are not among those that the ceiling adds up.
        raise refusals.outside_ceiling(account, wish.data)


def _hold(
    rows: PublicRows,
    account: Account,
    data: str,
    wish: Amount | None,
    cost: Amount,
) -> None:
    """Hold all accounts of one data set together under its ceiling."""
    kept = rows.ceilings().get(data)
    if kept is None:
        if wish is None:
            return
        journal.cap(rows, account.name, data, account.rule, wish)
        kept = (account.rule, wish)
    rule, ceiling = kept
    left = _left(rows, account, data, rule, ceiling)
    if left is None or (wish is not None and wish != ceiling):
        raise refusals.other_ceiling(account, data, rule, ceiling)
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
    theirs = [other for other in rows.accounts(data) if other.name != account.name]
    strangers = [other for other in theirs if other.rule != rule and any(other.spent)]
    if rule != account.rule or strangers:
        return None
    together = (*theirs, account)
    first = ceiling[0] - sum(one.spent[0] for one in together)
    second = ceiling[1] - sum(one.spent[1] for one in together)
    return first, second
