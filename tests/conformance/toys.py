"""Two small engines from outside: one hands out its rows, the other counts them by itself.

Readers that break the contract stand beside the sound ones: the contract must notice each of them.
"""

from __future__ import annotations

import datetime as dt
import hmac
import os
import pickle
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from conformance.kinds import TYPES, Rows, table
from sfumato.answers.counts import Needs
from sfumato.cube import Cube
from sfumato.data.groups import cube_of_groups
from sfumato.data.reader import Columns, CountingReader, Progress, RowReader
from sfumato.lattice import DROPPED, GridAxis, KeyAxis, LabelAxis, Lattice, LatticeAxis
from sfumato.mechanisms.key_rules import KEY, ROWS_OF_KEY, KeyRule
from sfumato.privacy.unit import Unit

BATCH = 37


class Pile:
    """Rows as an engine of somebody else's holds them."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows


class PileReader(RowReader):
    """Reads a pile."""

    name = "pile"

    def __init__(self, pile: Pile) -> None:
        self.pile = pile

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> PileReader | None:
        return cls(data) if isinstance(data, Pile) else None

    def names(self) -> list[str]:
        return list(TYPES)

    def schema(self, columns: Columns) -> pa.Schema:
        return pa.schema([(name, TYPES[name]) for name in columns])

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(self.pile.rows), BATCH):
            (batch,) = (
                table(self.pile.rows[start : start + BATCH]).select(list(columns)).to_batches()
            )
            yield batch


# --- readers of rows, most of which break the contract --------------------------------------------


class Scans(PileReader):
    """Knows how often it was read."""

    def __init__(self, pile: Pile) -> None:
        super().__init__(pile)
        self.scans = 0

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        self.scans += 1
        yield from self.altered(list(super().batches(columns)))

    def altered(self, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        raise NotImplementedError


class OtherOrder(Scans):
    """The second scan has another order, which the contract allows."""

    def altered(self, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        return batches if self.scans == 1 else batches[::-1]


class LosesOne(Scans):
    """The second scan lacks a batch."""

    def altered(self, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        return batches if self.scans == 1 else batches[:-1]


class LosesAlways(Scans):
    """Every scan lacks a batch."""

    def altered(self, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        return batches[:-1]


class OtherType(Scans):
    """One batch has its numbers as text."""

    column = "x"

    def altered(self, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        place = batches[1].schema.get_field_index(self.column)
        texts = batches[1].column(place).cast(pa.string())
        batches[1] = batches[1].set_column(place, self.column, texts)
        return batches


class OtherIds(Scans):
    """One batch has the ids of persons as bytes."""

    def altered(self, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        place = batches[1].schema.get_field_index("who")
        ids = batches[1].column(place).cast(pa.binary())
        batches[1] = batches[1].set_column(place, "who", ids)
        return batches


class OtherColumns(Scans):
    """One batch lacks a column."""

    def altered(self, batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        return [batches[0], batches[1].drop_columns(["x"]), *batches[2:]]


class TypeOfValues(PileReader):
    """The types are read off the values."""

    def schema(self, columns: Columns) -> pa.Schema:
        first = self.pile.rows[:1]
        return pa.schema(
            [
                (name, pa.array([row[name] for row in first]).type if name == "n" else TYPES[name])
                for name in columns
            ]
        )


ROWS_BROKEN = (LosesOne, LosesAlways, OtherType, OtherIds, OtherColumns, TypeOfValues)


# --- an engine that counts by itself --------------------------------------------------------------


class Database:
    """A table ``t`` of SQLite. It holds booleans and dates as numbers, and NaN as NULL."""

    def __init__(self, rows: Rows) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.execute(f"CREATE TABLE t ({', '.join(TYPES)})")
        values = [[_stored(row[name]) for name in TYPES] for row in rows]
        self.connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(TYPES))})", values)


def _stored(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return (value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return (value - dt.date(1970, 1, 1)).days
    return value if value is None or isinstance(value, str | int) else float(value)


class DatabaseReader(CountingReader):
    """Counts in SQLite, whose window functions bound each person's rows; only groups come back."""

    name = "sqlite table"
    choice = "priority({values}, copy)"
    kept = "place <= :most"
    without_person = "who IS NOT NULL"

    def __init__(self, database: Database) -> None:
        self.connection = database.connection
        self.inside = 0
        self.seen: list[int] = []

    @classmethod
    def of(cls, data: object, axes: Sequence[str], person: str | None) -> DatabaseReader | None:
        return cls(data) if isinstance(data, Database) else None

    def names(self) -> list[str]:
        return [name for _, name, *_ in self.connection.execute("PRAGMA table_info(t)")]

    def schema(self, columns: Columns) -> pa.Schema:
        return pa.schema([(name, TYPES[name]) for name in columns])

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        self.connection.execute("BEGIN")
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1
            self.connection.execute("COMMIT")

    def count(
        self, needs: Sequence[Needs], unit: Unit, key: bytes, progress: Progress | None
    ) -> list[Cube]:
        self.seen.append(self.inside)
        # The key is in the function, and never in the text of a query.
        self.connection.create_function(
            "priority", -1, lambda *values: self.priority(key, values), deterministic=True
        )
        return [self._counted(each.lattice, unit) for each in needs]

    @staticmethod
    def priority(key: bytes, values: tuple[object, ...]) -> bytes:
        return hmac.digest(key, repr(values).encode(), "sha256")

    def _counted(self, lattice: Lattice, unit: Unit) -> Cube:
        groups, most = self._groups(lattice, unit)
        found = self.connection.execute(groups, most).fetchall()
        *cells, counts = zip(*found, strict=True) if found else [()] * (len(lattice.axes) + 1)
        return cube_of_groups(lattice, cells, counts)

    def _groups(self, lattice: Lattice, unit: Unit) -> tuple[str, dict[str, int]]:
        """The query whose rows are the cells and the count of each group, and its parameters."""
        for i, axis in enumerate(lattice.axes):
            self.connection.create_function(
                f"cell{i}", 1, lambda value, axis=axis: self.cell(axis, value), deterministic=True
            )
        places = [f"c{i}" for i in range(len(lattice.axes))]
        located = ", ".join(f"cell{i}({axis.name}) AS c{i}" for i, axis in enumerate(lattice.axes))
        query = f"SELECT *, {located} FROM t"
        counted = " AND ".join(f"{place} IS NOT NULL AND {place} <> -1" for place in places)
        if unit.person is None:
            query = f"SELECT * FROM ({query}) WHERE {counted}"
        else:
            values = ", ".join(TYPES)
            choice = self.choice.format(values=values)
            query = f"""
                SELECT * FROM (
                    SELECT *, row_number() OVER (PARTITION BY who ORDER BY {choice}) AS place FROM (
                        SELECT *, row_number() OVER (PARTITION BY {values}) AS copy FROM ({query})
                        WHERE {self.without_person} AND {counted}
                    )
                ) WHERE {self.kept}"""
        names = ", ".join(places)
        groups = f"SELECT {names}, count(*) AS n FROM ({query}) GROUP BY {names}"
        return groups, {"most": unit.rows_per_person} if unit.person else {}

    def cell(self, axis: LatticeAxis, value: Any) -> int | str | None:
        """The kernel itself: this engine calls Python."""
        if isinstance(axis, KeyAxis):
            return None if value is None else str(value)
        if isinstance(axis, LabelAxis):
            typed = bool(value) if value is not None and isinstance(axis.listed[0], bool) else value
            return int(axis.lookup([typed])[0])
        return int(axis.locate(np.array([np.nan if value is None else float(value)]))[0])


