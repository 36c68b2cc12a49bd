"""The table of a release in other forms holds the same numbers, and no formula."""

from __future__ import annotations

import builtins
import csv
import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.answers import frames as forms
from sfumato.answers.release import Release
from support import every_kind

FORMULAS = [
    "=1+1",
    "+1",
    "-1+cmd|' /C calc'!A0",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    *(f"{sign}1+1" for sign in "＝＋－＠"),
]
HARMLESS = ["-10 to 0", "-1.5 to -0.5", "-5", "below -5", "-3 and above", "shop", "1e-5 to 1"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_becomes_text(text):
    assert forms.as_text(text) == f"'{text}"


@pytest.mark.parametrize("text", HARMLESS)
def test_names_of_bins_stay_as_they_are(text):
    assert forms.as_text(text) == text


@pytest.mark.parametrize("kind", [*every_kind.QUESTIONS, "counter"])
def test_all_frames_hold_the_same_numbers(kind, tmp_path):
    release = every_kind.releases()[kind]
    table = release.to_frame()
    frame = release.to_pandas()
    polar = release.to_polars()
    assert isinstance(frame, pd.DataFrame)
    assert isinstance(polar, pl.DataFrame)
    assert list(frame.columns) == polar.columns == table.column_names
    assert len(frame) == len(polar) == table.num_rows > 0
    path = release.to_csv(tmp_path / "answer.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == table.column_names
    assert len(rows) == 1 + table.num_rows
    for name in ("low", "high"):
        if name in table.column_names:
            index = table.column_names.index(name)
            numbers = [float(row[index]) for row in rows[1:]]
            written = release.in_digits(table)[name].to_pylist()
            np.testing.assert_array_equal(numbers, written)
            np.testing.assert_array_equal(frame[name], table[name].to_pylist())
            np.testing.assert_array_equal(polar[name], table[name].to_pylist())


def test_labels_and_headers_of_csv_are_no_formulas():
    labels = pa.array(["=1+1", None, "a,b"]).dictionary_encode()
    written = forms.to_csv(pa.table({"@x": labels, "count": [1, -2, 3]}))
    rows = list(csv.reader(io.StringIO(written.decode())))
    assert rows == [["'@x", "count"], ["'=1+1", "1"], ["", "-2"], ["a,b", "3"]]
    written = forms.to_csv(pa.table({"label": FORMULAS, "count": [-1] * len(FORMULAS)}))
    _, *cells = csv.reader(io.StringIO(written.decode(), newline=""))
    assert cells == [[f"'{text}", "-1"] for text in FORMULAS]


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_missing_package_is_named(package, monkeypatch):
    found = builtins.__import__

    def without(name, *args, **kwargs):
        if name == package:
            raise ImportError
        return found(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(sf.UsageError, match=f"pip install {package}"):
        getattr(forms, f"to_{package}")(pa.table({"count": [1]}))


def test_a_release_without_a_table_says_so(tmp_path):
    release = every_kind.releases()["histogram"]

    class Bare(Release, frozen=True, kw_only=True, eq=False):
        title = "Something else"
        values = np.array([1.5])

    bare = Bare(guarantee=release.guarantee)
    for ask in (bare.to_pandas, bare.to_polars, lambda: bare.to_csv(tmp_path / "x")):
        with pytest.raises(sf.UsageError, match="it has no table"):
            ask()
    assert "Something else" in bare._repr_html_()


def test_numbers_and_their_intervals_are_joined_on_narrow_screens() -> None:
    table = pa.table(
        {
            "count": [5, -6],
            "low": [1, -12],
            "high": [9, 0],
            "limit": [1, 2],
            "limit_low": [0, 1000],
            "limit_high": [7, 2000],
            "kept": [0.256, None],
            "kept_low": [0.2599, None],
            "kept_high": [0.2601, None],
        }
    )
    joined = forms.intervals_in_words(table, shares=["kept"])
    assert joined.to_pydict() == {
        "count": ["5 (1 to 9)", "−6 (−12 to 0)"],
        "limit": ["1 (0 to 7)", "2 (1,000 to 2,000)"],
        "kept": ["26% (25 to 27%)", ""],
    }
