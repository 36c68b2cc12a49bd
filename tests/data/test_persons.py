"""A person token stands for one person and for nobody else."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from data.refusals import refused, refuses, write
from sfumato.data import count, source
from sfumato.data.bounding import KEY_BYTES
from sfumato.data.person_records import (
    N_PARTITIONS,
)
from sfumato.data.priorities import PersonTokens
from sfumato.data.reader import Columns, Piece, RowReader
from sfumato.domain.domain import grid_axis
from sfumato.domain.lattice import Lattice

TWO = sf.Interval(0, 2)


def persons(data: object, **unit: Any) -> int:
    """How many persons a table has: one row of each is counted."""
    domain = sf.Domain(x=TWO)
    src = source(data, domain, **{"person": "p", **unit})
    return count(src, [Lattice((grid_axis("x", TWO, 1),))])[0].total


def table_of(ids: pa.Array, **more: Any) -> pa.Table:
    return pa.table({"p": ids, "x": pa.array([1.0] * len(ids)), **more})


def days(*ticks: int) -> pa.Array:
    return pa.array(ticks, pa.int64()).view(pa.date64())


def decimals(scale: int, *values: str, wide: bool = False) -> pa.Array:
    type_ = pa.decimal256(70, scale) if wide else pa.decimal128(38, scale)
    return pa.array([Decimal(value) for value in values], type_)


def bits(*patterns: int) -> pa.Array:
    return pa.array(np.array(patterns, np.uint64).view(np.float64))


HUGE = 2**53
DAY = 86_400_000  # milliseconds

# What is one person, in one column: an Arrow array of ids, of which all are one.
ONE: dict[str, pa.Array] = {
    "zeros": pa.array([0.0, -0.0]),
    "zeros of single precision": pa.array([0.0, -0.0], pa.float32()),
    "zeros of half precision": pa.array([np.float16(0.0), np.float16(-0.0)], pa.float16()),
    "times of one day in date64": days(DAY, DAY + 1, 2 * DAY - 1),
    "values of a dictionary that is there twice": pa.DictionaryArray.from_arrays(
        pa.array([0, 1], pa.int8()), pa.array(["a", "a"])
    ),
    "zeros of a dictionary": pa.array([0.0, -0.0]).dictionary_encode(),
    "a run": pa.RunEndEncodedArray.from_arrays([2], ["a"]),
}

# What are as many persons as there are ids, in one column.
ALL: dict[str, pa.Array] = {
    "long whole numbers": pa.array([HUGE, HUGE + 1, -(2**63), 2**63 - 1, 0, -1]),
    "unsigned numbers": pa.array([HUGE, HUGE + 1, 2**63, 2**63 + 1, 2**64 - 1, 0], pa.uint64()),
    "doubles": pa.array([0.1, math.nextafter(0.1, 1), float(HUGE), HUGE + 2.0, math.inf, 5e-324]),
    "doubles beyond 64 bits": pa.array([2.0**63, 2.0**64, -(2.0**63), -(2.0**64), -math.inf]),
    "single precision": pa.array([0.1, 0.2, 2.0**24, 2.0**24 + 2], pa.float32()),
    "decimals": decimals(20, "0.7", "0.70000000000000000001", "7", "70", "-7", "0"),
    "small decimals": decimals(30, "1E-30", "1E-29", "1E-9", "1E-7", "0", "-1E-9"),
    "wide decimals": decimals(35, "1E-35", "12345678901234567890.1", "1E+34", wide=True),
    "decimals of negative scale": pa.array([Decimal(700), Decimal(7000)], pa.decimal128(9, -2)),
    "digits and zeros": pa.array(["7", "07", "7.0", "+7", " 7", "7 ", "7e0", "7\0", ""]),
    "bytes": pa.array([b"", b"\0", b"\xff", b"\xff\0"]),
    "bytes of one length": pa.array([b"7\0", b"\x007"], pa.binary(2)),
    "text": pa.array(["\u00e9", "e\u0301", "E\u0301", "\0n7", "n7"]),
    "views": pa.array(["7", "07", "long enough for a buffer of its own"], pa.string_view()),
    "views of bytes": pa.array([b"7", b"07", b"long enough for a buffer"], pa.binary_view()),
    "a dictionary": pa.array(["7", "07", "7"]).dictionary_encode().dictionary.dictionary_encode(),
    "truths": pa.array([True, False]),
    "days": pa.array([-(2**31), -719_163, 0, 2_932_897, 2**31 - 1], pa.date32()),
    "days of 64 bits": days(-(2**63), -(2**62), 0, DAY, 2**62, 2**63 - 1),
    **{
        f"times in {unit} {zone}": pa.array(
            [-(2**63) + 1, -1, 0, 1, 2**62, 2**62 + 1, 2**63 - 1], pa.int64()
        ).view(pa.timestamp(unit, zone))
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "UTC", "Europe/Berlin")
    },
}
MISSING = [
    pa.array([math.nan, None]),
    bits(0x7FF8_0000_0000_0001, 0xFFF8_0000_0000_0000),
    pa.array([math.nan], pa.float32()),
    pa.array([math.nan]).dictionary_encode(),
    pa.nulls(2),
    pa.array([None], pa.decimal128(9, 3)),
    pa.array([None], pa.timestamp("ns")),
]


@pytest.mark.parametrize("what", [*ONE, *ALL])
def test_ids_are_one_person_if_they_are_equal(what: str) -> None:
    """Each of them in two batches; a day is part of them or is not."""
    ids, expected = (ONE[what], 1) if what in ONE else (ALL[what], len(ALL[what]))
    table = table_of(ids, day=[dt.date(2020, 1, 1)] * len(ids))
    twice = pa.concat_tables([table, table])
    assert persons(twice) == expected
    assert persons(twice, person=["p", "day"]) == expected


def in_files(folder: Path, *columns: pa.Array) -> str:
    for number, ids in enumerate(columns):
        pq.write_table(table_of(ids), folder / f"{number}.parquet")
    return str(folder)


# Parquet has no such types, or other units.
KEPT_BY_PARQUET = {*ONE, *ALL} - {"a run", "decimals of negative scale", "days of 64 bits"}


@pytest.mark.parametrize("what", sorted(KEPT_BY_PARQUET - {n for n in ALL if "times" in n}))
def test_ids_of_a_file_are_those_of_the_table(what: str, tmp_path: Path) -> None:
    ids = {**ONE, **ALL}[what]
    assert persons(in_files(tmp_path, ids)) == (1 if what in ONE else len(ids))


@pytest.mark.parametrize("number", range(len(MISSING)))
def test_what_is_missing_is_nobody(number: int) -> None:
    ids = MISSING[number]
    assert persons(table_of(ids)) == 0


@pytest.mark.parametrize("type_", [pa.date32(), pa.date64()])
def test_a_period_of_any_year_is_a_period_of_its_own(type_: pa.DataType) -> None:
    """Also beyond the years 1 to 9999, in which Python's own dates lie."""
    far = [-(2**31), -719_163, -719_162, 0, 2_932_896, 2_932_897, 2**31 - 1]
    ticks = pa.array(far, pa.int32()).view(pa.date32())
    if type_ == pa.date64():
        ticks = days(*(day * DAY for day in [*far, 2**36, 2**36 + 1, -(2**36)]))
    table = table_of(pa.array(["a"] * len(ticks)), day=ticks)
    assert persons(table, person=["p", "day"]) == len(ticks)
    assert persons(pa.concat_tables([table, table]), person=["p", "day"]) == len(ticks)


