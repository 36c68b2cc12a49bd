"""One scan fills all cubes, which are those of plain Python for every kind of table."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conformance.kinds import KINDS, people, table
from data import random_tables
from data.row_choice import bounded
from sfumato.answers.counts import Needs
from sfumato.data import count, source
from sfumato.data.priorities import chosen_by
from sfumato.domain.cube import DENSE_LIMIT, Cube
from sfumato.domain.domain import Categories, Domain, Interval, Keys, grid_axis
from sfumato.domain.lattice import KeyAxis, LabelAxis, Lattice
from sfumato.errors import DataError

THREE = random_tables.LATTICES[:3]


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    pq.write_table(
        random_tables.table(random_tables.rows(500, 3)), tmp_path / "t.parquet", row_group_size=100
    )
    return tmp_path / "t.parquet"


def test_three_lattices_take_one_scan_of_the_columns_they_need(
    parquet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[list[str]] = []
    plain = pq.ParquetFile.iter_batches

    def counted(self: pq.ParquetFile, *args: object, **kwargs: object) -> object:
        read.append(list(kwargs["columns"]))
        return plain(self, *args, **kwargs)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", counted)
    src = source(parquet, random_tables.DOMAIN)
    src.require(THREE)
    assert read == []  # no column is touched before the charge
    count(src, THREE)
    assert [sorted(columns) for columns in read] == [["flag", "n", "word", "x"]]
    assert count(src, []) == []


def test_each_row_is_counted_once_when_one_batch_brings_more_and_more_keys() -> None:
    """Chunks grow with the number of known keys; they never overlap."""
    n_keys = 300_000
    table = pa.table({"shop": np.arange(n_keys)})
    (batch,) = table.to_batches()
    assert len(batch) == n_keys
    lattice = Lattice((KeyAxis("shop"),))
    progress: list[int] = []
    (cube,) = count(
        source(table, Domain(shop=Keys())),
        [lattice],
        lambda done, total: progress.append(done),
    )
    assert cube.total == n_keys
    assert cube.counts.max() == 1
    assert progress[-1] == n_keys


def test_progress_ends_at_the_number_of_rows(parquet: Path) -> None:
    steps: list[tuple[int, int | None]] = []
    count(
        source(parquet, random_tables.DOMAIN),
        THREE,
        lambda done, total: steps.append((done, total)),
    )
    assert steps[-1] == (500, 500)
    assert [done for done, _ in steps] == sorted({done for done, _ in steps})


def test_errors_of_progress_are_the_callers_own(parquet: Path) -> None:
    def stop(done: int, total: int | None) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        count(source(parquet, random_tables.DOMAIN), THREE, stop)


def test_what_is_given_is_not_changed() -> None:
    values = np.random.default_rng(0).random((1000, 1))
    before = values.copy()
    frame = pa.table({"x": values[:, 0]})
    count(
        source(frame, {"x": random_tables.DOMAIN["x"]}),
        [
            Lattice((random_tables.grid("x", 5),)),
            Lattice((random_tables.grid("x", 7), random_tables.grid("x", 5))),
        ],
    )
    assert (values == before).all()


MEASURE = """
import resource, sys
from sfumato.data import count, source
from sfumato.domain.domain import Domain, Interval, grid_axis
from sfumato.domain.lattice import Lattice
domain = Domain(x=Interval(0, 1), y=Interval(0, 1))
lattice = Lattice((grid_axis("x", domain["x"], 64), grid_axis("y", domain["y"], 64)))
for path in sys.argv[1:]:
    assert count(source(path, domain), [lattice])[0].total > 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(peak // (1 if sys.platform != "darwin" else 1024))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is read from the resource module")
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_memory_does_not_grow_with_the_rows(ending: str, tmp_path: Path) -> None:
    part = pa.table({name: np.random.default_rng(0).random(2**17) for name in "xy"})
    small = tmp_path / f"small.{ending}"
    large = tmp_path / f"large.{ending}"
    _write(part, small, 4)
    _write(part, large, 48 if ending == "parquet" else 16)
    words = [sys.executable, "-c", MEASURE, str(small), str(large)]
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    output = subprocess.run(
        words, env=environment, capture_output=True, text=True, check=True
    ).stdout
    first, second = (int(line) / 1024 for line in output.split())
    assert second - first < 40  # MB; all rows together are 100 MB as doubles, 70 MB as text


def _write(part: pa.Table, path: Path, times: int) -> None:
    from pyarrow import csv

    writer = (
        pq.ParquetWriter(path, part.schema)
        if path.suffix == ".parquet"
        else csv.CSVWriter(path, part.schema)
    )
    with writer:
        for _ in range(times):
            writer.write_table(part)


UNIT_INTERVAL = Interval(0, 1)


FOUR_BINS = Lattice((grid_axis("x", UNIT_INTERVAL, 4),))


@pytest.mark.parametrize("columns", [300, pytest.param(100_000, marks=pytest.mark.deep)])
def test_a_wide_file_is_read_by_the_columns_that_are_needed(columns: int, tmp_path: Path) -> None:
    values = pa.array([0.1, 0.6])
    table = pa.Table.from_arrays([values] * columns, [*(f"c{i}" for i in range(columns - 1)), "x"])
    pq.write_table(table, tmp_path / "wide.parquet", compression="none", write_statistics=False)
    for data in (table, tmp_path / "wide.parquet"):
        assert count(source(data, Domain(x=UNIT_INTERVAL)), [FOUR_BINS])[0].counts.tolist() == [
            1,
            0,
            1,
            0,
        ]
    with pytest.raises(DataError) as caught:
        count(
            source(table, Domain(y=UNIT_INTERVAL)), [Lattice((grid_axis("y", UNIT_INTERVAL, 4),))]
        )
    assert len(str(caught.value)) < 1000  # the columns are not all listed


@pytest.mark.parametrize(
    "nested",
    [
        pa.array([[0.1], [0.6]]),
        pa.array([{"x": 0.1}, {"x": 0.6}]),
        pa.array([[(1, 0.5)], []], pa.map_(pa.int64(), pa.float64())),
    ],
)
def test_a_nested_column_is_refused_where_it_is_asked_for_and_left_alone_where_not(
    nested: pa.Array, tmp_path: Path
) -> None:
    table = pa.table({"x": [0.1, 0.6], "n": nested})
    pq.write_table(table, tmp_path / "nested.parquet")
    for data in (table, tmp_path / "nested.parquet"):
        assert count(source(data, Domain(x=UNIT_INTERVAL)), [FOUR_BINS])[0].total == 2
        with pytest.raises(DataError):
            count(
                source(data, Domain(n=UNIT_INTERVAL)),
                [Lattice((grid_axis("n", UNIT_INTERVAL, 4),))],
            )


@pytest.mark.parametrize("encoded", [False, True])
def test_very_many_distinct_words_on_an_axis_of_three(encoded: bool, tmp_path: Path) -> None:
    words = pa.array(np.arange(150_000)).cast(pa.string())
    table = pa.table({"kind": words.dictionary_encode() if encoded else words})
    axis = Categories(["5", "77", "absent"])
    pq.write_table(table, tmp_path / "words.parquet")
    for data in (table, tmp_path / "words.parquet"):
        cube = count(source(data, Domain(kind=axis)), [Lattice((LabelAxis("kind", axis.labels),))])[
            0
        ]
        assert cube.counts.tolist() == [1, 1, 0]


Build = Callable[[list[dict[str, Any]], Path], object]


def _parquet(rows: list[dict[str, Any]], folder: Path) -> object:
    pq.write_table(random_tables.table(rows), folder / "t.parquet", row_group_size=97)
    return folder / "t.parquet"


def _csv(rows: list[dict[str, Any]], folder: Path) -> object:
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(random_tables.TYPES)
        writer.writerows(
            [
                ["" if row[name] is None else row[name] for name in random_tables.TYPES]
                for row in rows
            ]
        )
    return str(folder / "t.csv")


def _empty_chunks(rows: list[dict[str, Any]], folder: Path) -> object:
    whole = random_tables.table(rows)
    parts = [
        whole.slice(0, 0),
        whole.slice(0, 33),
        whole.slice(5, 0),
        whole.slice(33),
        whole.slice(0, 0),
    ]
    return pa.concat_tables(parts)


def _other_types(rows: list[dict[str, Any]], folder: Path) -> object:
    types = {
        "at": pa.timestamp("ns", "Europe/Zurich"),
        "day": pa.date64(),
        "word": pa.large_string(),
        "code": pa.uint8(),
    }
    return random_tables.table(rows, **types, price=pa.decimal256(40, 6))


def _dictionaries(rows: list[dict[str, Any]], folder: Path) -> object:
    plain = random_tables.table(rows)
    for name in plain.column_names:
        i = plain.column_names.index(name)
        plain = plain.set_column(i, name, plain[name].dictionary_encode(null_encoding="encode"))
    return pa.concat_tables([plain.slice(0, 50), plain.slice(50)])


def _pandas(rows: list[dict[str, Any]], folder: Path) -> object:
    frame = random_tables.table(rows).to_pandas(types_mapper=pd.ArrowDtype)
    frame["word"] = frame["word"].astype("category")
    frame["x"] = frame["x"].astype("float64")
    frame[0] = object()
    return frame.set_index(frame.index[::-1])


def _reader(rows: list[dict[str, Any]], folder: Path) -> object:
    return random_tables.table(rows).to_reader(31)


def _polars(rows: list[dict[str, Any]], folder: Path) -> object:
    return pl.from_arrow(random_tables.table(rows)).with_columns(
        pl.col("word").cast(pl.Categorical)
    )


BUILDS: dict[str, Build] = {
    "parquet": _parquet,
    "csv": _csv,
    "arrow": lambda rows, folder: random_tables.table(rows),
    "record batch": lambda rows, folder: random_tables.table(rows).combine_chunks().to_batches()[0],
    "reader": _reader,
    "empty chunks": _empty_chunks,
    "other types": _other_types,
    "dictionaries": _dictionaries,
    "polars": lambda rows, folder: pl.from_arrow(random_tables.table(rows)),
    "polars categorical": _polars,
    "pandas": _pandas,
    "pandas, numpy types": lambda rows, folder: random_tables.table(rows).to_pandas(),
}


@pytest.mark.parametrize("engine", BUILDS)
def test_the_cube_is_that_of_plain_python(engine: str, tmp_path: Path) -> None:
    rows = random_tables.rows(700, seed=sum(map(ord, engine)))
    if engine == "csv":  # where "NA" is a label it is one; where it is not, it is missing
        assert "NA" in random_tables.DOMAIN["word"].labels
    lattices = random_tables.LATTICES
    if (
        engine == "pandas, numpy types"
    ):  # pandas turns integers with gaps into doubles before we see them, as we do
        rows = [row for row in rows if None not in (row["flag"], row["yes"])]
    src = source(BUILDS[engine](rows, tmp_path), random_tables.DOMAIN)
    src.require(lattices)
    for lattice, cube in zip(lattices, count(src, lattices), strict=True):
        assert (cube.coordinates is None) == (lattice.size <= DENSE_LIMIT)
        assert cube.counts.dtype == np.int64
        assert random_tables.found(cube) == random_tables.expected(rows, lattice)


@pytest.mark.parametrize("person", [None, "p"])
def test_no_rows_make_a_zero_cube(person: str | None, tmp_path: Path) -> None:
    empty = random_tables.table([]).append_column("p", pa.array([], pa.string()))
    pq.write_table(empty, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text(",".join([*random_tables.TYPES, "p"]) + "\n")
    for data in (
        empty,
        tmp_path / "t.parquet",
        tmp_path / "t.csv",
        pl.from_arrow(empty),
        empty.to_pandas(),
    ):
        for cube in count(
            source(data, random_tables.DOMAIN, person=person), random_tables.LATTICES
        ):
            assert cube.total == 0
            assert random_tables.found(cube) == {}


def test_a_column_of_nothing_but_nulls_fits_everything() -> None:
    nothing = pa.table({name: pa.nulls(3) for name in [*random_tables.TYPES, "p"]})
    for person in (None, "p"):
        assert [
            cube.total
            for cube in count(
                source(nothing, random_tables.DOMAIN, person=person), random_tables.LATTICES
            )
        ] == [0] * len(random_tables.LATTICES)


N_ROWS = 700


KEY = bytes(range(32))


MOST = 3


CHOICE = chosen_by([Needs(lattice, 1) for lattice in random_tables.LATTICES])


@pytest.fixture(scope="module", params=[0, 1])
def rows(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """Random rows; pandas turns booleans with gaps into objects, which is part of the suite."""
    return people(N_ROWS, seed=request.param)


@pytest.fixture(scope="module")
def wanted(
    rows: list[dict[str, Any]],
) -> list[tuple[dict[tuple[int, ...], int], dict[tuple[int, ...], int]]]:
    limited = bounded(rows, random_tables.LATTICES, KEY, MOST)
    return [
        (random_tables.expected(rows, lattice), one)
        for lattice, one in zip(random_tables.LATTICES, limited, strict=True)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_gives_the_cube_of_plain_python(
    kind: str, rows: Any, wanted: Any, tmp_path: Path
) -> None:
    data = KINDS[kind](rows, tmp_path)
    plain = source(data, random_tables.DOMAIN)
    plain.require(random_tables.LATTICES)
    _same(count(plain, random_tables.LATTICES), [one for one, _ in wanted])
    if kind == "arrow, reader":  # it can be read once
        data = KINDS[kind](rows, tmp_path)
    src = source(data, random_tables.DOMAIN, person="who", rows_per_person=MOST)
    _same(count(src, random_tables.LATTICES, key=KEY), [one for _, one in wanted])
    if kind != "arrow, reader":
        two = random_tables.LATTICES[:2]
        _same(count(src, two, key=KEY, choice=CHOICE), [one for _, one in wanted[:2]])


def _same(cubes: list[Cube], wanted: list[dict[tuple[int, ...], int]]) -> None:
    assert {cube.coordinates is None for cube in cubes} == {True, False} or len(cubes) == 2
    for cube, one in zip(cubes, wanted, strict=True):
        assert cube.counts.dtype == np.int64
        assert random_tables.found(cube) == one


def test_persons_do_lose_rows(rows: Any, wanted: Any) -> None:
    """Otherwise the suite would say nothing about bounding."""
    for one, limited in wanted[:2]:
        assert 0 < sum(limited.values()) < 0.5 * sum(one.values())


def test_how_an_engine_cuts_batches_does_not_matter(tmp_path: Path) -> None:
    """Enough rows that each engine cuts them in its own way."""
    import polars as pl

    many = 3 * 2**16 + 5
    draw = np.random.default_rng(0)
    frame = pa.table({"x": draw.normal(3, 4, many), "who": draw.integers(0, 9000, many)})
    pq.write_table(frame, tmp_path / "t.parquet", row_group_size=50_001)
    lattice = Lattice((random_tables.grid("x", 2**10),))
    kinds = {
        "parquet": tmp_path / "t.parquet",
        "arrow": frame,
        "pandas": frame.to_pandas(),
        "polars": pl.from_arrow(frame),
        "lazy": pl.scan_parquet(tmp_path / "t.parquet"),
        "reader": frame.to_reader(777),
    }
    cubes = {
        kind: count(
            source(data, {"x": random_tables.DOMAIN["x"]}, person="who", rows_per_person=4),
            [lattice],
            key=KEY,
        )[0]
        for kind, data in kinds.items()
    }
    assert 0 < cubes["arrow"].total <= 4 * 9000
    for kind, cube in cubes.items():
        assert cube.counts.tobytes() == cubes["arrow"].counts.tobytes(), kind


def test_every_kind_of_table_may_have_no_rows(tmp_path: Path) -> None:
    for kind, make in KINDS.items():
        (tmp_path / kind).mkdir()
        if kind in ("arrow, record batch", "arrow, dictionaries"):
            continue
        cubes = count(
            source(make([], tmp_path / kind), random_tables.DOMAIN, person="who"),
            random_tables.LATTICES[:3],
        )
        assert [cube.total for cube in cubes] == [0, 0, 0], kind
    assert (
        count(source(table([]).to_pandas(), random_tables.DOMAIN), random_tables.LATTICES[:1])[
            0
        ].total
        == 0
    )


def test_keys_of_dictionaries_that_hold_null_are_counted() -> None:
    """Batches with fewer rows than keys are joined, and Arrow unifies no such dictionaries."""
    indices = pa.array([0, 1, 2, 0])
    unused = [f"unused {number}" for number in range(10)]
    parts = [
        pa.table({"shop": pa.DictionaryArray.from_arrays(indices, pa.array(held))})
        for held in (
            ["x", None, "y", *unused],
            ["y", None, "z"],
            ["u", None, "v"],
            ["x", None, "w"],
        )
    ]
    domain = Domain(shop=Keys())
    cube = count(source(pa.concat_tables(parts), domain), [Lattice((KeyAxis("shop"),))])[0]
    assert cube.coordinates is not None
    shops = cube.keys["shop"].take(cube.coordinates[:, 0])
    counts = dict(zip(shops, cube.counts.tolist(), strict=True))
    assert counts == {"u": 2, "v": 1, "w": 1, "x": 4, "y": 3, "z": 1}
