"""Read CSV files. The domain declares the types; none is inferred from the data.

The first line is the header. It alone can refuse the file, and errors name its form. It must be
text of the encoding and name each wanted column once; otherwise the file is refused. After it, no
value and no row is refused, whatever it holds: a row of another length than the header is dropped,
and a field that does not parse is a missing value (see ``fields``). How a row is read depends on
that row alone (see ``csv_rows``) and on what the custodian states of the file (see ``options``).
``.csv.gz`` is decompressed.

Blank lines are skipped; but in a file of one column, a blank line is a row whose field is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
from pyarrow import csv

from sfumato.basics import copy_of
from sfumato.data.columns import text_of
from sfumato.data.fields import MISSING, TextFile, parsed_column, quick_types
from sfumato.data.options import TAB, FileOptions, stating
from sfumato.data.reader import Columns, Losses, Piece, check_file, guarded
from sfumato.data.readers import csv_rows
from sfumato.data.readers.csv_rows import UTF_8, Transcoded
from sfumato.errors import DataError

# --- the header ---------------------------------------------------------------------------------

# What commonly separates fields, and what messages call one and several of them.
SEPARATORS = {
    ",": ("comma", "commas"),
    ";": ("semicolon", "semicolons"),
    TAB: ("tab", "tabs"),
    "|": ("bar", "bars"),
}

_LINE_BREAK = re.compile(rb"\r\n|\n|\r")

# What stands in the way, and what to do: two parts of a message.
Explained = tuple[str, str]


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


def read_header(
    stream: pa.NativeFile | Transcoded, name: str, options: FileOptions, separator: str
) -> Header:
    """Read the header from the beginning of a file.

    Parameters
    ----------
    stream : pyarrow.NativeFile or Transcoded
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
    where = _line(options.header_row)
    # One byte more than a row may have: without it, the file ends here.
    head = read_up_to(stream, csv_rows.LONGEST + 1)
    is_final = len(head) <= csv_rows.LONGEST
    marked = head.removeprefix(b"\xef\xbb\xbf")  # some programs write it before UTF-8
    n_above = options.header_row - 1
    lines = _LINE_BREAK.split(marked, n_above) if n_above else [marked]
    header = lines[-1].lstrip(b"\r\n") if len(lines) > n_above else b""
    if not header:
        obstacle = "it has no header" if options.header_row == 1 else f"it has no {where}"
        raise DataError(name, obstacle, f"Write the names of the columns in {where}")
    if options.encoding == UTF_8 and (encoding := _utf_16(head)):
        raise DataError(
            name,
            f"{where}, which names the columns, is not UTF-8 text but seems to be UTF-16",
            f"Add {stating('encoding', encoding)}, or save the file as CSV in UTF-8",
        )
    end = csv_rows.first_row_end(header, is_final, separator.encode())
    if not end:
        raise DataError(
            name,
            f"{where} does not end within 1 MB, or a quotation mark in it is not closed",
            f"Write the names of the columns in {where}; if lines stand above them, add "
            "header_row=3 (command line: --header-row 3)",
        )
    line = text_of(header[:end])
    if line is None:
        raise DataError(name, *_not_text(where, options.encoding))
    n_skipped = len(head) - len(header)
    return Header(_names(header[:end], separator), n_skipped + end, line)


def _line(header_row: int) -> str:
    return "the first line" if header_row == 1 else f"line {header_row}"


def _utf_16(head: bytes) -> str | None:
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    # Names of columns hold no zero character. Without a mark, the first letters show the order.
    if head[1:2] == b"\0":
        return "utf-16-le"
    return "utf-16-be" if head[:1] == b"\0" else None


def _not_text(where: str, encoding: str) -> Explained:
    what = f"{where}, which names the columns, is not"
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
    table = csv.read_csv(pa.BufferReader(copy_of(header + b"\n")), read, parse_options)
    return [name.strip() for name in table.column_names]


def read_up_to(stream: pa.NativeFile | Transcoded, size: int) -> bytes:
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
    separator = max(SEPARATORS, key=line.count)
    return separator if separator in line else None


def _times(line: str, separator: str) -> str:
    single, several = SEPARATORS.get(separator, (f"{separator!r}", f"{separator!r}"))
    number = line.count(separator)
    return f"no {single}" if number == 0 else f"{number} {single if number == 1 else several}"


# --- the file -----------------------------------------------------------------------------------


