"""The command line: exit codes, stdout for data and stderr for talk, JSON everywhere, help for every command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.cli import COMMANDS, cli, run
from sfumato.cli.targets import NewFile, NewFolder

Run = Callable[..., tuple[int, str, str]]

PLAN = """
[source]
path = "people.parquet"
person = "who"
rows_per_person = 2

[domain]
age = {{ type = "interval", lower = 0, upper = 120, step = 1 }}
kind = {{ type = "categories", labels = ["a", "b"] }}
day = {{ type = "interval", lower = 2013-01-01, upper = 2013-01-05 }}

[budget]
account = "people"
epsilon = "2"

[release]
epsilon = "{epsilon}"
shares = [2, 1, 1]

[[questions]]
type = "histogram"
axes = ["kind", "age"]
bins = {{ age = [0, 18, 65, 120] }}

[[questions]]
type = "uniform"
axes = ["age"]

[[questions]]
type = "histogram"
axes = "day"
"""


@pytest.fixture
def sfumato(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    days = (np.datetime64("2013-01-01") + rng.integers(0, 4, 300)).astype("datetime64[D]")
    table = {
        "who": rng.integers(0, 90, 300),
        "age": rng.integers(0, 99, 300),
        "kind": rng.choice(["a", "b", "c"], 300),
        "day": days,
    }
    pq.write_table(pa.table(table), "people.parquet")
    Path("plan.toml").write_text(PLAN.format(epsilon="0.5"))
    Path("dear.toml").write_text(PLAN.format(epsilon="5"))

    def call(*words: object) -> tuple[int, str, str]:
        code = run([str(word) for word in words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def every_command() -> list[list[str]]:
    context = click.Context(cli)
    found = []
    for name in sorted(COMMANDS):
        command = cli.get_command(context, name)
        assert command is not None
        found += (
            [[name, sub] for sub in sorted(command.commands)]
            if isinstance(command, click.Group)
            else [[name]]
        )
    return found


@pytest.mark.parametrize("words", every_command(), ids=" ".join)
def test_every_command_has_help_and_json(sfumato: Run, words: list[str]) -> None:
    code, out, _ = sfumato(*words, "--help")
    assert code == 0
    assert "--json" in out
    assert max(map(len, out.splitlines())) <= 100
    assert len(out.splitlines()[2].strip()) > 20  # a sentence that says what it does


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


def test_histogram_and_partition_of_one_file(sfumato: Run) -> None:
    words = [
        "people.parquet",
        "--axis",
        "age=0..120",
        "--person",
        "who",
        "--epsilon",
        "0.5",
        "--budget",
        "2",
        "--ledger",
        "b.db",
    ]
    code, out, err = sfumato(
        "histogram",
        *words,
        "--axis",
        "kind=a,b",
        "--bins",
        "age=0,18,120",
        "--plot",
        "h.png",
        "--out",
        "saved",
    )
    assert code == 0, err
    assert len(out.splitlines()) == 2 + 4
    assert Path("h.png").stat().st_size > 5_000
    code, out, err = sfumato("partition", *words, "--json", "--partitions", 7)
    assert code == 0, err
    assert len(json.loads(out)[0]["counts"]) == 7
    (saved,) = Path("saved").glob("*.json")
    code, out, _ = sfumato("report", saved, "--out", "page.html")
    assert (code, out) == (0, "page.html\n")
    assert "Content-Security-Policy" in Path("page.html").read_text()


@pytest.mark.parametrize(
    ("words", "obstacle"),
    [
        (["--plot", "nowhere/h.png"], "its folder does not exist"),
        (["--geojson", "nowhere/cells.json"], "its folder does not exist"),
        (["--geojson", "."], "it is a folder"),
        (["--out", "people.parquet/saved"], "people.parquet is no folder"),
    ],
)
def test_what_cannot_be_written_is_found_before_it_is_paid(
    sfumato: Run, words: list[str], obstacle: str
) -> None:
    paid = ["--axis", "age=0..120", "--epsilon", "1", "--budget", "1", "--ledger", "b.db"]
    code, out, err = sfumato("partition", "people.parquet", *paid, *words)
    assert (code, out) == (4, "")
    assert obstacle in err
    assert not Path("b.db").exists()


def test_a_folder_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    for kind, name in ((NewFile(), "page.html"), (NewFolder(), "saved")):
        with pytest.raises(sf.DataError, match="may not be written"):
            kind.convert(str(tmp_path / name), None, None)
    (tmp_path / "old.html").touch()
    with pytest.raises(sf.DataError, match="the file may not be written"):
        NewFile().convert(str(tmp_path / "old.html"), None, None)


def test_json_holds_the_table_that_people_see(sfumato: Run) -> None:
    words = [
        "people.parquet",
        "--axis",
        "age=0..120",
        "--epsilon",
        "1",
        "--budget",
        "9",
        "--ledger",
        "b.db",
        "--json",
    ]
    for command, columns in (
        ("cluster", {"age", "age_error", "count", "low", "high"}),
        ("quantiles", {"quantile", "value", "cell_low", "cell_high", "rank_error"}),
        ("histogram", {"age", "age_lower", "age_upper", "count", "low", "high"}),
    ):
        code, out, err = sfumato(command, *words)
        assert code == 0, err
        (answer,) = json.loads(out)
        assert columns <= set(answer["table"])
        Path("one.json").write_text(json.dumps(answer))
        assert sf.load("one.json").to_frame().to_pydict() == answer["table"]


def test_rho_pays_from_an_account_in_rho(sfumato: Run) -> None:
    words = ["people.parquet", "--axis", "age=0..120", "--ledger", "b.db", "--json"]
    code, out, err = sfumato("histogram", *words, "--rho", "0.02", "--budget", "0.1")
    assert code == 0, err
    assert json.loads(out)[0]["law"]["type"] == "discrete-gaussian"


def test_the_ledger_speaks(sfumato: Run) -> None:
    assert sfumato("ledger", "init", "people", "--epsilon", "2", "--ledger", "b.db")[0] == 0
    assert sfumato("ledger", "init", "people", "--epsilon", "3", "--ledger", "b.db")[0] == 2
    assert sfumato("release", "plan.toml", "--ledger", "b.db")[0] == 0
    code, out, _ = sfumato("ledger", "log", "--ledger", "b.db")
    assert code == 0
    assert [line.split("\t")[3] for line in out.splitlines()[1:]] == [
        "open",
        "bind",
        "reserve",
        "store",
        "hand",
    ]
    code, out, _ = sfumato("ledger", "verify", "--ledger", "b.db")
    assert code == 0
    head = out.split("Head: ")[1].strip()
    assert sfumato("ledger", "verify", "--ledger", "b.db", "--head", head)[0] == 0
    assert sfumato("ledger", "verify", "--ledger", "b.db", "--head", "2:" + "0" * 64)[0] == 5
    assert sfumato("ledger", "show", "--ledger", "none.db")[0] == 5


def test_doctor(sfumato: Run) -> None:
    code, out, _ = sfumato("doctor", "--json")
    assert code == 0
    assert {entry["check"] for entry in json.loads(out)} == {
        "sfumato",
        "libraries",
        "extras",
        "randomness",
        "disk",
        "ledger",
    }


def test_the_demo_runs_and_runs_again_for_free(sfumato: Run) -> None:
    code, out, err = sfumato("demo")
    assert code == 0, err
    page = Path(out.removeprefix("Report: ").strip())
    assert page.stat().st_size > 50_000
    saved = {path.name: path.read_bytes() for path in page.parent.glob("*.json")}
    assert len(saved) == 7
    assert sfumato("demo")[0] == 0
    assert saved == {path.name: path.read_bytes() for path in page.parent.glob("*.json")}
    assert sfumato("ledger", "verify", "--ledger", page.parent / "budget.db")[0] == 0


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["histgram"], 2, "did you mean 'histogram'?"),
        (["release"], 2, "Missing argument 'PLAN'"),
        (["release", "none.toml"], 4, "No such file"),
        (["ledger", "init", "x"], 2, "--epsilon or --rho"),
        (["report", "people.parquet"], 4, "does not hold a release"),
        (["histogram", "people.parquet", "--axis", "age", "--epsilon", "1"], 2, "Write age=0..100"),
        (
            ["histogram", "people.parquet", "--axis", "age=0..", "--epsilon", "1"],
            2,
            "one of its bounds is missing",
        ),
        (
            [
                "histogram",
                "people.parquet",
                "--axis",
                "age=0..9",
                "--bins",
                "many",
                "--epsilon",
                "1",
            ],
            2,
            "neither a number",
        ),
        (
            [
                "histogram",
                "people.parquet",
                "--axis",
                "kind=a,b",
                "--bins",
                "3",
                "--epsilon",
                "1",
                "--budget",
                "1",
            ],
            2,
            "have no bins",
        ),
        (
            [
                "partition",
                "people.parquet",
                "--axis",
                "kind=a,b",
                "--epsilon",
                "1",
                "--budget",
                "1",
            ],
            2,
            "Interval axes",
        ),
    ],
)
def test_wrong_words_get_one_clear_sentence(
    sfumato: Run, words: list[str], code: int, says: str
) -> None:
    found, out, err = sfumato(*words)
    assert (found, out) == (code, "")
    assert says in err
    assert "Traceback" not in err


def test_errors_speak_json_too(sfumato: Run) -> None:
    code, out, err = sfumato("release", "none.toml", "--json")
    assert (code, out) == (4, "")
    assert json.loads(err)["error"] == "DataError"


def test_a_reader_that_goes_away_is_no_error(sfumato: Run) -> None:
    shell = f"{sys.executable} -m sfumato release plan.toml --ledger b.db | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", shell],
        capture_output=True,
        text=True,
        env=os.environ,
        check=False,
    )
    assert done.stdout.startswith("# Histogram")
    assert "Traceback" not in done.stderr


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
