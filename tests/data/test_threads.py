"""Threads share a scan: how many there are, who reads, and what ends all of them."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.basics.processes import MOST_THREADS, thread_limit
from sfumato.data import count, source
from sfumato.data.reader import Columns, Piece, RowReader
from sfumato.data.readers import arrow
from sfumato.data.scan import CHUNK_ROWS, Team, Turns
from sfumato.domain import Lattice, grid_axis
from support.frames import Escaped, escaped
from support.workers import HANG

UNIT = sf.Interval(0, 1)
DOMAIN = sf.Domain(x=UNIT)
HALVES = [Lattice((grid_axis("x", UNIT, 2),))]
CANARY = 0.7654321234
SCHEMA = pa.schema([("x", pa.float64()), ("who", pa.int64())])


def batch(rows: int = 10) -> pa.RecordBatch:
    return pa.record_batch([np.full(rows, CANARY), np.arange(rows)], schema=SCHEMA)


class Pieces(RowReader):
    """A table of pieces, each of which runs what it is given."""

    name = "pieces"

    def __init__(self, *pieces: Piece) -> None:
        self._pieces = pieces

    def names(self) -> list[str]:
        return ["x", "who"]

    def schema(self, columns: Columns) -> pa.Schema:
        return SCHEMA

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        for piece in self._pieces:
            yield from piece()

    def pieces(self, columns: Columns) -> Sequence[Piece]:
        return self._pieces


def publisher(data: Any, folder: Path, **unit: Any) -> sf.Publisher:
    src = sf.source(data, DOMAIN, name="t", **unit)
    return sf.Publisher(src, ledger=folder / "b.db", account="a", budget=9)


@pytest.fixture(autouse=True)
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_THREADS", "3")


# --- how many -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stated", ["0", "-1", "two", "1.5", "1e3", "9" * 99])
def test_no_number_of_threads_is_refused_before_the_charge(
    stated: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_THREADS", stated)
    with publisher(Pieces(lambda: iter([batch()])), tmp_path) as own:
        with pytest.raises(sf.UsageError, match=r"SFUMATO_THREADS=.*number of threads"):
            own.release(sf.Histogram("x", bins=2), epsilon=1)
        assert own.account.spent == (0, 0)


def test_so_many_threads_are_taken_as_are_stated_or_as_there_are_cores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for stated, threads in ((" 2 ", 2), ("007", 7), ("10000", MOST_THREADS)):
        monkeypatch.setenv("SFUMATO_THREADS", stated)
        assert thread_limit() == threads
    for nothing in ("", " "):
        monkeypatch.setenv("SFUMATO_THREADS", nothing)
        assert thread_limit() == min(pa.cpu_count(), MOST_THREADS)


def test_each_thread_reads_a_piece() -> None:
    together = threading.Barrier(3)
    readers: set[int] = set()

    def piece() -> Iterator[pa.RecordBatch]:
        together.wait(HANG)
        readers.add(threading.get_ident())
        yield batch()

    (cube,) = count(source(Pieces(piece, piece, piece), DOMAIN), HALVES)
    assert cube.total == 30
    assert len(readers) == 3
    assert threading.get_ident() in readers


@pytest.mark.parametrize(("threads", "pieces"), [("1", 5), ("3", 1)])
def test_one_thread_or_one_piece_is_the_calling_threads_own(
    threads: str, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that is not safe to call from another thread is called from none."""
    monkeypatch.setenv("SFUMATO_THREADS", threads)
    monkeypatch.setattr(threading.Thread, "start", None)
    readers: set[int] = set()

    def piece() -> Iterator[pa.RecordBatch]:
        readers.add(threading.get_ident())
        yield batch()

    assert count(source(Pieces(*[piece] * pieces), DOMAIN), HALVES)[0].total == 10 * pieces
    assert readers == {threading.get_ident()}


