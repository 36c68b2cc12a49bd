"""Amounts as people read them, and what is left of them."""

from __future__ import annotations

import pytest

from sfumato.ledger.entries import Account, Spender, Verification, written
from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure, PureDP, rule_of


@pytest.mark.parametrize(
    "cost", [PureDP("0.123456789"), ApproxDP("0.5", "0.000001"), ZCDP("0.012345678901")], ids=str
)
def test_an_amount_is_written_as_the_cost_that_it_counts(cost: CentralMeasure) -> None:
    assert written(rule_of(cost), cost.money) == str(cost)


def test_an_amount_that_its_rule_does_not_name_is_written_in_units() -> None:
    assert written("marbles", (3, 1)) == "(3, 1) units"
    # A delta in an account of epsilon alone is shown, and not left out.
    assert written("pure", (10**9, 1)) == "(1000000000, 1) units"


def test_what_is_left_is_counted_by_component() -> None:
    account = Account("a", "approx", (10, 20), (3, 20))
    assert account.remaining == (7, 0)
    # A ceiling that was lowered below what was spent leaves nothing, and not less.
    assert Spender("a", "ann", "approx", (2, 20), (3, 1)).remaining == (0, 19)


def test_the_first_fault_is_the_one_that_is_named() -> None:
    assert Verification(3, (3, "hash"), ()).fault is None
    assert Verification(3, (3, "hash"), ("one", "two")).fault == "one"
