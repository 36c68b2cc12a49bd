"""What a column may hold is decided by its type, and no type quotes a value."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from data.refusals import CANARY, refuses
from sfumato.domain.domain import Categories, Domain, Interval, grid_axis
from sfumato.domain.lattice import LabelAxis, Lattice

ANY_NUMBER = Interval(0, 9)
ANY_DATE = Interval("2020-01-01", "2021-01-01")
ANY_TIME = Interval("2020-01-01T00:00", "2021-01-01T00:00")


MISFITS: list[tuple[Any, pa.Array]] = [
    (ANY_NUMBER, pa.array([CANARY])),
    (ANY_NUMBER, pa.array([CANARY]).dictionary_encode()),
    (ANY_NUMBER, pa.array([int(CANARY)], pa.date32())),
    (ANY_NUMBER, pa.array([int(CANARY)], pa.timestamp("us"))),
    (ANY_NUMBER, pa.array([int(CANARY)], pa.duration("us"))),
    (ANY_NUMBER, pa.array([int(CANARY)], pa.time64("us"))),
    (ANY_NUMBER, pa.array([[int(CANARY)]])),
    (ANY_NUMBER, pa.array([CANARY.encode()])),
    (ANY_DATE, pa.array([int(CANARY)])),
    (ANY_TIME, pa.array([CANARY])),
    (ANY_TIME, pa.array([int(CANARY)], pa.time64("us"))),
    (Categories(["a"]), pa.array([int(CANARY)])),
    (Categories([1], other="else"), pa.array([CANARY])),
    (Categories([1]), pa.array([True])),
    (Categories([True]), pa.array([int(CANARY)])),
    (Categories(["a"]), pa.array([int(CANARY)], pa.timestamp("us"))),
]


@pytest.mark.parametrize("case", range(len(MISFITS)))
def test_a_column_of_the_wrong_type_is_refused(case: int, tmp_path: Path) -> None:
    axis, column = MISFITS[case]
    domain = Domain(v=axis)
    lattice = Lattice(
        (
            grid_axis("v", axis, 2)
            if isinstance(axis, Interval)
            else LabelAxis("v", axis.all_labels, axis.other is not None),
        )
    )
    table = pa.table({"v": column})
    pq.write_table(
        table.set_column(0, "v", column) if not pa.types.is_duration(column.type) else table,
        tmp_path / "t.parquet",
    )
    for data in (table, tmp_path / "t.parquet"):
        refuses(data, "column 'v'", "it is of type", domain=domain, lattice=lattice)


KEYS: dict[pa.DataType, list[Any]] = {
    pa.int8(): [-(2**7), 2**7 - 1],
    pa.int16(): [-(2**15), 2**15 - 1],
    pa.int32(): [-(2**31), 2**31 - 1],
    pa.int64(): [-(2**63), 2**53 + 1, 2**63 - 1],
    pa.uint8(): [0, 2**8 - 1],
    pa.uint16(): [0, 2**16 - 1],
    pa.uint32(): [0, 2**32 - 1],
    pa.bool_(): [False, True],
    pa.string(): ["", "17"],
    pa.large_string(): ["17", "ß"],
    pa.string_view(): ["17", "ß"],
}
NO_KEYS: dict[pa.DataType, list[Any]] = {
    pa.uint64(): [1, 2**64 - 1],
    pa.float16(): [1.0],
    pa.float64(): [1.0],
    pa.decimal128(9, 0): [Decimal(1)],
    pa.date32(): [dt.date(2020, 1, 1)],
    pa.timestamp("us"): [dt.datetime(2020, 1, 1)],
    pa.binary(): [b"a"],
}


def _keyed(column: pa.Array) -> sf.Publisher:
    table = pa.table({"k": column, "kind": ["a"] * len(column), "p": range(len(column))})
    domain = sf.Domain(k=sf.Keys(), kind=Categories(["a"]))
    return sf.Publisher(sf.source(table, domain, person="p"), budget=sf.ApproxDP(500, "0.1"))


@pytest.mark.parametrize("in_dictionary", [False, True])
@pytest.mark.parametrize("axes", [["k"], ["k", "kind"]])
@pytest.mark.parametrize("type_", [*KEYS, *NO_KEYS], ids=str)
def test_keys_of_every_type_are_released_or_refused_before_the_charge(
    type_: pa.DataType, axes: list[str], in_dictionary: bool, tmp_path: Path
) -> None:
    """And what is released can be stored, and is loaded as it was."""
    values = KEYS.get(type_) or NO_KEYS[type_]
    if in_dictionary:
        one_of_each = pa.array(range(len(values)), pa.int8())
        column = pa.DictionaryArray.from_arrays(one_of_each, pa.array(values, type_))
        column = pa.concat_arrays([column] * 60)
    else:
        column = pa.array(values * 60, type_)
    with _keyed(column) as publisher:
        if type_ in NO_KEYS:
            with pytest.raises(sf.DataError, match="keys are text, booleans or signed integers"):
                publisher.release(sf.Histogram(axes), epsilon="50", delta="0.001")
            assert publisher.account.spent == (0, 0)
            return
        release = publisher.release(sf.Histogram(axes), epsilon="50", delta="0.001")
        assert release.to_frame()["k"].to_pylist() == sorted(values)
        release.save(tmp_path / "r.json")
        assert sf.load(tmp_path / "r.json").to_frame().equals(release.to_frame())


TWO = sf.Interval(0, 2)


HALVES = Lattice((grid_axis("x", TWO, 2),))


def test_types_that_an_engine_read_off_the_values_are_not_printed() -> None:
    for value in ({"John Smith": 1}, [{"John Smith": 1}]):
        with pytest.raises(sf.DataError) as refused:
            sf.source(pa.table({"x": [value]}), sf.Domain(x=TWO)).require([HALVES])
        assert "John" not in str(refused.value)
