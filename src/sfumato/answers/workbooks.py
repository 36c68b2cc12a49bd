"""A release as an Excel workbook, and a family of tables as one.

*A release*: one sheet has the answer, one what it promises.

*A family of tables*: a sheet for each, with its sums on the edges. The first sheet says what was
published and what it promises.

The same release gives the same bytes. A label is always written as text, so that none is run as a
formula.
"""

from __future__ import annotations

import datetime as dt
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from sfumato.answers.cross_tables import CrossTable, reading
from sfumato.basics import Array, Kind
from sfumato.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    from xlsxwriter.format import Format
    from xlsxwriter.workbook import Workbook
    from xlsxwriter.worksheet import Worksheet

# Names and what they are, for the second sheet.
Lines: TypeAlias = Sequence[tuple[str, str]]

# Rows of a sheet below its header.
MOST_ROWS = 2**20 - 1
MOST_COLUMNS = 2**14
LONGEST_TEXT = 32_767
WIDEST = 60
# The time that a file states as its own where no receipt says one.
EPOCH = dt.datetime(1980, 1, 1)

# How whole numbers are shown: labels and values of an axis, such as years, without separators.
WHOLE: dict[Kind, str] = {"amount": "#,##0", "value": "0", "label": "0"}


def to_excel(
    table: pa.Table,
    kind_of: Callable[[str], Kind],
    scope: str,
    about: Lines,
    made: dt.datetime | None,
) -> bytes:
    """Write a workbook.

    Parameters
    ----------
    table : pyarrow.Table
        The sheet "Answer", whose header stays in view.
    kind_of : callable
        What stands in the column of a name.
    scope : str
        What is counted and what may be missing: it stands beside the table, in the line that stays
        in view.
    about : sequence of pairs of str
        The sheet "Guarantee": names, and what they are.
    made : datetime or None
        The time that the file states as its own, such as that of the charge.

    Raises
    ------
    UsageError
        If xlsxwriter is not installed, or the table has more rows or columns than a sheet.
    """
    if table.num_rows > MOST_ROWS or table.num_columns > MOST_COLUMNS:
        raise UsageError(
            f"to_excel() of {table.num_rows:,} rows",
            f"a sheet of Excel holds {MOST_ROWS:,} rows below its header",
            "Write it with to_csv() or to_frame()",
        )

    def fill(book: Workbook) -> None:
        answer = book.add_worksheet("Answer")
        write_table(book, answer, table, kind_of)
        # An empty column parts it from the table, which stays one region that sorts and pivots.
        beside = table.num_columns + 1
        if beside < MOST_COLUMNS:
            text = book.add_format({"text_wrap": True, "valign": "top", "italic": True})
            answer.write_string(0, beside, scope[:LONGEST_TEXT], text)
            answer.set_column(beside, beside, WIDEST)
        _write_lines(book.add_worksheet("Guarantee"), 0, about, _forms(book))

    return written(fill, made)


def written(fill: Callable[[Workbook], None], made: dt.datetime | None) -> bytes:
    """Write a workbook.

    Parameters
    ----------
    fill : callable
        Writes the sheets.
    made : datetime or None
        The time that the file states as its own.

    Raises
    ------
    UsageError
        If xlsxwriter is not installed.
    """
    try:
        import xlsxwriter
    except ImportError:
        raise UsageError(
            "to_excel()",
            "writing Excel needs xlsxwriter, which is not installed",
            "Run: pip install 'sfumato[excel]'",
        ) from None
    target = io.BytesIO()
    # In memory: no copy of the answer is left in a folder of temporary files.
    book = xlsxwriter.Workbook(target, {"in_memory": True})
    book.set_properties({"created": made or EPOCH})
    fill(book)
    book.close()
    return target.getvalue()


def write_table(
    book: Workbook, sheet: Worksheet, table: pa.Table, kind_of: Callable[[str], Kind]
) -> None:
    """Write a table to a sheet, whose header stays in view."""
    head = book.add_format({"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"})
    for index, name in enumerate(table.column_names):
        values = table.column(index).to_pylist()
        form = book.add_format({"num_format": _number_format(values, kind_of(name))})
        shown = name.replace("_", " ")
        sheet.write_string(0, index, shown[:LONGEST_TEXT], head)
        for row, value in enumerate(values, 1):
            _write(sheet, row, index, value, form)
        # The first rows decide how wide a column is.
        sheet.set_column(index, index, _width(shown, values[:1000]))
    sheet.freeze_panes(1, 0)
    if table.num_rows and table.num_columns:
        sheet.autofilter(0, 0, table.num_rows, table.num_columns - 1)


def _write_lines(sheet: Worksheet, row: int, about: Lines, forms: Forms) -> None:
    """Write names and what they are, one pair a row, from a row on."""
    sheet.set_column(0, 0, 20)
    sheet.set_column(1, 1, 100)
    for at, (name, text) in enumerate(about, row):
        sheet.write_string(at, 0, name, forms["name"])
        sheet.write_string(at, 1, text[:LONGEST_TEXT], forms["text"])


