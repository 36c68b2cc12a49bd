"""``sfumato preview`` and ``sfumato release``: a plan is paid for once, within its budget."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., tuple[int, str, str]]


def test_a_plan_twice_prints_the_same_and_costs_once(sfumato: Run) -> None:
    first = sfumato("release", "plan.toml", "--ledger", "b.db", "--json")
    balance = sfumato("ledger", "show", "--ledger", "b.db", "--json")
    second = sfumato("release", "plan.toml", "--ledger", "b.db", "--json")
    assert first[0] == second[0] == 0
    assert first[1] == second[1]
    assert sfumato("ledger", "show", "--ledger", "b.db", "--json") == balance
    assert json.loads(balance[1])[0]["spent"] == [500_000_000, 0]
    answers = json.loads(first[1])
    assert [a["type"] for a in answers] == ["histogram-release", "partition", "histogram-release"]


def test_a_plan_in_a_pipe_is_tab_separated(sfumato: Run) -> None:
    code, out, err = sfumato("release", "plan.toml", "--ledger", "b.db")
    assert code == 0
    assert out.splitlines()[:2] == [
        "# Histogram of kind x age",
        "kind\tage\tage_lower\tage_upper\tcount\tlow\thigh",
    ]
    assert "Pure differential privacy" in err
    assert "Remaining: epsilon = 1.5" in err
    assert "2013-01-02" in out


def test_beyond_the_budget_is_exit_3_and_publishes_nothing(sfumato: Run) -> None:
    assert sfumato("release", "plan.toml", "--ledger", "b.db")[0] == 0
    code, out, err = sfumato("release", "dear.toml", "--ledger", "b.db", "--out", "saved")
    assert (code, out) == (3, "")
    assert "epsilon = 5" in err
    assert "epsilon = 1.5" in err
    assert not Path("saved").exists()
    assert json.loads(sfumato("ledger", "show", "--ledger", "b.db", "--json")[1])[0]["spent"] == [
        500_000_000,
        0,
    ]


def test_previews_touch_neither_data_nor_ledger(sfumato: Run) -> None:
    Path("people.parquet").unlink()
    code, out, _ = sfumato("preview", "plan.toml", "--rows", 300)
    assert code == 0
    assert "Histogram of kind x age at epsilon = 0.25" in out
    assert list(Path().glob("*.db")) == []
    code, out, _ = sfumato("preview", "plan.toml", "--json")
    assert len(json.loads(out)) == 3


def test_a_plan_may_state_the_ceiling_of_its_data_set(sfumato: Run) -> None:
    plan = Path("plan.toml").read_text()
    named = plan.replace("[source]\n", '[source]\nname = "people"\n', 1)
    assert named != plan
    capped = named.replace("[budget]\n", "[budget]\nceiling = 0.6\n", 1)
    for number, code in enumerate((0, 3), 1):
        Path(f"{number}.toml").write_text(
            capped.replace('account = "people"', f'account = "people-{number}"')
        )
        assert f"people-{number}" in Path(f"{number}.toml").read_text()
        found, _, err = sfumato("release", f"{number}.toml", "--ledger", "b.db")
        assert found == code, err
    assert "ceiling" in err
