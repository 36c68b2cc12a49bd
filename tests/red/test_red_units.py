"""Red team: persons and values of every column type against plain Python."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.data import count

PERSONS: dict[str, tuple[Any, list[Any]]] = {
    "int64": (pa.int64(), [1, 1, 2, None]),
    "uint64": (pa.uint64(), [2**63 + 1, 2**63 + 1, 2**63 + 2, None]),
    "float64": (pa.float64(), [1.0, 1.0, 0.5, math.nan]),
    "two zeros": (pa.float64(), [0.0, -0.0, 1.0, math.nan]),
    "float32": (pa.float32(), [0.1, 0.1, 0.2, math.nan]),
    "bool": (pa.bool_(), [True, True, False, None]),
    "string": (pa.string(), ["a", "a", "", None]),
    "string view": (pa.string_view(), ["a", "a", "b", None]),
    "binary": (pa.binary(), [b"a", b"a", b"b", None]),
    "date": (pa.date32(), [1, 1, 2, None]),
    "zoned time": (pa.timestamp("us", "Europe/Berlin"), [1, 1, 2, None]),
    "decimal": (pa.decimal128(5, 2), [Decimal("1.00"), Decimal("1"), Decimal("2"), None]),
}


def counted(
    data: object, axis: sf.Interval | sf.Categories, question: sf.Histogram, **options: Any
) -> list[int]:
    src = sf.source(data, {"x": axis}, **options)
    return count(src, [question.needs(src.domain).lattice])[0].counts.tolist()


@pytest.mark.parametrize("kind", PERSONS)
def test_a_person_in_several_batches_is_one_person(kind: str, tmp_path: Path) -> None:
    """Every row is a batch of its own.

    Two persons keep one row each, and the row without a person is dropped.
    """
    type_, ids = PERSONS[kind]
    column = pa.chunked_array([pa.array([one], type=type_) for one in ids])
    table = pa.table({"x": pa.chunked_array([pa.array([1.0])] * len(ids)), "p": column})
    pq.write_table(table, tmp_path / "p.parquet", row_group_size=1)
    for data in (table, tmp_path / "p.parquet"):
        assert sum(counted(data, sf.Interval(0, 2), sf.Histogram("x", bins=2), person="p")) == 2


def test_doubled_dictionary_entries_are_one_person_and_one_label() -> None:
    people = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 0, 1, 2, None], pa.int8()), pa.array(["p", "p", None])
    )
    table = pa.table({"x": [1.0] * 6, "p": people})
    assert counted(table, sf.Interval(0, 2), sf.Histogram("x", bins=2), person="p") == [0, 1]
    labels = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, 3, None], pa.int8()), pa.array(["a", "a", "b", None])
    )
    assert counted(
        pa.table({"x": labels}), sf.Categories(["a", "b"], other="o"), sf.Histogram("x")
    ) == [2, 1, 0]


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_each_person_keeps_the_rows_that_count(rows: int) -> None:
    draw = np.random.default_rng(rows)
    ids, x = draw.integers(0, 900, 6_000), draw.uniform(-1, 11, 6_000)
    x[::17] = np.nan
    truth = sum(min(rows, number) for number in Counter(ids[~np.isnan(x)].tolist()).values())
    table = pa.table({"x": x, "p": ids})
    assert (
        sum(
            counted(
                table,
                sf.Interval(0, 10),
                sf.Histogram("x", bins=5),
                person="p",
                rows_per_person=rows,
            )
        )
        == truth
    )


NUMBERS: dict[str, tuple[Any, list[Any], float, float]] = {
    "uint64": (pa.uint64(), [0, 2**63, 2**64 - 1, 2**63 + 2**62], 0.0, 2.0**64),
    "int64": (pa.int64(), [-(2**63), 2**63 - 1, 0], -(2.0**63), 2.0**63),
    "float32": (
        pa.float32(),
        [0.1, 0.2, 0.3, 1.0, -0.0, math.inf, -math.inf, math.nan, 3e38, 1e-45],
        0.0,
        1.0,
    ),
    "decimal": (
        pa.decimal128(38, 10),
        [Decimal("0.7"), Decimal("0.1"), Decimal("-5"), None],
        0.0,
        1.0,
    ),
    "bool": (pa.bool_(), [True, False, None], 0.0, 2.0),
    "largest bounds": (pa.float64(), [1e308, -1e308, 1e100, 0.0, 5e-324], -1e100, 1e100),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_against_plain_python(kind: str) -> None:
    type_, values, low, high = NUMBERS[kind]
    column, truth = pa.array(values, type=type_), [0] * 10
    for value in column.to_pylist():
        if value is not None and not math.isnan(value):
            inside = min(max(float(value), low), high)
            truth[min(int((inside - low) * 10 / (high - low)), 9)] += 1
    assert (
        counted(pa.table({"x": column}), sf.Interval(low, high), sf.Histogram("x", bins=10))
        == truth
    )


def test_labels_of_three_kinds_stay_apart() -> None:
    axis = sf.Categories([1, 0, True, "1", "True", False, -1])
    for column, truth in (
        (pa.array(["1", "True", "x", None]), [0, 0, 0, 1, 1, 0, 0]),
        (pa.array([1, 0, -1, 5, None]), [1, 1, 0, 0, 0, 0, 1]),
        (pa.array([True, False, None]), [0, 0, 1, 0, 0, 1, 0]),
        (pa.array([1.0, -0.0, math.nan, -1.0, 0.5]), [1, 1, 0, 0, 0, 0, 1]),
    ):
        assert counted(pa.table({"x": column}), axis, sf.Histogram("x")) == truth


def test_times_beyond_every_bound_are_clamped() -> None:
    days, moments = (
        sf.Interval("2013-01-01", "2013-01-05"),
        sf.Interval("2013-01-01T00:00", "2013-01-05T00:00"),
    )
    for type_, values, truth in (
        (pa.date32(), [-(2**31), 2**31 - 1, 15706, None], [2, 0, 0, 1]),
        (pa.timestamp("s"), [-(2**63), 2**63 - 1, 15706 * 86400], [2, 0, 0, 1]),
        (pa.timestamp("ns"), [-1, 15706 * 86400 * 10**9], [2, 0, 0, 0]),
        (pa.timestamp("us", "Asia/Tokyo"), [15706 * 86400 * 10**6], [1, 0, 0, 0]),
    ):
        table = pa.table({"x": pa.array(values, type=type_)})
        assert (
            counted(table, days, sf.Histogram("x"))
            == counted(table, moments, sf.Histogram("x", bins=4))
            == truth
        )
