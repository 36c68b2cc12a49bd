"""Read CSV files. The domain declares the types; none is inferred from the data.

The first line is the header. It must be UTF-8 and name each wanted column once; otherwise the file
is refused. After it, no value and no row is refused, whatever it holds: a row of another length
than the header is dropped, and a field that does not parse is a missing value (see ``fields``). How
a row is read depends on that row alone (see ``csv_rows``). ``.csv.gz`` is decompressed.

A field is missing if it is empty, ``NA``, ``N/A``, ``NaN``, ``nan``, ``NULL``, ``null`` or one of a
few more texts (pyarrow's list), unless the domain lists that text as a label. Blank lines are
skipped; but in a file of one column, a blank line is a row whose field is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from sfumato.data.columns import text_of
from sfumato.data.fields import declared, parse
from sfumato.data.guard import check_file
from sfumato.data.reader import Column, Columns, Losses, RowReader
from sfumato.data.readers import csv_rows
from sfumato.errors import DataError
from sfumato.lattice import Label

MISSING: tuple[str, ...] = tuple(csv.ConvertOptions().null_values)
HEAD_BYTES = 2**16
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # some programs write it before UTF-8
_OTHER_DELIMITERS = {b";": "semicolons", b"\t": "tabs", b"|": "bars"}


class CsvFile(RowReader):
    """A CSV file, read piece by piece."""

    in_memory = False
    has_schema = False

    def __init__(self, path: Path, name: str, person: str | None = None) -> None:
        self.path = path
        self.name = name
        self._person = person

    def names(self) -> list[str]:
        """Give the names of the columns, from the header.

        Raises
        ------
        DataError
            If the file cannot be read, or its first line is no header.
        """
        return self._header()[0]

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types that the domain declares. The file is not read."""
        for name, column in columns.items():
            if name == self._person and column is not None and not _names_persons(column):
                raise DataError(
                    f"{self.name}, column {name!r}",
                    "it names the person, as text, and is an axis of numbers at the same time",
                    "Write it twice, under two names, or write the table as Parquet",
                )
        return pa.schema([(name, declared(column)) for name, column in columns.items()])

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Read the columns wanted."""
        return self.batches_noting(columns, Losses())

    def batches_noting(self, columns: Columns, losses: Losses) -> Iterator[pa.RecordBatch]:
        """Read the columns wanted, and add to ``losses`` what is lost in reading them."""
        names, header_bytes = self._header()
        listed = {label for column in columns.values() for label in _listed(column)}
        missing = [text for text in MISSING if text not in listed]
        form = RowForm(names, list(columns), missing)
        for piece in self._pieces(header_bytes, losses):
            for batch in read_rows(piece, form, losses).to_batches():
                yield _parsed_batch(batch, columns, missing, losses)

    def hints(self) -> Iterator[str]:
        """Say what may be wrong with the encoding and the delimiter, from the first line."""
        with self._open() as stream:
            head = _read_up_to(stream, HEAD_BYTES)
        if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            yield "The file seems to be UTF-16: save it as UTF-8."
            return
        line = head.lstrip(_BYTE_ORDER_MARK + b"\r\n").partition(b"\n")[0]
        if text_of(line) is None:
            yield (
                "The first line is not UTF-8. Latin-1 or Windows-1252 is likely: "
                "save the file as UTF-8."
            )
        n_commas = line.count(b",")
        delimiter = max(_OTHER_DELIMITERS, key=line.count)
        n_others = line.count(delimiter)
        if n_others > n_commas:
            yield (
                f"The first line has {n_others} {_OTHER_DELIMITERS[delimiter]} "
                f"and {n_commas} commas: save the file with commas."
            )

    def _open(self) -> pa.NativeFile:
        check_file(self.path, self.name)
        packed = "gzip" if self.path.suffix.lower() == ".gz" else None
        return pa.input_stream(str(self.path), compression=packed)

    def _pieces(self, header_bytes: int, losses: Losses) -> Iterator[memoryview]:
        def dropped() -> None:
            losses.unended += 1

        with self._open() as stream:
            stream.read(header_bytes)
            yield from csv_rows.pieces(stream.readinto, dropped)

    def _header(self) -> tuple[list[str], int]:
        """The header's names, and how many bytes lie before the first row."""
        with self._open() as stream:
            head = _read_up_to(stream, csv_rows.LONGEST + 1)
        header = head.removeprefix(_BYTE_ORDER_MARK).lstrip(b"\r\n")
        if not header:
            raise DataError(
                self.name, "it has no header", "Write the names of the columns in the first line"
            )
        end = csv_rows.first_row_end(header, is_final=len(head) <= csv_rows.LONGEST)
        if not end:
            raise DataError(
                self.name,
                "its first line does not end within 1 MB, or a quotation mark in it is not closed",
                "Write the names of the columns in the first line",
            )
        if text_of(header[:end]) is None:
            raise DataError(
                self.name,
                "its first line, which names the columns, is not UTF-8 text",
                "Save the file as CSV in UTF-8",
            )
        n_skipped = len(head) - len(header)
        return _names(header[:end]), n_skipped + end