class CsvFile(TextFile):
    """A CSV file, read piece by piece."""

    def names(self) -> list[str]:
        """Give the names of the columns, from the header.

        Raises
        ------
        DataError
            If the file cannot be read, or its first line is no header.
        """
        return self._header().names

    def pieces_noting(self, columns: Columns, losses: Losses) -> Iterator[Piece]:
        """Give the text in pieces of whole rows, which are parsed by whoever calls them."""
        header = self._header()
        types = quick_types(columns, self._options)
        if self._person is not None:
            # Where there are many persons, a dictionary of them takes most time.
            types.pop(self._person, None)
        form = CsvForm(header.names, list(columns), self._separator, types)

        def dropped() -> None:
            losses.add(Losses(unended=1))

        with self._open() as stream:
            read_up_to(stream, header.n_bytes)
            for rows in csv_rows.pieces(stream.readinto, dropped, self._separator.encode()):
                # A copy: the next piece takes the place of this one.
                yield partial(self._typed_batches, copy_of(rows), form, columns, losses)

    def _typed_batches(
        self, rows: pa.Buffer, form: CsvForm, columns: Columns, losses: Losses
    ) -> Iterator[pa.RecordBatch]:
        # Other threads read other pieces meanwhile.
        own = Losses()
        for batch in read_rows(rows, form, own).to_batches():
            values = []
            for name, column in columns.items():
                fields = batch[name]
                if not pa.types.is_float64(fields.type):
                    notation = self._options.notation(name)
                    fields = parsed_column(fields, name, column, own, notation)
                values.append(fields)
            # Whoever reads one batch only knows what was lost in it.
            losses.add(own)
            own = Losses()
            yield pa.RecordBatch.from_arrays(values, names=form.wanted)
        losses.add(own)

    def other_separator(self) -> Explained | None:
        """Say whether the header looks as if another sign separated the fields."""
        line = guarded(self.name, self._header).line
        likely = likely_separator(line)
        if likely is None or line.count(likely) <= line.count(self._separator):
            return None
        obstacle = f"{self.names_place} has {_times(line, likely)} and "
        obstacle += _times(line, self._separator)
        remedy = f"Add {stating('separator', 'tab' if likely == TAB else likely)}"
        if likely == ";":
            remedy += f", and {stating('decimal', ',')} if its numbers are written 1,5"
        return obstacle, remedy

    @property
    def names_place(self) -> str:
        return _line(self._options.header_row)

    def likely_separator(self) -> str | None:
        """Say which separator the header seems to have."""
        return likely_separator(self._header().line)

    @property
    def _separator(self) -> str:
        if self._options.separator is not None:
            return self._options.separator
        return TAB if self.path.name.lower().endswith((".tsv", ".tsv.gz")) else ","

    @contextmanager
    def _open(self) -> Iterator[pa.NativeFile | Transcoded]:
        check_file(self.path, self.name)
        packed = "gzip" if self.path.suffix.lower() == ".gz" else None
        with pa.input_stream(str(self.path), compression=packed) as stream:
            encoding = self._options.encoding
            yield stream if encoding == UTF_8 else Transcoded(stream, encoding)

    def _header(self) -> Header:
        with self._open() as stream:
            return read_header(stream, self.name, self._options, self._separator)


# --- rows to batches ----------------------------------------------------------------------------


@dataclass
class CsvForm:
    """What Arrow needs to know to parse rows of CSV.

    Attributes
    ----------
    names : list of str
        The columns of the file.
    wanted : list of str
        The columns to read.
    separator : str
        What separates the fields.
    types : mapping of str to pyarrow.DataType
        What columns may be read as instead of bytes: see ``fields.quick_types``.
    is_filled : bool
        Whether all pieces so far have a number in each field of numbers. Otherwise it would cost
        time to try, of each piece, whether it has.
    """

    names: list[str]
    wanted: list[str]
    separator: str = ","
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    is_filled: bool = True

    def readings(self) -> Iterator[csv.ConvertOptions]:
        """Give the ways to read a piece, quickest first; the last one takes any field."""
        of_bytes = {
            name: type_ for name, type_ in self.types.items() if not pa.types.is_float64(type_)
        }
        if len(of_bytes) < len(self.types):
            if self.is_filled:
                yield self._reading(self.types, ())
            yield self._reading(self.types, MISSING)
        # Here what stands for a missing value is found later, of each column by itself.
        yield self._reading(of_bytes, ())

    def _reading(
        self, types: Mapping[str, pa.DataType], missing: Sequence[str]
    ) -> csv.ConvertOptions:
        return csv.ConvertOptions(
            include_columns=self.wanted,
            column_types={name: types.get(name, pa.binary()) for name in self.wanted},
            null_values=missing,
            strings_can_be_null=True,
        )


def read_rows(piece: pa.Buffer, form: CsvForm, losses: Losses) -> pa.Table:
    """Read the fields of a piece; rows of another length than the header are dropped.

    They are bytes, or what the form says if all of them are of that type.
    """

    def wrong_length(row: object) -> str:
        losses.wrong_length += 1
        return "skip"

    for reading in form.readings():
        try:
            return _text_fields(piece, form, reading, None)
        except pa.ArrowInvalid:
            form.is_filled = False
    # A row has another length. Arrow shows each such row to the handler as text, and fails where
    # the row is not UTF-8. Read as Latin-1, every row is text.
    text = piece.to_pybytes()
    if text_of(text) is not None:
        return _text_fields(piece, form, reading, wrong_length)
    table = _text_fields(copy_of(text.decode("latin-1").encode()), form, reading, wrong_length)
    for index, name in enumerate(table.column_names):
        column = table[name].combine_chunks().dictionary_encode()
        fields = [raw.decode().encode("latin-1") for raw in column.dictionary.to_pylist()]
        original = pa.array(fields, pa.binary()).take(column.indices)
        table = table.set_column(index, name, original)
    return table


def _text_fields(
    text: pa.Buffer,
    form: CsvForm,
    reading: csv.ConvertOptions,
    wrong_length: Callable[[object], str] | None,
) -> pa.Table:
    return csv.read_csv(
        pa.BufferReader(text),
        # One block holds the piece: at the end of a block Arrow reads some rows in another way.
        csv.ReadOptions(column_names=form.names, block_size=text.size + 1, use_threads=False),
        csv.ParseOptions(
            delimiter=form.separator,
            newlines_in_values=True,
            ignore_empty_lines=len(form.names) > 1,
            invalid_row_handler=wrong_length,
        ),
        reading,
        # It keeps what is freed, where Arrow's own gives it back before the next piece.
        pa.system_memory_pool(),
    )
