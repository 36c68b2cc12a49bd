"""No error of an engine is quoted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from conformance.kinds import people
from conformance.toys import Pile, PileReader
from data import random_tables
from data.trips import TRIPS, TRIPS_BY_AGE
from sfumato.data import count, source
from sfumato.data.reader import Columns, guarded
from sfumato.errors import DataError


def test_an_engine_that_panics_is_not_quoted() -> None:
    class Panic(BaseException):
        pass

    for kind in (Panic, SystemExit, ValueError):
        with pytest.raises(sf.DataError) as refused:
            guarded("t", lambda kind=kind: (_ for _ in ()).throw(kind("secret")))  # type: ignore[misc]
        assert "secret" not in str(refused.value)
        assert refused.value.__context__ is None
    with pytest.raises(KeyboardInterrupt):
        guarded("t", lambda: (_ for _ in ()).throw(KeyboardInterrupt))


CANARY = "8675309"


def test_failures_inside_engines_quote_nothing(tmp_path: Path) -> None:
    import duckdb

    broken = [
        pl.LazyFrame({"age": [f"x{CANARY}"]}).with_columns(pl.col("age").cast(pl.Int64)),
        duckdb.connect().sql(f"SELECT CAST('x{CANARY}' || range AS INTEGER) AS age FROM range(3)"),
    ]
    for data in broken:
        src = source(data, TRIPS)
        with pytest.raises(DataError) as caught:
            count(src, [TRIPS_BY_AGE])
        assert CANARY not in str(caught.value)
        assert caught.value.__context__ is None


ROWS = people(200, seed=2)


ONE_LATTICE = random_tables.LATTICES[:1]


class Failing(PileReader):
    """Quotes a value wherever it is told to fail."""

    def __init__(self, place: str, error: Callable[[], BaseException]) -> None:
        super().__init__(Pile(ROWS))
        self.place = place
        self.error = error

    def at(self, place: str) -> None:
        if place == self.place:
            try:
                raise ValueError(CANARY)
            except ValueError:
                raise self.error()  # noqa: B904 - careless, as others' code may be

    def names(self) -> list[str]:
        self.at("names")
        return super().names()

    def schema(self, columns: Columns) -> pa.Schema:
        self.at("schema")
        return super().schema(columns)

    def require(self, needs: Any, unit: Any) -> None:
        self.at("require")

    def label(self, name: str | None) -> str:
        self.at("label")
        return super().label(name)

    def rows(self) -> int | None:
        self.at("rows")
        return None

    def snapshot(self) -> Any:
        self.at("snapshot")
        return super().snapshot()

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        self.at("batches")
        for batch in super().batches(columns):
            yield batch
            self.at("second batch")


PLACES = ("names", "schema", "require", "label", "rows", "snapshot", "batches", "second batch")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "error", [partial(RuntimeError, CANARY), partial(sf.DataError, "t", "refused", "Mend it")]
)
def test_the_message_of_an_engine_is_withheld(
    place: str, error: Callable[[], BaseException]
) -> None:
    src = source(Failing(place, error), random_tables.DOMAIN)

    def ask() -> None:
        _ = src.label
        with sf.data.snapshot(src):  # type: ignore[attr-defined]
            count(src, ONE_LATTICE, progress=lambda done, total: None)

    with pytest.raises(sf.DataError) as caught:
        ask()
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
