"""sfumato histogram: solving for epsilon, previews without data, unknown keys."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.cli import run
from sfumato.cli.output import table


def said(args: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> tuple[str, str]:
    assert run(["histogram", *args]) == code
    found = capsys.readouterr()
    return found.out, found.err


def test_it_solves_for_epsilon_without_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = said(["--accuracy", "30", "--confidence", ".95"], capsys)
    assert "epsilon = 0.09818124" in err
    assert "within +-30" in out
    out, _ = said(["--accuracy", "30", "--neighbours", "replace", "--json"], capsys)
    assert json.loads(out)["accuracy"] == 30
    _, err = said(["--axis", "hour=0..24/1", "--accuracy", "30", "--simultaneous"], capsys)
    assert "epsilon = 0.2014" in err


def test_noise_with_a_bound_is_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--noise", "bounded", "--epsilon", "1", "--delta", "1e-6"]
    out, _ = said([*asked, "--rows-per-person", "4"], capsys)
    assert "each count is never more than 55 off" in out
    out, _ = said([*asked, "--json"], capsys)
    assert json.loads(out)["preview"]["law"] == {
        "type": "truncated-laplace",
        "scale": "1",
        "bound": 14,
    }


def test_a_preview_touches_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = said(
        ["nowhere.parquet", "--axis", "shop=*", "--epsilon", "1", "--delta", "1e-6", "--preview"],
        capsys,
    )
    assert "a key held by 16 rows is shown with probability at least 95%" in out


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["x.parquet", "--epsilon", "1"], "no axis"),
        (["--accuracy", "30", "--epsilon", "1"], "either"),
        (["--accuracy", "-1"], "accuracy"),
        (["--axis", "shop=*", "--epsilon", "1"], "delta"),
        (["--noise", "bounded", "--epsilon", "1"], "needs a delta"),
        (["--noise", "bounded", "--rho", "1"], "Give epsilon and delta"),
        (["--noise", "laplace", "--epsilon", "1"], "bounded"),
        (["--axis", "x=0..1", "--width", "x=0", "--epsilon", "1"], "width"),
        (["--axis", "x=0..1", "--records", "10", "--bins", "4", "--epsilon", "1"], "records"),
        (["--axis", "x=0..1", "--axis", "y=0..1", "--records", "10", "--epsilon", "1"], "one axis"),
        ([], "cost"),
    ],
    ids=str,
)
def test_refusals(args: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert word in said(args, capsys, code=2)[1]


def test_unknown_keys_from_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(
        pa.table({"shop": ["b"] * 300 + ["a"] * 200 + ["rare"], "n": [1] * 501}), "t.parquet"
    )
    args = [
        "t.parquet",
        "--axis",
        "shop=*",
        "--epsilon",
        "1",
        "--delta",
        "1e-6",
        "--budget",
        "3,1e-5",
        "--plot",
        "k.png",
    ]
    out, err = said(args, capsys)
    lines = [line.split("\t") for line in out.splitlines()]
    assert [line[0] for line in lines] == ["# Histogram of shop", "shop", "a", "b"]
    assert "Remaining in account 'default': epsilon = 2, delta = 0.000009" in err
    assert Path("k.png").stat().st_size > 1000
    out, _ = said(
        [
            "t.parquet",
            "--axis",
            "n=0..10",
            "--width",
            "2.5",
            "--accuracy",
            "5",
            "--account",
            "w",
            "--budget",
            "1",
        ],
        capsys,
    )
    assert len(out.splitlines()) == 6


def test_bins_by_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    out, _ = said(
        ["--axis", "n=0..1000", "--records", "100", "--rows", "1000", "--epsilon", "1"], capsys
    )
    assert "each of 10 counts" in out
    pq.write_table(pa.table({"n": list(range(1000))}), "t.parquet")
    args = [
        "t.parquet",
        "--axis",
        "n=0..1000/1",
        "--records",
        "100",
        "--epsilon",
        "10",
        "--budget",
        "10",
        "--plot",
        "r.png",
    ]
    out, _ = said(args, capsys)
    assert 9 <= len(out.splitlines()) - 2 <= 11
    assert Path("r.png").stat().st_size > 1000


LABELS = ["[red]a[/]", "[/b]", "tab\there", "line\nbreak", "\x1b[31mred\x07", "\u202eabc", "plain"]


@pytest.mark.parametrize("terminal", [False, True])
def test_labels_neither_break_rows_nor_steer_the_terminal(terminal, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    table(["shop", "count"], [[label, 3] for label in LABELS], title="[/] of\tshops")
    out, _ = capsys.readouterr()
    for shown in (
        "[red]a[/]",
        "[/b]",
        "tab\\there",
        "line\\nbreak",
        "\\x1b[31mred\\x07",
        "\\u202eabc",
        "plain",
        "[/] of\\tshops",
    ):
        assert shown in out
    assert not any(steering in out for steering in ("\x1b[31m", "\x07", "\u202e"))
    if not terminal:
        assert [line.count("\t") for line in out.splitlines()] == [0, *[1] * (len(LABELS) + 1)]


def test_years_have_no_separator_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    table(["year", "count"], [[2003, 2003]], kinds=["label", "amount"])
    out, _ = capsys.readouterr()
    assert " 2003 " in out
    assert " 2,003 " in out


def test_bins_of_unequally_many_whole_numbers_are_named_beside_the_answer(
    sfumato: Callable[..., tuple[int, str, str]],
) -> None:
    words = ("histogram", "people.parquet", "--epsilon", "1", "--ledger", "w.db", "--budget", "9")
    _, _, err = sfumato(*words, "--axis", "age=0..12")
    assert "If age has only whole numbers, some of its bins hold 2 of them and others 1:" in err
    _, _, err = sfumato(*words, "--axis", "age=0..13/1")
    assert "whole numbers" not in err
