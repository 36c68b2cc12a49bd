"""A sheet of Excel is read as a person means it, or refused with what to do."""

from __future__ import annotations

import datetime as dt
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import xlsxwriter

import sfumato as sf
from data.refusals import CANARY, refused, refuses, write
from data.releases import released
from sfumato.data import check as checking
from sfumato.data import count, source
from sfumato.data.readers import excel
from sfumato.data.readers.excel import ExcelFile, text_of_cell
from sfumato.domain.domain import Domain, Interval, grid_axis
from sfumato.domain.lattice import KeyAxis, LabelAxis, Lattice

PROTECTED = Path(__file__).parents[2] / "fixtures" / "protected.xlsx"
AGE = Interval(0, 50, step=1)
DAYS = Interval("2024-03-14", "2024-03-19", step=1)

Fill = Callable[[Any, Any], None]
"""Writes a sheet, given the book and the sheet."""


def book(path: Path, fill: Fill, *more: str, name: str = "2024", **options: Any) -> Path:
    with xlsxwriter.Workbook(path, options) as found:
        fill(found, found.add_worksheet(name))
        for sheet in more:
            found.add_worksheet(sheet)
    return path


def rows(*given: list[Any]) -> Fill:
    def fill(found: Any, sheet: Any) -> None:
        for number, row in enumerate(given):
            sheet.write_row(number, 0, row)

    return fill


def dates(number_format: str, *given: dt.date) -> Fill:
    def fill(found: Any, sheet: Any) -> None:
        format_ = found.add_format({"num_format": number_format})
        sheet.write(0, 0, "day")
        for number, day in enumerate(given, 1):
            sheet.write_datetime(number, 0, day, format_)

    return fill


def ages(path: Path, **options: Any) -> list[int]:
    return released(path, "age", AGE, 5, **options)


# --- as a person means it -------------------------------------------------------------------------


def test_cells_of_every_kind_under_numbers(tmp_path: Path) -> None:
    """Formulas count as their stored values; errors, text and empty cells are missing."""

    def fill(found: Any, sheet: Any) -> None:
        sheet.write_column(0, 0, ["age", 31, "12", " 12 ", "1e1", True, "x"])
        sheet.write_formula(7, 0, "=20+21", None, 41)
        sheet.write_formula(8, 0, "=1/0", None, "#DIV/0!")
        sheet.write_formula(9, 0, "=A100", None, "")
        sheet.write_column(0, 1, ["p", *range(11)])

    assert ages(book(tmp_path / "t.xlsx", fill)) == [1, 3, 0, 1, 1]


def test_cells_of_every_kind_under_labels(tmp_path: Path) -> None:
    day = dt.date(2024, 3, 14)

    def fill(found: Any, sheet: Any) -> None:
        sheet.write_column(0, 0, ["kind", "a ", 7, 7.5, "007", True])
        sheet.write_datetime(6, 0, day, found.add_format({"num_format": "dd.mm.yyyy"}))

    labels = ["a", "7", "7.5", "007", "TRUE", "2024-03-14"]
    path = book(tmp_path / "t.xlsx", fill)
    assert released(path, "kind", sf.Categories(labels)) == [1] * 6
    reader = ExcelFile(path, "t.xlsx")
    (batch,) = reader.batches({"kind": KeyAxis("kind")})
    assert batch["kind"].to_pylist() == ["a ", *labels[1:]]


@pytest.mark.parametrize("labels", [[True, False], ["true", "false"], ["True", "False"]])
def test_booleans_however_they_are_written(labels: list[Any], tmp_path: Path) -> None:
    path = book(
        tmp_path / "t.xlsx", rows(["yes"], [True], ["true"], ["TRUE "], [1], [False], [0], ["?"])
    )
    assert released(path, "yes", sf.Categories(labels)) == [4, 2]


@pytest.mark.parametrize("options", [{}, {"date_1904": True}])
@pytest.mark.parametrize("number_format", ["dd.mm.yyyy", "m/d/yy", "yyyy-mm-dd hh:mm"])
def test_dates_are_dates_however_they_are_shown(
    number_format: str, options: dict[str, Any], tmp_path: Path
) -> None:
    given = [dt.datetime(2024, 3, 14), dt.datetime(2024, 3, 15, 23, 59, 59)]
    path = book(tmp_path / "t.xlsx", dates(number_format, *given), **options)
    assert released(path, "day", DAYS, 5) == [1, 1, 0, 0, 0]
    # The format of text is no matter of cells that are dates already.
    assert released(path, "day", DAYS, 5, date_format="%m/%d/%Y") == [1, 1, 0, 0, 0]


