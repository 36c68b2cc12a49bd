"""A plan that is begun for an axis of dates has bins that a reader can use."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.cli import run
from sfumato.cli.init import date_bins
from sfumato.publishing.plan_file import read_plan


@pytest.mark.parametrize(
    ("lower", "upper", "cells", "first", "last"),
    [
        ("2026-01-01", "2026-04-11", 15, "2026-01-07 and earlier", "2026-04-09 and later"),
        ("2026-01-01", "2027-01-01", 12, "2026-01-31 and earlier", "2026-12-01 and later"),
        ("2026-01-15", "2026-12-10", 12, "2026-01-31 and earlier", "2026-12-01 and later"),
        ("2000-07-01", "2026-07-01", 27, "2000-12-31 and earlier", "2026-01-01 and later"),
    ],
)
def test_many_days_are_weeks_months_or_years(
    lower: str, upper: str, cells: int, first: str, last: str
) -> None:
    axis = sf.Interval(lower, upper, step=1)
    given = tomllib.loads(date_bins(axis))
    (found,) = sf.Histogram("day", **given).needs(sf.Domain(day=axis)).lattice.axes
    names = found.cell_names()
    assert (len(names), names[0], names[-1]) == (cells, first, last)


@pytest.mark.parametrize(
    "axis",
    [
        sf.Interval("2026-01-01", "2026-03-01", step=1),
        sf.Interval("2026-01-01", "2026-12-31", step=7),
        sf.Interval("2026-01-01T00:00", "2027-01-01T00:00"),
        sf.Interval(0, 3000, step=1),
        sf.Interval(0, 1),
        sf.Categories(["a", "b"]),
    ],
    ids=str,
)
def test_other_axes_stay_as_they_are(axis: sf.Interval | sf.Categories) -> None:
    assert date_bins(axis) == ""


def test_a_plan_of_a_year_counts_months(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    day = pa.array([20_500, 20_501], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"day": day}), tmp_path / "t.parquet")
    plan = tmp_path / "plan.toml"
    file = str(tmp_path / "t.parquet")
    assert run(["init", file, "--axis", "day=2026-01-01..2027-01-01/1", "--out", str(plan)]) == 0
    spec = read_plan(plan)
    (question,) = spec.questions
    assert question.needs(sf.Domain(dict(spec.domain))).lattice.shape == (12,)
    assert run(["preview", str(plan)]) == 0
    assert "to each of 12 counts" in capsys.readouterr().out


def test_a_plan_to_fill_in_says_how_days_are_put_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    day = pa.array([20_500], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"day": day}), tmp_path / "t.parquet")
    pq.write_table(pa.table({"n": [1]}), tmp_path / "n.parquet")
    for name, said in (("t", True), ("n", False)):
        assert run(["init", str(tmp_path / f"{name}.parquet")]) == 0
        assert ("# width = 7" in capsys.readouterr().out) == said
