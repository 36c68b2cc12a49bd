"""Read a sheet of an Excel file (``.xlsx`` or ``.xlsm``), cell by cell as the domain declares.

One row names the columns; the rows below it are data, but for those in which every cell is empty.
A formula counts as the value that was stored with it, and an error such as #N/A as a missing value.
No macro runs. A cell that holds text is read as a field of a CSV file is, so numbers that are
stored as text are numbers.

The reader is python-calamine. Over a million cells it takes 1.4 s and 90 MB, where openpyxl takes
8.5 s and 20 MB; a whole sheet is held in memory, but no more than one batch of it as Python's
objects. It is released several times a year, and openpyxl's last release is of 2024.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from sfumato.data.file_options import NO_OPTIONS, PLAIN, FileOptions, stating
from sfumato.data.guard import check_file, stat_file
from sfumato.data.reader import Column, Columns, Losses, RowReader
from sfumato.data.readers.text_table import either, parsed_column, text_schema
from sfumato.errors import DataError, UsageError

if TYPE_CHECKING:
    from python_calamine import CalamineSheet, CalamineWorkbook

BATCH_ROWS = 2**14

Cell: TypeAlias = int | float | str | bool | dt.time | dt.date | dt.datetime | dt.timedelta
"""What the reader makes of a cell; an empty one is an empty text."""

_COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""How an .xls file begins, and so does an .xlsx file that a password protects."""

_SHOWN_SHEETS = 20


class ExcelFile(RowReader):
    """A sheet of an Excel file."""

    in_memory = False
    has_schema = False

    def __init__(
        self,
        path: Path,
        name: str,
        person: str | None = None,
        options: FileOptions = NO_OPTIONS,
    ) -> None:
        self.path = path
        self.name = name
        self._person = person
        self._options = options

    def names(self) -> list[str]:
        """Give the names of the columns, from the row that names them.

        Empty cells before the first name and behind the last one are left out: how far they reach
        depends on cells of the rows below.

        Raises
        ------
        DataError
            If the file cannot be read, the sheet is not there, or no row names columns.
        """
        status = stat_file(self.path, self.name)
        state = (status.st_ino, status.st_mtime_ns, status.st_size)
        return list(_names_at(self.path, self.name, self._options, state))

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types that the domain declares. The file is not read."""
        return text_schema(columns, self.name, self._person)

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Read the columns wanted."""
        return self.batches_noting(columns, Losses())

    def batches_noting(self, columns: Columns, losses: Losses) -> Iterator[pa.RecordBatch]:
        """Read the columns wanted, and add to ``losses`` what is lost in reading them."""
        names, rows = _header(self.path, self.name, self._options)
        filled = (row for row in rows if any(cell != "" for cell in row))
        while batch := list(islice(filled, BATCH_ROWS)):
            values = []
            for name, column in columns.items():
                place = names.index(name)
                cells = [row[place] for row in batch]
                values.append(self._parsed(cells, name, column, losses))
            yield pa.RecordBatch.from_arrays(values, names=list(columns))

    def _parsed(self, cells: Sequence[Cell], name: str, column: Column, losses: Losses) -> pa.Array:
        """Read the cells of one column."""
        notation = self._options.notation(name)
        if notation == PLAIN:
            texts = pa.array([text_of_cell(cell) for cell in cells], pa.binary())
            return parsed_column(texts, name, column, losses)
        # Only text is written in a notation: numbers and dates of Excel have none.
        is_text = [isinstance(cell, str) for cell in cells]
        written = [
            text_of_cell(cell) if text else None for cell, text in zip(cells, is_text, strict=True)
        ]
        typed = [
            None if text else text_of_cell(cell) for cell, text in zip(cells, is_text, strict=True)
        ]
        return either(
            parsed_column(pa.array(written, pa.binary()), name, column, losses, notation),
            parsed_column(pa.array(typed, pa.binary()), name, column, losses),
        )

    def misreading(self) -> tuple[str, str] | None:
        """Say whether the row of names looks like a title, or has merged cells."""
        check_file(self.path, self.name)
        try:
            names = self.names()
        except DataError:
            # The refusal of the sheet says what is wrong.
            return None
        row = self._options.header_row
        if len(names) == 1:
            seen = f"row {row} has one name only, as a title has"
        elif n_empty := names.count(""):
            cells = "cell" if n_empty == 1 else "cells"
            seen = f"row {row} has {n_empty} empty {cells} between names, as merged cells leave"
        else:
            return None
        return (
            seen,
            f"Add header_row={row + 1} (command line: --header-row {row + 1}) if another row names "
            "the columns; of merged cells, only the first has the name, so give each its own",
        )