# --- files whose types differ ---------------------------------------------------------------------


def test_decimals_of_any_scale_are_compared_as_numbers(tmp_path: Path) -> None:
    columns = (
        decimals(3, "7.000", "7.5", "70"),
        pa.array([Decimal("7.0"), Decimal("7.5")], pa.decimal128(5, 1)),
        decimals(30, "7", "7.500000000000000000000000000001", wide=True),
    )
    assert persons(in_files(tmp_path, *columns)) == 4


@pytest.mark.parametrize(
    "columns",
    [
        (pa.array([7]), pa.array(["7"])),
        (pa.array([7]), pa.array([7.0])),
        (pa.array([7]), pa.array([7], pa.uint64())),
        (pa.array([7]), decimals(3, "7")),
        (pa.array([True]), pa.array([1])),
        (pa.array(["7"]), pa.array([b"7"])),
        (pa.array([0.5]), pa.array([0.5], pa.float32())),
        (pa.array([0], pa.timestamp("ms")), pa.array([0], pa.timestamp("us"))),
        (pa.array([0], pa.timestamp("us")), pa.array([0], pa.timestamp("us", "UTC"))),
        (pa.array([0], pa.date32()), pa.array([0], pa.timestamp("us"))),
        (decimals(0, "7"), pa.array([Decimal("1E-70")], pa.decimal256(76, 70))),
    ],
)
def test_files_in_which_ids_may_change_are_refused_by_their_types(
    columns: tuple[pa.Array, pa.Array], tmp_path: Path
) -> None:
    src = source(in_files(tmp_path, *columns), sf.Domain(x=TWO), person="p")
    need = Lattice((grid_axis("x", TWO, 1),))
    for action in (lambda: src.require([need]), lambda: count(src, [need])):
        refused(action, sf.DataError, "different types in different files")


