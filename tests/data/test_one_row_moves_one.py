"""No row decides how other rows are read, and no object stands for a person by where it lies in memory."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato import testing
from sfumato.data import count
from sfumato.data.guard import guarded
from sfumato.domain import grid_axis
from sfumato.lattice import Lattice

TIMES = sf.Interval("2020-01-01T00:00", "2020-01-02T00:00")
X = sf.Interval(0, 2)
HALVES = Lattice((grid_axis("x", X, 2),))
HUGE = 2**53


def counts(data: object, axis: str, what: Any, bins: Any = None, **unit: Any) -> list[int]:
    """The table's true counts, or near enough."""
    publisher = sf.Publisher(sf.source(data, sf.Domain({axis: what}), **unit), budget=10**6)
    return publisher.release(sf.Histogram(axis, bins=bins), epsilon=10**5).values.tolist()


def objects(values: Sequence[object]) -> pd.DataFrame:
    return pd.DataFrame({"when": pd.Series(values, dtype=object), "x": 1.0})


def test_one_date_among_times_leaves_the_times_as_they_are() -> None:
    hours: list[object] = [dt.datetime(2020, 1, 1, hour) for hour in range(24)]
    date, last = dt.date(2020, 1, 1), pd.Timestamp("2020-01-01T23:00:00.000000001")
    assert counts(objects(hours), "when", TIMES, 4) == [6, 6, 6, 6]
    assert counts(objects([date, *hours]), "when", TIMES, 4) == [7, 6, 6, 6]
    assert counts(objects([*hours, date, None, pd.NaT]), "when", TIMES, 4) == [7, 6, 6, 6]
    assert counts(objects([*hours, last.tz_localize("UTC")]), "when", TIMES, 4) == [6, 6, 6, 7]
    for persons, number in (
        (hours, 24),
        ([date, *hours], 24),
        ([pd.Timestamp(i) for i in range(50)], 50),
        ([date, date, None], 1),
    ):
        assert sum(counts(objects(persons), "x", X, 2, person="when")) == number


@pytest.mark.parametrize("frame", [pl.DataFrame, pl.LazyFrame])
def test_python_objects_of_polars_are_no_ids(frame: Any) -> None:
    one = str(uuid.uuid4())
    data = frame({"p": [uuid.UUID(one) for _ in range(9)], "x": [1.0] * 9})
    with pytest.raises(sf.DataError, match="Python objects"):
        sf.source(data, sf.Domain(x=X), person="p").require([HALVES])


@pytest.mark.parametrize("extra", ["0.5", "1e3", "inf", "99999999999999999999", "7", "nan"])
def test_one_odd_number_in_a_csv_leaves_long_labels_apart(tmp_path: Path, extra: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "\n".join(["code", *[str(HUGE)] * 5, *[f"{HUGE + 1}"] * 4, "9007199254740992.0", extra])
        + "\n"
    )
    assert counts(path, "code", sf.Categories([HUGE, HUGE + 1])) == [6, 4]
    assert counts(path, "code", sf.Categories([HUGE, HUGE + 1], other="rest")) == [
        6,
        4,
        0 if extra == "nan" else 1,
    ]
    path.write_text("code\n1\nx\n")
    assert counts(path, "code", sf.Categories([1, 2], missing="unknown")) == [1, 0, 1]


def test_a_choice_of_rows_from_a_public_seed_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"p": np.repeat(np.arange(200), 2), "x": np.arange(400.0)}), path)
    domain = sf.Domain(
        x=sf.Interval(0, 400, step=1)
    )  # two choices are alike with a chance of 2^-200
    publisher = sf.Publisher(sf.source(path, domain, person="p"), budget=10**7)

    def release(bins: int) -> list[int]:
        return publisher.release(
            sf.Histogram("x", bins=bins), epsilon=10**5, fresh=True
        ).values.tolist()

    with testing.deterministic(7):
        public = release(400)
    first = release(400)
    assert first != public
    assert first == release(400)  # the same rows again, by a secret


def test_a_file_that_changes_while_it_is_read_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"x": [0.5, 1.5]}), path)
    source = sf.source(path, sf.Domain(x=X))
    publisher = sf.Publisher(source, budget=10)

    def meanwhile(*arguments: Any, **more: Any) -> Any:
        pq.write_table(pa.table({"x": [0.5, 1.5, 1.5]}), path)
        return count(*arguments, **more)

    monkeypatch.setattr("sfumato.publishing.counting.count", meanwhile)
    with pytest.raises(sf.DataError, match="changed while it was read"):
        publisher.release(sf.Histogram("x", bins=2), epsilon=1)


def test_types_that_an_engine_read_off_the_values_are_not_printed() -> None:
    for value in ({"John Smith": 1}, [{"John Smith": 1}]):
        with pytest.raises(sf.DataError) as refused:
            sf.source(pa.table({"x": [value]}), sf.Domain(x=X)).require([HALVES])
        assert "John" not in str(refused.value)


def test_an_engine_that_panics_is_not_quoted() -> None:
    class Panic(BaseException):
        pass

    for kind in (Panic, SystemExit, ValueError):
        with pytest.raises(sf.DataError) as refused:
            guarded("t", lambda kind=kind: (_ for _ in ()).throw(kind("secret")))  # type: ignore[misc]
        assert "secret" not in str(refused.value)
        assert refused.value.__context__ is None
    with pytest.raises(KeyboardInterrupt):
        guarded("t", lambda: (_ for _ in ()).throw(KeyboardInterrupt))


def test_times_of_one_day_in_date64_are_one_person() -> None:
    days = pa.array([0, 1, 86_399_999, 86_400_000, -1], pa.int64()).view(pa.date64())
    assert sum(counts(pa.table({"p": days, "x": [1.0] * 5}), "x", X, 2, person="p")) == 3


def test_a_bad_limit_on_memory_is_refused_before_the_charge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SFUMATO_MEMORY", "a lot")
    publisher = sf.Publisher(
        sf.source(pa.table({"p": ["a"], "x": [1.0]}), sf.Domain(x=X), person="p"), budget=1
    )
    with pytest.raises(sf.UsageError, match="SFUMATO_MEMORY"):
        publisher.release(sf.Histogram("x"), epsilon=1)
    assert publisher.remaining == 1


def test_times_beyond_the_range_of_nanoseconds_stay_where_they_are(tmp_path: Path) -> None:
    table = pa.table(
        {
            "when": pa.array(
                [dt.datetime(9999, 12, 31), dt.datetime(2020, 1, 1, 1)], pa.timestamp("us")
            )
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", use_deprecated_int96_timestamps=True)
    assert counts(tmp_path / "t.parquet", "when", TIMES, 2) == [1, 1]
