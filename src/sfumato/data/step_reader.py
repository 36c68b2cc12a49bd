"""Steps of a stream from text or files: lines as they come, a file that grows, rows of CSV or Parquet that share a step.

Three forms are read. *Lines*: one step each, an increment, or a name, a comma and an increment; an
increment is a number of events, or for sums numbers with spaces between. *CSV with a header*: one
row an event or value; rows that follow one another with the same entry in the step column make one
step, which is complete when the next one begins or the input ends. *Parquet*: the same, but rows
are put in the order of their step first. Rows with a missing entry are dropped, as are rows of
another length than the header's and rows whose value is no number: of a table of rows only the
header can be refused. Nothing here quotes an entry.
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, SupportsFloat, TextIO, TypeAlias, TypeVar

from sfumato.errors import DataError, UsageError, nearest

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
Row: TypeAlias = Sequence[object]
"""What stands in the columns that are read, in their order."""

MISSING = frozenset(("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"))
PAUSE = 0.2  # seconds between two looks at a file that grows


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns say when, how much, of which category, and whose. None: not asked."""

    step: str
    value: str | None = None
    by: str | None = None
    person: str | None = None

    @property
    def names(self) -> list[str]:
        """Those that are read."""
        return [name for name in (self.step, self.value, self.by, self.person) if name is not None]


@dataclass(frozen=True, slots=True)
class Arrival:
    """One step: its name, what it brings, and whose rows these are. Prints nothing of it."""

    event: object
    increment: int | Row
    persons: list[object] | None = None

    def __repr__(self) -> str:
        return "Arrival(...)"


class Calendar(Protocol):
    """Which steps there are. Rows that lie in none of them are dropped, as rows with a missing entry are."""

    def __len__(self) -> int: ...

    def name(self, place: int) -> str:
        """The name of a step, from 0 on."""

    def place(self, entry: object) -> int | None:
        """The step in which an entry lies."""


def from_lines(
    lines: Iterable[str], *, sums: bool, first: int = 1, calendar: Calendar | None = None
) -> Iterator[Arrival]:
    """One step a line; without a name a step is called by its number. Empty lines are passed over, and not counted.

    With a calendar, a line without a name is its next step, and lines that name none of its steps
    are passed over.

    Raises
    ------
    DataError
        If a line is no increment; the message names its number.

    >>> [(arrival.event, arrival.increment) for arrival in from_lines(["3", "", "tuesday, 4"], sums=False)]
    [(1, 3), ('tuesday', 4)]
    """
    step = first
    for number, line in enumerate(lines, 1):
        name, comma, rest = line.strip().rpartition(",")
        if rest.strip():
            event: object = name.strip() if comma else step
            if calendar is not None and not comma:
                event = calendar.name(step - 1)
            step += 1
            if calendar is None or calendar.place(event) is not None:
                yield Arrival(event, _increment(rest, sums, number))


def _increment(text: str, sums: bool, number: int) -> int | list[float]:
    try:
        return [float(word) for word in text.split()] if sums else int(text)
    except ValueError:
        pass
    kind = "numbers" if sums else "a whole number"
    raise DataError(
        f"line {number} of the input",
        f"it does not end in {kind}",
        "Write one increment a line, or a name, a comma and one",
    )


def from_csv(
    lines: Iterable[str],
    columns: Columns,
    *,
    calendar: Calendar | None = None,
    ended: Callable[[], bool] = lambda: True,
) -> Iterator[Arrival]:
    """Rows of CSV with a header, grouped by their step.

    Parameters
    ----------
    lines : iterable of str
    columns : Columns
    calendar : Calendar or None
        None: which steps there are is read off the rows. Else all lines are read first: were a step
        closed by the first row of a later one, then one person's row out of place would keep the
        rows of others from being counted.
    ended : callable
        Asked when the lines stop: whether the last step is complete. False: it is left for the next
        time.

    Raises
    ------
    DataError
        If a column is missing.
    """
    if calendar is not None:
        yield from _by_place(_rows(lines, columns), columns, calendar)
        return
    waiting: Arrival | None = None
    for step, group in groupby(_rows(lines, columns), key=lambda row: row[0]):
        arrival = _arrival(step, list(group), columns)
        if waiting is not None:
            yield waiting
        waiting = arrival
    if waiting is not None and ended():
        yield waiting


def _rows(lines: Iterable[str], columns: Columns) -> Iterator[list[str]]:
    """What stands in the columns, line by line; lines that do not parse, or with a missing entry, are dropped."""
    reader = csv.reader(lines)
    header = next(reader, None)
    if header is None:
        return
    places = [_place(header, name) for name in columns.names]
    for entries in _parsed(reader):
        if len(entries) == len(header):
            row = [entries[place].strip() for place in places]
            if not MISSING.intersection(row) and _has_number(row, columns):
                yield row


