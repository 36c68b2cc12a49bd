"""Every engine gives the same cube, which is the one that plain Python counts."""

from __future__ import annotations

import csv
import datetime as dt
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data import made
from sfumato.cube import DENSE_LIMIT
from sfumato.data import count, source
from sfumato.domain import Categories, Domain, Interval, grid_axis
from sfumato.lattice import EdgesAxis, LabelAxis, Lattice

Build = Callable[[list[dict[str, Any]], Path], object]


def _parquet(rows: list[dict[str, Any]], folder: Path) -> object:
    pq.write_table(made.table(rows), folder / "t.parquet", row_group_size=97)
    return folder / "t.parquet"


def _csv(rows: list[dict[str, Any]], folder: Path) -> object:
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(made.TYPES)
        writer.writerows(
            [["" if row[name] is None else row[name] for name in made.TYPES] for row in rows]
        )
    return str(folder / "t.csv")


def _empty_chunks(rows: list[dict[str, Any]], folder: Path) -> object:
    whole = made.table(rows)
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
    return made.table(rows, **types, price=pa.decimal256(40, 6))


def _dictionaries(rows: list[dict[str, Any]], folder: Path) -> object:
    plain = made.table(rows)
    for name in plain.column_names:
        i = plain.column_names.index(name)
        plain = plain.set_column(i, name, plain[name].dictionary_encode(null_encoding="encode"))
    return pa.concat_tables([plain.slice(0, 50), plain.slice(50)])


def _pandas(rows: list[dict[str, Any]], folder: Path) -> object:
    frame = made.table(rows).to_pandas(types_mapper=pd.ArrowDtype)
    frame["word"] = frame["word"].astype("category")
    frame["x"] = frame["x"].astype("float64")
    frame[0] = object()
    return frame.set_index(frame.index[::-1])


def _reader(rows: list[dict[str, Any]], folder: Path) -> object:
    return made.table(rows).to_reader(31)


def _polars(rows: list[dict[str, Any]], folder: Path) -> object:
    return pl.from_arrow(made.table(rows)).with_columns(pl.col("word").cast(pl.Categorical))


BUILDS: dict[str, Build] = {
    "parquet": _parquet,
    "csv": _csv,
    "arrow": lambda rows, folder: made.table(rows),
    "record batch": lambda rows, folder: made.table(rows).combine_chunks().to_batches()[0],
    "reader": _reader,
    "empty chunks": _empty_chunks,
    "other types": _other_types,
    "dictionaries": _dictionaries,
    "polars": lambda rows, folder: pl.from_arrow(made.table(rows)),
    "polars categorical": _polars,
    "pandas": _pandas,
    "pandas, numpy types": lambda rows, folder: made.table(rows).to_pandas(),
}


@pytest.mark.parametrize("engine", BUILDS)
def test_the_cube_is_that_of_plain_python(engine: str, tmp_path: Path) -> None:
    rows = made.rows(700, seed=sum(map(ord, engine)))
    if engine == "csv":  # where "NA" is a label it is one; where it is not, it is missing
        assert "NA" in made.DOMAIN["word"].labels
    lattices = made.LATTICES
    if (
        engine == "pandas, numpy types"
    ):  # pandas turns integers with gaps into doubles before we see them, as we do
        rows = [row for row in rows if None not in (row["flag"], row["yes"])]
    src = source(BUILDS[engine](rows, tmp_path), made.DOMAIN)
    src.require(lattices)
    for lattice, cube in zip(lattices, count(src, lattices), strict=True):
        assert (cube.coordinates is None) == (lattice.size <= DENSE_LIMIT)
        assert cube.counts.dtype == np.int64
        assert made.found(cube) == made.expected(rows, lattice)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int8, np.uint64, bool])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numpy(dtype: type, order: Any) -> None:
    domain = Domain(a=Interval(-3, 5), b=Interval(0, 1), c=Categories([0, 1, 7]))
    values = (
        np.random.default_rng(1)
        .integers(-5 if dtype is not np.uint64 else 0, 9, (1000, 3))
        .astype(dtype)
    )
    if np.issubdtype(dtype, np.floating):
        values[::7, 0], values[::11, 1], values[::13, 2] = np.nan, np.inf, np.nan
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
        assert made.found(cube) == made.expected(rows, lattice)


