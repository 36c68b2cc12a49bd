"""A small engine from outside, which hands out its rows.

Readers that break the contract stand beside the sound ones: the contract must notice each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from conformance.kinds import TYPES, Rows, table
from sfumato.data.reader import Columns, RowReader

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