def _write(sheet: Worksheet, row: int, column: int, value: object, form: Format) -> None:
    """Write one value as what it is; a text is never read as a formula, a link or a number."""
    text = _as_text(value)
    if text is not None:
        sheet.write_string(row, column, text[:LONGEST_TEXT])
    elif isinstance(value, dt.date):
        # A sheet cannot state a zone: all times are in UTC.
        plain = value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value
        sheet.write_datetime(row, column, plain, form)
    elif isinstance(value, int | float) and not math.isnan(value):
        sheet.write_number(row, column, value, form)


def _as_text(value: object) -> str | None:
    """The text of what is written as one; None of what a sheet has a number for, and of nothing."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, dt.date):
        # A date before 1900 is one that a sheet has no number for.
        return value.isoformat() if value.year < 1900 else None
    if isinstance(value, int):
        # Beyond, a sheet would round a whole number.
        return str(value) if abs(value) > 10**15 else None
    return "not known" if isinstance(value, float) and math.isinf(value) else None


def _number_format(values: Sequence[object], kind: Kind) -> str:
    if any(isinstance(value, dt.datetime) for value in values):
        return "yyyy-mm-dd hh:mm:ss"
    if any(isinstance(value, dt.date) for value in values):
        return "yyyy-mm-dd"
    return _amount_format([abs(value) for value in values if isinstance(value, int | float)], kind)


def _amount_format(numbers: Sequence[float], kind: Kind) -> str:
    if all(value % 1 == 0 for value in numbers):
        return WHOLE[kind]
    if kind != "amount" and all(round(value, 3) == value for value in numbers):
        return "General"
    # Four digits of the largest number, and at least two decimals of money.
    largest = max((value for value in numbers if value < float("inf")), default=0.0)
    decimals = next((n for n in (2, 3, 4, 6) if largest * 10**n >= 1000), 8)
    return f"{WHOLE[kind]}.{'0' * decimals}"


def _width(name: str, values: Sequence[object]) -> int:
    """The width of a column in letters."""
    longest = max((len(_shown(value)) for value in values), default=0)
    return min(max(len(name), longest, 8) + 2, WIDEST)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


# --- a family of tables ---------------------------------------------------------------------------

CONTENTS = "Contents and guarantee"
LONGEST_NAME = 31
# How many columns are printed on a page that stands upright.
UPRIGHT = 10


def family_to_excel(
    tables: Mapping[tuple[str, ...], Sequence[CrossTable]],
    listed: Callable[[tuple[str, ...]], pa.Table],
    scope: str,
    about: Lines,
    made: dt.datetime | None,
) -> bytes:
    """Write a workbook.

    Parameters
    ----------
    tables : mapping
        By their axes. One that has no cross-table is listed, one row for each number.
    listed : callable
        The rows of such a table.
    scope : str
        What is counted and what may be missing, for the first sheet.
    about : sequence of pairs of str
        Names and what they are, for the first sheet.
    made : datetime or None
        The time that the file states as its own, such as that of the charge.

    Raises
    ------
    UsageError
        If xlsxwriter is not installed, or a table has more rows or columns than a sheet.
    """
    names = _sheet_names(list(tables))
    lists = {axes: listed(axes) for axes, crossed in tables.items() if not crossed}
    # Before a sheet is written: a workbook without its last tables would pass for the whole.
    for axes, crossed in tables.items():
        rows = sum(3 * len(table.rows) + 12 for table in crossed)
        if axes in lists:
            rows = lists[axes].num_rows
        columns = max((len(table.columns) + 1 for table in crossed), default=0)
        if rows > MOST_ROWS or columns > MOST_COLUMNS:
            raise UsageError(
                f"to_excel() of a table of {rows:,} rows",
                f"a sheet of Excel holds {MOST_ROWS:,} rows below its header",
                "Write it with to_csv()",
            )

    def fill(book: Workbook) -> None:
        forms = _forms(book)
        _write_contents(book, forms, list(zip(names, tables, strict=True)), scope, about)
        for name, (axes, crossed) in zip(names, tables.items(), strict=True):
            sheet = book.add_worksheet(name)
            if crossed:
                _write_crossed(sheet, forms, crossed)
            else:
                write_table(book, sheet, lists[axes], lambda _: "amount")

    return written(fill, made)


# --- the first sheet ------------------------------------------------------------------------------


def _write_contents(
    book: Workbook,
    forms: Forms,
    names: Sequence[tuple[str, tuple[str, ...]]],
    scope: str,
    about: Lines,
) -> None:
    """List the tables, each with a link to its sheet, and below them what they promise."""
    sheet = book.add_worksheet(CONTENTS)
    sheet.write_string(0, 0, "What was published", forms["title"])
    sheet.write_string(0, 1, scope[:LONGEST_TEXT], forms["text"])
    for row, (name, axes) in enumerate(names, 1):
        text = f"Number of rows by {' and '.join(axes)}" if axes else "Number of rows"
        sheet.write_string(row, 0, f"Table {row}", forms["name"])
        # The link goes within the workbook. A quote in the name of a sheet is doubled.
        place = name.replace("'", "''")
        sheet.write_url(row, 1, f"internal:'{place}'!A1", forms["link"], text[:255])
    start = len(names) + 2
    sheet.write_string(start, 0, "What it promises", forms["title"])
    _write_lines(sheet, start + 1, about, forms)
    _print_on_a4(sheet, columns=2)


# --- tables ---------------------------------------------------------------------------------------


# How texts look.
LOOKS: Mapping[str | tuple[bool, bool, bool], dict[str, str | int]] = {
    "title": {"bold": True, "font_size": 13},
    "name": {"bold": True, "valign": "top"},
    "text": {"text_wrap": True, "valign": "top"},
    "link": {"font_color": "#0B5A94", "underline": 1, "valign": "top"},
    "head": {"bold": True, "bottom": 1, "align": "right", "valign": "bottom"},
    "label": {"align": "left"},
    "sums": {"align": "left", "bold": True},
}


# How fields look: texts by name, numbers by whether they are estimates, sums, and hatched.
Forms: TypeAlias = "Mapping[str | tuple[bool, bool, bool], Format]"


def _forms(book: Workbook) -> Forms:
    looks = dict(LOOKS)
    # Pattern 14 has thin stripes.
    for is_estimate, is_sum, is_hatched in product((False, True), repeat=3):
        look: dict[str, str | int] = {"pattern": 14, "fg_color": "#B9C0CA"} if is_hatched else {}
        look |= {"bold": is_sum, "num_format": "#,##0.0" if is_estimate else "#,##0"}
        looks[is_estimate, is_sum, is_hatched] = look
    return {name: book.add_format(look) for name, look in looks.items()}


def _write_crossed(sheet: Worksheet, forms: Forms, tables: Sequence[CrossTable]) -> None:
    """Write a table, or those of two axes that stand for one of three below one another."""
    row = 0
    for table in tables:
        sheet.write_string(row, 0, table.title[:LONGEST_TEXT], forms["title"])
        sheet.write_string(row + 1, 0, reading(table))
        row += 2
        if table.rounded is not None:
            row = _write_block(sheet, forms, row, table, "Rounded to whole numbers", table.rounded)
        row = _write_block(sheet, forms, row, table, "Estimates", table.estimates)
        if table.widths is None:
            row = _write_block(sheet, forms, row, table, "Half-widths, 95%", table.half_widths)
        row += 1
    names = [name for table in tables for name in (table.down, *table.rows)]
    sheet.set_column(0, 0, min(max(map(len, names)) + 2, WIDEST))
    columns = [name for table in tables for name in table.columns]
    sheet.set_column(1, len(tables[0].columns), min(max(9, *map(len, columns)) + 1, 24))
    _print_on_a4(sheet, columns=len(tables[0].columns) + 1)


def _write_block(
    sheet: Worksheet, forms: Forms, row: int, table: CrossTable, what: str, numbers: Array
) -> int:
    """Write numbers with the names of rows and columns; return the row below them."""
    sheet.write_string(row + 1, 0, what, forms["name"])
    if table.across:
        sheet.write_string(row + 1, 1, table.across, forms["name"])
    sheet.write_string(row + 2, 0, table.down, forms["head"])
    for column, name in enumerate(table.columns, 1):
        sheet.write_string(row + 2, column, name[:LONGEST_TEXT], forms["head"])
    is_estimate = numbers.dtype.kind == "f"
    last_row = len(table.rows) - 1 if table.has_column_sums else -1
    last_column = len(table.columns) - 1 if table.has_row_sums else -1
    hatched = table.hatched
    for at, name in enumerate(table.rows):
        look = forms["sums"] if at == last_row else forms["label"]
        sheet.write_string(row + 3 + at, 0, name[:LONGEST_TEXT], look)
        for column, value in enumerate(numbers[at].tolist()):
            is_sum = at == last_row or column == last_column
            form = forms[is_estimate, is_sum, bool(hatched[at, column])]
            sheet.write_number(row + 3 + at, column + 1, value, form)
    return row + 3 + len(table.rows)


def _print_on_a4(sheet: Worksheet, columns: int) -> None:
    sheet.set_paper(9)  # A4
    if columns > UPRIGHT:
        sheet.set_landscape()
    sheet.fit_to_pages(1, 0)


def _sheet_names(tables: Sequence[tuple[str, ...]]) -> list[str]:
    """Names of sheets: short, without what Excel does not allow, and all different."""
    names = []
    taken = {CONTENTS.lower()}
    for at, axes in enumerate(tables, 1):
        plain = re.sub(r"[\[\]:*?/\\\x00-\x1f]", " ", " x ".join(axes) or "total")
        name = plain[:LONGEST_NAME].strip().strip("'") or f"Table {at}"
        # Excel keeps the name History for itself.
        if name.lower() in {*taken, "history"}:
            # The number stands in front, so that it stays when the name is cut.
            name = f"{at} {name}"[:LONGEST_NAME].rstrip("' ")
        taken.add(name.lower())
        names.append(name)
    return names
