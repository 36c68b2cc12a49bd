"""Read a sheet of an Excel file (``.xlsx`` or ``.xlsm``), cell by cell as the domain declares.

*What a cell means.* A cell that means nothing is missing, whatever it holds. Excel stores a date as
a number of days, and only its number format says that it is one. Section 18.8.30 of ECMA-376 lists
the formats that have a number; section 18.17.4.1 says how days count. A formula counts as the value
that was stored with it, and an error such as #N/A as a missing value. No macro runs. A cell that
holds text is read as a field of a CSV file is, so numbers that are stored as text are numbers.

*The sheet.* One row names the columns; the rows below it are data, but for those in which every
cell is empty. The sheet is streamed (``xlsx``): no value of the data stops the reading. Libraries
fail here: python-calamine 0.9 refuses a sheet for one error such as #SPILL! or one date out of
range, and openpyxl 3.1 for one text that is not there. Before the charge, the rows are read down to
the one that names the columns.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from sfumato.data.fields import TextFile, either, parsed_column
from sfumato.data.options import PLAIN, FileOptions, stating
from sfumato.data.reader import Column, Columns, Losses, Piece, check_file, stat_file
from sfumato.data.readers.xlsx import Element, Parts, RawCell, Row, damaged
from sfumato.errors import DataError

# --- what a cell means ----------------------------------------------------------------------------

# What the reader makes of a cell; a missing one is an empty text.
Cell: TypeAlias = int | float | str | bool | dt.time | dt.date | dt.datetime | dt.timedelta

# What a number format makes of a number.
NUMBER = "number"
MOMENT = "moment"
DURATION = "duration"

_EPOCH = dt.datetime(1899, 12, 30)
_DAYS_TO_1904 = 1462

_MOMENTS = frozenset([*range(14, 23), *range(27, 37), 45, 47, *range(50, 59)])
_LITERAL = re.compile(r'"[^"]*"|\\.|_.|\*.', re.DOTALL)
_ELAPSED = re.compile(r"\[(h+|m+|s+)\]", re.IGNORECASE)
_BRACKETS = re.compile(r"\[[^\]]*\]")
_OF_MOMENTS = re.compile(r"[dmyhs]", re.IGNORECASE)

_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
_BOOLEANS = {"1": True, "true": True, "0": False, "false": False}


class Cells:
    """Reads the cells of one file.

    The texts that cells share are read no further than the cells refer to.
    """

    def __init__(self, parts: Parts) -> None:
        self._texts: list[str] = []
        self._more_texts: Iterator[str] = parts.texts()
        self._meanings = meanings(parts.styles())
        self._from_1904 = parts.counts_from_1904()

    def read(self, cell: RawCell | None) -> Cell:
        """Give what a cell means: an empty text if it is missing."""
        if cell is None:
            return ""
        kind, style, text = cell
        if kind == "n":
            return self._number(style, text)
        if kind == "s":
            return self._shared(text)
        if kind in ("str", "inlineStr"):
            return unescaped(text)
        if kind == "b":
            return _BOOLEANS.get(text.strip(), "")
        # An error (e), or a type that there is not.
        return written_moment(text) if kind == "d" else ""

    def _number(self, style: str, text: str) -> Cell:
        number = finite(text)
        if number is None:
            return ""
        meaning = self._meanings.get(style, NUMBER)
        if meaning == NUMBER:
            # From 2^53 on the double may be another number than the text, and two ids could become
            # one.
            if abs(number) < 2**53:
                return number
            # Excel writes 15 digits; other programs may write an id of more, which no double holds.
            exact = Decimal(text)
            return int(exact) if exact == exact.to_integral_value() else number
        return duration(number) if meaning == DURATION else moment(number, self._from_1904)

    def _shared(self, text: str) -> str:
        try:
            place = int(text)
        except ValueError:
            return ""
        while len(self._texts) <= place:
            more = next(self._more_texts, None)
            if more is None:
                return ""
            self._texts.append(unescaped(more))
        return self._texts[place] if place >= 0 else ""


def finite(text: str) -> float | None:
    """Read a number; None if it is none, or not finite.

    >>> finite("1.5"), finite("1e400"), finite("x")
    (1.5, None, None)
    """
    try:
        number = float(text)
    except ValueError:
        return None
    # Python reads 1_000 as a number, and no sheet writes one so.
    return number if math.isfinite(number) and "_" not in text else None


def unescaped(text: str) -> str:
    """Decode the characters that XML cannot hold.

    >>> unescaped("a_x000D_b")
    'a\\rb'
    """
    if "_x" not in text:
        return text
    return _ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), text)


# --- dates, times and durations -------------------------------------------------------------------


def moment(number: float, from_1904: bool) -> Cell:
    """Read a number of days: a time below one day, a date if it is whole, missing out of range.

    >>> moment(45365.0, False), moment(0.5, False), moment(-1.0, False)
    (datetime.date(2024, 3, 14), datetime.time(12, 0), '')
    """
    days = number + _DAYS_TO_1904 if from_1904 else number
    if number < 0 or days >= 2_958_466:  # the day after 9999-12-31
        return ""
    # Excel counts a 29 February 1900 as day 60, which never was.
    shift = 1 if days < 60 else 0
    # Days as doubles are right to about a microsecond; times are rounded to milliseconds.
    try:
        time = _EPOCH + dt.timedelta(milliseconds=round((days + shift) * 86_400_000))
    except OverflowError:
        # The last half of a millisecond of the year 9999.
        return ""
    if number < 1:
        return time.time()
    return time.date() if number.is_integer() else time


def duration(number: float) -> Cell:
    """Read a number of days as a duration; missing if it is longer than Python's longest."""
    try:
        return dt.timedelta(milliseconds=round(number * 86_400_000))
    except OverflowError:
        return ""


