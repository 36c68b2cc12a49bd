"""Read the steps of a stream from text or from a file.

Three forms of input are read:

* *Lines*: one step a line. A line is an increment, or a name, a comma and an increment. An
  increment is a number of events; for sums it is numbers with spaces between them.
* *CSV with a header*: each row is an event or a value. Consecutive rows with the same entry in the
  step column make one step. The step is complete when the next one begins or the input ends.
* *Parquet*: as CSV, but the rows are sorted by their step first.

Only the header of a table can be refused. A row is dropped if an entry is missing, if it has
another number of fields than the header, or if its value is no number. No message quotes an entry.
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, islice
from pathlib import Path
from typing import Protocol, SupportsFloat, TextIO, TypeAlias

import pyarrow as pa

from sfumato.basics import pc
from sfumato.data.options import NO_OPTIONS, FileOptions, Notation, stating
from sfumato.data.reader import RowReader, guarded, guarded_batches
from sfumato.data.readers.csv_rows import UTF_8
from sfumato.errors import DataError, UsageError, nearest

# The entries of one row, in the order of ``StepColumns.names``.
Row: TypeAlias = Sequence[object]

MISSING = frozenset(("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"))
# How long to wait before a file that grows is read again.
PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class StepColumns:
    """The columns that hold the step, the value, the category and the person; None: not read.

    ``written`` is how a CSV file is written.
    """

    step: str
    value: str | None = None
    by: str | None = None
    person: str | None = None
    written: FileOptions = NO_OPTIONS

    @property
    def names(self) -> list[str]:
        """The names of the columns that are read; the step comes first."""
        return [name for name in (self.step, self.value, self.by, self.person) if name is not None]


@dataclass(frozen=True, slots=True)
class Arrival:
    """One step: its name, its increment, and the persons of its rows. Its repr shows none of it."""

    event: object
    increment: int | Row
    persons: list[object] | None = None

    def __repr__(self) -> str:
        return "Arrival(...)"


class Calendar(Protocol):
    """The steps that exist. Rows that lie in none of them are dropped."""

    def __len__(self) -> int: ...

    def name(self, step_index: int) -> str:
        """Return the name of a step; the first has index 0."""

    def place(self, entry: object) -> int | None:
        """Find the index of the step in which an entry lies, from 0 on; None outside all."""


# --- lines --------------------------------------------------------------------------------------


def from_lines(
    lines: Iterable[str], *, sums: bool, first: int = 1, calendar: Calendar | None = None
) -> Iterator[Arrival]:
    """Read one step from each line. Empty lines are skipped and not counted.

    Parameters
    ----------
    lines : iterable of str
    sums : bool
        Whether an increment is a list of numbers; otherwise it is one whole number.
    first : int
        The number of the first step. A line without a name is named by its step's number.
    calendar : Calendar or None
        With a calendar, a line without a name is the calendar's next step, and a line whose name is
        no step of the calendar is skipped.

    Raises
    ------
    DataError
        If a line is no increment; the message gives the number of the line.

    >>> arrivals = from_lines(["3", "", "tuesday, 4"], sums=False)
    >>> [(arrival.event, arrival.increment) for arrival in arrivals]
    [(1, 3), ('tuesday', 4)]
    """
    step = first
    for line_number, line in enumerate(lines, 1):
        name, comma, increment = line.strip().rpartition(",")
        if not increment.strip():
            continue
        event: object
        if comma:
            event = name.strip()
        elif calendar is not None:
            event = calendar.name(step - 1)
        else:
            event = step
        step += 1
        if calendar is None or calendar.place(event) is not None:
            yield Arrival(event, _increment(increment, line_number, as_numbers=sums))


def _increment(text: str, line_number: int, *, as_numbers: bool) -> int | list[float]:
    try:
        return [float(number) for number in text.split()] if as_numbers else int(text)
    except ValueError:
        pass
    # Raised outside the except block, so that no context quotes the entry.
    kind = "numbers" if as_numbers else "a whole number"
    raise DataError(
        f"line {line_number} of the input",
        f"it does not end in {kind}",
        "Write one increment a line, or a name, a comma and one",
    )


# --- CSV ----------------------------------------------------------------------------------------


def from_csv(
    lines: Iterable[str],
    columns: StepColumns,
    *,
    calendar: Calendar | None = None,
    ended: Callable[[], bool] = lambda: True,
) -> Iterator[Arrival]:
    """Read rows of CSV with a header, grouped by their step.

    Parameters
    ----------
    lines : iterable of str
    columns : StepColumns
    calendar : Calendar or None
        None: the rows themselves say which steps exist. With a calendar, all lines are read before
        the first step is given out. If the first row of a later step closed a step instead, one
        person's row out of place would keep the rows of others from being counted.
    ended : callable
        Called when the lines stop; returns whether the last step is complete. If it is not, the
        last step is left for the next run.

    Raises
    ------
    DataError
        If a column is missing.
    """
    rows = _rows(lines, columns)
    if calendar is not None:
        yield from _in_calendar_order(rows, columns, calendar)
        return
    # Each step is held back until the next one has been read: the last may be incomplete.
    waiting: Arrival | None = None
    for step, group in groupby(rows, key=lambda row: row[0]):
        arrival = _arrival(step, list(group), columns)
        if waiting is not None:
            yield waiting
        waiting = arrival
    if waiting is not None and ended():
        yield waiting


def _rows(lines: Iterable[str], columns: StepColumns) -> Iterator[list[str]]:
    """Give the entries of each line that parses and has all of them."""
    reader = _reader(lines, columns.written)
    header = next(reader, None)
    if header is None:
        return
    indices = [_column_index(header, name) for name in columns.names]
    notation = columns.written.notation(columns.step)
    for fields in _parsed(reader):
        if len(fields) != len(header):
            continue
        row = [fields[index].strip() for index in indices]
        _rewrite(row, columns, notation)
        if not MISSING.intersection(row) and _has_number(row, columns):
            yield row


def _parsed(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    """Give the fields of each line but those that the reader refuses: a field is too long."""
    while True:
        try:
            fields = next(reader, None)
        except csv.Error:
            continue
        if fields is None:
            return
        yield fields


def _rewrite(row: list[str], columns: StepColumns, notation: Notation) -> None:
    """Write the step and the value as programs do: an ISO date, missing in another form."""
    if notation.dates is not None:
        row[0] = notation.dates.iso(row[0].encode()) or ""
    if columns.value is not None and not notation.has_plain_numbers:
        place = columns.names.index(columns.value)
        digits = row[place].replace(notation.thousands or "", "")
        row[place] = digits.replace(notation.decimal, ".")


def _reader(lines: Iterable[str], written: FileOptions) -> Iterator[list[str]]:
    return csv.reader(
        islice(lines, written.header_row - 1, None), delimiter=written.separator or ","
    )


def _has_number(row: Row, columns: StepColumns) -> bool:
    if columns.value is None:
        return True
    return not math.isnan(_number(row[columns.names.index(columns.value)]))


def _number(entry: object) -> float:
    """Return an entry as a number; NaN if it is none."""
    try:
        return float(entry) if isinstance(entry, str | bytes | SupportsFloat) else math.nan
    except (ValueError, OverflowError):
        return math.nan


# --- Parquet ------------------------------------------------------------------------------------


def from_parquet(
    path: Path, columns: StepColumns, calendar: Calendar | None = None
) -> Iterator[Arrival]:
    """Read the rows of a Parquet file, sorted by their step.

    Raises
    ------
    DataError
        If the file cannot be read, or a column is missing.
    """
    require_columns(path, columns)
    read = _parquet(path).batches
    batches = guarded_batches(path.name, read, dict.fromkeys(columns.names))
    yield from arrivals(batches, columns, calendar)


def arrivals(
    batches: Iterable[pa.RecordBatch], columns: StepColumns, calendar: Calendar | None = None
) -> Iterator[Arrival]:
    """Group the rows of a reader's batches by their step, in order.

    Parameters
    ----------
    batches : iterable of RecordBatch
        All rows, in any order.
    columns : StepColumns
    calendar : Calendar or None
        None: the rows themselves say which steps exist.
    """
    chunks = [batch.select(columns.names) for batch in batches]
    if not chunks:
        return
    table = pa.Table.from_batches(chunks).drop_null()
    if calendar is not None:
        yield from _in_calendar_order(_rows_of_table(table, columns), columns, calendar)
        return
    table = table.take(pc.sort_indices(table, sort_keys=[(columns.step, "ascending")]))
    for step, group in groupby(_rows_of_table(table, columns), key=lambda row: row[0]):
        yield _arrival(step, list(group), columns)


def _rows_of_table(table: pa.Table, columns: StepColumns) -> Iterator[Row]:
    values = (table[name].to_pylist() for name in columns.names)
    return (row for row in zip(*values, strict=True) if _has_number(row, columns))


def _parquet(path: Path) -> RowReader:
    from sfumato.data.readers.arrow import ParquetFile

    return ParquetFile(path, path.name)


# --- rows to steps ------------------------------------------------------------------------------


def _in_calendar_order(
    rows: Iterable[Row], columns: StepColumns, calendar: Calendar
) -> Iterator[Arrival]:
    """Group rows by the steps of a calendar, in its order, wherever the rows lie in the file."""
    step_of = lru_cache(maxsize=2**16)(calendar.place)
    rows_by_step: dict[int, list[Row]] = {}
    for row in rows:
        step = step_of(row[0])
        if step is not None:
            rows_by_step.setdefault(step, []).append(row)
    for step in sorted(rows_by_step):
        yield _arrival(calendar.name(step), rows_by_step[step], columns)


def _arrival(step: object, rows: list[Row], columns: StepColumns) -> Arrival:
    """Bring the rows of one step into the form that a counter takes."""

    def column(name: str | None) -> list[object] | None:
        if name is None:
            return None
        index = columns.names.index(name)
        return [row[index] for row in rows]

    entries = column(columns.value)
    labels = column(columns.by)
    values = None if entries is None else [_number(entry) for entry in entries]
    increment: int | Row
    if labels is not None and values is not None:
        increment = list(zip(labels, values, strict=True))
    elif labels is not None:
        increment = labels
    elif values is not None:
        increment = values
    else:
        increment = len(rows)
    return Arrival(step, increment, column(columns.person))


# --- what can be refused before the charge ------------------------------------------------------


def require_columns(path: Path, columns: StepColumns | None) -> None:
    """Refuse a file that cannot be read or lacks a column. Call this before anything is charged.

    Nothing is read from a pipe, because it can be read only once, nor from a file that is still
    empty.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        return
    if columns is None:
        with open_text(path) as text:
            next(_reader(text, NO_OPTIONS), None)
        return
    written = columns.written
    written.require("Parquet" if is_parquet(path) else "CSV", path.name)
    if is_parquet(path):
        header: list[str] | None = guarded(path.name, _parquet(path).names)
    else:
        with open_text(path, written.encoding) as text:
            header = next(_reader(text, written), None)
    if header is not None:
        for name in columns.names:
            _column_index(header, name)