def _parsed(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    """Lines that the reader of CSV can parse: it refuses a field beyond its limit, and goes on behind it."""
    while True:
        try:
            entries = next(reader, None)
        except csv.Error:
            continue
        if entries is None:
            return
        yield entries


def _has_number(row: Row, columns: Columns) -> bool:
    """Whether the entry in the value column, if there is one, is a number."""
    return columns.value is None or not math.isnan(_number(row[columns.names.index(columns.value)]))


def _number(entry: object) -> float:
    """An entry as a number, NaN where it is none."""
    try:
        return float(entry) if isinstance(entry, str | bytes | SupportsFloat) else math.nan
    except (ValueError, OverflowError):
        return math.nan


def from_parquet(
    path: Path, columns: Columns, calendar: Calendar | None = None
) -> Iterator[Arrival]:
    """Rows of a Parquet file, in the order of their step.

    Raises
    ------
    DataError
        If the file cannot be read, or a column is missing.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    look(path, columns)
    table = _readable(path, lambda: pq.ParquetFile(path).read(columns=columns.names)).drop_null()
    if calendar is not None:
        yield from _by_place(_entries(table, columns), columns, calendar)
        return
    table = table.take(pc.sort_indices(table, sort_keys=[(columns.step, "ascending")]))
    for step, group in groupby(_entries(table, columns), key=lambda row: row[0]):
        yield _arrival(step, list(group), columns)


def _entries(table: pa.Table, columns: Columns) -> Iterator[Row]:
    found = (table[name].to_pylist() for name in columns.names)
    return (row for row in zip(*found, strict=True) if _has_number(row, columns))


def look(path: Path, columns: Columns | None) -> None:
    """Refuse a file that cannot be read, or has no column of a name that is needed: before anything is charged.

    Nothing is taken from a pipe, which can be read once only, nor from a file that is empty as yet.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        return
    if columns is not None and is_parquet(path):
        import pyarrow.parquet as pq

        header = _readable(path, lambda: pq.ParquetFile(path).schema_arrow.names)
    else:
        with open_text(path) as text:
            header = next(csv.reader(text), None)
    if columns is not None and header is not None:
        for name in columns.names:
            _place(header, name)


def _readable(path: Path, read: Callable[[], T]) -> T:
    """What ``read`` finds in a Parquet file, or an error that quotes nothing."""
    import pyarrow as pa

    try:
        return read()
    except (OSError, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or "it is not a Parquet file that can be read"
    raise DataError(
        f"reading {path.name}", reason, "Name a Parquet file, or a CSV file with a header"
    )


def _by_place(rows: Iterable[Row], columns: Columns, calendar: Calendar) -> Iterator[Arrival]:
    """Rows in the order of a calendar."""
    step_of = lru_cache(maxsize=2**16)(calendar.place)
    groups: dict[int, list[Row]] = {}
    for row in rows:
        place = step_of(row[0])
        if place is not None:
            groups.setdefault(place, []).append(row)
    for place in sorted(groups):
        yield _arrival(calendar.name(place), groups[place], columns)


def _arrival(step: object, rows: list[Row], columns: Columns) -> Arrival:
    """What the rows of one step bring, in the form that a counter reads."""
    at = {name: i for i, name in enumerate(columns.names)}
    values = None if columns.value is None else [_number(row[at[columns.value]]) for row in rows]
    labels = None if columns.by is None else [row[at[columns.by]] for row in rows]
    persons = None if columns.person is None else [row[at[columns.person]] for row in rows]
    if values is not None and labels is not None:
        return Arrival(step, list(zip(labels, values, strict=True)), persons)
    return Arrival(
        step, labels if labels is not None else len(rows) if values is None else values, persons
    )


def _place(header: list[str], name: str) -> int:
    plain = [column.strip() for column in header]
    if name not in plain:
        raise DataError(
            f"the column {name!r}",
            f"the input has no such column; {nearest(name, plain)}",
            "Name a column of the header",
        )
    return plain.index(name)


def growing(
    file: TextIO, stop: Callable[[], bool], pause: Callable[[float], None] = time.sleep
) -> Iterator[str]:
    """Lines of a file as they are written, each only when it is whole, until ``stop`` says so."""
    held = ""
    while not stop():
        held += file.readline()
        if held.endswith("\n"):
            yield held
            held = ""
        else:
            pause(PAUSE)


def open_text(path: Path) -> TextIO:
    """Open a text file for reading."""
    try:
        return path.open(encoding="utf-8", errors="replace", newline="")
    except OSError as error:
        reason = error.strerror or "it cannot be read"
    raise DataError(
        f"reading {path.name}", reason, "Name a file that can be read, or - for standard input"
    )


def is_parquet(path: Path) -> bool:
    """Whether a file's name says that it is Parquet."""
    return path.suffix.lower() in (".parquet", ".pq")


def check(columns: Columns | None, *, parquet: bool) -> None:
    """Refuse forms that do not go together."""
    if parquet and columns is None:
        raise UsageError(
            "a Parquet file as a stream",
            "its rows need a column that says when",
            "Name it by --step",
        )
