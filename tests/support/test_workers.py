"""Workers die where they are told to, and a worker that does not is noticed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from support.workers import (
    AfterStatement,
    AtByte,
    Fate,
    SoonAfter,
    Worker,
    all_end_well,
    statements,
    storm,
)


def count(path: Path, numbers: int) -> None:
    """Insert the next numbers, a transaction each."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=600)) as db:
        for _ in range(numbers):
            db.execute("INSERT INTO numbers SELECT count(*) FROM numbers")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "n.db")) as db:
        db.execute("CREATE TABLE numbers (n)")
    return tmp_path / "n.db"


def counted(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return int(db.execute("SELECT count(*) FROM numbers").fetchone()[0])


def test_a_worker_dies_after_its_statement_and_not_before(path: Path) -> None:
    for place in (1, 2, 17):
        before = counted(path)
        Worker(partial(count, path, 100), AfterStatement(place)).join()
        assert counted(path) == before + place


def test_a_worker_may_go_on_a_little_until_its_parent_kills_it(path: Path) -> None:
    Worker(partial(count, path, 100), SoonAfter(20)).join()
    assert 20 <= counted(path) <= 20 + 12


def test_a_worker_dies_in_the_middle_of_a_write(tmp_path: Path) -> None:
    file = tmp_path / "bytes"
    file.write_bytes(b"-" * 5)
    Worker(partial(_append, file), AtByte(file, 12)).join()
    assert file.read_bytes() == b"-" * 5 + b"+" * 12


def test_a_worker_whose_file_does_not_grow_dies_at_its_latest_statement(path: Path) -> None:
    Worker(partial(count, path, 100), AtByte(path, 10**9, 7)).join()
    assert counted(path) == 7


def _append(file: Path) -> None:
    with file.open("ab", buffering=0) as out:
        for _ in range(9):
            out.write(b"+" * 10)


@pytest.mark.parametrize("fate", [AfterStatement(9), SoonAfter(9), AtByte(Path("none"), 10**6)])
def test_a_worker_that_comes_to_its_end_instead_is_noticed(path: Path, fate: Fate) -> None:
    with pytest.raises(AssertionError, match="ended by 3"):
        Worker(partial(count, path, 3), fate).join()


@pytest.mark.parametrize("fate", [None, AfterStatement(9), SoonAfter(9), AtByte(Path("none"), 10)])
def test_an_error_of_a_worker_is_noticed(
    fate: Fate | None, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError, match="ended by 1"):
        Worker(lambda: 1 // 0, fate).join()
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_a_storm_counts_its_deaths_and_ends_well(path: Path) -> None:
    fates: list[list[Fate]] = [[AfterStatement(2), SoonAfter(5)], []]
    assert storm([partial(count, path, 100), partial(count, path, 10)], fates) == 2
    assert 100 + 10 + 2 + 5 <= counted(path) <= 100 + 10 + 2 + 5 + 12


def test_statements_that_were_refused_do_not_count(path: Path) -> None:
    def refused() -> None:
        with closing(sqlite3.connect(path)) as db:
            db.execute("SELECT 1")
            with pytest.raises(sqlite3.OperationalError):
                db.execute("SELECT nothing")

    assert statements(refused) == 1
    all_end_well([refused, refused])
