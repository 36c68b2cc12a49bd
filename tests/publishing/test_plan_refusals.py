"""A wrong plan is refused by its table and field; ``test_mistakes`` has the words."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import sfumato as sf
from sfumato.answers import registry
from sfumato.publishing.plan_file import AXES, TABLES, read_plan
from support.mistakes import CANARY, PLAN


def refused(folder: Path, text: str, name: str = "mine.toml") -> str:
    """What is said of a plan."""
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(sf.UsageError) as refusal:
        read_plan(folder / name)
    assert len(refusal.value.args) == 3
    return str(refusal.value)


@pytest.mark.parametrize("table", TABLES)
def test_a_misspelt_field_of_each_table_is_named(table: str, tmp_path: Path) -> None:
    field = msgspec.structs.fields(TABLES[table])[0].name
    plan = PLAN if f"[{table}]" in PLAN else f"{PLAN}\n[{table}]\n"
    said = refused(tmp_path, plan.replace(f"[{table}]", f"[{table}]\n{field}{field[-1]} = 1"))
    assert f"[{table}]: it has no field {field + field[-1]!r}; did you mean {field!r}?" in said


@pytest.mark.parametrize("tag", AXES)
def test_each_kind_of_axis_is_known(tag: str, tmp_path: Path) -> None:
    said = refused(
        tmp_path, PLAN.replace("[budget]", f'x = {{ type = "{tag}", lowr = 1 }}\n[budget]')
    )
    assert "axis 'x': it has no field 'lowr'" in said


def test_each_question_is_named_by_its_number(tmp_path: Path) -> None:
    for kind in registry.questions():
        tag = registry.tag_of(kind)
        said = refused(tmp_path, f'{PLAN}\n[[questions]]\ntype = "{tag}"\nxylophone = 1\n')
        assert "question 2: it has no field 'xylophone'" in said


def test_a_table_by_another_name_is_not_quoted(tmp_path: Path) -> None:
    """A file that is no plan may hold data."""
    rows = f"patient,ward\nP{CANARY}001,Surgery\n"
    for text in (rows, rows.splitlines()[1], f'P{CANARY} = "', f"{{'P{CANARY}': 1}}"):
        assert CANARY not in refused(tmp_path, text)
    assert CANARY not in refused(tmp_path, rows, "visits.csv")


def test_what_is_right_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(PLAN, encoding="utf-8")
    assert read_plan(tmp_path / "mine.toml").source.path == str(tmp_path / "visits.csv")
