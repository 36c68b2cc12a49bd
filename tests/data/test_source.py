"""What a source refuses before the charge, shows, and is called; no refusal holds a value."""

from __future__ import annotations

import copy
import datetime as dt
import json
import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from data.refusals import AGE, BY_AGE, CANARY, refused, refuses, write
from sfumato.cli import run
from sfumato.data import Source, count, source
from sfumato.domain.domain import Interval
from sfumato.domain.lattice import LabelAxis, Lattice
from sfumato.errors import BoundsRequired, DataError, UsageError

BY_KIND = Lattice((LabelAxis("kind", ("a",)),))


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_a_missing_or_empty_file_is_refused(name: str, tmp_path: Path) -> None:
    refuses(tmp_path / name, "no such file", name)
    refused(lambda: source(tmp_path / name, AGE).label, DataError, "no such file")
    (tmp_path / name).mkdir()
    refuses(tmp_path / name, "is a directory")
    (tmp_path / name).rmdir()
    refuses(write(tmp_path, "", name), "the file is empty")


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_a_file_without_permission_to_read_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "age\n1\n", name)

    def forbidden(self: Path, *args: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", forbidden)
    refuses(path, "may not be read")


def test_a_column_that_is_missing_or_there_twice_is_refused() -> None:
    for frame in (
        pd.DataFrame({"agge": [1]}),
        pl.DataFrame({"agge": [1]}),
        pa.table({"agge": [1]}),
    ):
        refuses(frame, "no column of that name", "did you mean 'agge'")
    refuses(pa.table([[1], [2]], names=["age", "age"]), "several columns")
    refuses(pd.DataFrame([[1, 2]], columns=["age", "age"]), "several columns")
    # An account is bound to the person's column, so a misspelt one is found before there is any.
    table = pa.table({"age": [1], "rider": [1]})
    misspelt = "'ridr'", "did you mean 'rider'"
    refused(lambda: source(table, AGE, person="ridr"), DataError, *misspelt)


def test_a_first_line_that_is_data_is_not_quoted_for_the_person(tmp_path: Path) -> None:
    path = write(tmp_path, f"{CANARY},31\n8675308,32\n")
    refused(lambda: source(path, AGE, person="rider"), DataError, "in the first line")
    write(tmp_path, "rider,age\np,31\n")
    refused(lambda: source(path, AGE, person="ridr"), DataError, "did you mean 'rider'?")
    source(tmp_path / "none.csv", AGE, person="rider")  # it may come to be
    refuses(pa.table({"age": [1], "p": [[1]]}), "'p'", "ids of persons", person="p")


def test_wrong_arguments_of_a_source_are_refused_at_once() -> None:
    for data in (None, 5, [[1.0]], {"age": [1]}):
        refused(lambda data=data: source(data, AGE), UsageError, "source of type")
    for shape in ((3,), (3, 2), (3, 1, 1)):
        refused(lambda shape=shape: source(np.zeros(shape), AGE), UsageError, "(n, 1)")
    frame = pa.table({"age": [1]})
    refused(lambda: source(frame, None), UsageError, "Domain")
    refused(lambda: source(frame, {}), UsageError)
    refused(lambda: source(frame, {"age": Interval}), BoundsRequired)
    refused(
        lambda: source(frame, AGE, person="p", rows_per_person=0), UsageError, "rows_per_person"
    )
    refused(lambda: source(frame, AGE, neighbours="both"), UsageError, "neighbours")  # type: ignore[arg-type]
    for bad in ("", 3):
        refused(lambda bad=bad: source(frame, AGE, person=bad), UsageError, "person")
        refused(lambda bad=bad: source(frame, AGE, name=bad), UsageError, "name")
    refused(lambda: source(np.zeros((2, 1)), AGE, person="p"), UsageError, "person")
    refused(lambda: source(frame, AGE).require([BY_KIND]), UsageError, "no axis")
    refuses(np.array([[1j]]), "complex128")
    refuses(np.array([[CANARY]], object), "dtype object")
    refuses(np.array([[CANARY]]), "column 'age'")


def test_a_source_shows_no_value_and_no_number_of_rows(tmp_path: Path) -> None:
    frame = pa.table({"age": [int(CANARY)] * 7, "p": [CANARY] * 7})
    for data in (frame, pl.from_arrow(frame), frame.to_pandas()):
        shown = repr(source(data, AGE, person="p"))
        assert CANARY not in shown
        assert "7" not in shown
        assert "age" in shown


def test_labels_tell_data_sets_apart(tmp_path: Path) -> None:
    frame = pa.table({"age": [1]})
    one = source(frame, AGE)
    two = source(frame, AGE)
    assert one.label == one.label != two.label
    assert source(frame, AGE, name="census").label == "census"
    path = write(tmp_path, "age\n1\n")
    src = source(path, AGE)
    named = source(str(path), AGE, name="census")
    before = src.label, named.label
    assert str(path.resolve()) in before[0]
    assert str(path.resolve()) not in before[1]
    assert before[1].startswith("census modified ")
    os.utime(path, ns=(1, 1))
    assert (src.label, named.label) == (
        f"{path.resolve()} modified 1 of 6 bytes",
        "census modified 1 of 6 bytes",
    )
    assert before[0] != src.label
    path.write_text("age\n1\n2\n")
    os.utime(path, ns=(1, 1))
    assert named.label == "census modified 1 of 8 bytes"


def test_only_files_are_pickled(tmp_path: Path) -> None:
    for data in (
        pa.table({"age": [1]}),
        np.zeros((2, 1)),
        pd.DataFrame({"age": [1]}),
        pl.DataFrame({"age": [1]}),
    ):
        refused(lambda data=data: pickle.dumps(source(data, AGE)), UsageError, "in memory")
        refused(lambda data=data: copy.copy(source(data, AGE)), UsageError, "in memory")
    again = pickle.loads(
        pickle.dumps(
            source(write(tmp_path, "age,p\n1,u\n"), AGE, person="p", rows_per_person=2, name="n")
        )
    )
    assert isinstance(again, Source)
    assert (
        again.unit.rows_per_person,
        again.label.split()[0],
        count(again, [BY_AGE])[0].total,
    ) == (2, "n", 1)


FOUR_BINS = sf.Domain(x=sf.Interval(0, 4))


FRAME = pa.table({"x": [0.5, 1.5, 1.5]})


def named_source(**more: object) -> sf.data.Source:  # type: ignore[name-defined]
    return sf.source(FRAME, FOUR_BINS, **more)  # type: ignore[arg-type]


def test_true_counts_are_no_method_of_a_source() -> None:
    src = named_source(name="n")
    shown = [name for name in dir(src) if not name.startswith("_")]
    words = "domain in_memory label name named place read_once require same_rows title unit version"
    assert shown == words.split()
    assert not hasattr(sf, "count")


def test_a_version_is_part_of_what_tells_data_apart(tmp_path: Path) -> None:
    first = named_source(name="flights", version=1)
    second = named_source(name="flights", version="2")
    assert (first.name, first.version, first.title) == ("flights", "1", "flights, version 1")
    assert (second.version, second.title) == ("2", "flights, version 2")
    assert named_source(name="flights", version=2).label == second.label != first.label
    assert named_source(name="flights").label not in (first.label, second.label)
    assert named_source(name="flights, version 2").label != second.label
    assert named_source(version=dt.date(2026, 11, 1)).version == "2026-11-01"
    assert named_source(version=3).title == "pyarrow Table, version 3"
    path = tmp_path / "t.csv"
    path.write_text("x\n1\n")
    of_file = sf.source(path, FOUR_BINS, version=3)
    assert of_file.title == "t.csv, version 3"
    assert of_file.label.startswith(sf.source(path, FOUR_BINS).label)
    again = pickle.loads(pickle.dumps(of_file))
    assert (again.label, again.version) == (of_file.label, "3")


@pytest.mark.parametrize("bad", ["", True, 1.5, b"1", "a\0b", "a\nb"])
def test_versions_and_names_that_are_refused(bad: object) -> None:
    asked: list[Callable[[], object]] = [lambda: named_source(version=bad)]
    if not isinstance(bad, bool | float | bytes):
        asked.append(lambda: named_source(name=bad))
    for ask in asked:
        with pytest.raises(sf.UsageError):
            ask()


def test_a_new_version_of_a_named_table_is_counted_and_paid_for(tmp_path: Path) -> None:
    more = pa.table({"x": [3.5] * 1000})
    for path in (None, tmp_path / "budget.db"):
        with sf.Publisher(
            named_source(name="t", version=1), ledger=path, account="a", budget="100000"
        ) as publisher:
            publisher.release(sf.Histogram("x", bins=4), epsilon="1000")
    with sf.Publisher(
        sf.source(more, FOUR_BINS, name="t", version=2), ledger=tmp_path / "budget.db", account="a"
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


TWO = sf.Interval(0, 2)


def test_a_file_that_changes_while_it_is_read_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": [0.5, 1.5]}), path)
    source = sf.source(path, sf.Domain(x=TWO))
    publisher = sf.Publisher(source, budget=10)

    def meanwhile(*arguments: Any, **more: Any) -> Any:
        pq.write_table(pa.table({"x": [0.5, 1.5, 1.5]}), path)
        return count(*arguments, **more)

    monkeypatch.setattr("sfumato.publishing.counting.count", meanwhile)
    with pytest.raises(sf.DataError, match="changed while it was read"):
        publisher.release(sf.Histogram("x", bins=2), epsilon=1)


def test_the_examples_of_the_page_on_sources_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    assert len(blocks) == 5
    for block in blocks:
        exec(compile(block, "data.md", "exec"), names)
    assert len(names["by_year"].values) == 2  # type: ignore[attr-defined]
    shown = re.findall(r"```text\n(.*?)```", page, flags=re.S)
    assert capsys.readouterr().out == "".join(shown)


# --- limits by cell, and a period -----------------------------------------------------------------

RIDES = pa.table(
    {"x": [0, 0, 1], "rider": [1, 1, 2], "day": pa.array([1, 1, 2], pa.int32()).cast(pa.date32())}
)


def rides(**unit: Any) -> Source:
    return source(RIDES, {"x": Interval(0, 4, step=1)}, **({"person": "rider"} | unit))


@pytest.mark.parametrize(
    ("unit", "rows"),
    [
        ({}, 1),
        ({"rows_per_person": 7}, 7),
        ({"rows_per_cell": 2, "cells_per_person": 3}, 6),
        ({"norm_per_person": 5}, 25),
        ({"rows_per_person": 7, "norm_per_person": 5}, 7),
        ({"rows_per_person": 99, "rows_per_cell": 2, "cells_per_person": 3}, 6),
    ],
)
def test_the_limits_together_bound_the_rows(unit: dict[str, int], rows: int) -> None:
    assert rides(**unit).unit.rows_per_person == rows


@pytest.mark.parametrize(
    ("unit", "words"),
    [
        ({"rows_per_cell": 2}, "without a bound"),
        ({"cells_per_person": 2}, "without a bound"),
        ({"norm_per_person": 0}, "whole number from 1"),
        ({"norm_per_person": 2.5}, "whole number from 1"),
        ({"norm_per_person": 3, "person": None}, "without a person"),
        ({"person": ["rider", "day", "x"]}, "column of dates"),
        ({"person": ["rider", "rider"]}, "column of dates"),
        ({"person": ["rider", ""]}, "not empty"),
        ({"person": 3}, "not empty"),
    ],
)
def test_limits_that_bound_nothing_or_nobody_are_refused(unit: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        rides(**unit)


def test_a_file_with_limits_survives_a_pickle(tmp_path: Path) -> None:
    pq.write_table(RIDES, tmp_path / "t.parquet")
    src = source(
        tmp_path / "t.parquet",
        {"x": Interval(0, 4, step=1)},
        person=["rider", "day"],
        rows_per_person=9,
        norm_per_person=2,
    )
    assert pickle.loads(pickle.dumps(src)).unit == src.unit
    assert str(src.unit) == (
        "any one person in one day contributing counts cut to a norm of 2, added or removed"
    )