# --- the sheet ---


def _book(path: Path, name: str) -> CalamineWorkbook:
    """Open a file as Excel wrote it."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        found = None
    else:
        found = CalamineWorkbook
    if found is None:
        raise UsageError(
            name,
            "reading Excel files needs the package python-calamine",
            'Install it with: pip install "sfumato[excel]", or save the sheet as CSV',
        )
    try:
        return found.from_path(path)
    except CalamineError:
        pass
    # Outside the except block: the context that Python adds there might quote the file.
    raise DataError(
        name,
        "it is not an .xlsx file, or it is damaged",
        "Open it in Excel and save it again as .xlsx, or give a CSV file a name ending in .csv",
    )


@lru_cache(maxsize=64)
def _names_at(
    path: Path, name: str, options: FileOptions, state: tuple[int, int, int]
) -> tuple[str, ...]:
    """The names of the columns. To find them, the whole sheet has to be read."""
    del state
    names = _header(path, name, options)[0]
    places = [place for place, each in enumerate(names) if each]
    return tuple(names[places[0] : places[-1] + 1]) if places else ()


def _header(path: Path, name: str, options: FileOptions) -> tuple[list[str], Iterator[list[Cell]]]:
    """The names of the columns, and the rows below them."""
    sheet = _sheet(path, name, options.sheet)
    rows: Iterator[list[Cell]] = iter(sheet.iter_rows())
    row = next(islice(rows, options.header_row - 1, None), None)
    while row is not None and not any(cell != "" for cell in row):
        row = next(rows, None)
    if row is None:
        raise DataError(
            f"{name}, sheet {sheet.name!r}",
            f"no row from row {options.header_row} on names columns",
            "Choose another sheet or header_row, or write the names of the columns there",
        )
    return [(text_of_cell(cell) or b"").decode().strip() for cell in row], rows


def _sheet(path: Path, name: str, asked: str | None) -> CalamineSheet:
    check_file(path, name)
    with path.open("rb") as file:
        is_compound = file.read(len(_COMPOUND_FILE)) == _COMPOUND_FILE
    if is_compound:
        raise DataError(
            name,
            "it is protected by a password, or it is an .xls file under another name",
            "Open it in Excel, take the password off or save it as .xlsx, and try again",
        )
    book = _book(path, name)
    return book.get_sheet_by_name(_chosen(name, book.sheet_names, asked))


def _chosen(name: str, sheets: Sequence[str], asked: str | None) -> str:
    """The sheet to read, of those that there are."""
    if asked is not None and asked in sheets:
        return asked
    if asked is None and len(sheets) == 1:
        return sheets[0]
    listed = ", ".join(map(repr, sheets[:_SHOWN_SHEETS]))
    if len(sheets) > _SHOWN_SHEETS:
        listed += f" and {len(sheets) - _SHOWN_SHEETS} more"
    remedy = f"Add {stating('sheet', sheets[0])}, or the one that you mean"
    if asked is None:
        raise DataError(name, f"it has {len(sheets)} sheets: {listed}", remedy)
    raise DataError(f"{name}, sheet {asked!r}", f"it has no such sheet, but {listed}", remedy)


def text_of_cell(cell: Cell) -> bytes | None:
    """Write a cell as the field of a CSV file would be written; None if it is empty.

    >>> text_of_cell(3.0), text_of_cell(True), text_of_cell(dt.date(2024, 3, 14))
    (b'3', b'TRUE', b'2024-03-14')
    """
    if isinstance(cell, str):
        return cell.encode("utf-8", "surrogatepass") or None
    if isinstance(cell, bool):
        return b"TRUE" if cell else b"FALSE"
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return b"%d" % int(cell)
    if isinstance(cell, dt.date | dt.time):
        return cell.isoformat().encode()
    return str(cell).encode()
