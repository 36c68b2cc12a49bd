"""Cells of numbers as engines find them: those of the kernel, also at edges and in the extreme."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.answers.counts import Needs
from sfumato.answers.nearest import NearestAxis
from sfumato.data import count, source
from sfumato.data.engines.cells import integer_edges
from sfumato.data.engines.spark import Spark
from sfumato.domain import Domain
from sfumato.lattice import EdgesAxis, GridAxis, Lattice
from support.postgres import address, schema_of

AXES = {
    "from zero": GridAxis("x", 0.0, 120.0, 64),
    "a unit": GridAxis("x", 0.0, 1.0, 2**20),
    "a third": GridAxis("x", -0.1, 0.2, 9),
    "cents": GridAxis("x", 0.0, 100.0, 10_000, snap=True, step=0.01),
    "rounding below the upper bound": GridAxis("x", 1e6, 1e6 + 2.0**-20, 300),
    "large": GridAxis("x", -1e100, 1e100, 1000),
    "wide": GridAxis("x", 0.0, 1e6, 10),
    "tiny": GridAxis("x", 0.0, 1e-300, 10),
    "nearest points": NearestAxis("x", 0.0, 10.0, 2**20 + 1),
    "nearest points, few": NearestAxis("x", -1.0, 2.0, 11),
    "nearest points of large numbers": NearestAxis("x", 0.0, 1e10 - 1, 2**31 + 1),
}


def numbers_of(axis: GridAxis) -> list[float]:
    """Edges and their neighbours, numbers at random within and around, and extreme ones."""
    width = axis.upper - axis.lower
    some = np.linspace(0, axis.cells, 60).astype(int)
    edges = [*axis.points(some).tolist(), *np.asarray(some * width / axis.cells + axis.lower)]
    near = [math.nextafter(each, to) for each in edges for to in (-math.inf, math.inf)]
    between = np.random.default_rng(1).uniform(axis.lower - width, axis.upper + width, 300)
    signed = [0.0, 5e-324, 1e-310, 2.0**-1022, 1e300, 1.7976931348623157e308, math.inf]
    return [*edges, *near, *between, *signed, *(-each for each in signed), math.nan]


def server(numbers: list[float], folder: Path) -> str:
    name = f"{schema_of(folder)}.t"
    with psycopg.connect(address()) as connection:
        connection.execute(f"CREATE SCHEMA {schema_of(folder)}".encode())
        connection.execute(f"CREATE TABLE {name} (row int8, x float8)".encode())
        with connection.cursor().copy(f"COPY {name} FROM STDIN".encode()) as copied:
            for row in enumerate(numbers):
                copied.write_row(row)
    return f"{address()}&table={name}"


@pytest.mark.parametrize("axis", AXES.values(), ids=AXES)
def test_each_number_has_the_cell_of_the_kernel(axis: GridAxis, tmp_path: Path) -> None:
    numbers = numbers_of(axis)
    rows = GridAxis("row", 0.0, float(len(numbers)), len(numbers))
    lattice = Lattice((rows, axis))
    domain = Domain(row=sf.Interval(0, len(numbers), step=1), x=sf.Interval(axis.lower, axis.upper))
    (cube,) = count(source(server(numbers, tmp_path), domain), [Needs(lattice, lattice.size)])
    expected = axis.locate(np.array(numbers))
    if cube.coordinates is None:
        found = np.argwhere(cube.counts.reshape(len(numbers), axis.cells))
    else:
        found = cube.coordinates
    assert found.tolist() == [[row, cell] for row, cell in enumerate(expected) if cell >= 0]


INTEGERS = {"int16": "int2", "int32": "int4", "int64": "int8"}
_MOST = 2.0**53
BINS_OF_INTEGERS = {
    "between integers": [-3.0, -0.5, 0.5, 2.0, 2.5, 7.0],
    "up to the last exact one": [-_MOST, 1 - _MOST, 0.0, _MOST - 1, _MOST],
    "beyond it": [-(2.0**60), -_MOST, _MOST, 2.0**60],
    "beyond 16 bits": [0.0, 10.0, 32767.0, 32768.0, 1e6],
}


def integers(table: pa.Table, folder: Path) -> str:
    """The table on PostgreSQL."""
    name = f"{schema_of(folder)}.t"
    types = ", ".join(f"{each.name} {INTEGERS[str(each.type)]}" for each in table.schema)
    with psycopg.connect(address()) as connection:
        connection.execute(f"CREATE SCHEMA {schema_of(folder)}".encode())
        connection.execute(f"CREATE TABLE {name} ({types})".encode())
        with connection.cursor().copy(f"COPY {name} FROM STDIN".encode()) as copied:
            for row in zip(*table.to_pydict().values(), strict=True):
                copied.write_row(row)
    return f"{address()}&table={name}"


@pytest.mark.parametrize("edges", BINS_OF_INTEGERS.values(), ids=BINS_OF_INTEGERS)
def test_each_integer_has_the_cell_of_its_double(edges: list[float], tmp_path: Path) -> None:
    near = [int(edge) + step for edge in edges for step in (-2, -1, 0, 1, 2)]
    columns: dict[str, pa.Array] = {}
    for name in INTEGERS:
        most = np.iinfo(name).max
        held = [each for each in near if abs(each) <= most] + [most, -most - 1, None]
        padded = held + [None] * (len(near) + 3 - len(held))
        columns[name] = pa.array(padded, name)
    data = integers(pa.table(columns), tmp_path)
    for name, column in columns.items():
        axis = EdgesAxis(name, tuple(edges))
        doubles = np.array(column.to_pylist(), dtype=np.float64)
        expected = np.bincount(axis.locate(doubles)[axis.locate(doubles) >= 0], minlength=axis.size)
        src = source(data, Domain(**{name: sf.Interval(edges[0], edges[-1])}))
        (cube,) = count(src, [Lattice((axis,))])
        assert cube.counts.tolist() == expected.tolist(), name


def test_integers_are_compared_as_such_where_that_is_exact() -> None:
    axis = EdgesAxis("n", (0.0, 2.5, 7.0, 9.0))
    assert integer_edges(axis, pa.int32(), Spark({})) == ["CAST(3 AS INT)", "CAST(7 AS INT)"]
    for bound in (-_MOST, _MOST):
        edges = tuple(sorted((bound, 2 * bound, bound / 2)))
        assert integer_edges(EdgesAxis("n", edges), pa.int64(), Spark({})) is None
    assert integer_edges(EdgesAxis("n", (0.0, 128.0, 200.0)), pa.int8(), Spark({})) is None
    assert integer_edges(GridAxis("n", 0.0, 9.0, 9), pa.int64(), Spark({})) is None