def test_numpy_masks_times_and_text() -> None:
    domain = Domain(a=Interval(0, 4, step=1))
    masked = np.ma.masked_array([[0.0], [1.0], [2.0]], mask=[[False], [True], [False]])
    assert count(source(masked, domain), [_whole(domain)])[0].counts.tolist() == [1, 0, 1, 0]
    days = Domain(a=Interval("2020-01-01", "2020-01-04"))
    times = np.array([["2020-01-01T23:59"], ["2020-01-03T00:00"], ["NaT"]], "datetime64[s]")
    assert count(source(times, days), [_whole(days)])[0].counts.tolist() == [1, 0, 1]
    words = Domain(a=Categories(["u", "v"]))
    lattice = Lattice((LabelAxis("a", ("u", "v")),))
    assert count(source(np.array([["v"], ["v"], ["w"]]), words), [lattice])[0].counts.tolist() == [
        0,
        2,
    ]


def _whole(domain: Domain) -> Lattice:
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
        cubes.append(made.found(count(source(pa.table({"a": ticks}), domain), [lattice])[0]))
    assert all(cube == cubes[0] for cube in cubes)
    below = pa.table({"a": pa.array([-1], pa.int64()).cast(pa.timestamp("ns"))})
    assert made.found(count(source(below, domain), [lattice])[0]) == {(2 * 86400 * 1000 - 1,): 1}


@pytest.mark.parametrize("unit", ["s", "ms"])
def test_times_beyond_all_bounds_are_clamped_not_wrapped(unit: str) -> None:
    days, times = (
        Domain(a=Interval("2020-01-01", "2020-01-03")),
        Domain(a=Interval("2020-01-01T00:00", "2020-01-03T00:00")),
    )
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


@pytest.mark.parametrize(
    "text",
    [
        "2020-01-01 05:00",
        "2020-01-01T05:00:00Z",
        "2020-01-01T06:00:00.000000+01:00",
        "2020-01-01T05:00:00.123456789",
    ],
)
def test_forms_of_times_in_csv(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"a,b\n{text},1\n,2\n")
    for domain, cell in (
        (Domain(a=Interval("2020-01-01", "2020-01-03")), 0),
        (Domain(a=Interval("2020-01-01T00:00", "2020-01-03T00:00")), 5),
    ):
        lattice = Lattice((grid_axis("a", domain["a"], 2 if cell == 0 else 48),))
        assert made.found(count(source(tmp_path / "t.csv", domain), [lattice])[0]) == {(cell,): 1}


def test_what_csv_takes_for_missing(tmp_path: Path) -> None:
    texts = ["", "NA", "NaN", "null", "NULL", "N/A", "b"]
    (tmp_path / "t.csv").write_text(
        "\ufeffw,x\n" + "".join(f"{text},{'' if text == 'b' else text}\n" for text in texts),
        encoding="utf-8",
    )
    lattice = Lattice((LabelAxis("w", ("b", "else"), True),))
    assert count(source(tmp_path / "t.csv", Domain(w=Categories(["b"], other="else"))), [lattice])[
        0
    ].counts.tolist() == [1, 0]
    lattice = Lattice((LabelAxis("w", ("NA", "b", "else"), True),))
    assert count(
        source(tmp_path / "t.csv", Domain(w=Categories(["NA", "b"], other="else"))), [lattice]
    )[0].counts.tolist() == [1, 1, 0]
    numbers = Domain(x=Interval(0, 1))
    assert (
        count(source(tmp_path / "t.csv", numbers), [Lattice((grid_axis("x", numbers["x"], 2),))])[
            0
        ].total
        == 0
    )