def require_step_column(columns: StepColumns | None, *, parquet: bool) -> None:
    """Refuse a Parquet file for which no step column is named."""
    if parquet and columns is None:
        raise UsageError(
            "a Parquet file as a stream",
            "its rows need a column that says when",
            "Name it by --step",
        )


def _column_index(header: list[str], name: str) -> int:
    names = [column.strip() for column in header]
    if name not in names and len(names) == 1 and (";" in names[0] or "\t" in names[0]):
        raise DataError(
            f"the column {name!r}",
            "the line of the names has no comma",
            f"Add {stating('separator', ';' if ';' in names[0] else 'tab')}",
        )
    if name not in names:
        raise DataError(
            f"the column {name!r}",
            f"the input has no such column; {nearest(name, names)}",
            "Name a column of the header",
        )
    return names.index(name)


# --- opening files ------------------------------------------------------------------------------


def is_parquet(path: Path) -> bool:
    """Tell whether a file's name says that it is Parquet."""
    return path.suffix.lower() in (".parquet", ".pq")


def open_text(path: Path, encoding: str = UTF_8) -> TextIO:
    """Open a text file for reading."""
    if path.suffix.lower() in (".xlsx", ".xlsm", ".xls"):
        raise DataError(
            f"reading {path.name}",
            "it is a spreadsheet, and a stream reads lines of text or Parquet",
            "Save the sheet as CSV",
        )
    try:
        return path.open(encoding=encoding, errors="replace", newline="")
    except OSError as error:
        reason = error.strerror or "it cannot be read"
    raise DataError(
        f"reading {path.name}", reason, "Name a file that can be read, or - for standard input"
    )


def growing(
    file: TextIO, stop: Callable[[], bool], pause: Callable[[float], None] = time.sleep
) -> Iterator[str]:
    """Give the lines of a file while it is written, each once it is whole, until ``stop()``."""
    partial_line = ""
    while not stop():
        partial_line += file.readline()
        if partial_line.endswith("\n"):
            yield partial_line
            partial_line = ""
        else:
            pause(PAUSE_SECONDS)
