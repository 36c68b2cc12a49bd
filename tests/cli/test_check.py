"""The check says by its exit code whether a release would be refused."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from sfumato.cli import run

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_check_that_finds_a_refusal_does_not_exit_as_done(
    sfumato: Run, form: tuple[str, ...]
) -> None:
    plan = Path("plan.toml").read_text(encoding="utf-8")
    assert sfumato("check", "plan.toml", *form)[0] == 0
    Path("wrong.toml").write_text(plan.replace("day", "dai"))
    code, checked, err = sfumato("check", "wrong.toml", *form)
    assert code == sfumato("release", "wrong.toml")[0] == 4
    assert err == ""
    if form:
        assert "column 'dai'" in json.loads(checked)["refused"]
    else:
        assert "a release would be refused, and nothing charged" in checked


def test_what_a_plan_may_not_ask_of_its_persons_is_refused_as_in_a_release(sfumato: Run) -> None:
    plan = Path("plan.toml").read_text(encoding="utf-8")
    counted = 'type = "histogram"\ncount = "persons"\n'
    Path("rows.toml").write_text(
        plan.replace('person = "who"\n', "").replace('type = "histogram"\n', counted, 1)
    )
    code, out, err = sfumato("check", "rows.toml")
    assert (code, out) == (2, "")
    assert err == sfumato("release", "rows.toml")[2]


# --- labels that are not listed -------------------------------------------------------------------

SHOPS = [f"shop {number:05d}" for number in range(10_000)]


def shops_table(path: str, labels: Sequence[str]) -> str:
    Path(path).write_text("shop\n" + "".join(f"{label}\n" for label in labels))
    return path


def test_all_labels_are_shown_on_the_screen_and_nowhere_else(
    sfumato: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["check", shops_table("t.csv", SHOPS[:40]), "--axis", "shop=mine"]
    code, brief, _ = sfumato(*words)
    assert code == 0
    assert "and 35 further labels; all_labels=True (command line: --all-labels)" in brief
    code, every, _ = sfumato(*words, "--all-labels")
    assert code == 0
    assert all(repr(label) in every for label in SHOPS[:40])
    for checked in (brief, every):
        flowing = " ".join(checked.split())
        assert (
            "If you cannot list the labels of shop from public knowledge, declare sf.Keys()"
            in flowing
        )
        assert max(map(len, checked.splitlines())) <= 80
    code, out, err = sfumato(*words, "--all-labels", "--json")
    assert (code, out) == (2, "")
    assert "--all-labels with --json: all labels are for the screen alone" in err
    with Path("labels.txt").open("w", encoding="utf-8") as file:
        monkeypatch.setattr(sys, "stdout", file)
        assert run([*words, "--all-labels"]) == 2
        assert run(words) == 0
    assert "shop 00039" not in Path("labels.txt").read_text(encoding="utf-8")
    assert "further labels" in Path("labels.txt").read_text(encoding="utf-8")


def test_no_message_prints_ten_thousand_labels(sfumato: Run) -> None:
    table = shops_table("shops.csv", [*SHOPS, *(label.upper() for label in SHOPS), "Shop 7"])
    axis = f"shop={','.join(SHOPS)}"
    code, checked, _ = sfumato("check", table, "--axis", axis)
    assert code == 0
    assert "10,001 rows have a label that is not listed" in checked
    assert "and 9,996 further labels" in checked
    assert "10,000 of 20,001 rows are counted" in checked
    assert "nearest listed: 'shop 0" in checked
    assert sfumato("init", table, "--header-row", "1", "--axis", axis, "--out", "p.toml")[0] == 0
    code, previewed, _ = sfumato("preview", "p.toml")
    assert code == 0
    assert "each of 10,000 counts" in previewed
    code, released, said = sfumato("release", "p.toml", "--ledger", "b.db", "--json")
    assert code == 0
    assert len(json.loads(released)[0]["table"]["shop"]) == 10_000
    refusals = [
        sfumato("check", table, "--axis", f"{axis},,x"),
        sfumato("check", table, "--axis", f"{axis},shop 00000"),
        sfumato("check", table, "--axis", axis, "--where", "shop=none"),
        sfumato("check", table, "--axis", f'{axis},"x'),
    ]
    assert [code for code, _, _ in refusals] == [2] * 4
    for message in (checked, previewed, said, *(err for _, _, err in refusals)):
        assert sum(label in message for label in SHOPS) < 30
