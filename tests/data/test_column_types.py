"""What a column may hold is decided by its type, and no type quotes a value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from data.refusals import CANARY, refuses
from sfumato.domain import Categories, Domain, Interval, grid_axis
from sfumato.lattice import LabelAxis, Lattice

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


TWO = sf.Interval(0, 2)


HALVES = Lattice((grid_axis("x", TWO, 2),))


def test_types_that_an_engine_read_off_the_values_are_not_printed() -> None:
    for value in ({"John Smith": 1}, [{"John Smith": 1}]):
        with pytest.raises(sf.DataError) as refused:
            sf.source(pa.table({"x": [value]}), sf.Domain(x=TWO)).require([HALVES])
        assert "John" not in str(refused.value)