def test_dates_and_numbers_stored_as_text(tmp_path: Path) -> None:
    day = dt.date(2024, 3, 14)

    def fill(found: Any, sheet: Any) -> None:
        sheet.write_row(0, 0, ["day", "age"])
        sheet.write_column(1, 0, ["3/15/2024", "2024-03-16", 45366])
        sheet.write_datetime(4, 0, day, found.add_format({"num_format": "m/d/yyyy"}))
        sheet.write_column(1, 1, ["12,5", "1.012,5", 12.5, "12.5"])

    path = book(tmp_path / "t.xlsx", fill)
    options: dict[str, Any] = {"decimal": ",", "thousands": ".", "date_format": "%m/%d/%Y"}
    assert released(path, "day", DAYS, 5, **options) == [1, 1, 0, 0, 0]
    assert released(path, "day", DAYS, 5) == [1, 0, 1, 0, 0]
    assert ages(path, **options) == [0, 2, 0, 0, 1]


def test_a_check_says_what_numbers_under_dates_are(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", rows(["day"], [45366], [45367.5], ["14.03.2024"]))
    found = checking.check(source(path, Domain(day=DAYS)))
    assert [(each.missing, each.unparsed) for each in found.axes] == [(3, 3)]
    assert len(found.hints) == 2
    assert "Format the column as dates in Excel" in found.hints[0]
    assert "date_format=" in found.hints[1]


def test_empty_rows_are_no_rows(tmp_path: Path) -> None:
    def fill(found: Any, sheet: Any) -> None:
        sheet.write_column(2, 3, ["age", 31, "", 12])
        sheet.write_blank(20, 9, None, found.add_format({"bold": True}))

    path = book(tmp_path / "t.xlsx", fill)
    assert ages(path) == ages(path, header_row=3) == [0, 1, 0, 1, 0]
    assert checking.check(source(path, Domain(age=AGE))).rows == 2


def test_rows_come_in_batches_of_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = book(tmp_path / "t.xlsx", rows(["age", "p"], *([n % 50, f"p{n}"] for n in range(100))))
    whole = ages(path, person="p")
    monkeypatch.setattr(excel, "BATCH_ROWS", 7)
    assert ages(path, person="p") == whole == [20] * 5
    reader = ExcelFile(path, "t.xlsx", "p")
    columns = {"age": grid_axis("age", AGE, 5), "p": None}
    assert [len(batch) for batch in reader.batches(columns)] == [7] * 14 + [2]


def test_several_files_have_the_same_sheet(tmp_path: Path) -> None:
    for number in range(2):
        book(tmp_path / f"{number}.xlsx", rows(["age"], [31]), "notes")
    (tmp_path / "~$0.xlsx").write_bytes(b"a lock of Excel")
    assert ages(tmp_path, sheet="2024") == [0, 0, 0, 2, 0]
    assert ages(tmp_path / "*.xlsx", sheet="2024") == [0, 0, 0, 2, 0]
    (tmp_path / "t.csv").write_text("age\n31\n")
    refuses(tmp_path, "both CSV and Excel")


# --- refused --------------------------------------------------------------------------------------

SHEETS: dict[str, tuple[Fill, dict[str, Any], tuple[str, ...], dict[str, Any]]] = {
    "a title above": (
        rows(["Visits of 2024"], [], ["age", "kind"], [31, "a"]),
        {},
        ("row 1 has one name only", "header_row=2", "--header-row 2"),
        {"header_row": 3},
    ),
    "two rows of names": (
        rows(["Patient", "", "Visit"], ["age", "kind", "cost"], [31, "a", 3]),
        {},
        ("row 1 has 1 empty cell between names", "header_row=2"),
        {"header_row": 2},
    ),
}


@pytest.mark.parametrize("case", SHEETS)
def test_the_option_that_the_message_names_reads_the_sheet(case: str, tmp_path: Path) -> None:
    fill, options, words, remedy = SHEETS[case]
    path = book(tmp_path / "t.xlsx", fill)
    refuses(path, *words, **options)
    assert ages(path, **remedy) == [0, 0, 0, 1, 0]


def test_merged_cells_leave_names_out(tmp_path: Path) -> None:
    def fill(found: Any, sheet: Any) -> None:
        sheet.merge_range(0, 0, 0, 1, "age")
        sheet.write_row(0, 2, ["kind"])
        sheet.write_row(1, 0, [31, 12, "a"])

    path = book(tmp_path / "t.xlsx", fill)
    assert ages(path) == [0, 0, 0, 1, 0]
    second = Domain(second=AGE)
    lattice = Lattice((grid_axis("second", AGE, 5),))
    words = ("1 empty cell between names", "merged cells", "give each its own")
    refuses(path, *words, domain=second, lattice=lattice)
    assert checking.check(source(path, {"age": AGE})).hints == ()


def test_cells_beside_the_table_change_no_message(tmp_path: Path) -> None:
    """How far a sheet reaches depends on cells of the rows, and a message must not."""
    said = []
    for beside in ([], [(3, 0), (4, 9), (30, 20)]):

        def fill(found: Any, sheet: Any, beside: list[tuple[int, int]] = beside) -> None:
            sheet.write_row(0, 2, ["aged", "kind"])
            sheet.write_row(1, 2, [31, "a"])
            for row, column in beside:
                sheet.write_string(row, column, CANARY)

        path = book(tmp_path / "t.xlsx", fill)
        reader = ExcelFile(path, "t.xlsx")
        assert reader.names() == ["aged", "kind"]
        assert reader.misreading() is None
        with pytest.raises(sf.DataError) as caught:
            source(path, Domain(age=AGE)).require([Lattice((grid_axis("age", AGE, 5),))])
        said.append(str(caught.value))
        assert released(path, "aged", AGE, 5) == [0, 0, 0, 1, 0]
    assert said[0] == said[1]
    assert "did you mean 'aged'" in said[0]


def test_a_sheet_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", rows(["age"], [31]), "2023", "notes")
    refuses(path, "3 sheets: '2024', '2023', 'notes'", 'sheet="2024"', '--sheet "2024"')
    refuses(path, "sheet '2025'", "no such sheet", "'2023'", sheet="2025")
    refuses(path, "sheet '2023'", "no row from row 1 on", sheet="2023")
    refuses(path, "sheet '2024'", "no row from row 9 on", sheet="2024", header_row=9)
    refuses(path, "row 2 has one name only", sheet="2024", header_row=2)
    assert ages(path, sheet="2024") == [0, 0, 0, 1, 0]
    many = book(tmp_path / "many.xlsx", rows(["age"]), *(f"s{n}" for n in range(30)))
    refuses(many, "31 sheets", "and 11 more")


def test_what_is_no_file_of_excel_is_refused(tmp_path: Path) -> None:
    refuses(PROTECTED, "protected by a password", "take the password off")
    compound = PROTECTED.read_bytes()[:1024]
    refuses(write(tmp_path, compound, "t.xlsx"), "an .xls file under another name")
    for name in ("t.xls", "t.xlsb", "t.ods"):
        refuses(write(tmp_path, compound, name), "another form than .xlsx", "save it as .xlsx")
    for content in (b"", b"PK\x03\x04", f"age\n{CANARY}\n".encode(), compound[8:]):
        words = ("the file is empty",) if not content else ("not an .xlsx file", ".csv")
        refuses(write(tmp_path, content, "t.xlsx"), *words)
    with zipfile.ZipFile(tmp_path / "zip.xlsx", "w") as archive:
        archive.writestr("notes.txt", CANARY)
    refuses(tmp_path / "zip.xlsx", "not an .xlsx file")
    refuses(tmp_path / "none.xlsx", "no such file")


def test_twice_the_same_name(tmp_path: Path) -> None:
    refuses(book(tmp_path / "t.xlsx", rows(["age", "age"], [1, 2])), "several columns")
    same = book(tmp_path / "u.xlsx", rows(["age"], [CANARY]))
    refuses(same, "names the person, as text", person="age")


# --- cells that mean nothing ----------------------------------------------------------------------

NUMBERS = ("-1", "-700000", "-1e300", "1e10", "1e300", "NaN", "inf", "2958466", "99999999", "abc")
FORMATS = ("yyyy-mm-dd", "[h]:mm:ss", "hh:mm", "yyyy-mm-dd hh:mm")
ERRORS = (
    *("#N/A", "#DIV/0!", "#NULL!", "#SPILL!", "#CALC!", "#FIELD!", "#GETTING_DATA", "#BLOCKED!"),
    *("#CONNECT!", "#UNKNOWN!", "#BUSY!", "#8675309"),
)
ODD: dict[str, str] = {
    **{
        f"{text} as {place}": f'<c s="{place}"><v>{text}</v></c>'
        for text in NUMBERS
        for place in (0, 1, 2, 3, 4, 99)
    },
    **{text: f'<c t="e"><v>{text}</v></c>' for text in ERRORS},
    "a bad boolean": '<c t="b"><v>x</v></c>',
    "an unknown type": '<c t="q"><v>8675309</v></c>',
    "a text that is not there": '<c t="s"><v>8675309</v></c>',
    "a text before the first": '<c t="s"><v>-1</v></c>',
    "a text without a number": '<c t="s"><v>x</v></c>',
    "a day that is not there": '<c t="d"><v>2024-13-45</v></c>',
    "half of a character": '<c t="str"><v>_xD800_</v></c>',
    "no place": '<c r="?"><v>1</v></c>',
    "a place behind the last": '<c r="ZZZZ3"><v>1</v></c>',
    "a formula without a value": "<c><f>A1</f></c>",
}
COLUMNS = ("p", "age", "day", "yes", "note")
GOOD = ("q", "31", "2024-03-14", "TRUE", "b")


def odd_book(path: Path, cell: str, place: int) -> Path:
    """A person's row with one odd cell, between two that are as they should be."""

    def fill(found: Any, sheet: Any) -> None:
        for column, number_format in enumerate(FORMATS):
            format_ = found.add_format({"num_format": number_format})
            sheet.write_blank(9, column, None, format_)
        sheet.write_row(0, 0, COLUMNS)
        for row in (1, 2, 3):
            sheet.write_row(row, 0, [f"{GOOD[0]}{row}", *GOOD[1:]])

    whole = book(path.with_name("whole.xlsx"), fill)
    letter = "ABCDE"[place]
    mark = f'<c r="{letter}3"'
    with zipfile.ZipFile(whole) as before, zipfile.ZipFile(path, "w") as after:
        for name in before.namelist():
            content = before.read(name).decode()
            if name.endswith("sheet1.xml"):
                start, _, rest = content.partition(mark)
                cell = cell if "r=" in cell else cell.replace("<c", mark, 1)
                content = start + cell + rest.partition("</c>")[2]
            after.writestr(name, content)
    return path


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("9007199254740992", "9007199254740992"),
        ("9007199254740993", "9007199254740993"),
        ("9.007199254740993E15", "9007199254740993"),
        ("1E+16", "10000000000000000"),
        ("10000000000000000.0", "10000000000000000"),
        ("-" + "9" * 50, "-" + "9" * 50),
        ("9007199254740992.5", "9007199254740992.0"),
    ],
)
def test_long_ids_are_equal_exactly_if_their_numbers_are(
    written: str, read: str, tmp_path: Path
) -> None:
    """Excel writes 15 digits, and other programs more: as doubles, two of these are equal."""
    path = odd_book(tmp_path / "t.xlsx", f"<c><v>{written}</v></c>", 0)
    batches = ExcelFile(path, "t").batches({"p": None})
    assert pa.concat_arrays([batch["p"] for batch in batches])[1].as_py() == read


