"""Read CSV files. The domain declares the types; none is inferred from the data.

The first line is the header. It must be text of the encoding and name each wanted column once;
otherwise the file is refused (see ``csv_header``). After it, no value and no row is refused,
whatever it holds: a row of another length than the header is dropped, and a field that does not
parse is a missing value (see ``text_table``). How a row is read depends on that row alone (see
``csv_rows``) and on what the custodian states of the file (see ``file_options``). ``.csv.gz`` is
decompressed.

Blank lines are skipped; but in a file of one column, a blank line is a row whose field is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

from sfumato.data.columns import text_of
from sfumato.data.encodings import UTF_8, Transcoded
from sfumato.data.file_options import NO_OPTIONS, TAB, FileOptions
from sfumato.data.guard import check_file, guarded
from sfumato.data.reader import Columns, Losses, RowReader
from sfumato.data.readers import csv_rows
from sfumato.data.readers.csv_header import (
    Header,
    likely_separator,
    other_separator,
    read_header,
    read_up_to,
)
from sfumato.data.readers.text_table import common_missing, parsed_column, text_schema
from sfumato.errors import DataError


class CsvFile(RowReader):
    """A CSV file, read piece by piece."""

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
        """Give the names of the columns, from the header.

        Raises
        ------
        DataError
            If the file cannot be read, or its first line is no header.
        """
        return self._header().names

    def schema(self, columns: Columns) -> pa.Schema:
        """Give the types that the domain declares. The file is not read."""
        return text_schema(columns, self.name, self._person)

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """Read the columns wanted."""
        return self.batches_noting(columns, Losses())

    def batches_noting(self, columns: Columns, losses: Losses) -> Iterator[pa.RecordBatch]:
        """Read the columns wanted, and add to ``losses`` what is lost in reading them."""
        header = self._header()
        form = RowForm(header.names, list(columns), common_missing(columns), self._separator)
        for piece in self._pieces(header.n_bytes, losses):
            for batch in read_rows(piece, form, losses).to_batches():
                yield _parsed_batch(batch, columns, self._options, losses)

    def misreading(self) -> tuple[str, str] | None:
        """Say whether the header looks as if another sign separated the fields."""
        check_file(self.path, self.name)
        try:
            header = guarded(self.name, self._header)
        except DataError:
            # The refusal of the header says what is wrong.
            return None
        return other_separator(header, self._separator, self._options.header_row)

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
        """Open the file, as UTF-8."""
        check_file(self.path, self.name)
        packed = "gzip" if self.path.suffix.lower() == ".gz" else None
        with pa.input_stream(str(self.path), compression=packed) as stream:
            encoding = self._options.encoding
            yield stream if encoding == UTF_8 else Transcoded(stream, encoding)

    def _pieces(self, header_bytes: int, losses: Losses) -> Iterator[memoryview]:
        def dropped() -> None:
            losses.unended += 1

        with self._open() as stream:
            read_up_to(stream, header_bytes)
            yield from csv_rows.pieces(stream.readinto, dropped, self._separator.encode())

    def _header(self) -> Header:
        with self._open() as stream:
            return read_header(stream, self.name, self._options, self._separator)


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
    separator : str
        What separates the fields.
    """

    names: list[str]
    wanted: list[str]
    missing: list[str]
    separator: str = ","


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
            delimiter=form.separator,
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
    batch: pa.RecordBatch, columns: Columns, options: FileOptions, losses: Losses
) -> pa.RecordBatch:
    """Parse the fields of a batch as the columns are declared, and count what does not parse."""
    values = [
        parsed_column(batch[name], name, column, losses, options.notation(name))
        for name, column in columns.items()
    ]
    return pa.RecordBatch.from_arrays(values, names=list(columns))
