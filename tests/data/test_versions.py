"""A version tells one state of a data set from another; true counts are no method of a source."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.cli import run

X = sf.Domain(x=sf.Interval(0, 4))
FRAME = pa.table({"x": [0.5, 1.5, 1.5]})


def made(**more: object) -> sf.data.Source:  # type: ignore[name-defined]
    return sf.source(FRAME, X, **more)  # type: ignore[arg-type]


def test_true_counts_are_no_method_of_a_source() -> None:
    src = made(name="n")
    shown = [name for name in dir(src) if not name.startswith("_")]
    assert shown == ["domain", "in_memory", "label", "name", "require", "title", "unit", "version"]
    assert not hasattr(sf, "count")


def test_a_version_is_part_of_what_tells_data_apart(tmp_path: Path) -> None:
    first, second = made(name="flights", version=1), made(name="flights", version="2")
    assert (first.name, first.version, first.title) == ("flights", "1", "flights, version 1")
    assert (second.version, second.title) == ("2", "flights, version 2")
    assert made(name="flights", version=2).label == second.label != first.label
    assert made(name="flights").label not in (first.label, second.label)
    assert made(name="flights, version 2").label != second.label
    assert made(version=dt.date(2026, 11, 1)).version == "2026-11-01"
    assert made(version=3).title == "pyarrow Table, version 3"
    path = tmp_path / "t.csv"
    path.write_text("x\n1\n")
    of_file = sf.source(path, X, version=3)
    assert of_file.title == "t.csv, version 3"
    assert of_file.label.startswith(sf.source(path, X).label)
    again = pickle.loads(pickle.dumps(of_file))
    assert (again.label, again.version) == (of_file.label, "3")


@pytest.mark.parametrize("bad", ["", True, 1.5, b"1", "a\0b", "a\nb"])
def test_versions_and_names_that_are_refused(bad: object) -> None:
    asked: list[Callable[[], object]] = [lambda: made(version=bad)]
    if not isinstance(bad, bool | float | bytes):
        asked.append(lambda: made(name=bad))
    for ask in asked:
        with pytest.raises(sf.UsageError):
            ask()


def test_a_new_version_of_a_named_table_is_counted_and_paid_for(tmp_path: Path) -> None:
    more = pa.table({"x": [3.5] * 1000})
    for path in (None, tmp_path / "budget.db"):
        with sf.Publisher(
            made(name="t", version=1), ledger=path, account="a", budget="100000"
        ) as publisher:
            publisher.release(sf.Histogram("x", bins=4), epsilon="1000")
    with sf.Publisher(
        sf.source(more, X, name="t", version=2), ledger=tmp_path / "budget.db", account="a"
    ) as publisher:
        answer = publisher.release(sf.Histogram("x", bins=4), epsilon="1000")
        assert answer.values.tolist() == [0, 0, 0, 1000]
        assert publisher.remaining == 98_000
        assert answer.receipt is not None
        assert answer.receipt.source == "t, version 2"


def test_versions_on_the_command_line_and_in_plans(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x\n1\n")
    ledger = ["--ledger", str(tmp_path / "b.db"), "--json"]
    asked = [
        "histogram",
        str(path),
        "--axis",
        "x=0..4/1",
        "--epsilon",
        "1",
        "--budget",
        "9",
        *ledger,
    ]
    spent = []
    for more in (["--data-version", "1"], ["--data-version", "1"], ["--data-version", "2"]):
        assert run([*asked, *more]) == 0
        printed = json.loads(capsys.readouterr().out)[0]
        spent.append((printed["receipt"]["entry"], printed["receipt"]["source"]))
    assert spent[0] == spent[1] != spent[2]
    assert spent[2][1] == "t.csv, version 2"
    plan = tmp_path / "plan.toml"
    for version, shown in (("7", "7"), ('"a"', "a"), ("2026-11-01", "2026-11-01")):
        plan.write_text(
            f'[source]\npath = "t.csv"\nversion = {version}\n'
            '[domain]\nx = { type = "interval", lower = 0, upper = 4, step = 1 }\n'
            '[budget]\naccount = "default"\n[release]\nepsilon = "1"\n'
            '[[questions]]\ntype = "histogram"\naxes = ["x"]\n'
        )
        assert run(["release", str(plan), *ledger]) == 0
        assert (
            json.loads(capsys.readouterr().out)[0]["receipt"]["source"] == f"t.csv, version {shown}"
        )
