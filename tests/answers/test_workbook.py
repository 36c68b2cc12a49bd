"""An Excel workbook holds the numbers as numbers and the labels as text; it is opened again."""

from __future__ import annotations

import builtins
import datetime as dt
import io
import math

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.answers import workbooks as workbook
from support import every_kind

openpyxl = pytest.importorskip("openpyxl", reason="make venv installs it")
pytest.importorskip("xlsxwriter", reason="make venv installs it")


def opened(content):
    return openpyxl.load_workbook(io.BytesIO(content))


def written(columns, kind="amount"):
    made = workbook.to_excel(pa.table(columns), lambda _: kind, "=scope", [("a", "=b")], None)
    return opened(made)["Answer"]


ONE_SHEET = sorted({*every_kind.QUESTIONS, "counter"} - {"tables"})
"""A family of tables has a sheet for each: see ``test_family_workbook``."""


@pytest.mark.parametrize("kind", ONE_SHEET)
def test_a_workbook_holds_what_the_release_says(kind, tmp_path):
    release = every_kind.releases()[kind]
    book = opened(release.to_excel(tmp_path / "answer.xlsx").read_bytes())
    assert book.sheetnames == ["Answer", "Guarantee"]
    sheet = book["Answer"]
    table = release.to_frame()
    header, *rows = sheet.iter_rows()
    *names, apart, scope = [cell.value for cell in header]
    assert names == [n.replace("_", " ") for n in table.column_names]
    assert (apart, scope) == (None, release.scope)
    assert sheet.freeze_panes == "A2"
    assert len(rows) == table.num_rows
    for row, expected in zip(rows, table.to_pylist(), strict=True):
        assert [cell.value for cell in row[len(names) :]] == [None, None]
        for cell, value in zip(row[: len(names)], expected.values(), strict=True):
            assert cell.data_type != "f"
            assert _same(cell.value, value), (cell.coordinate, cell.value, value)
    said = {row[0].value: row[1].value for row in book["Guarantee"].iter_rows()}
    assert said["Answer"] == release.title
    assert said["Guarantee"].startswith("NOT PRIVATE")
    assert said["Data"] == "every kind"
    assert said["Account"] == "default"


def _same(found, value):
    if isinstance(value, bool):
        return found == ("yes" if value else "no")
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return found is None
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return found.date() == value
    if isinstance(value, float):
        return found == "not known" if math.isinf(value) else math.isclose(found, value)
    return found == value


def test_counts_have_separators_and_years_have_none(tmp_path):
    release = every_kind.releases()["histogram"]
    sheet = openpyxl.load_workbook(release.to_excel(tmp_path / "h.xlsx"))["Answer"]
    formats = {cell.value: sheet.cell(2, cell.column).number_format for cell in sheet[1]}
    assert formats["count"] == formats["low"] == "#,##0"
    assert formats["year lower"] == "0"
    mean = openpyxl.load_workbook(every_kind.releases()["mean"].to_excel(tmp_path / "m.xlsx"))
    assert mean["Answer"]["C2"].number_format == "0.00"
    assert sheet.column_dimensions["A"].width >= len("2008 and above")


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "http://x", "{=1}", "007"])
def test_a_label_is_text_whatever_it_looks_like(text):
    sheet = written({text: [text]})
    assert [(cell.value, cell.data_type) for cell in (sheet["A1"], sheet["A2"])] == [
        (text, "s"),
        (text, "s"),
    ]
    assert sheet["A2"].hyperlink is None


def test_dates_times_and_large_numbers_are_kept():
    day = dt.date(2026, 3, 1)
    time = dt.datetime(2026, 3, 1, 12, 30, tzinfo=dt.UTC)
    sheet = written({"day": [day], "time": [time], "key": [2**60], "old": [dt.date(1850, 1, 2)]})
    assert sheet["A2"].value.date() == day
    assert sheet["A2"].number_format == "yyyy-mm-dd"
    assert sheet["B2"].value == time.replace(tzinfo=None)
    assert sheet["C2"].value == str(2**60)
    assert sheet["D2"].value == "1850-01-02"


def test_the_same_release_gives_the_same_bytes(tmp_path):
    release = every_kind.releases()["mean"]
    first = release.to_excel(tmp_path / "a.xlsx").read_bytes()
    assert release.to_excel(tmp_path / "b.xlsx").read_bytes() == first
    made = opened(first).properties.created
    assert made == release.receipt.date.replace(microsecond=0)


def test_too_many_rows_and_a_missing_package_are_refused(monkeypatch):
    large = pa.table({"count": pa.nulls(workbook.MOST_ROWS + 1, pa.int64())})
    with pytest.raises(sf.UsageError, match="1,048,575 rows below its header"):
        workbook.to_excel(large, lambda _: "amount", "", [], None)
    found = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "xlsxwriter":
            raise ImportError
        return found(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(sf.UsageError, match=r"pip install 'sfumato\[excel\]'"):
        workbook.to_excel(pa.table({"count": [1]}), lambda _: "amount", "", [], None)


def test_no_ledger_is_written_over(tmp_path):
    ledger = tmp_path / "budget.db"
    ledger.write_bytes(b"SQLite format 3\0")
    for write in ("to_csv", "to_excel"):
        with pytest.raises(sf.DataError, match="would be lost"):
            getattr(every_kind.releases()["mean"], write)(ledger)