@pytest.mark.parametrize(("cells", "threads"), [(2**12, 1), (2**11, 2), (2**10, 3)])
def test_large_cubes_are_counted_on_fewer_threads(
    cells: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cube for each thread would take too much memory."""
    monkeypatch.setattr("sfumato.data.scan.DENSE_LIMIT", 2**12)
    started: list[int] = []
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda own: (started.append(1), start(own)))
    pieces = [lambda: iter([batch()])] * 3
    count(source(Pieces(*pieces), DOMAIN), [Lattice((grid_axis("x", UNIT, cells),))])
    assert len(started) == threads - 1


def test_progress_counts_the_rows_of_all_threads_and_is_told_by_the_calling_one() -> None:
    told: list[int] = []
    tellers: set[int] = set()

    def tell(done: int, total: int | None) -> None:
        told.append(done)
        tellers.add(threading.get_ident())

    pieces = [lambda: iter([batch(CHUNK_ROWS + 1)])] * 9
    count(source(Pieces(*pieces), DOMAIN), HALVES, tell)
    assert told == sorted(set(told))
    assert told[-1] == 9 * (CHUNK_ROWS + 1)
    assert tellers == {threading.get_ident()}


# --- errors ---------------------------------------------------------------------------------------


def failing(error: BaseException, *, elsewhere: bool) -> tuple[RowReader, list[str]]:
    """A table of which the calling thread, or another one, fails, while the others go on."""
    calling = threading.get_ident()
    ended: list[str] = []
    failed = threading.Event()
    together = threading.Barrier(3)
    turn = threading.Lock()  # of the one that fails

    def piece() -> Iterator[pa.RecordBatch]:
        together.wait(HANG)
        is_calling = threading.get_ident() == calling
        if is_calling != elsewhere and turn.acquire(blocking=False):
            failed.set()
            raise error
        assert failed.wait(HANG)
        try:
            while True:
                yield batch()
                time.sleep(0.001)
        finally:
            ended.append("ended")

    return Pieces(*[piece] * 3), ended


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (ValueError(f"cannot read {CANARY}"), sf.DataError),
        (sf.DataError("t", "it is damaged", "Mend it"), sf.DataError),
        (MemoryError(f"for {CANARY}"), sf.DataError),
        (SystemExit(CANARY), sf.DataError),
    ],
)
def test_an_error_in_any_thread_ends_all_and_shows_no_row(
    error: BaseException, seen: type[BaseException], elsewhere: bool, tmp_path: Path
) -> None:
    reader, ended = failing(error, elsewhere=elsewhere)
    own = publisher(reader, tmp_path)
    before = threading.active_count()
    escape: Escaped = escaped(partial(own.release, sf.Histogram("x", bins=2), epsilon=1))
    assert threading.active_count() == before
    assert len(ended) == 2
    assert isinstance(escape.errors[0], seen)
    assert not escape.seen({str(CANARY)})
    assert len(escape.frames) <= len(escape.errors) == 1
    own.close()


def test_the_first_error_is_the_one_that_is_raised() -> None:
    team = Team()
    first = threading.Event()

    def early() -> None:
        try:
            raise KeyError("first")
        finally:
            first.set()

    def late() -> None:
        assert first.wait(HANG)
        while not team.is_ending:
            time.sleep(0.001)
        raise ValueError("second")

    with pytest.raises(KeyError, match="first"):
        team.work([late, early, late])
    assert team.is_ending


def test_an_error_while_pieces_are_asked_for_is_guarded() -> None:
    class Cut(Pieces):
        def pieces(self, columns: Columns) -> Any:
            yield from [lambda: iter([batch()])] * 4
            raise ValueError(CANARY)

    with pytest.raises(sf.DataError, match="pieces: it cannot be read"):
        count(source(Cut(), DOMAIN), HALVES)


def test_turns_are_taken_one_at_a_time() -> None:
    inside: list[int] = []

    def given() -> Iterator[int]:
        for number in range(300):
            inside.append(1)
            assert len(inside) == 1
            time.sleep(0)
            inside.pop()
            yield number

    turns = Turns(given())
    taken: list[list[int]] = [[], [], []]
    Team().work([partial(lambda own: own.extend(turns), own) for own in taken])
    assert sorted(number for own in taken for number in own) == list(range(300))


# --- interrupts, and what is left -----------------------------------------------------------------


def endless() -> Iterator[pa.RecordBatch]:
    while True:
        yield batch()
        time.sleep(0.001)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("waiting", [False, True])
def test_an_interrupt_ends_all_threads(
    number: signal.Signals, waiting: bool, tmp_path: Path
) -> None:
    """Whether the main thread counts, or waits for the others."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    started = threading.Event()
    main = threading.get_ident()

    def piece() -> Iterator[pa.RecordBatch]:
        started.set()
        return iter([]) if waiting and threading.get_ident() == main else endless()

    def send() -> None:
        assert started.wait(HANG)
        time.sleep(0.1)
        os.kill(os.getpid(), number)

    before = threading.active_count()
    handler = signal.signal(number, stop)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        own = publisher(Pieces(*[piece] * 9), tmp_path, person="who")
        with pytest.raises(KeyboardInterrupt):
            own.release(sf.Histogram("x", bins=2), epsilon=1)
        own.close()
    finally:
        sender.join()
        signal.signal(number, handler)
    assert threading.active_count() == before


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are listed by Linux")
@pytest.mark.parametrize("fails", [False, True])
def test_temporary_files_are_closed_however_a_scan_ends(
    fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_MEMORY", "20K")
    opened: list[Any] = []
    make = tempfile.TemporaryFile

    def made(**how: Any) -> Any:
        opened.append(make(**how))
        return opened[-1]

    monkeypatch.setattr(tempfile, "TemporaryFile", made)

    def last() -> Iterator[pa.RecordBatch]:
        yield batch(20_000)
        if fails:
            raise ValueError(CANARY)

    pieces = [lambda: iter([batch(20_000)])] * 7 + [last]
    src = source(Pieces(*pieces), DOMAIN, person="who", rows_per_person=3)
    act: Callable[[], Any] = partial(count, src, HALVES)
    if fails:
        with pytest.raises(sf.DataError):
            act()
    else:
        assert act()[0].total == 3 * 20_000
    assert len(opened) >= 1
    assert all(file.closed for file in opened)


# --- files ----------------------------------------------------------------------------------------


def test_pieces_of_parquet_are_row_groups_with_enough_rows_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.Table.from_batches([batch(100)])
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=10)
    reader = arrow.ParquetFile(tmp_path / "t.parquet", "t")
    for enough, pieces in ((1, 10), (10, 10), (11, 5), (30, 4), (99, 1), (1000, 1)):
        monkeypatch.setattr(arrow, "PIECE_ROWS", enough)
        parts = list(reader.pieces({"who": None}))
        assert len(parts) == pieces
        found = [who for part in parts for each in part() for who in each["who"].to_pylist()]
        assert found == list(range(100))


def test_a_file_cut_off_while_it_is_read_is_refused_without_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow, "PIECE_ROWS", 1)
    path = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_batches([batch(10**5)]), path, row_group_size=10**4)

    read = arrow.ParquetFile._batches_of
    pieces: list[object] = []

    def cut(*given: Any) -> Iterator[pa.RecordBatch]:
        pieces.append(given)
        if len(pieces) == 4:
            os.truncate(path, 100)
        return read(*given)

    monkeypatch.setattr(arrow.ParquetFile, "_batches_of", cut)
    with pytest.raises(sf.DataError, match=r"t\.parquet"):
        count(source(path, DOMAIN), HALVES)
