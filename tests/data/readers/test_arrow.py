"""Arrow streams and datasets of pyarrow as sources."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import sfumato as sf
from data.refusals import AGE, BY_AGE, CANARY, refused
from data.trips import BY_YEAR, TRIPS, TRIPS_BY_AGE, parquet, refused_in_both, tens
from sfumato.data import count, source
from sfumato.errors import DataError


def test_a_reader_can_be_read_once() -> None:
    src = source(pa.table({"age": [1]}).to_reader(), AGE)
    src.require([BY_AGE])
    assert count(src, [BY_AGE])[0].total == 1
    refused(lambda: src.require([BY_AGE]), DataError, "once")


def test_a_dataset_whose_fragments_differ_is_refused(folder: Path) -> None:
    schema = pa.schema({"age": pa.int64(), "year": pa.int32()})
    parquet(folder / "b.parquet", [1], year=pa.array([2013], pa.int32()))
    refused_in_both(
        source(ds.dataset(folder, schema=schema), TRIPS),
        DataError,
        "fragment 1",
        "'year'",
        lattice=BY_YEAR,
    )
    assert count(source(ds.dataset(folder, schema=schema), TRIPS), [TRIPS_BY_AGE])[0].total == 5


def test_datasets_with_folders_filters_children_and_in_memory(tmp_path: Path) -> None:
    whole = pa.table({"age": [11, 12, 21], "year": pa.array([2013, 2013, 2014], pa.int32())})
    ds.write_dataset(
        whole,
        tmp_path / "d",
        format="parquet",
        partitioning=ds.partitioning(pa.schema([("year", pa.int32())]), flavor="hive"),
    )
    dataset = ds.dataset(tmp_path / "d", partitioning="hive")
    assert tens(dataset, BY_YEAR) == tens(tmp_path / "d", BY_YEAR) == {13: 2, 14: 1}
    assert tens(dataset.filter(ds.field("year") == 2014)) == {2: 1}
    assert tens(ds.dataset([dataset, ds.dataset(whole)])) == {1: 4, 2: 2}
    named = source(dataset, TRIPS, name="n")
    before = named.label
    assert before != source(dataset, TRIPS).label != source(dataset, TRIPS).label
    os.utime(next(Path(file) for file in dataset.files), ns=(1, 1))
    assert named.label != before


# --- what can be read once ------------------------------------------------------------------------

ROWS = pa.table({"age": [11, 12, 21, 35]})
COARSE, FINE = sf.UniformPartitioner("age", partitions=10), sf.UniformPartitioner("age")
PLAIN = sf.Domain(age=sf.Interval(0, 120))


class Once:
    """A stream of another package, which it gives away once."""

    def __init__(self, table: pa.Table) -> None:
        self.table: pa.Table | None = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        assert self.table is not None, CANARY
        table, self.table = self.table, None
        return table.__arrow_c_stream__(requested_schema)

    def release(self) -> None: ...


@pytest.mark.parametrize("opened", [pa.Table.to_reader, Once])
def test_a_second_scan_of_a_reader_is_refused_before_the_charge(
    opened: Callable[[pa.Table], object],
) -> None:
    """Whether it takes place depends on noise, so it is refused if it may."""
    with sf.Publisher(source(opened(ROWS), PLAIN), budget=1) as publisher:
        for question in (FINE, [COARSE, FINE]):
            refused(
                lambda question=question: publisher.release(question, epsilon=1),  # type: ignore[misc]
                DataError,
                "it can be read once, and ",
                "may count the rows again",
                "a function that opens a new one",
            )
        assert publisher.remaining == 1
        plan = publisher.release([COARSE, sf.Histogram("age", bins=12)], epsilon="0.5")
        assert len(plan) == 2
        refused(lambda: publisher.release(COARSE, epsilon="0.1"), DataError, "and it has been")
        assert publisher.remaining == Fraction(1, 2)


def test_a_reader_of_two_sources_is_read_by_one() -> None:
    """To the other it would seem to be empty."""
    reader = ROWS.to_reader()
    first, second = source(reader, AGE), source(reader, AGE)
    assert count(first, [BY_AGE])[0].total == 4
    refused(lambda: second.require([BY_AGE]), DataError, "and it has been")


def test_a_table_and_an_object_that_opens_streams_are_counted_again() -> None:
    class Opens:
        __arrow_c_stream__ = ROWS.__arrow_c_stream__

    for data in (ROWS, Opens()):
        with sf.Publisher(source(data, PLAIN), budget=2) as publisher:
            publisher.release(FINE, epsilon=1)
            publisher.release(COARSE, epsilon=1)


@pytest.mark.parametrize(
    ("question", "again"),
    [
        (FINE, True),
        (sf.UniformPartitioner("age", partitions=2**16), False),
        (sf.UniformPartitioner("age", partitions=2**16 + 1), True),
        (sf.UniformPartitioner("age", partitions=2**17, stop_below=1), False),
        (sf.UniformPartitioner("day"), False),  # it has steps of its own
        (sf.UniformPartitioner(["age", "x"]), True),
        (sf.UniformPartitioner(["age", "x", "y"]), False),
        (sf.Histogram("age", bins=2), False),
    ],
)
def test_a_question_says_whether_it_may_count_again(question: Any, again: bool) -> None:
    axes = {name: sf.Interval(0, 120) for name in ("age", "x", "y")}
    domain = sf.Domain(**axes, day=sf.Interval("2020-01-01", "2021-01-01"))
    assert question.counts_again(domain) == again


def test_a_charge_for_a_reader_that_breaks_is_resumed_with_another(tmp_path: Path) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield from ROWS.to_batches()
        raise ValueError(CANARY)

    reader = pa.RecordBatchReader.from_batches(ROWS.schema, broken())
    question = sf.Histogram("age", bins=12)
    src = source(reader, PLAIN, name="ages")
    with sf.Publisher(src, ledger=tmp_path / "b.db", budget=1) as publisher:
        refused(lambda: publisher.release(question, epsilon="0.5"), DataError, "cannot be read")
    src = source(ROWS.to_reader(), PLAIN, name="ages")
    with sf.Publisher(src, ledger=tmp_path / "b.db") as publisher:
        publisher.release(question, epsilon="0.5")
        assert publisher.remaining == Fraction(1, 2)


# --- functions that open streams ------------------------------------------------------------------


class Opening:
    """A function that notes its calls."""

    def __init__(self, *results: Callable[[], object]) -> None:
        self.results = results
        self.calls = 0

    def __call__(self) -> object:
        self.calls += 1
        return self.results[min(self.calls, len(self.results)) - 1]()


def test_a_function_is_called_for_each_scan_and_once_before_it() -> None:
    readers: list[pa.RecordBatchReader] = []

    def opened() -> pa.RecordBatchReader:
        readers.append(pa.RecordBatchReader.from_stream(ROWS.to_reader()))
        return readers[-1]

    function = Opening(opened)
    with sf.Publisher(source(function, PLAIN, name="ages"), budget=9) as publisher:
        coarse = publisher.release(COARSE, epsilon=1)
        assert function.calls == 3  # for the names, for the types, and for the rows
        again = publisher.release(sf.UniformPartitioner("age", partitions=70_000), epsilon=1)
        assert function.calls == 7  # two scans
        assert publisher.release(COARSE, epsilon=1).replayed
    for reader in readers:
        with pytest.raises(pa.ArrowInvalid, match="closed"):
            reader.read_next_batch()
    sentence = "opened streams of the same rows"
    assumed = [sentence in str(release.guarantee.assumptions) for release in (coarse, again)]
    assert assumed == [False, True]


@pytest.mark.parametrize("person", [None, "age"])
def test_a_function_gives_the_cube_of_its_table(person: str | None) -> None:
    rows = pa.table({"age": [11, 11, 21, 35] * 40, "more": [CANARY] * 160})
    unit: dict[str, Any] = {"person": person, "rows_per_person": 3}
    by_function, by_table = (
        count(source(data, AGE, **unit), [BY_AGE], key=bytes(32))[0].counts.tolist()
        for data in (lambda: rows.to_reader(7), rows)
    )
    assert by_function == by_table


OTHER = ROWS.rename_columns(["years"])
SAME = ROWS.to_reader()
WRONG = {
    "no stream": (Opening(lambda: [CANARY]), "it returned an object of type list, which has no"),
    "nothing": (Opening(lambda: None), "of type NoneType, which has no Arrow stream"),
    "a failure": (Opening(lambda: int(f"x{CANARY}")), "cannot be read (ValueError;"),
    "the same reader": (Opening(lambda: SAME), "it returned a reader again"),
    "other names": (Opening(ROWS.to_reader, OTHER.to_reader), "are others than when it was called"),
    "other types": (
        Opening(ROWS.to_reader, ROWS.cast(pa.schema({"age": pa.int8()})).to_reader),
        "are others than when it was called first",
    ),
    "no column": (Opening(OTHER.to_reader), "there is no column of that name"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_a_function_does_wrong_is_found_before_the_charge(wrong: str) -> None:
    function, sentence = WRONG[wrong]
    with sf.Publisher(source(function, PLAIN), budget=1) as publisher:
        refused(lambda: publisher.release(COARSE, epsilon=1), DataError, sentence)
        assert publisher.remaining == 1


def test_a_function_on_a_closed_connection_is_refused_before_the_charge() -> None:
    connection = duckdb.connect()
    src = source(lambda: connection.sql("SELECT 11 AS age").to_arrow_reader(), PLAIN)
    with sf.Publisher(src, budget=1) as publisher:
        publisher.release(COARSE, epsilon="0.5")
        assert connection.sql("SELECT 1").fetchall() == [(1,)]
        connection.close()
        refused(lambda: publisher.release(FINE, epsilon="0.5"), DataError, "cannot be read (Conn")
        assert publisher.remaining == Fraction(1, 2)


def test_another_schema_in_the_scan_itself_shows_nothing() -> None:
    function = Opening(ROWS.to_reader, ROWS.to_reader, OTHER.to_reader, ROWS.to_reader)
    with sf.Publisher(source(function, PLAIN, name="ages"), budget=1) as publisher:
        refused(lambda: publisher.release(COARSE, epsilon=1), DataError, "are others than when")
        assert publisher.remaining == 0
        publisher.release(COARSE, epsilon=1)  # the charge is taken over


def test_a_class_is_no_function() -> None:
    with pytest.raises(sf.UsageError, match="a source of type type"):
        source(dict, AGE)