class Pieces(RowReader):
    """A table that is read in pieces, of types that it did not state."""

    name = "pieces"

    def __init__(self, *columns: pa.Array, apart: bool) -> None:
        self.tables = [table_of(ids) for ids in columns]
        self.apart = apart

    def names(self) -> list[str]:
        return ["p", "x"]

    def schema(self, columns: Columns) -> pa.Schema:
        return self.tables[0].schema

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        return (batch for table in self.tables for batch in table.to_batches())

    def pieces(self, columns: Columns) -> Sequence[Piece]:
        if not self.apart:
            return super().pieces(columns)
        return [lambda table=table: iter(table.to_batches()) for table in self.tables]


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(
    "columns",
    [
        (pa.array([2**64 - 1], pa.uint64()), pa.nulls(1), pa.array([-1])),
        (pa.array([7], pa.timestamp("s")), pa.nulls(1), pa.array([7], pa.timestamp("ms"))),
        (pa.array([7], pa.date32()), pa.nulls(1), pa.array([7])),
        (pa.array([7]), pa.array([7], pa.timestamp("s"))),
    ],
)
def test_ids_do_not_change_their_type_behind_rows_without_ids(
    columns: tuple[pa.Array, ...], apart: bool
) -> None:
    """One person would be two, or two one, as their tokens are those of one type."""
    with pytest.raises(sf.DataError, match="different types in different rows"):
        persons(Pieces(*columns, apart=apart))


# --- formats without types, and objects -----------------------------------------------------------

WRITTEN = [
    "7",
    "07",
    "7.0",
    "7e0",
    "+7",
    str(HUGE),
    str(HUGE + 1),
    "0.1",
    "0.10",
    "True",
    "TRUE",
    "2020-01-01",
]


def test_an_id_in_a_file_of_text_is_what_is_written(tmp_path: Path) -> None:
    lines = [f"{id_},1" for id_ in WRITTEN]
    path = write(tmp_path, "\n".join(["p,x", *lines, *lines]), "t.csv")
    assert persons(path) == len(WRITTEN)


@pytest.mark.parametrize(
    "axis",
    [
        sf.Interval(0, 10**9),
        sf.Interval("2020-01-01", "2021-01-01"),
        sf.Interval("2020-01-01T00:00", "2021-01-01T00:00"),
        sf.Categories([1, 7]),
        sf.Categories([True, False]),
    ],
)
@pytest.mark.parametrize("form", ["csv", "folders", "objects"])
def test_ids_are_not_read_as_an_axis_is_read(axis: Any, form: str, tmp_path: Path) -> None:
    """As numbers, "7" and "07" would be one person; as text, they are two."""
    data: Any = pd.DataFrame({"p": pd.Series(["7", "07", 7], dtype=object)})
    if form == "csv":
        data = write(tmp_path, "p,x\n7,1\n07,1\n")
    if form == "folders":
        (tmp_path / "p=07").mkdir()
        pq.write_table(pa.table({"x": [1.0]}), tmp_path / "p=07" / "t.parquet")
        data = tmp_path
    domain = sf.Domain(p=axis)
    lattice = sf.Histogram("p", bins=None).needs(domain).lattice
    refuses(data, "at the same time", domain=domain, lattice=lattice, person="p")


