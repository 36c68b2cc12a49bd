"""Answers on all cores are compared with peers that count the same cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import cores

ROWS = 3_000


def numbers(answer: Any) -> list[float]:
    """The numbers of a peer's answer, row by row, without their order."""
    rows = answer if isinstance(answer, list) else answer.rows()
    return sorted(round(float(number), 3) for row in rows for number in row[1:])


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_peers_count_the_same(ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_THREADS", "1")
    path = tmp_path / f"t{ending}"
    cores.write(path, ROWS)
    for what in cores.SQL:
        by_duckdb = cores.duckdb(what, str(path))()
        by_polars = cores.polars(what, str(path))()
        if what == "persons, 4 rows":
            # Which rows are kept is each one's own; how many, is not.
            kept = [sum(row[-1] for row in rows) for rows in (by_duckdb, by_polars.rows())]
            assert kept[0] == kept[1] < ROWS
        else:
            assert numbers(by_duckdb) == numbers(by_polars)
        release = cores.ours(what, str(path))()
        cells = {"one label": 5, "mean": 5, "persons counted": 5, "three axes": 1200}
        assert len(release.to_frame()) == cells.get(what, 120)  # type: ignore[attr-defined]


def test_ratios_are_those_to_the_faster_peer() -> None:
    works = {
        cores.OURS: lambda: {"wall s": 3.0, "cpu s": 5.0},
        "duckdb": lambda: {"wall s": 2.0, "cpu s": 4.0},
        "polars": lambda: {"wall s": 4.0, "cpu s": 2.0},
    }
    ours, *others = cores._compared("a count", 9, 2, works, 1)
    assert (ours["threads"], ours["wall s of the best"], ours["cpu s of the best"]) == (2, 1.5, 2.5)
    assert [other["who"] for other in others] == ["duckdb", "polars"]
    assert not any("of the best" in name for other in others for name in other)