def test_whole_labels_written_with_a_point_in_csv(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("c,b\n1.0,true\n2.0,False\n,\n")
    lattices = [Lattice((LabelAxis("c", (1, 2)),)), Lattice((LabelAxis("b", (True, False)),))]
    cubes = count(
        source(tmp_path / "t.csv", Domain(c=Categories([1, 2]), b=Categories([True, False]))),
        lattices,
    )
    assert [cube.counts.tolist() for cube in cubes] == [[1, 1], [1, 1]]


def test_text_that_is_no_utf8_is_missing(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"w\na\n\xff\xfe\na\n")
    broken = pa.table({"w": pa.array([b"a", b"\xff\xfe", b"a"]).view(pa.string())})
    pq.write_table(broken, tmp_path / "t.parquet")
    axis = Categories(["a"], other="else", missing="unknown")
    lattice = Lattice((LabelAxis("w", axis.all_labels, True, True),))
    for data in (tmp_path / "t.csv", broken, tmp_path / "t.parquet"):
        assert count(source(data, Domain(w=axis)), [lattice])[0].counts.tolist() == [2, 0, 1]


@pytest.mark.parametrize("person", [None, "p"])
def test_no_rows_make_a_zero_cube(person: str | None, tmp_path: Path) -> None:
    empty = made.table([]).append_column("p", pa.array([], pa.string()))
    pq.write_table(empty, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text(",".join([*made.TYPES, "p"]) + "\n")
    for data in (
        empty,
        tmp_path / "t.parquet",
        tmp_path / "t.csv",
        pl.from_arrow(empty),
        empty.to_pandas(),
    ):
        for cube in count(source(data, made.DOMAIN, person=person), made.LATTICES):
            assert cube.total == 0
            assert made.found(cube) == {}


def test_a_column_of_nothing_but_nulls_fits_everything() -> None:
    nothing = pa.table({name: pa.nulls(3) for name in [*made.TYPES, "p"]})
    for person in (None, "p"):
        assert [
            cube.total for cube in count(source(nothing, made.DOMAIN, person=person), made.LATTICES)
        ] == [0] * len(made.LATTICES)


def test_names_with_dots_and_nested_neighbours(tmp_path: Path) -> None:
    nested = pa.table({"a.b": [0.1, 0.9], "a": pa.array([{"b": 0.1}, {"b": 0.1}])})
    pq.write_table(nested, tmp_path / "t.parquet")
    domain = Domain({"a.b": Interval(0, 1)})
    lattice = Lattice((grid_axis("a.b", domain["a.b"], 2),))
    for data in (nested, tmp_path / "t.parquet"):
        assert count(source(data, domain), [lattice])[0].counts.tolist() == [1, 1]


def test_gzipped_csv(tmp_path: Path) -> None:
    import gzip

    (tmp_path / "T.CSV.gz").write_bytes(gzip.compress(b"a\n0.25\n0.75\n0.8\n"))
    domain = Domain(a=Interval(0, 1))
    assert count(
        source(tmp_path / "T.CSV.gz", domain), [Lattice((grid_axis("a", domain["a"], 2),))]
    )[0].counts.tolist() == [1, 2]


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
        assert count(source(frame, domain), [_whole(domain)])[0].counts.tolist() == [0, 1, 0]


def test_line_breaks_in_quotation_marks_across_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.data.readers.csv_rows.WINDOW", 64)
    monkeypatch.setattr("sfumato.data.readers.csv_rows.LONGEST", 32)
    (tmp_path / "t.csv").write_text("w,x\n" + '"a\n\n\nb",0.5\n' * 200)
    domain = Domain(w=Categories(["a\n\n\nb"]))
    assert count(source(tmp_path / "t.csv", domain), [Lattice((LabelAxis("w", ("a\n\n\nb",)),))])[
        0
    ].counts.tolist() == [200]


@pytest.mark.parametrize("dtype", [">f8", "<f8", ">i4", "longdouble", "float16", "uint8"])
def test_numbers_of_every_make_of_numpy(dtype: str) -> None:
    lattice = Lattice((grid_axis("x", Interval(0, 4), 4),))
    rows = np.array([[0.0], [1.0], [1.0], [3.0]]).astype(dtype)
    assert count(source(rows, Domain(x=Interval(0, 4))), [lattice])[0].counts.tolist() == [
        1,
        2,
        0,
        1,
    ]