class SelectingReader(DatabaseReader):
    """Selects keys, too: groups go through the rule in small batches, in no order."""

    batch = 5

    def selects(self, needs: Needs, unit: Unit) -> bool:
        return self.supports(needs, unit)

    def select(
        self, needs: Needs, unit: Unit, key: bytes, rule: KeyRule
    ) -> Iterator[pa.RecordBatch]:
        self.seen.append(self.inside)
        self.connection.create_function(
            "priority", -1, lambda *values: self.priority(key, values), deterministic=True
        )
        yield from self.applied(rule, self.batches_of_groups(needs.lattice, unit))

    def applied(self, rule: KeyRule, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return rule.shown_of(batches)

    def batches_of_groups(self, lattice: Lattice, unit: Unit) -> Iterator[pa.RecordBatch]:
        (at,) = lattice.keyed
        groups, most = self._groups(lattice, unit)
        columns = {KEY: f"c{at}", ROWS_OF_KEY: f"sum(n) OVER (PARTITION BY c{at})"}
        if len(lattice.axes) > 1:
            columns["rows"] = "n"
            columns |= {f"cell_{i}": f"c{i}" for i in range(len(lattice.axes)) if i != at}
        chosen = ", ".join(f"{what} AS {name}" for name, what in columns.items())
        cursor = self.connection.execute(f"SELECT {chosen} FROM ({groups}) ORDER BY random()", most)
        types = [pa.string(), *[pa.int64()] * (len(columns) - 1)]
        while found := cursor.fetchmany(self.batch):
            arrays = [
                pa.array(column, type_)
                for column, type_ in zip(zip(*found, strict=True), types, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


class EvaluatesTwice(SelectingReader):
    """An engine that loses what it made, and evaluates every part again: it shows the second."""

    def applied(self, rule: KeyRule, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rule.shown(batch)
            yield pickle.loads(pickle.dumps(rule)).shown(batch)


class ShowsTwice(SelectingReader):
    """Gives some groups twice, with one draw."""

    def applied(self, rule: KeyRule, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield rule.shown(batch)
            yield rule.shown(batch)


class DrawsAnew(SelectingReader):
    """Gives some groups twice, with a draw of its own each time."""

    def applied(self, rule: KeyRule, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield KeyRule(rule.law, os.urandom(32)).shown(batch)
            yield KeyRule(rule.law, os.urandom(32)).shown(batch)


class GivesTrueCounts(SelectingReader):
    """Does not apply the rule."""

    def applied(self, rule: KeyRule, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches


class TotalsOfGroups(SelectingReader):
    """Takes the count of a group for that of its key."""

    def applied(self, rule: KeyRule, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            at = batch.schema.get_field_index(ROWS_OF_KEY)
            rows = batch["rows"] if "rows" in batch.schema.names else batch[ROWS_OF_KEY]
            yield rule.shown(batch.set_column(at, ROWS_OF_KEY, rows))


class LosesABatch(SelectingReader):
    """Gives all but the first part."""

    def applied(self, rule: KeyRule, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        next(batches, None)
        return rule.shown_of(batches)


class OneMore(DatabaseReader):
    """Keeps one row more than the limit."""

    kept = "place <= :most + 1"


class OwnChoice(DatabaseReader):
    """Does not look at the key."""

    @staticmethod
    def priority(key: bytes, values: tuple[object, ...]) -> bytes:
        return repr(values).encode()


class NewChoice(DatabaseReader):
    """Chooses anew in each query."""

    choice = "random()"


class CopiesTogether(DatabaseReader):
    """Rows that are alike are kept together, or dropped together."""

    choice = "priority({values})"


class NobodyIsSomebody(DatabaseReader):
    """All rows without a person are one person's."""

    without_person = "TRUE"


class Unclamped(DatabaseReader):
    """A value outside the bounds has no cell."""

    def cell(self, axis: LatticeAxis, value: Any) -> int | str | None:
        outside = (
            isinstance(axis, GridAxis)
            and value is not None
            and not axis.lower <= value <= axis.upper
        )
        return DROPPED if outside else super().cell(axis, value)


class Swaps(DatabaseReader):
    """Gives the cubes in another order than they were asked for."""

    def count(
        self, needs: Sequence[Needs], unit: Unit, key: bytes, progress: Progress | None
    ) -> list[Cube]:
        return super().count(needs, unit, key, progress)[::-1]


SELECTING_BROKEN = (ShowsTwice, DrawsAnew, GivesTrueCounts, TotalsOfGroups, LosesABatch)
COUNTING_BROKEN = (
    OneMore,
    OwnChoice,
    NewChoice,
    CopiesTogether,
    NobodyIsSomebody,
    Unclamped,
    Swaps,
)
