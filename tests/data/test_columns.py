"""Values of every type become the same numbers and labels."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data import random_tables
from sfumato.data import count, source
from sfumato.data.columns import Labels, decoded
from sfumato.domain.domain import Categories, Domain, Interval, grid_axis
from sfumato.domain.lattice import EdgesAxis, LabelAxis, LabelIndex, Lattice


def _every_step(domain: Domain) -> Lattice:
    axis = domain["a"]
    assert isinstance(axis, Interval)
    return Lattice((grid_axis("a", axis, axis.natural_cells or 1),))


def test_every_unit_of_time_is_floored_to_the_same_instant() -> None:
    domain = Domain(a=Interval("1969-12-30T00:00", "1970-01-03T00:00"))
    lattice = Lattice((grid_axis("a", domain["a"], 4 * 86400 * 1000),))
    moment = pa.array([-1500, 1500, -1, 0, None], pa.int64())
    cubes = []
    for unit, factor in (("s", 1), ("ms", 1000), ("us", 10**6), ("ns", 10**9)):
        ticks = pa.array(
            [None if v.as_py() is None else v.as_py() * factor for v in moment], pa.int64()
        ).cast(pa.timestamp(unit))
        cubes.append(
            random_tables.found(count(source(pa.table({"a": ticks}), domain), [lattice])[0])
        )
    assert all(cube == cubes[0] for cube in cubes)
    below = pa.table({"a": pa.array([-1], pa.int64()).cast(pa.timestamp("ns"))})
    assert random_tables.found(count(source(below, domain), [lattice])[0]) == {
        (2 * 86400 * 1000 - 1,): 1
    }


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_times_beyond_all_bounds_are_clamped_not_wrapped(unit: str) -> None:
    days = Domain(a=Interval("2020-01-01", "2020-01-03"))
    times = Domain(a=Interval("2020-01-01T00:00", "2020-01-03T00:00"))
    far = pa.table(
        {"a": pa.array([2**62, -(2**62), 2**63 - 1, -(2**63)], pa.int64()).cast(pa.timestamp(unit))}
    )
    for domain in (days, times):
        lattice = Lattice((grid_axis("a", domain["a"], 2),))
        assert count(source(far, domain), [lattice])[0].counts.tolist() == [2, 2]
    distant = pa.table({"a": pa.array([2**31 - 1, -(2**31)], pa.int32()).cast(pa.date32())})
    assert count(source(distant, times), [Lattice((grid_axis("a", times["a"], 2),))])[
        0
    ].counts.tolist() == [1, 1]


def test_decimals_are_rounded_once() -> None:
    from decimal import Decimal

    values = [Decimal(i).scaleb(-3) for i in range(1, 1000)]
    doubles = [float(value) for value in values]
    domain = Domain(a=Interval(0, 1))
    lattice = Lattice(
        (EdgesAxis("a", (0.0, *sorted([*doubles, *(math.nextafter(x, 1) for x in doubles)]), 1.0)),)
    )
    plain = count(source(pa.table({"a": doubles}), domain), [lattice])[0]
    for type_ in (pa.decimal128(30, 3), pa.decimal256(60, 5)):
        exact = count(source(pa.table({"a": pa.array(values, type_)}), domain), [lattice])[0]
        assert (plain.counts == exact.counts).all()


def test_text_that_is_no_utf8_is_missing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"w\na\n\xff\xfe\na\n")
    broken = pa.table({"w": pa.array([b"a", b"\xff\xfe", b"a"]).view(pa.string())})
    pq.write_table(broken, tmp_path / "t.parquet")
    axis = Categories(["a"], other="else", missing="unknown")
    lattice = Lattice((LabelAxis("w", axis.all_labels, True, True),))
    for data in (tmp_path / "t.csv", broken, tmp_path / "t.parquet"):
        assert count(source(data, Domain(w=axis)), [lattice])[0].counts.tolist() == [2, 0, 1]


def test_names_with_dots_and_nested_neighbours(tmp_path: Path) -> None:
    nested = pa.table({"a.b": [0.1, 0.9], "a": pa.array([{"b": 0.1}, {"b": 0.1}])})
    pq.write_table(nested, tmp_path / "t.parquet")
    domain = Domain({"a.b": Interval(0, 1)})
    lattice = Lattice((grid_axis("a.b", domain["a.b"], 2),))
    for data in (nested, tmp_path / "t.parquet"):
        assert count(source(data, domain), [lattice])[0].counts.tolist() == [1, 1]


def test_a_date_is_a_date_in_all_engines() -> None:
    domain = Domain(a=Interval("2020-01-01", "2020-01-04"))
    day = dt.date(2020, 1, 2)
    frames = (
        pl.DataFrame({"a": [day]}),
        pd.DataFrame({"a": pd.to_datetime([day])}),
        pd.DataFrame({"a": [day]}),
        pa.table({"a": [day]}),
    )
    for frame in frames:
        assert count(source(frame, domain), [_every_step(domain)])[0].counts.tolist() == [0, 1, 0]


def test_a_dictionary_much_longer_than_its_column_gives_the_same_cells() -> None:
    """Readers hand out dictionaries that grow with every batch."""
    words = [f"w{number}" for number in range(1000)]
    column = pa.array([999, None, 3, 3, 500], pa.int32())
    encoded = pa.DictionaryArray.from_arrays(column, pa.array(words))
    axis = LabelAxis("word", (*words[:900], "else", "not known"), other=True, missing=True)
    assert Labels(axis).cells(encoded).tolist() == [900, 901, 3, 3, 500]
    assert Labels(axis).cells(encoded).tolist() == Labels(axis).cells(decoded(encoded)).tolist()


def test_axes_that_are_equal_for_python_have_indices_of_their_own() -> None:
    numbers = LabelAxis("answer", (1, 0))
    booleans = LabelAxis("answer", (True, False))
    held = LabelIndex.of(numbers)
    assert LabelIndex.of(numbers) is held
    assert held.cells([1, 0, True]).tolist() == [0, 1, -1]
    assert LabelIndex.of(booleans).cells([1, 0, True]).tolist() == [-1, -1, 0]