def _read_up_to(stream: pa.NativeFile, size: int) -> bytes:
    """Read ``size`` bytes, or all that there are: one call may give fewer than it is asked for."""
    parts: list[bytes] = []
    while size > 0 and (more := stream.read(size)):
        parts.append(more)
        size -= len(more)
    return b"".join(parts)


def _names(header: bytes) -> list[str]:
    read = csv.ReadOptions(block_size=len(header) + 2)
    parse_options = csv.ParseOptions(newlines_in_values=True)
    return list(csv.read_csv(pa.BufferReader(header + b"\n"), read, parse_options).column_names)


def _names_persons(column: Column) -> bool:
    """Whether ids can be read as the axis is read: as numbers, two long ids could become equal."""
    return not (pa.types.is_float64(declared(column)) or pa.types.is_int64(declared(column)))


def _listed(column: Column) -> tuple[Label, ...]:
    return () if column is None else column.listed


# --- rows to batches ----------------------------------------------------------------------------


@dataclass(frozen=True)
class RowForm:
    """What Arrow needs to know to parse rows.

    Attributes
    ----------
    names : list of str
        The columns of the file.
    wanted : list of str
        The columns to read.
    missing : list of str
        The texts that stand for a missing value in all of them.
    """

    names: list[str]
    wanted: list[str]
    missing: list[str]


def read_rows(piece: memoryview, form: RowForm, losses: Losses) -> pa.Table:
    """Read the fields of a piece as bytes; rows of another length than the header are dropped."""

    def wrong_length(row: object) -> str:
        losses.wrong_length += 1
        return "skip"

    try:
        return _parsed(piece, form, None)
    except pa.ArrowInvalid:
        pass
    # A row has another length. Arrow shows each such row to the handler as text, and fails where
    # the row is not UTF-8. Read as Latin-1, every row is text.
    text = bytes(piece)
    if text_of(text) is not None:
        return _parsed(text, form, wrong_length)
    table = _parsed(text.decode("latin-1").encode(), form, wrong_length)
    for index, name in enumerate(table.column_names):
        column = table[name].combine_chunks().dictionary_encode()
        fields = [raw.decode().encode("latin-1") for raw in column.dictionary.to_pylist()]
        original = pa.array(fields, pa.binary()).take(column.indices)
        table = table.set_column(index, name, original)
    return table


def _parsed(
    text: bytes | memoryview, form: RowForm, wrong_length: Callable[[object], str] | None
) -> pa.Table:
    return csv.read_csv(
        pa.BufferReader(pa.py_buffer(text)),
        csv.ReadOptions(column_names=form.names, block_size=len(text) + 1),
        csv.ParseOptions(
            newlines_in_values=True,
            ignore_empty_lines=len(form.names) > 1,
            invalid_row_handler=wrong_length,
        ),
        csv.ConvertOptions(
            include_columns=form.wanted,
            column_types=dict.fromkeys(form.wanted, pa.binary()),
            null_values=form.missing,
            strings_can_be_null=True,
        ),
    )


def _parsed_batch(
    batch: pa.RecordBatch, columns: Columns, missing: list[str], losses: Losses
) -> pa.RecordBatch:
    """Parse the fields of a batch as the columns are declared, and count what does not parse."""
    values: dict[str, pa.Array] = {}
    for name, column in columns.items():
        texts = _without_missing(batch[name], column, missing)
        values[name] = parse(texts, column)
        n_unparsed = values[name].null_count - texts.null_count
        if n_unparsed:
            losses.unparsed[name] += n_unparsed
            unparsed = texts.filter(values[name].is_null()).drop_null().to_pylist()
            n_not_utf8 = sum(text_of(raw) is None for raw in unparsed)
            losses.not_utf8.update({name: n_not_utf8} if n_not_utf8 else {})
    return pa.RecordBatch.from_arrays(list(values.values()), names=list(values))


def _without_missing(texts: pa.Array, column: Column, missing: list[str]) -> pa.Array:
    """Make null what stands for a missing value in this column, though another lists it."""
    listed = _listed(column)
    also = [text.encode() for text in MISSING if text not in missing and text not in listed]
    return pc.if_else(pc.is_in(texts, pa.array(also, pa.binary())), None, texts) if also else texts
