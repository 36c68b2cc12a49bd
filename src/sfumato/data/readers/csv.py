"""CSV files: types are declared by the domain, never inferred from the data; only the header can refuse.

The first line is the header: UTF-8, with each column wanted once. After it no value and no row is
refused, whatever it holds: a row of another length than the header's is dropped, and a field that
does not parse is a missing value (see ``fields``). How one row is read depends on that row alone
(see ``csvrows``). ``.csv.gz`` is decompressed.

Missing is: nothing, ``NA``, ``N/A``, ``NaN``, ``nan``, ``NULL``, ``null`` and a few like them
(pyarrow's list), unless the domain lists it as a label. Blank lines are passed over, but where
there is one column only: there each is a row whose field is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from sfumato.data.columns import text_of
from sfumato.data.fields import declared, parse
from sfumato.data.guard import check_file
from sfumato.data.reader import Column, Columns, Losses, RowReader
from sfumato.data.readers import csvrows
from sfumato.errors import DataError
from sfumato.lattice import Label

MISSING: tuple[str, ...] = tuple(csv.ConvertOptions().null_values)
HEAD_BYTES = 2**16
_MARK = b"\xef\xbb\xbf"  # some programs begin UTF-8 with a byte order mark
_SIGNS = {b";": "semicolons", b"\t": "tabs", b"|": "bars"}


class CsvFile(RowReader):
    """A CSV file, read piece by piece."""

    in_memory = False
    has_schema = False

    def __init__(self, path: Path, name: str, person: str | None = None) -> None:
        self.path = path
        self.name = name
        self._person = person

    def names(self) -> list[str]:
        """Names of the columns, from the header.

        Raises
        ------
        DataError
            If the file cannot be read, or its first line is no header.
        """
        return self._header()[0]

    def schema(self, columns: Columns) -> pa.Schema:
        """Types as the domain declares them. The file is not looked at."""
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
        """Read the columns wanted; what is lost on the way is added to ``losses``."""
        names, length = self._header()
        listed = {text for column in columns.values() for text in _listed(column)}
        missing = [text for text in MISSING if text not in listed]
        wanted = list(columns)
        for piece in self._pieces(length, losses):
            table = _rows(piece, names, wanted, missing, losses)
            for batch in table.to_batches():
                yield _read(batch, columns, missing, losses)

    def hints(self) -> Iterator[str]:
        """What the first line seems to be, if it is not as it should be."""
        with self._open() as stream:
            head = _filled(stream, HEAD_BYTES)
        if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            yield "The file seems to be UTF-16: save it as UTF-8."
            return
        line = head.lstrip(b"\xef\xbb\xbf\r\n").partition(b"\n")[0]
        if text_of(line) is None:
            yield "The first line is not UTF-8. Latin-1 or Windows-1252 is likely: save the file as UTF-8."
        commas = line.count(b",")
        sign = max(_SIGNS, key=line.count)
        if line.count(sign) > commas:
            yield f"The first line has {line.count(sign)} {_SIGNS[sign]} and {commas} commas: save the file with commas."

    def _open(self) -> pa.NativeFile:
        check_file(self.path, self.name)
        packed = "gzip" if self.path.suffix.lower() == ".gz" else None
        return pa.input_stream(str(self.path), compression=packed)

    def _pieces(self, length: int, losses: Losses) -> Iterator[memoryview]:
        def dropped() -> None:
            losses.unended += 1

        with self._open() as stream:
            stream.read(length)
            yield from csvrows.pieces(stream.readinto, dropped)

    def _header(self) -> tuple[list[str], int]:
        """The header's names, and how many bytes lie before the first row."""
        with self._open() as stream:
            head = _filled(stream, csvrows.LONGEST + 1)
        skipped = len(_MARK) if head.startswith(_MARK) else 0
        skipped += len(head) - skipped - len(head[skipped:].lstrip(b"\r\n"))
        text = head[skipped:]
        if not text:
            raise DataError(
                self.name, "it has no header", "Write the names of the columns in the first line"
            )
        end = csvrows.first_row_end(text, final=len(head) <= csvrows.LONGEST)
        if not end:
            raise DataError(
                self.name,
                "its first line does not end within 1 MB, or a quotation mark in it is not closed",
                "Write the names of the columns in the first line",
            )
        if text_of(text[:end]) is None:
            raise DataError(
                self.name,
                "its first line, which names the columns, is not UTF-8 text",
                "Save the file as CSV in UTF-8",
            )
        return _names(text[:end]), skipped + end


def _filled(stream: pa.NativeFile, size: int) -> bytes:
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
    """Whether what the axis reads still tells persons apart: long numbers would meet as doubles."""
    return not (pa.types.is_float64(declared(column)) or pa.types.is_int64(declared(column)))


def _listed(column: Column) -> tuple[Label, ...]:
    return () if column is None else column.listed


def _rows(
    piece: memoryview,
    names: list[str],
    wanted: list[str],
    missing: list[str],
    losses: Losses,
) -> pa.Table:
    """The fields of a piece as bytes; rows of another length than the header's are dropped."""

    def wrong_length(row: object) -> str:
        losses.wrong_length += 1
        return "skip"

    try:
        return _parsed(piece, names, wanted, missing, None)
    except pa.ArrowInvalid:
        pass
    # Arrow shows the handler each such row as text, and fails where that is not UTF-8. Read as Latin-1, all text is.
    text = bytes(piece)
    if text_of(text) is not None:
        return _parsed(text, names, wanted, missing, wrong_length)
    recoded = text.decode("latin-1").encode()
    table = _parsed(recoded, names, wanted, missing, wrong_length)
    for place, name in enumerate(table.column_names):
        column = table[name].combine_chunks().dictionary_encode()
        fields = [raw.decode().encode("latin-1") for raw in column.dictionary.to_pylist()]
        table = table.set_column(place, name, pa.array(fields, pa.binary()).take(column.indices))
    return table


def _parsed(
    text: bytes | memoryview,
    names: list[str],
    wanted: list[str],
    missing: list[str],
    wrong_length: Callable[[object], str] | None,
) -> pa.Table:
    return csv.read_csv(
        pa.BufferReader(pa.py_buffer(text)),
        csv.ReadOptions(column_names=names, block_size=len(text) + 1),
        csv.ParseOptions(
            newlines_in_values=True,
            ignore_empty_lines=len(names) > 1,
            invalid_row_handler=wrong_length,
        ),
        csv.ConvertOptions(
            include_columns=wanted,
            column_types=dict.fromkeys(wanted, pa.binary()),
            null_values=missing,
            strings_can_be_null=True,
        ),
    )


def _read(
    batch: pa.RecordBatch, columns: Columns, missing: list[str], losses: Losses
) -> pa.RecordBatch:
    read: dict[str, pa.Array] = {}
    for name, column in columns.items():
        texts = _without_missing(batch[name], column, missing)
        read[name] = parse(texts, column)
        lost = read[name].null_count - texts.null_count
        if lost:
            losses.unparsed[name] += lost
            fields = texts.filter(read[name].is_null()).drop_null().to_pylist()
            broken = sum(text_of(raw) is None for raw in fields)
            losses.not_utf8.update({name: broken} if broken else {})
    return pa.RecordBatch.from_arrays(list(read.values()), names=list(read))


def _without_missing(texts: pa.Array, column: Column, missing: list[str]) -> pa.Array:
    """What stands for a missing value here, though another column lists it as a label, becomes null too."""
    listed = _listed(column)
    also = [text.encode() for text in MISSING if text not in missing and text not in listed]
    return pc.if_else(pc.is_in(texts, pa.array(also, pa.binary())), None, texts) if also else texts
