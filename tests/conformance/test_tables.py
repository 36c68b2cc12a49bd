"""Every kind of table gives the same cube, bit for bit: the one that plain Python counts; with the same key, the same rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conformance.kinds import KINDS, bounded, people, table
from data import made
from sfumato.cube import Cube
from sfumato.data import count, source
from sfumato.domain import Domain, Interval, grid_axis
from sfumato.lattice import Lattice

ROWS = 700
KEY = bytes(range(32))
MOST = 3


@pytest.fixture(scope="module", params=[0, 1])
def rows(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """Random rows; pandas turns booleans with gaps into objects, which is part of the suite."""
    return people(ROWS, seed=request.param)


@pytest.fixture(scope="module")
def wanted(
    rows: list[dict[str, Any]],
) -> list[tuple[dict[tuple[int, ...], int], dict[tuple[int, ...], int]]]:
    return [
        (made.expected(rows, lattice), bounded(rows, lattice, KEY, MOST))
        for lattice in made.LATTICES
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_gives_the_cube_of_plain_python(
    kind: str, rows: Any, wanted: Any, tmp_path: Path
) -> None:
    data = KINDS[kind](rows, tmp_path)
    plain = source(data, made.DOMAIN)
    plain.require(made.LATTICES)
    _same(count(plain, made.LATTICES), [one for one, _ in wanted])
    if kind == "arrow, reader":  # it can be read once
        data = KINDS[kind](rows, tmp_path)
    src = source(data, made.DOMAIN, person="who", rows_per_person=MOST)
    _same(count(src, made.LATTICES, key=KEY), [one for _, one in wanted])
    if kind != "arrow, reader":
        _same(count(src, made.LATTICES[:2], key=KEY), [one for _, one in wanted[:2]])


def _same(cubes: list[Cube], wanted: list[dict[tuple[int, ...], int]]) -> None:
    assert {cube.coordinates is None for cube in cubes} == {True, False} or len(cubes) == 2
    for cube, one in zip(cubes, wanted, strict=True):
        assert cube.counts.dtype == np.int64
        assert made.found(cube) == one


def test_persons_do_lose_rows(rows: Any, wanted: Any) -> None:
    """Otherwise the suite would say nothing about bounding."""
    for one, limited in wanted[:2]:
        assert 0 < sum(limited.values()) < 0.5 * sum(one.values())


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_a_numpy_array_is_as_the_table_of_its_columns(order: Any, dtype: type) -> None:
    domain = Domain(a=Interval(-3, 5), b=Interval(0, 2**60), who=Interval(0, 50, step=1))
    values = np.random.default_rng(3).integers(-5, 2**59, (ROWS, 3))
    values[:, 0] %= 11
    values[:, 2] %= 40
    array = np.array(values.astype(dtype), order=order)
    if np.issubdtype(dtype, np.floating):
        array[::9, 0], array[::13, 1], array[::17, 2] = np.nan, np.inf, np.nan
    frame = pa.table({name: pa.array(array[:, i]) for i, name in enumerate(domain)})
    a, b = grid_axis("a", Interval(-3, 5), 16), grid_axis("b", Interval(0, 2**60), 2**30)
    lattices = [Lattice((a,)), Lattice((a, b))]
    for person in (None, "who"):
        one = count(source(array, domain, person=person, rows_per_person=2), lattices, key=KEY)
        other = count(source(frame, domain, person=person, rows_per_person=2), lattices, key=KEY)
        assert [made.found(cube) for cube in one] == [made.found(cube) for cube in other]
        assert one[0].total > 0


def test_many_batches_are_as_one(tmp_path: Path) -> None:
    """Enough rows that each engine cuts them in its own way."""
    import duckdb
    import polars as pl

    many = 3 * 2**16 + 5
    draw = np.random.default_rng(0)
    frame = pa.table({"x": draw.normal(3, 4, many), "who": draw.integers(0, 9000, many)})
    pq.write_table(frame, tmp_path / "t.parquet", row_group_size=50_001)
    lattice = Lattice((made.grid("x", 2**10),))
    kinds = {
        "parquet": tmp_path / "t.parquet",
        "arrow": frame,
        "pandas": frame.to_pandas(),
        "polars": pl.from_arrow(frame),
        "lazy": pl.scan_parquet(tmp_path / "t.parquet"),
        "duckdb": duckdb.connect().from_arrow(frame),
        "reader": frame.to_reader(777),
    }
    cubes = {
        kind: count(
            source(data, {"x": made.DOMAIN["x"]}, person="who", rows_per_person=4),
            [lattice],
            key=KEY,
        )[0]
        for kind, data in kinds.items()
    }
    assert 0 < cubes["arrow"].total <= 4 * 9000
    for kind, cube in cubes.items():
        assert cube.counts.tobytes() == cubes["arrow"].counts.tobytes(), kind


ALONE = """
import sys


class NotInstalled:
    # Without the others, as for one who has not installed them; pyarrow looks for pandas, and does without.

    def find_spec(self, name, path=None, target=None):
        if name in {others!r}:
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, NotInstalled())
{make}
from sfumato.data import count, source
from sfumato.domain import (Domain, Interval, grid_axis)
from sfumato.lattice import Lattice
domain = Domain(x=Interval(0, 4, step=1))
lattice = Lattice((grid_axis("x", domain["x"], 4),))
for person in (None, "who"):
    assert count(source(data, domain, person=person), [lattice])[0].counts.tolist() == [1, 1, 0, 0]
assert not sys.modules.keys() & set({others!r})
"""
MAKE = {
    "polars": "import polars; data = polars.DataFrame({'x': [0, 1], 'who': ['a', 'b']}).lazy()",
    "duckdb": "import duckdb; data = duckdb.sql(\"SELECT unnest([0, 1]) AS x, unnest(['a', 'b']) AS who\")",
    "pandas": "import pandas; data = pandas.DataFrame({'x': [0, 1], 'who': ['a', 'b']})",
    "pyarrow": "import pyarrow; data = pyarrow.table({'x': [0, 1], 'who': ['a', 'b']})",
    "file": "import pathlib; pathlib.Path('t.csv').write_text('x,who\\n0,a\\n1,b\\n'); data = 't.csv'",
}


@pytest.mark.parametrize("engine", MAKE)
def test_one_engine_needs_no_other(engine: str, tmp_path: Path) -> None:
    others = [name for name in ("polars", "duckdb", "pandas") if name != engine]
    script = ALONE.format(others=others, make=MAKE[engine])
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_no_rows_at_all(tmp_path: Path) -> None:
    for kind, make in KINDS.items():
        (tmp_path / kind).mkdir()
        if kind in ("arrow, record batch", "arrow, dictionaries"):
            continue
        cubes = count(
            source(make([], tmp_path / kind), made.DOMAIN, person="who"), made.LATTICES[:3]
        )
        assert [cube.total for cube in cubes] == [0, 0, 0], kind
    assert count(source(table([]).to_pandas(), made.DOMAIN), made.LATTICES[:1])[0].total == 0
