"""What is stated of a file is checked at once, and is part of the label of the data."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from data.refusals import AGE, BY_AGE
from sfumato.data import count
from sfumato.data.options import NO_OPTIONS, FileOptions, StatedOptions, file_options

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"separator": ""}, "not empty"),
    ({"separator": ";;"}, "one sign"),
    ({"separator": '"'}, "one sign"),
    ({"separator": "a"}, "one sign"),
    ({"separator": "."}, "one sign"),
    ({"separator": "§"}, "one sign"),
    ({"separator": "\n"}, "one sign"),
    ({"separator": 1}, "a text"),
    ({"decimal": ";"}, "a point or a comma"),
    ({"decimal": 1}, "a text"),
    ({"thousands": "."}, "stands before decimals"),
    ({"thousands": ",", "decimal": ","}, "stands before decimals"),
    ({"thousands": "x"}, "a point, a comma"),
    ({"encoding": "klingon"}, "not an encoding"),
    ({"date_format": "YYYY"}, "no year"),
    ({"date_format": {"day": "%d"}}, "no year"),
    ({"date_format": {"": "%Y"}}, "not empty"),
    ({"sheet": 2024}, "in quotes"),
    ({"header_row": 0}, "the first one is 1"),
    ({"header_row": True}, "the first one is 1"),
    ({"header_row": "3"}, "the first one is 1"),
]


@pytest.mark.parametrize(("options", "words"), WRONG)
def test_a_wrong_option_is_refused_at_once(options: dict[str, Any], words: str) -> None:
    with pytest.raises(sf.UsageError, match=words) as caught:
        sf.source("t.csv", AGE, **options)
    assert next(iter(options)).split("_")[0] in str(caught.value)


def test_signs_that_cannot_be_typed_have_words() -> None:
    assert file_options(StatedOptions(separator="tab")).separator == "\t"
    assert file_options(StatedOptions(separator="\\t")).separator == "\t"
    for sign, read_as in (("’", "'"), ("\u202f", " "), ("\u00a0", " "), ("'", "'")):
        assert file_options(StatedOptions(thousands=sign)).thousands == read_as


def test_an_option_that_says_nothing_new_is_no_option() -> None:
    same = StatedOptions(decimal=".", encoding="UTF8", header_row=1)
    assert file_options(same) == file_options(StatedOptions()) == FileOptions() == NO_OPTIONS
    assert NO_OPTIONS.stated() == ""


def test_options_are_part_of_the_label(tmp_path: Path) -> None:
    """The same file read otherwise is other data, so no stored answer of it is found."""
    path = tmp_path / "t.csv"
    path.write_text("age\n1\n")
    every: list[dict[str, Any]] = [
        {},
        {"separator": ";"},
        {"decimal": ","},
        {"thousands": ","},
        {"encoding": "cp1252"},
        {"date_format": "%d.%m.%Y"},
        {"date_format": {"day": "%d.%m.%Y"}},
        {"header_row": 2},
    ]
    labels = [sf.source(path, AGE, **options).label for options in every]
    assert len(set(labels)) == len(every)
    assert sf.source(path, AGE, decimal=".").label == labels[0]
    assert sf.source(path, AGE, name="n").label != sf.source(path, AGE, name="n", decimal=",").label


def test_a_source_keeps_its_options_when_it_is_pickled(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("no;table\n\nkind;age\na;31,0\n")
    src = sf.source(path, AGE, separator=";", decimal=",", header_row=3)
    again = pickle.loads(pickle.dumps(src))
    assert again.label == src.label
    assert [count(each, [BY_AGE])[0].counts.sum() for each in (src, again)] == [1, 1]


def test_options_of_other_forms_are_refused(tmp_path: Path) -> None:
    table = pa.table({"age": [1]})
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("age\n1\n")
    for data, options in (
        ("t.parquet", {"separator": ";"}),
        ("t.parquet", {"header_row": 2}),
        ("t.parquet", {"date_format": "%Y"}),
        ("t.csv", {"sheet": "a"}),
    ):
        src = sf.source(tmp_path / data, AGE, **options)  # type: ignore[arg-type]
        with pytest.raises(sf.UsageError, match="Leave it out"):
            src.require([BY_AGE])
    with pytest.raises(sf.UsageError, match="the table is no file"):
        sf.source(table, AGE, decimal=",")
