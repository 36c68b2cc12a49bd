"""A family's workbook has a sheet for each table; it is opened again, its edges added up."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import sfumato as sf
from sfumato.answers import workbooks as family_workbook
from sfumato.answers import workbooks as workbook

openpyxl = pytest.importorskip("openpyxl", reason="make venv installs it")
pytest.importorskip("xlsxwriter", reason="make venv installs it")

AXES = {
    "region": sf.Categories(["north", "=1+1", "007"]),
    "age": sf.Interval(0, 100),
    "sex": sf.Categories(["f", "m"]),
    "works": sf.Categories([True, False]),
}


@pytest.fixture(scope="module")
def release():
    return released([["region", "age"], ["region", "sex", "works"], "age"])


def released(tables, n=300, **words):
    rng = np.random.default_rng(1)
    columns = {
        "region": np.array(["north", "=1+1", "007"])[rng.integers(0, 3, n)],
        "age": rng.uniform(0, 100, n),
        "sex": np.array(["f", "m"])[rng.integers(0, 2, n)],
        "works": rng.integers(0, 2, n).astype(bool),
    }
    source = sf.source(pa.table(columns), sf.Domain(AXES), name="people")
    publisher = sf.Publisher(source, budget=sf.ZCDP("1"))
    with sf.testing.deterministic(2):
        return publisher.release(sf.Tables(tables, bins=4, **words), rho="0.5")


def opened(release, tmp_path):
    return openpyxl.load_workbook(release.to_excel(tmp_path / "tables.xlsx"))


def numbers(sheet, title):
    """The block below a title: names of its rows and columns, and its numbers."""
    rows = list(sheet.iter_rows())
    start = next(at for at, row in enumerate(rows) if row[0].value == title)
    head = [cell.value for cell in rows[start + 1] if cell.value is not None]
    found = []
    for row in rows[start + 2 :]:
        if row[0].value is None or row[1].value is None or isinstance(row[1].value, str):
            break
        found.append(row)
    values = [[cell.value for cell in row[1 : len(head)]] for row in found]
    return [row[0].value for row in found], head, np.array(values)


def test_each_table_has_a_sheet_with_its_sums(release, tmp_path):
    book = opened(release, tmp_path)
    assert book.sheetnames == [
        family_workbook.CONTENTS,
        "region x age",
        "region x sex x works",
        "age",
    ]
    sheet = book["region x age"]
    rows, head, whole = numbers(sheet, "Rounded to whole numbers")
    assert rows == ["below 25", "25 to 50", "50 to 75", "75 and above", "all"]
    assert head == ["age", "north", "=1+1", "007", "all"]
    assert np.array_equal(whole[:-1, :-1], release["age", "region"].published())
    assert np.array_equal(whole[:-1].sum(axis=0), whole[-1])
    assert np.array_equal(whole[:, :-1].sum(axis=1), whole[:, -1])
    _, _, estimates = numbers(sheet, "Estimates")
    assert np.allclose(estimates[:-1, :-1], release["age", "region"].values)
    assert np.allclose(estimates[-1, -1], release[()].values)
    assert sheet["A2"].value.startswith("Rounded to whole numbers of at least 0 that add up")
    assert all(cell.data_type != "f" for row in sheet.iter_rows() for cell in row)


def test_what_may_be_0_is_hatched(tmp_path):
    few = released([["region", "age"]], n=12)
    (table,) = few.cross_tables["region", "age"]
    sheet = opened(few, tmp_path)["region x age"]
    start = next(row for row in range(1, 30) if sheet.cell(row, 1).value == "Estimates") + 2
    patterns = [
        [sheet.cell(start + i, 2 + j).fill.patternType for j in range(table.estimates.shape[1])]
        for i in range(table.estimates.shape[0])
    ]
    assert np.array_equal(np.array(patterns, object) == "lightUp", table.hatched)
    assert table.hatched.any()


def test_the_first_sheet_says_what_was_published_and_what_it_promises(release, tmp_path):
    sheet = opened(release, tmp_path)[family_workbook.CONTENTS]
    assert sheet["A1"].value == "What was published"
    assert sheet["B2"].value == "Number of rows by region and age"
    assert sheet["B2"].hyperlink.location == "'region x age'!A1"
    said = {row[0].value: row[1].value for row in sheet.iter_rows()}
    assert said["Guarantee"].startswith("NOT PRIVATE")
    assert said["Result"] == "Any two of these tables agree in all totals that they share."
    assert said["Data"] == "people"


def test_three_axes_stand_below_one_another(release, tmp_path):
    sheet = opened(release, tmp_path)["region x sex x works"]
    titles = [row[0].value for row in sheet.iter_rows() if row[0].font.size == 13]
    assert len(titles) == 3
    assert titles[0].startswith("Number of rows by region and ")
    assert titles[0].endswith((", every works", ", every sex"))


def test_one_table_and_names_for_people(tmp_path):
    words = {"label_names": {"north": "The North"}, "heading": "Who lives where"}
    release = released([["region", "age"], ["age", "sex"]], **words)
    book = opened(release["region", "age"], tmp_path)
    assert book.sheetnames == [family_workbook.CONTENTS, "region x age"]
    _, head, _ = numbers(book["region x age"], "Estimates")
    assert head[1] == "The North"
    said = {row[0].value: row[1].value for row in book[family_workbook.CONTENTS].iter_rows()}
    assert said["Answer"] == "Who lives where"


def test_a_table_of_four_axes_is_listed(tmp_path):
    release = released([["region", "age", "sex", "works"]])
    sheet = opened(release, tmp_path).worksheets[1]
    assert [cell.value for cell in sheet[1]][-3:] == ["count", "low", "high"]
    assert sheet.max_row == 1 + 3 * 4 * 2 * 2


def test_a_workbook_of_the_same_release_is_the_same(release, tmp_path):
    first = release.to_excel(tmp_path / "1.xlsx").read_bytes()
    assert first == release.to_excel(tmp_path / "2.xlsx").read_bytes()


def test_names_of_sheets_are_short_and_different():
    long = "a" * 40
    found = family_workbook._sheet_names([(long,), (f"{long}b",), ("x/y", "[z]"), (), ("History",)])
    assert all(len(name) <= 31 for name in found)
    assert len({name.lower() for name in found}) == 5
    assert found[2:] == ["x y x  z", "total", "5 History"]


def test_a_table_that_no_sheet_holds_is_refused(release, tmp_path, monkeypatch):
    monkeypatch.setattr(workbook, "MOST_ROWS", 20)
    with pytest.raises(sf.UsageError, match="a sheet of Excel holds 20 rows"):
        release.to_excel(tmp_path / "tables.xlsx")


def test_csv_is_one_file_or_a_folder_of_them(release, tmp_path):
    joined = release.to_csv(tmp_path / "all.csv", published=True).read_bytes()
    table = pa.csv.read_csv(io.BytesIO(joined))
    assert table.column_names[0] == "table"
    assert np.array_equal(table["published"], release.published())
    assert np.allclose(table["count"], release.values, atol=0.0005)
    folder = release.to_csv(tmp_path / "tables")
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["01-region-x-age.csv", "02-region-x-sex-x-works.csv", "03-age.csv"]
    one = pa.csv.read_csv(folder / "03-age.csv")
    assert one.column_names == ["age", "age_lower", "age_upper", "count", "low", "high"]
    assert np.allclose(one["count"], release["age"].values)
    # A folder that is there is one, whatever its name is.
    (tmp_path / "old.csv").mkdir()
    assert release.to_csv(tmp_path / "old.csv").is_dir()
