"""sfumato persons: asked of a file with a person column, with or without axes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from cli.conftest import Run

ASK = ("persons", "people.parquet", "--epsilon", ".5", "--budget", "2", "--most-rows", "20")


@pytest.mark.parametrize("more", [(), ("--axis", "age=0..120")], ids=["no axis", "an axis"])
def test_it_prints_every_limit_and_what_it_leaves_out(sfumato: Run, more: tuple[str, ...]) -> None:
    code, out, err = sfumato(*ASK, "--person", "who", *more, "--out", "saved")
    assert code == 0, err
    assert out.startswith("# Rows of each person\nrows\tcount\tlow\thigh\tlimit\taffected")
    assert "If at most " in err
    assert "for any one person with any number of rows" in err
    assert [path.name for path in Path("saved").iterdir()] == ["01-rows-of-each-person.json"]


def test_its_json_has_the_release_and_the_table(sfumato: Run) -> None:
    code, out, _ = sfumato(*ASK, "--person", "who", "--json")
    assert code == 0
    (release,) = json.loads(out)
    assert release["type"] == "persons-release"
    assert release["table"]["limit"][-1] == 20


def test_without_a_person_column_nothing_is_charged(sfumato: Run) -> None:
    code, _, err = sfumato(*ASK)
    assert code == 2
    assert "Give --person NAME" in err
    assert not Path("sfumato.db").exists()


def test_a_column_that_is_not_there_is_named(sfumato: Run) -> None:
    code, _, err = sfumato(*ASK, "--person", "nobody")
    assert code == 4
    assert "nobody" in err
    assert not Path("sfumato.db").exists()


def test_its_table_fits_on_a_terminal_of_80_columns(
    sfumato: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    sfumato(*ASK, "--person", "who")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    code, out, err = sfumato(*ASK, "--person", "who")
    assert code == 0, err
    assert "…" not in out
    rows = [line.split("│") for line in out.splitlines() if line.startswith("│")]
    assert {len(row) for row in rows} == {7}
    # No cell is broken into two lines: each begins with the bin's name.
    assert all(row[1].strip() for row in rows)
    assert [each.strip() for each in rows[-1][4:6]] == ["0", "100%"]
