"""The parts of an .xlsx file are streamed, and a file of another form is refused."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
import xlsxwriter

import sfumato as sf
from sfumato.data.readers.xlsx import MAX_COLUMNS, Parts, RawCell, Row

BOMB = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "8675309">]>'


def altered(path: Path, part: str, old: str, new: str) -> Path:
    """A file in which one part is written in another way."""
    whole = path.with_name("whole.xlsx")
    with xlsxwriter.Workbook(whole) as book:
        book.add_worksheet("S").write_row(0, 0, ["age", 7])
    with zipfile.ZipFile(whole) as before, zipfile.ZipFile(path, "w") as after:
        for name in before.namelist():
            content = before.read(name).decode()
            if name.endswith(part):
                assert old in content
                content = content.replace(old, new)
            after.writestr(name, content)
    return path


def rows_of(path: Path) -> list[Row]:
    with Parts(path, "t.xlsx") as parts:
        return list(parts.rows(parts.sheets()["S"]))


def test_rows_and_texts(tmp_path: Path) -> None:
    path = altered(tmp_path / "t.xlsx", "sheet1.xml", 'r="B1"', 'r="AB1"')
    assert rows_of(path) == [Row(1, {0: RawCell("s", "", "0"), 27: RawCell("n", "", "7")})]
    with Parts(path, "t.xlsx") as parts:
        assert list(parts.texts()) == ["age"]
        assert not parts.counts_from_1904()
    rich = "<si><r><t>a</t></r><rPh><t>x</t></rPh><r><t>ge</t></r></si>"
    path = altered(tmp_path / "u.xlsx", "sharedStrings.xml", "<si><t>age</t></si>", rich)
    with Parts(path, "u.xlsx") as parts:
        assert list(parts.texts()) == ["age"]


@pytest.mark.parametrize("place", ["", 'r="5"', 'r="?"'])
def test_a_cell_without_a_place_follows_the_one_before(place: str, tmp_path: Path) -> None:
    (row,) = rows_of(altered(tmp_path / "t.xlsx", "sheet1.xml", 'r="B1"', place))
    assert sorted(row.cells) == [0, 1]


def test_a_cell_behind_the_last_column_is_left_out(tmp_path: Path) -> None:
    for name, kept in (("XFD1", [0, MAX_COLUMNS - 1]), ("XFE1", [0]), ("ZZZZZZZZ1", [0])):
        path = altered(tmp_path / "t.xlsx", "sheet1.xml", 'r="B1"', f'r="{name}"')
        assert sorted(rows_of(path)[0].cells) == kept


@pytest.mark.parametrize("part", ["sheet1.xml", "workbook.xml", "workbook.xml.rels"])
def test_a_document_type_is_refused(part: str, tmp_path: Path) -> None:
    old = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
    path = altered(tmp_path / "t.xlsx", part, old, BOMB)
    with pytest.raises(sf.DataError, match="or it is damaged") as caught:
        rows_of(path)
    assert caught.value.__context__ is None
    assert "8675309" not in str(caught.value)


def test_a_part_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = altered(tmp_path / "t.xlsx", "sheet1.xml", "</sheetData>", "")
    with pytest.raises(sf.DataError, match="damaged") as caught:
        rows_of(path)
    assert caught.value.__context__ is None
