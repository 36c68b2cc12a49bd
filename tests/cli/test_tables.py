"""sfumato tables: a family of tables in estimates and in whole numbers, on screen and in files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import sfumato as sf
from cli.conftest import Run

ASK = (
    *("tables", "people.parquet", "--axis", "age=0..120", "--axis", "kind=a,b", "--bins", "4"),
    *("--table", "age,kind", "--table", "kind", "--rho", ".5", "--budget", "1"),
)


def rows_of(out: str) -> list[list[str]]:
    return [line.split("\t") for line in out.splitlines()]


def test_a_pipe_has_all_tables_one_after_another(sfumato: Run) -> None:
    code, out, err = sfumato(*ASK)
    assert code == 0, err
    title, head, *rows = rows_of(out)
    assert title == ["# Tables of age x kind, kind"]
    assert head == [*("table", "age", "age_lower", "age_upper", "kind"), "count", "low", "high"]
    assert [row[0] for row in rows] == ["age x kind"] * 8 + ["kind"] * 2
    assert "Any two of these tables agree in all totals that they share." in err


def test_whole_numbers_add_up(sfumato: Run) -> None:
    code, out, err = sfumato(*ASK, "--published")
    assert code == 0, err
    _, head, *rows = rows_of(out)
    at = head.index("published")
    crossed = sum(int(row[at]) for row in rows if row[0] == "age x kind")
    assert crossed == sum(int(row[at]) for row in rows if row[0] == "kind")
    assert "whole numbers of at least 0 that add up" in err
    code, out, _ = sfumato(*ASK, "--published", "--json")
    (release,) = json.loads(out)
    assert [str(count) for count in release["table"]["published"]] == [row[at] for row in rows]
    assert release["type"] == "tables-release"


def test_a_terminal_has_a_table_each_that_fits(
    sfumato: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    sfumato(*ASK)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    code, out, err = sfumato(*ASK, "--published")
    assert code == 0, err
    assert "…" not in out
    assert max(len(line) for line in out.splitlines() if line.startswith("│")) <= 80
    lines = [line.rstrip() for line in out.splitlines()]
    assert "age x kind" in lines
    assert "kind" in lines


def test_files_for_spreadsheets(sfumato: Run) -> None:
    pytest.importorskip("xlsxwriter", reason="make venv installs it")
    code, _, err = sfumato(*ASK, "--csv", "csv", "--excel", "t.xlsx", "--out", "saved")
    assert code == 0, err
    assert sorted(path.name for path in Path("csv").iterdir()) == [
        "01-age-x-kind.csv",
        "02-kind.csv",
    ]
    assert Path("t.xlsx").stat().st_size > 0
    (saved,) = Path("saved").iterdir()
    assert isinstance(sf.load(saved), sf.TablesRelease)
    code, _, err = sfumato(*ASK, "--csv", "all.csv", "--published")
    assert code == 0, err
    assert "published" in Path("all.csv").read_text().splitlines()[0]


def test_totals_are_met_exactly(sfumato: Run) -> None:
    table = {"kind": ["a"] * 7 + ["b"] * 5, "age": list(range(12))}
    Path("small.csv").write_text(
        "kind,age\n" + "\n".join(f"{k},{a}" for k, a in zip(*table.values(), strict=True))
    )
    ask = ("tables", "small.csv", "--axis", "kind=a,b", "--axis", "age=0..12", "--bins", "2")
    paid = ("--rho", "0.1", "--budget", "1", "--table", "kind,age", "--totals", "12")
    code, _, err = sfumato(*ask, *paid)
    # An axis without a cell for other values may drop rows, which the totals count.
    assert code == 2
    assert "drops rows" in err
    assert not Path("sfumato.db").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--table", "colour"), "colour"),
        (("--table", "kind,age"), "it is asked for twice"),
        (("--csv", "nowhere/all.csv"), "its folder does not exist"),
        (("--excel", "nowhere/t.xlsx"), "its folder does not exist"),
        (("--totals", "300", "--person", "who"), "each person has limited rows"),
    ],
)
def test_mistakes_cost_nothing(sfumato: Run, more: tuple[str, ...], said: str) -> None:
    code, _, err = sfumato(*ASK, *more)
    assert code in (2, 4)
    assert said in err
    assert not Path("sfumato.db").exists()


def test_whole_numbers_that_need_not_exist_are_refused_before_the_charge(sfumato: Run) -> None:
    axes = [word for name in "abcd" for word in ("--axis", f"{name}=0..100/1")]
    tables = [word for name in ("a,b,c", "a,b,d", "a,c,d", "b,c,d") for word in ("--table", name)]
    code, _, err = sfumato(
        *("tables", "people.parquet", *axes, *tables, "--epsilon", "1", "--budget", "1"),
        *("--bins", "40", "--published"),
    )
    assert code == 2
    assert "no whole numbers may agree in all" in err
    assert not Path("sfumato.db").exists()
