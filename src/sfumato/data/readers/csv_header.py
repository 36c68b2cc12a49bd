"""The header of a CSV file: the one line that can refuse the file, and whose form errors name."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import csv

from sfumato.data.columns import text_of
from sfumato.data.encodings import UTF_8, Stream
from sfumato.data.file_options import TAB, FileOptions, stating
from sfumato.data.readers import csv_rows
from sfumato.errors import DataError

SEPARATORS = {
    ",": ("comma", "commas"),
    ";": ("semicolon", "semicolons"),
    TAB: ("tab", "tabs"),
    "|": ("bar", "bars"),
}
"""What commonly separates fields, and what messages call one and several of them."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # some programs write it before UTF-8
_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_LINE_BREAK = re.compile(rb"\r\n|\n|\r")

Explained = tuple[str, str]
"""What stands in the way, and what to do: two parts of a message."""


@dataclass(frozen=True)
class Header:
    """The line that names the columns.

    Attributes
    ----------
    names : list of str
        The names, without blanks around them.
    n_bytes : int
        How many bytes lie before the first row.
    line : str
        The line itself. It may turn out to be data, so no message quotes it.
    """

    names: list[str]
    n_bytes: int
    line: str


def read_header(stream: Stream, name: str, options: FileOptions, separator: str) -> Header:
    """Read the header from the beginning of a file.

    Parameters
    ----------
    stream : Stream
        The file, as UTF-8 unless no other encoding is stated.
    name : str
        What errors call the file.
    options : FileOptions
    separator : str

    Raises
    ------
    DataError
        If there is no header, or it is not text of the encoding.
    """
    where = _where(options.header_row)
    head = read_up_to(stream, csv_rows.LONGEST + 1)
    is_final = len(head) <= csv_rows.LONGEST
    marked = head.removeprefix(_BYTE_ORDER_MARK)
    header = _from_line(marked, options.header_row).lstrip(b"\r\n")
    if not header:
        obstacle = "it has no header" if options.header_row == 1 else f"it has no {where}"
        raise DataError(name, obstacle, f"Write the names of the columns in the {where}")
    if options.encoding == UTF_8 and (found := _utf_16(head)):
        raise DataError(
            name,
            f"its {where}, which names the columns, is not UTF-8 text but seems to be UTF-16",
            f"Add {stating('encoding', found)}, or save the file as CSV in UTF-8",
        )
    end = csv_rows.first_row_end(header, is_final, separator.encode())
    if not end:
        raise DataError(
            name,
            f"its {where} does not end within 1 MB, or a quotation mark in it is not closed",
            f"Write the names of the columns in the {where}; if lines stand above them, add "
            "header_row=3 (command line: --header-row 3)",
        )
    line = text_of(header[:end])
    if line is None:
        raise DataError(name, *_not_text(where, options.encoding))
    n_skipped = len(head) - len(header)
    return Header(_names(header[:end], separator), n_skipped + end, line)


def _where(header_row: int) -> str:
    return "first line" if header_row == 1 else f"line {header_row}"


def _from_line(head: bytes, number: int) -> bytes:
    """What is left of a file from the line of that number on."""
    breaks = _LINE_BREAK.finditer(head)
    start = 0
    for _ in range(number - 1):
        found = next(breaks, None)
        if found is None:
            return b""
        start = found.end()
    return head[start:]


def _utf_16(head: bytes) -> str | None:
    """The encoding of a file that begins as UTF-16 does."""
    if head[:2] in _UTF_16_MARKS:
        return "utf-16"
    # Names of columns hold no zero character. Without a mark, the first letters show the order.
    first = head[:2]
    if first[1:] == b"\0":
        return "utf-16-le"
    return "utf-16-be" if first[:1] == b"\0" else None


def _not_text(where: str, encoding: str) -> Explained:
    what = f"its {where}, which names the columns, is not"
    if encoding == UTF_8:
        return (
            f"{what} UTF-8 text",
            f"Add {stating('encoding', 'cp1252')} if it was written on Windows, or save the file "
            "as CSV in UTF-8",
        )
    return f"{what} text in {encoding}", 'Give the encoding that it has, such as "cp1252"'


def _names(header: bytes, separator: str) -> list[str]:
    read = csv.ReadOptions(block_size=len(header) + 2)
    parse_options = csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    table = csv.read_csv(pa.BufferReader(header + b"\n"), read, parse_options)
    return [name.strip() for name in table.column_names]


def read_up_to(stream: Stream, size: int) -> bytes:
    """Read ``size`` bytes, or all that there are: one call may give fewer than it is asked for."""
    parts: list[bytes] = []
    while size > 0 and (more := stream.read(size)):
        parts.append(more)
        size -= len(more)
    return b"".join(parts)


# --- another separator ----------------------------------------------------------------------------


def likely_separator(line: str) -> str | None:
    """Say which of the common separators occurs most often in a header; None without any.

    >>> likely_separator("age;name, first;wage")
    ';'
    """
    found = max(SEPARATORS, key=line.count)
    return found if found in line else None


def other_separator(header: Header, separator: str, header_row: int) -> Explained | None:
    """Say what the header's form tells of another separator; None if it tells nothing."""
    likely = likely_separator(header.line)
    if likely is None or header.line.count(likely) <= header.line.count(separator):
        return None
    obstacle = f"the {_where(header_row)} has {_times(header.line, likely)} and "
    obstacle += _times(header.line, separator)
    remedy = f"Add {stating('separator', 'tab' if likely == TAB else likely)}"
    if likely == ";":
        remedy += f", and {stating('decimal', ',')} if its numbers are written 1,5"
    return obstacle, remedy


def _times(line: str, separator: str) -> str:
    """How often a separator occurs, in words."""
    one, several = SEPARATORS.get(separator, (f"{separator!r}", f"{separator!r}"))
    number = line.count(separator)
    return f"no {one}" if number == 0 else f"{number} {one if number == 1 else several}"