def test_ids_of_objects_may_be_labels_of_text() -> None:
    """Nothing is read as text there that is none. As keys, 7 would be "7"."""
    frame = pd.DataFrame({"p": pd.Series(["7", "7", "07", 7, 7.0, True], dtype=object)})
    domain = sf.Domain(p=sf.Categories(["7"], other="else"))
    lattice = sf.Histogram("p").needs(domain).lattice
    assert count(source(frame, domain, person="p"), [lattice])[0].counts.tolist() == [1, 1]
    keys = sf.Domain(p=sf.Keys())
    lattice = sf.Histogram("p").needs(keys).lattice
    refuses(frame, "as an object", domain=keys, lattice=lattice, person="p")


EQUAL_OBJECTS: list[list[Any]] = [
    [7, 7.0, Decimal("7.00"), Decimal("0.7E+1"), np.int8(7), np.float32(7), np.uint64(7)],
    [True, 1, np.bool_(True), Decimal(1)],
    [0, 0.0, -0.0, Decimal("-0.00"), False],
    [0.1, np.float64(0.1), Decimal.from_float(0.1)],
    [Decimal("0.1"), Decimal("0.100"), Decimal("1E-1")],
    [10**400, Decimal("1E+400")],
    [Decimal("1E+999999"), Decimal("10E+999998")],
    [math.inf, Decimal("Infinity")],
    ["7"],
    ["\0n7"],
    ["\0t7"],
    ["t7"],
    [b"7"],
    [uuid.UUID(int=7)],
    [HUGE + 1],
    [2.0**53, HUGE],
    [10**20 + 1],
    [10**20, 1e20, Decimal("1E20")],
    [-(10**20), -1e20],
    [Decimal("0.10000000000000000000000001")],
    [Decimal("1E+401")],
    [dt.date(2020, 1, 1), dt.datetime(2020, 1, 1), pd.Timestamp("2020-01-01")],
    [pd.Timestamp("2020-01-01T00:00:00.000000001")],
]


def test_objects_are_one_person_if_they_are_equal() -> None:
    objects = [value for equal in EQUAL_OBJECTS for value in equal]
    frame = pd.DataFrame({"p": pd.Series(objects, dtype=object), "x": 1.0})
    assert persons(frame) == len(EQUAL_OBJECTS)
    for equal in EQUAL_OBJECTS:
        assert persons(pd.DataFrame({"p": pd.Series(equal * 2, dtype=object), "x": 1.0})) == 1


def _columns(ids: Iterable[Any]) -> dict[str, Callable[[], object]]:
    """The same ids as columns of every engine in memory."""
    listed = list(ids)
    ones = [1.0] * len(listed)
    return {
        "pandas": lambda: pd.DataFrame({"p": listed, "x": ones}),
        "pandas, objects": lambda: pd.DataFrame({"p": pd.Series(listed, dtype=object), "x": ones}),
        "pandas, categories": lambda: pd.DataFrame({"p": pd.Categorical(listed), "x": ones}),
        "polars": lambda: pl.DataFrame({"p": listed, "x": ones}),
        "polars, lazy": lambda: pl.DataFrame({"p": listed, "x": ones}).lazy(),
        "arrow": lambda: pa.table({"p": listed, "x": ones}),
    }


