"""What limits a charge besides the total: whom the account protects, and its data set's ceiling.

The privacy losses of two charges add up only if both protect the same persons by the same relation,
and if both are in one measure. What cannot be added is refused, before anything is entered.
"""

from __future__ import annotations

from sfumato.ledger import journal, refusals
from sfumato.ledger.entries import MIXED, Account, Amount, Binding
from sfumato.ledger.store import PublicRows


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
    journal.bind(rows, account.name, binding.protects, binding.data)


def is_capped(rows: PublicRows, account: Account, binding: Binding) -> bool:
    """Whether `cap_once` has nothing to do."""
    data = account.data if account.protects else binding.data
    return not data or binding.ceiling is None or data in rows.ceilings()


def cap_once(rows: PublicRows, account: Account, binding: Binding) -> None:
    """Set the ceiling of a data set, if it has none and the account counts towards it."""
    data = account.data if account.protects else binding.data
    if binding.ceiling is not None and not is_capped(rows, account, binding):
        journal.cap(rows, account.name, data, account.rule, binding.ceiling)


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
        journal.cap(rows, account.name, data, account.rule, stated)
        kept = (account.rule, stated)
    rule, ceiling = kept
    left = _left(rows, account, data, rule, ceiling)
    if left is None or (stated is not None and stated != ceiling):
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
    if rule != account.rule:
        return None
    # The account itself is not yet among those of the data set if this is its first charge.
    others = [other for other in rows.accounts(data) if other.name != account.name]
    if any(other.rule != rule and any(other.spent) for other in others):
        return None
    together = (*others, account)
    first = ceiling[0] - sum(each.spent[0] for each in together)
    second = ceiling[1] - sum(each.spent[1] for each in together)
    return first, second
