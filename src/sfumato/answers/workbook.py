"""A release as an Excel workbook: one sheet with the answer, one with what it promises.

The same release gives the same bytes. A label is always written as text, so that none is run as a
formula.
"""

from __future__ import annotations

import datetime as dt
import io
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from sfumato.basics.text import Kind
from sfumato.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa
    from xlsxwriter.format import Format
    from xlsxwriter.workbook import Workbook
    from xlsxwriter.worksheet import Worksheet

Lines: TypeAlias = Sequence[tuple[str, str]]
"""Names and what they are, for the second sheet."""

MOST_ROWS = 2**20 - 1
"""Rows of a sheet below its header."""
MOST_COLUMNS = 2**14
LONGEST_TEXT = 32_767
WIDEST = 60
SAMPLED = 1000
"""How many rows decide the width of a column."""
EPOCH = dt.datetime(1980, 1, 1)
"""The time that a file states as its own where no receipt says one."""

WHOLE: dict[Kind, str] = {"amount": "#,##0", "value": "0", "label": "0"}
"""How whole numbers are shown: labels and values of an axis, such as years, without separators."""
LARGEST_WHOLE = 10**15
"""Beyond, a sheet would round a whole number."""
DATE = "yyyy-mm-dd"
TIME = "yyyy-mm-dd hh:mm:ss"


def to_excel(
    table: pa.Table, kind_of: Callable[[str], Kind], about: Lines, made: dt.datetime | None
) -> bytes:
    """Write a workbook.

    Parameters
    ----------
    table : pyarrow.Table
        The sheet "Answer", whose header stays in view.
    kind_of : callable
        What stands in the column of a name.
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
        obstacle = f"a sheet of Excel holds {MOST_ROWS:,} rows below its header"
        asked = f"to_excel() of {table.num_rows:,} rows"
        raise UsageError(asked, obstacle, "Write it with to_csv() or to_frame()")

    def fill(book: Workbook) -> None:
        write_table(book, book.add_worksheet("Answer"), table, kind_of)
        _write_about(book, about)

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
        found = None
    else:
        found = xlsxwriter
    if found is None:
        obstacle = "writing Excel needs xlsxwriter, which is not installed"
        raise UsageError("to_excel()", obstacle, "Run: pip install 'sfumato[excel]'")
    target = io.BytesIO()
    # In memory: no copy of the answer is left in a folder of temporary files.
    book = found.Workbook(target, {"in_memory": True})
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
        column = table.column(index)
        values = column.to_pylist()
        form = book.add_format({"num_format": _number_format(values, kind_of(name))})
        shown = name.replace("_", " ")
        sheet.write_string(0, index, shown[:LONGEST_TEXT], head)
        for row, value in enumerate(values, 1):
            _write(sheet, row, index, value, form)
        sheet.set_column(index, index, _width(shown, values[:SAMPLED]))
    sheet.freeze_panes(1, 0)
    if table.num_rows and table.num_columns:
        sheet.autofilter(0, 0, table.num_rows, table.num_columns - 1)


def _write_about(book: Workbook, about: Lines) -> None:
    sheet = book.add_worksheet("Guarantee")
    name_form = book.add_format({"bold": True, "valign": "top"})
    text_form = book.add_format({"text_wrap": True, "valign": "top"})
    sheet.set_column(0, 0, 20)
    sheet.set_column(1, 1, 100)
    for row, (name, text) in enumerate(about):
        sheet.write_string(row, 0, name, name_form)
        sheet.write_string(row, 1, text[:LONGEST_TEXT], text_form)


def _write(sheet: Worksheet, row: int, column: int, value: object, form: Format) -> None:
    """Write one value as what it is; a text is never read as a formula, a link or a number."""
    if isinstance(value, bool):
        sheet.write_string(row, column, "yes" if value else "no")
    elif isinstance(value, str):
        sheet.write_string(row, column, value[:LONGEST_TEXT])
    elif isinstance(value, dt.date):
        # A date before 1900 is one that a sheet has no number for.
        if value.year < 1900:
            sheet.write_string(row, column, value.isoformat())
        else:
            sheet.write_datetime(row, column, _local(value), form)
    elif isinstance(value, int) and abs(value) > LARGEST_WHOLE:
        sheet.write_string(row, column, str(value))
    elif isinstance(value, int | float) and abs(value) < float("inf"):
        sheet.write_number(row, column, value, form)
    elif isinstance(value, float) and math.isinf(value):
        sheet.write_string(row, column, "not known")


def _local(value: dt.date) -> dt.date:
    """A time without its zone, which a sheet cannot state: they are all in UTC."""
    return value.replace(tzinfo=None) if isinstance(value, dt.datetime) else value


def _number_format(values: Sequence[object], kind: Kind) -> str:
    """How the numbers of a column are shown."""
    if any(isinstance(value, dt.datetime) for value in values):
        return TIME
    if any(isinstance(value, dt.date) for value in values):
        return DATE
    numbers = [abs(value) for value in values if isinstance(value, int | float)]
    if all(isinstance(value, int) or value.is_integer() for value in numbers):
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
