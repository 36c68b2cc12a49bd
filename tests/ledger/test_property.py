"""Whatever is asked, in whatever order: never over the total, and the books balance."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import BudgetExceeded, LedgerError, UsageError
from sfumato.ledger import Ledger, open_ledger

amounts = st.tuples(st.integers(0, 40), st.integers(0, 40)) | st.tuples(
    st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1)
)
steps = st.tuples(
    st.sampled_from("ab"),
    st.sampled_from("klmnop"),
    amounts,
    st.sampled_from(["store", "fail", "hold"]),
)


def ask(ledger: Ledger, account: str, key: str, cost: tuple[int, int], way: str) -> str:
    """Reserve, and go on in one of three ways; what came of it."""
    try:
        with ledger.reserve(
            account, key, repr(cost), cost, "", wait=0, lease=0 if way == "hold" else 900
        ) as hold:
            if way == "store":
                hold.store(repr(cost).encode())
            if way == "fail":
                raise ZeroDivisionError
    except BudgetExceeded:
        return "over"
    except UsageError:
        return "conflict"
    except (ZeroDivisionError, LedgerError):
        return "unanswered"
    return "left"


@settings(max_examples=60, deadline=None)
@given(
    total=st.tuples(st.integers(0, 100), st.integers(0, 100)), asked=st.lists(steps, max_size=25)
)
def test_the_sum_of_reserved_costs_never_exceeds_the_total_and_is_what_was_spent(total, asked):
    with open_ledger(None) as ledger:
        for name in "ab":
            ledger.open_account(name, "marbles", total)
        first: dict[tuple[str, str], tuple[int, int]] = {}
        for name, key, cost, way in asked:
            left, before = ledger.account(name).remaining, first.get((name, key))
            outcome = ask(ledger, name, key, cost, way)
            affordable = cost[0] <= left[0] and cost[1] <= left[1]
            assert outcome == "over" if before is None and not affordable else outcome != "over"
            assert (outcome == "conflict") == (before not in (None, cost))
            if before is None and outcome != "over":
                first[name, key] = cost
        for account in ledger.accounts():
            costs = [entry.cost for entry in ledger.log(account.name) if entry.kind == "reserve"]
            assert account.spent == (sum(c[0] for c in costs), sum(c[1] for c in costs))
            assert all(spent <= limit for spent, limit in zip(account.spent, total, strict=True))
        assert ledger.verify().ok
