"""Arrays of numpy as sources."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from data import random_tables
from sfumato.data import count, source
from sfumato.domain.domain import Categories, Domain, Interval, grid_axis
from sfumato.domain.lattice import LabelAxis, Lattice


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int8, np.uint64, bool])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_is_counted_as_the_rows_of_its_columns(dtype: type, order: Any) -> None:
    domain = Domain(a=Interval(-3, 5), b=Interval(0, 1), c=Categories([0, 1, 7]))
    values = (
        np.random.default_rng(1)
        .integers(-5 if dtype is not np.uint64 else 0, 9, (1000, 3))
        .astype(dtype)
    )
    if np.issubdtype(dtype, np.floating):
        values[::7, 0] = np.nan
        values[::11, 1] = np.inf
        values[::13, 2] = np.nan
    lattices = [Lattice((grid_axis("a", domain["a"], 16), grid_axis("b", domain["b"], 2)))]
    if dtype is not bool:
        lattices.append(Lattice((LabelAxis("c", (0, 1, 7)),)))
    rows = [
        dict(zip("abc", row, strict=True))
        for row in np.array(values, order=order).astype(float).tolist()
    ]
    for lattice, cube in zip(
        lattices, count(source(np.array(values, order=order), domain), lattices), strict=True
    ):
        assert random_tables.found(cube) == random_tables.expected(rows, lattice)


def test_arrays_with_masks_times_and_text_are_read() -> None:
    domain = Domain(a=Interval(0, 4, step=1))
    masked = np.ma.masked_array([[0.0], [1.0], [2.0]], mask=[[False], [True], [False]])
    assert count(source(masked, domain), [_every_step(domain)])[0].counts.tolist() == [1, 0, 1, 0]
    days = Domain(a=Interval("2020-01-01", "2020-01-04"))
    times = np.array([["2020-01-01T23:59"], ["2020-01-03T00:00"], ["NaT"]], "datetime64[s]")
    assert count(source(times, days), [_every_step(days)])[0].counts.tolist() == [1, 0, 1]
    words = Domain(a=Categories(["u", "v"]))
    lattice = Lattice((LabelAxis("a", ("u", "v")),))
    assert count(source(np.array([["v"], ["v"], ["w"]]), words), [lattice])[0].counts.tolist() == [
        0,
        2,
    ]


def _every_step(domain: Domain) -> Lattice:
    axis = domain["a"]
    assert isinstance(axis, Interval)
    return Lattice((grid_axis("a", axis, axis.natural_cells or 1),))


@pytest.mark.parametrize("dtype", [">f8", "<f8", ">i4", "longdouble", "float16", "uint8"])
def test_numbers_of_every_numpy_type_are_read(dtype: str) -> None:
    lattice = Lattice((grid_axis("x", Interval(0, 4), 4),))
    rows = np.array([[0.0], [1.0], [1.0], [3.0]]).astype(dtype)
    assert count(source(rows, Domain(x=Interval(0, 4))), [lattice])[0].counts.tolist() == [
        1,
        2,
        0,
        1,
    ]


def test_numpy_text_that_is_no_unicode_is_missing() -> None:
    domain = sf.Domain(word=sf.Categories(["a"], missing="unknown"))
    rows = np.array([["a"], ["\ud800"], ["a"]])
    assert count(sf.source(rows, domain), [sf.Histogram("word").needs(domain).lattice])[
        0
    ].counts.tolist() == [2, 1]


N_ROWS = 700


KEY = bytes(range(32))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_a_numpy_array_is_as_the_table_of_its_columns(order: Any, dtype: type) -> None:
    domain = Domain(a=Interval(-3, 5), b=Interval(0, 2**60), who=Interval(0, 50, step=1))
    values = np.random.default_rng(3).integers(-5, 2**59, (N_ROWS, 3))
    values[:, 0] %= 11
    values[:, 2] %= 40
    array = np.array(values.astype(dtype), order=order)
    if np.issubdtype(dtype, np.floating):
        array[::9, 0] = np.nan
        array[::13, 1] = np.inf
        array[::17, 2] = np.nan
    frame = pa.table({name: pa.array(array[:, i]) for i, name in enumerate(domain)})
    a = grid_axis("a", Interval(-3, 5), 16)
    b = grid_axis("b", Interval(0, 2**60), 2**30)
    lattices = [Lattice((a,)), Lattice((a, b))]
    for person in (None, "who"):
        one = count(source(array, domain, person=person, rows_per_person=2), lattices, key=KEY)
        other = count(source(frame, domain, person=person, rows_per_person=2), lattices, key=KEY)
        assert [random_tables.found(cube) for cube in one] == [
            random_tables.found(cube) for cube in other
        ]
        assert one[0].total > 0
