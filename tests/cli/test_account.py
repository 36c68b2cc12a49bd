"""``sfumato account``: what is left, by curves and by sums."""

from __future__ import annotations

import json
from collections.abc import Callable

Run = Callable[..., tuple[int, str, str]]


def test_what_is_left_is_said_in_answers(sfumato: Run) -> None:
    by_curves = ("--epsilon", "2", "--delta", "1e-6", "--composition", "curves")
    assert sfumato("ledger", "init", "counts", *by_curves)[0] == 0
    assert sfumato("ledger", "init", "sums", "--rho", "0.5")[0] == 0
    code, out, _ = sfumato("account", "counts", "--epsilon", "0.01")
    assert code == 0
    assert out.splitlines() == [
        "account 'counts': epsilon = 2, delta = 0.000001, by curves",
        "  left for one more answer: at most epsilon = 2.000000851, delta = 0.00000025",
        "  1,682 more answers at epsilon = 0.01 (by sums 200)",
    ]
    code, out, _ = sfumato("account", "--json", "--rho", "0.001")
    assert code == 0
    counts, sums = json.loads(out)
    assert (counts["composition"], sums["composition"]) == ("curves", "sum")
    assert sums["remaining_answers"] == 500
    assert counts["remaining_answers"] > 50


def test_what_a_widened_account_spent_in_rho_is_shown(sfumato: Run) -> None:
    target = ("--widens-to", "5.4,1e-6")
    assert sfumato("ledger", "init", "wide", "--rho", "0.5", *target)[0] == 0
    assert "may be widened, once, to epsilon = 5.4, delta = 0.000001" in sfumato("account")[1]
    question = ("histogram", "people.parquet", "--axis", "age=0..120", "--account", "wide")
    code, _, err = sfumato(*question, "--rho", "0.1")
    assert code == 0
    assert "Remaining in account 'wide': rho = 0.4." in err
    code, out, _ = sfumato("ledger", "widen", "wide")
    assert code == 0
    assert "\tepsilon = 0, delta = 0, rho = 0.1\t" in out
    out = sfumato("account", "wide")[1]
    assert "may be widened" not in out
    # What rho would have left by sums of epsilon is not known.
    assert "more answers at epsilon = 0.05" in out
    assert "by sums" not in out
    code, _, err = sfumato(*question, "--rho", "4")
    assert code == 3
    assert "a charge of rho = 4 to account 'wide': by curves the largest that fits" in err
    code, _, err = sfumato(*question, "--rho", "0.01")
    assert code == 0
    assert "Remaining in account 'wide' for one more answer: at most epsilon = " in err


def test_a_cost_that_is_none_is_refused(sfumato: Run) -> None:
    assert sfumato("ledger", "init", "sums", "--epsilon", "1")[0] == 0
    code, _, err = sfumato("account", "sums", "--epsilon", "1", "--rho", "1")
    assert code == 2
    assert "--epsilon and --rho are both given" in err
    code, _, err = sfumato("account", "sum")
    assert code == 2
    assert "sums" in err
