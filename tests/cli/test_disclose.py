"""``sfumato disclose``: from a plan to an entry, with the plan's own table of facts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from support import pages

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "disclosure.md"
Run = Callable[..., tuple[int, str, str]]
FACTS = """
[publication]
data_curators = ["Town"]
intended_use = "Planning"
data_product_region = "Here"
data_product_sector = "Government"
registry_authors = ["Somebody"]
sources = "example.org/plan"
"""


@pytest.fixture
def saved(sfumato: Run) -> list[str]:
    """The answers to a plan that says who publishes."""
    plan = Path("plan.toml")
    plan.write_text(plan.read_text() + FACTS)
    assert sfumato("release", "plan.toml", "--ledger", "b.db", "--out", "saved")[0] == 0
    return sorted(str(path) for path in Path("saved").iterdir())


def test_a_plan_is_disclosed(sfumato: Run, saved: list[str]) -> None:
    code, out, err = sfumato(
        "disclose", *saved, "--ledger", "b.db", "--facts", "plan.toml", "--out", "people.yaml"
    )
    assert (code, out) == (0, "people.yaml\n")
    assert "Left for you" not in err
    entry = yaml.safe_load(Path("people.yaml").read_text())
    assert entry["url_slug"] == "people"
    assert entry["deployment"]["product"]["data_curators"] == ["Town"]
    assert "Link: example.org/plan" in entry["deployment"]["resources"]["sources"]


def test_what_is_left_is_said(sfumato: Run, saved: list[str]) -> None:
    code, out, err = sfumato("disclose", *saved, "--checklist", "c.html")
    assert (code, out) == (0, "disclosure.yaml\nc.html\n")
    assert "The releases were not verified: give --ledger." in err
    assert "  intended_use: what the data are published for, and for whom\n" in err
    code, out, _ = sfumato("disclose", *saved, "--json")
    found = json.loads(out)
    assert found["filled"] >= 0.8 * found["fields"]
    assert len(found["missing"]) == 5
    assert found["verified"] is False


def test_the_figures_of_an_audit_are_in_it(sfumato: Run, saved: list[str]) -> None:
    audit = ROOT / "docs" / "evidence" / "audit.json"
    assert sfumato("disclose", *saved, "--audit", audit)[0] == 0
    entry = yaml.safe_load(Path("disclosure.yaml").read_text())
    findings = json.loads(audit.read_text())
    ok = sum(one["ok"] for one in findings)
    said = entry["deployment"]["accounting"]["auditing"]
    assert f"behind {len(findings)} claims" in said
    assert f"{ok} kept within their claim" in said
    for wrong in (saved[0], "none.json"):
        code, _, err = sfumato("disclose", *saved, "--audit", wrong)
        assert code == 4
        assert f"the audit {wrong}" in err


def test_an_edited_release_is_exit_4(sfumato: Run, saved: list[str]) -> None:
    path = Path(saved[0])
    plain = json.loads(path.read_text())
    plain["counts"][0] += 1
    path.write_text(json.dumps(plain))
    code, out, err = sfumato("disclose", *saved, "--ledger", "b.db")
    assert (code, out) == (4, "")
    assert "it differs from the answer that is stored" in err
    assert not Path("disclosure.yaml").exists()


def test_facts_without_their_table_are_refused(sfumato: Run, saved: list[str]) -> None:
    Path("facts.toml").write_text('data_curators = ["Town"]\n')
    code, _, err = sfumato("disclose", *saved, "--facts", "facts.toml")
    assert code == 2
    assert "it has no table [publication]" in err
    Path("facts.toml").write_text('[publication]\ncurators = ["Town"]\n')
    code, _, err = sfumato("disclose", *saved, "--facts", "facts.toml")
    assert code == 2
    assert "did you mean 'data_curators'?" in err


def test_another_account_or_none_is_refused(sfumato: Run, saved: list[str]) -> None:
    code, _, err = sfumato("disclose", *saved, "--ledger", "b.db", "--account", "others")
    assert code == 2
    assert "paid for by the account 'people'" in err
    assert sfumato("disclose")[0] == 2
    assert sfumato("disclose", *saved, "--ledger", "none.db")[0] == 5


def test_the_commands_of_the_page_work_as_they_are_pasted(sfumato: Run) -> None:
    table = ROOT / "examples" / "visits.csv"
    axes = ("--axis", "age=0..120", "--person", "patient", "--epsilon", "1")
    assert sfumato("init", table, *axes, "--out", "visits.toml")[0] == 0
    (facts,) = [text for language, text in pages.blocks(PAGE) if language == "toml"]
    with Path("visits.toml").open("a", encoding="utf-8") as plan:
        plan.write(f"\n{facts}")
    for command in pages.commands(PAGE):
        globs = [sorted(map(str, Path().glob(one))) if "*" in one else [one] for one in command]
        code, _, err = sfumato(*(word for words in globs for word in words))
        assert code == 0, err
    assert "TODO" not in Path("visits.yaml").read_text(encoding="utf-8")
    assert "TODO: " in Path("checklist.html").read_text(encoding="utf-8")