@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.deep)])
@pytest.mark.parametrize("place", range(5), ids=COLUMNS)
def test_no_cell_decides_between_an_answer_and_a_refusal(
    place: int, stride: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """In no column, declared or not, before the charge or after it; and nothing is printed."""
    domain = Domain(age=AGE, day=DAYS, yes=sf.Categories([True, False]))
    axes = [grid_axis("age", AGE, 5), grid_axis("day", DAYS, 5), LabelAxis("yes", (True, False))]
    lattices = [Lattice((axis,)) for axis in axes]
    # Of the five columns, three together have each of the cells.
    for case, cell in list(ODD.items())[place % stride :: stride]:
        path = odd_book(tmp_path / "t.xlsx", cell, place)
        src = source(path, domain, person="p")
        src.require(lattices)
        cubes = count(src, lattices)
        # The two rows beside are read, whatever the cell holds.
        assert [int(cube.counts.max()) in (2, 3) for cube in cubes] == [True] * 3, case
        assert [name for name in ExcelFile(path, "t.xlsx").names() if name] == list(COLUMNS)
    assert capfd.readouterr() == ("", "")


def test_an_odd_cell_leaves_the_charge_as_it_is(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Publishing, the whole way: the answer comes, and the budget is charged for it alone."""
    domain = Domain(age=AGE, day=DAYS)
    for case in ("#SPILL!", "-1e300 as 1", "1e300 as 2", "a bad boolean"):
        for place in (0, 2, 4):
            path = odd_book(tmp_path / "t.xlsx", ODD[case], place)
            with sf.Publisher(sf.source(path, domain, person="p"), budget="3") as publisher:
                publisher.release(sf.Histogram("day"), epsilon="1")
                assert publisher.remaining == 2
    assert capfd.readouterr() == ("", "")


def test_what_is_before_the_charge_reads_no_row_below_the_names(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", rows(["age"], *([n % 50] for n in range(50_000))))
    cut = tmp_path / "cut.xlsx"
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(cut, "w") as after:
        for name in before.namelist():
            content = before.read(name)
            half = len(content) // 2
            after.writestr(name, content[:half] if name.endswith("sheet1.xml") else content)
    src = source(cut, Domain(age=AGE))
    lattice = Lattice((grid_axis("age", AGE, 5),))
    src.require([lattice])
    refused(lambda: count(src, [lattice]), sf.DataError, "not an .xlsx file, or it is damaged")


def test_a_cell_never_refuses_a_sheet(tmp_path: Path) -> None:
    """Whether a field can be read as the option says makes it missing, and no more."""
    odd: list[Any] = [CANARY, "", "\ufffd", "a\nb", "=1", dt.time(1), dt.timedelta(3), 1e300, -1]

    def fill(found: Any, sheet: Any) -> None:
        format_ = found.add_format({"num_format": "[h]:mm"})
        sheet.write_row(0, 0, ["age", "day", "kind", "yes"])
        for number, cell in enumerate(odd, 1):
            for place in range(4):
                if isinstance(cell, dt.time | dt.timedelta):
                    sheet.write_datetime(number, place, cell, format_)
                else:
                    sheet.write_string(number, place, cell) if isinstance(
                        cell, str
                    ) else sheet.write_number(number, place, cell)

    path = book(tmp_path / "t.xlsx", fill)
    labels = LabelAxis("kind", ("a", "else"), True)
    domain = Domain(
        age=AGE, day=DAYS, kind=sf.Categories(["a"], other="else"), yes=sf.Categories([True])
    )
    axes = (grid_axis("age", AGE, 5), grid_axis("day", DAYS, 5), labels, LabelAxis("yes", (True,)))
    for options in ({}, {"decimal": ",", "date_format": "%d.%m.%Y"}):
        src = source(path, domain, **options)  # type: ignore[arg-type]
        cubes = count(src, [Lattice((axis,)) for axis in axes])
        assert [int(cube.counts.sum()) for cube in cubes] == [3, 0, 8, 0]


def test_memory_is_bounded_by_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It grows with a batch, and not with the sheet."""
    columns = {"age": grid_axis("age", AGE, 5)}
    monkeypatch.setattr(excel, "BATCH_ROWS", 500)
    peaks = []
    for size in (3_000, 20_000):
        path = book(tmp_path / f"{size}.xlsx", rows(["age"], *([n % 50] for n in range(size))))
        reader = ExcelFile(path, "t.xlsx")
        tracemalloc.start()
        assert sum(map(len, reader.batches(columns))) == size
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] * 1.5


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("", None),
        (-3.0, b"-3"),
        (2.0**53, b"9007199254740992.0"),
        (0.1, b"0.1"),
        (False, b"FALSE"),
        (dt.time(5, 6), b"05:06:00"),
        (dt.datetime(2024, 3, 14, 5, 6, 7, 8), b"2024-03-14T05:06:07.000008"),
        (dt.timedelta(1), b"1 day, 0:00:00"),
    ],
)
def test_a_cell_as_a_field(cell: Any, text: bytes | None) -> None:
    assert text_of_cell(cell) == text