@pytest.mark.parametrize(
    "ids",
    [
        [HUGE, HUGE + 1, 7, -7],
        [0.1, 0.30000000000000004, 0.3, float(HUGE), HUGE + 2.0],
        ["7", "07", "7.0", "é", "e\u0301"],
        [Decimal("0.1"), Decimal("0.7"), Decimal("0.70000000000000001")],
        [dt.date(1, 1, 1), dt.date(2020, 1, 1), dt.date(9999, 12, 31)],
        [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, 0, 0, 0, 1)],
        [True, False],
    ],
    ids=lambda ids: type(ids[0]).__name__,
)
def test_ids_are_the_same_persons_in_every_engine(ids: list[Any]) -> None:
    for name, made in _columns(ids * 2).items():
        assert persons(made()) == len(ids), name


def test_ids_in_an_array_are_the_same_persons() -> None:
    domain = sf.Domain(p=sf.Interval(0, 1), x=TWO)
    lattice = Lattice((grid_axis("x", TWO, 1),))
    for type_, first, second in (
        (np.float64, float(HUGE), HUGE + 2.0),
        (np.float32, 0.1, 0.2),
        (np.float16, 0.1, 0.2),
        (np.int64, HUGE, HUGE + 1),
        (np.uint64, 2**64 - 2, 2**64 - 1),
    ):
        array = np.array([[first, 1], [second, 1], [first, 1]], type_)
        assert count(source(array, domain, person="p"), [lattice])[0].total == 2, type_
    if np.finfo(np.longdouble).precision > np.finfo(np.float64).precision:
        long = np.array([[HUGE, 1]], np.longdouble)
        refused(lambda: source(long, domain, person="p"), sf.DataError, "may not fit a double")


KEY = bytes(range(KEY_BYTES))


HARD = [
    "",
    "\0",
    "a",
    "a\0",
    "a\0\0",
    "b",
    "é",
    "x" * 15,
    "x" * 16,
    "x" * 17,
    "x" * 64,
    "x" * 65,
    "x" * 5000,
    "x" * 5001,
    "x" * 16 + "\0",
]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_texts_have_tokens_of_their_own_whatever_else_is_in_the_batch(type_: Any) -> None:
    words = PersonTokens(KEY)
    ids = pa.array(HARD).cast(type_)
    together = list(zip(*(word.tolist() for word in words.of(ids)), strict=True))
    assert len(set(together)) == len(HARD)
    alone = [tuple(int(word[0]) for word in words.of(ids.slice(i, 1))) for i in range(len(HARD))]
    assert alone == together
    assert together != list(
        zip(*(word.tolist() for word in PersonTokens(bytes(32)).of(ids)), strict=True)
    )
    assert [len(word) for word in words.of(ids.slice(0, 0))] == [0, 0]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=100))
def test_tokens_of_integers_are_a_bijection(ids: list[int]) -> None:
    (words,) = PersonTokens(KEY).of(pa.array(ids, pa.int64()))
    assert len(set(words.tolist())) == len(set(ids))


@given(st.lists(st.integers(0, 2**33), min_size=1, max_size=100))
def test_tokens_of_small_numbers_and_of_no_others_fit_into_their_upper_halves(
    ids: list[int],
) -> None:
    tokens = PersonTokens(KEY)
    (words,) = tokens.of(pa.array(ids, pa.int64()))
    assert len(set(words.tolist())) == len(set(ids))
    for number, word in zip(ids, words.tolist(), strict=True):
        assert (word % 2**32 == 0) == (number < 2**32)
        # Nor does a token depend on what else is in the batch.
        assert tokens.of(pa.array([number], pa.int64()))[0].tolist() == [word]


def test_halves_are_mixed_by_a_bijection_that_fixes_0() -> None:
    tokens = PersonTokens(KEY)
    words = np.arange(2**20, dtype=np.uint32) * np.uint32(4099)
    mixed = tokens._mixed_half(words.copy())
    assert len(np.unique(mixed)) == 2**20
    assert mixed[0] == 0
    assert np.bincount(mixed >> np.uint32(26), minlength=64).max() < 1.05 * 2**14


def test_partitions_are_even_for_consecutive_ids() -> None:
    (words,) = PersonTokens(KEY).of(pa.array(range(64_000), pa.int64()))
    assert (
        np.bincount((words >> np.uint64(58)).astype(np.int64), minlength=N_PARTITIONS).max() < 1500
    )
