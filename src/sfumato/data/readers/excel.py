"""Read a sheet of an Excel file (``.xlsx`` or ``.xlsm``), cell by cell as the domain declares.

One row names the columns; the rows below it are data, but for those in which every cell is empty.
A formula counts as the value that was stored with it, and an error such as #N/A as a missing value.
No macro runs. A cell that holds text is read as a field of a CSV file is, so numbers that are
stored as text are numbers.

The sheet is streamed (``xlsx``), and a cell that means nothing is missing (``excel_cells``): no
value of the data stops the reading. Libraries fail here: python-calamine 0.9 refuses a sheet for
one error such as #SPILL! or one date out of range, and openpyxl 3.1 for one text that is not there.
Before the charge, the rows are read down to the one that names the columns.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

import pyarrow as pa

from sfumato.data.file_options import NO_OPTIONS, PLAIN, FileOptions, stating
from sfumato.data.guard import check_file, stat_file
from sfumato.data.reader import Column, Columns, Losses, RowReader
from sfumato.data.readers.excel_cells import Cell, Cells
from sfumato.data.readers.text_table import either, parsed_column, text_schema
from sfumato.data.readers.xlsx import Parts, RawCell, Row, damaged
from sfumato.errors import DataError

BATCH_ROWS = 2**14

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
        with _opened(self.path, self.name) as parts:
            read = Cells(parts).read
            header, rows = _header(parts, read, self._options)
            places = {name: place for place, name in reversed(header.items())}
            wanted = [places[name] for name in columns]
            filled = (
                [read(row.cells.get(place)) for place in wanted]
                for row in rows
                if _is_filled(row, read)
            )
            while batch := list(islice(filled, BATCH_ROWS)):
                values = [
                    self._parsed([row[number] for row in batch], name, column, losses)
                    for number, (name, column) in enumerate(columns.items())
                ]
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


@lru_cache(maxsize=64)
def _names_at(
    path: Path, name: str, options: FileOptions, state: tuple[int, int, int]
) -> tuple[str, ...]:
    """The names of the columns, with empty ones between them."""
    del state
    with _opened(path, name) as parts:
        header = _header(parts, Cells(parts).read, options)[0]
    places = [place for place, each in header.items() if each]
    if not places:
        return ()
    return tuple(header.get(place, "") for place in range(min(places), max(places) + 1))


def _opened(path: Path, name: str) -> Parts:
    """Open a file as Excel wrote it."""
    check_file(path, name)
    with path.open("rb") as file:
        is_compound = file.read(len(_COMPOUND_FILE)) == _COMPOUND_FILE
    if is_compound:
        raise DataError(
            name,
            "it is protected by a password, or it is an .xls file under another name",
            "Open it in Excel, take the password off or save it as .xlsx, and try again",
        )
    return Parts(path, name)


def _header(
    parts: Parts, read: Callable[[RawCell | None], Cell], options: FileOptions
) -> tuple[dict[int, str], Iterator[Row]]:
    """The names of the columns by their places, and the rows below them."""
    sheets = parts.sheets()
    sheet = _chosen(parts.name, list(sheets), options.sheet)
    rows = parts.rows(sheets[sheet])
    for row in rows:
        if row.number >= options.header_row and _is_filled(row, read):
            texts = {place: text_of_cell(read(cell)) for place, cell in row.cells.items()}
            names = {
                place: (text or b"").decode(errors="replace").strip()
                for place, text in sorted(texts.items())
            }
            return names, rows
    raise DataError(
        f"{parts.name}, sheet {sheet!r}",
        f"no row from row {options.header_row} on names columns",
        "Choose another sheet or header_row, or write the names of the columns there",
    )


def _is_filled(row: Row, read: Callable[[RawCell | None], Cell]) -> bool:
    return any(read(cell) != "" for cell in row.cells.values())


def _chosen(name: str, sheets: Sequence[str], asked: str | None) -> str:
    """The sheet to read, of those that there are."""
    if asked is not None and asked in sheets:
        return asked
    if asked is None and len(sheets) == 1:
        return sheets[0]
    if not sheets:
        raise damaged(name)
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