def written_moment(text: str) -> Cell:
    """Read a date, a time or both, as ISO 8601 writes them; missing if it is none."""
    for kind in (dt.date, dt.time, dt.datetime):
        try:
            return kind.fromisoformat(text.strip())
        except ValueError:
            continue
    return ""


def meanings(styles: Sequence[Element]) -> dict[str, str]:
    """Give what each place in the list of cell formats makes of a number, where that is no number.

    Parameters
    ----------
    styles : sequence of Element
    """
    codes = {
        element.attributes.get("numFmtId", ""): element.attributes.get("formatCode", "")
        for element in styles
        if element.name == "numFmt"
    }
    formats = [
        element for element in styles if element.name == "xf" and element.parent == "cellXfs"
    ]
    meaning_of = {}
    for place, format_ in enumerate(formats):
        number = format_.attributes.get("numFmtId", "")
        meaning = _of_code(codes[number]) if number in codes else _of_number(number)
        if meaning != NUMBER:
            meaning_of[str(place)] = meaning
    return meaning_of


def _of_number(number: str) -> str:
    if not (number.isascii() and number.isdigit()) or len(number) > 3:
        return NUMBER
    if int(number) == 46:
        return DURATION
    return MOMENT if int(number) in _MOMENTS else NUMBER


def _of_code(code: str) -> str:
    """Return what a format such as ``dd.mm.yyyy`` makes of a positive number."""
    bare = _LITERAL.sub("", code).split(";")[0]
    if _ELAPSED.search(bare):
        return DURATION
    return MOMENT if _OF_MOMENTS.search(_BRACKETS.sub("", bare)) else NUMBER


# --- the reader -----------------------------------------------------------------------------------

BATCH_ROWS = 2**14

# How an .xls file begins, and so does an .xlsx file that a password protects.
_COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

_SHOWN_SHEETS = 20


class ExcelFile(TextFile):
    """A sheet of an Excel file."""

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

    def pieces_noting(self, columns: Columns, losses: Losses) -> list[Piece]:
        return [partial(self._batches, columns, losses)]

    def _batches(self, columns: Columns, losses: Losses) -> Iterator[pa.RecordBatch]:
        with _opened(self.path, self.name) as parts:
            read = Cells(parts).read
            header, rows = _header(parts, read, self._options)
            # Of columns of one name the first one counts, as it is written last.
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

    @property
    def names_place(self) -> str:
        return f"row {self._options.header_row}"


# --- the sheet ------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _names_at(
    path: Path, name: str, options: FileOptions, state: tuple[int, int, int]
) -> tuple[str, ...]:
    """Return the names of the columns, with empty ones between them."""
    # It belongs to the key of the cache alone: a file that has changed is read again.
    del state
    with _opened(path, name) as parts:
        header = _header(parts, Cells(parts).read, options)[0]
    places = [place for place, name in header.items() if name]
    if not places:
        return ()
    return tuple(header.get(place, "") for place in range(min(places), max(places) + 1))


def _opened(path: Path, name: str) -> Parts:
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
    """Return the names of the columns by their places, and the rows below them."""
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


def _chosen(name: str, sheets: Sequence[str], sheet: str | None) -> str:
    if sheet is not None and sheet in sheets:
        return sheet
    if sheet is None and len(sheets) == 1:
        return sheets[0]
    if not sheets:
        raise damaged(name)
    listed = ", ".join(map(repr, sheets[:_SHOWN_SHEETS]))
    if len(sheets) > _SHOWN_SHEETS:
        listed += f" and {len(sheets) - _SHOWN_SHEETS} more"
    remedy = f"Add {stating('sheet', sheets[0])}, or the one that you mean"
    if sheet is None:
        raise DataError(name, f"it has {len(sheets)} sheets: {listed}", remedy)
    raise DataError(f"{name}, sheet {sheet!r}", f"it has no such sheet, but {listed}", remedy)


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
