"""Commands that ask one question about one file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import sfumato as sf

Run = Callable[..., tuple[int, str, str]]


def test_histogram_and_partition_of_one_file(sfumato: Run) -> None:
    args = [
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
        *args,
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
    code, out, err = sfumato("partition", *args, "--json", "--partitions", 7)
    assert code == 0, err
    assert len(json.loads(out)[0]["counts"]) == 7
    (saved,) = Path("saved").glob("*.json")
    code, out, _ = sfumato("report", saved, "--out", "page.html")
    assert (code, out) == (0, "page.html\n")
    assert "Content-Security-Policy" in Path("page.html").read_text()


def test_json_holds_the_table_that_people_see(sfumato: Run) -> None:
    args = [
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
        code, out, err = sfumato(command, *args)
        assert code == 0, err
        (answer,) = json.loads(out)
        assert columns <= set(answer["table"])
        Path("one.json").write_text(json.dumps(answer))
        assert sf.load("one.json").to_frame().to_pydict() == answer["table"]


def test_rho_pays_from_an_account_in_rho(sfumato: Run) -> None:
    args = ["people.parquet", "--axis", "age=0..120", "--ledger", "b.db", "--json"]
    code, out, err = sfumato("histogram", *args, "--rho", "0.02", "--budget", "0.1")
    assert code == 0, err
    assert json.loads(out)[0]["law"]["type"] == "discrete-gaussian"
