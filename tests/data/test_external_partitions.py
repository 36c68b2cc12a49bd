"""Bounding beyond memory keeps the same rows, and leaves no file, however the scan ends."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from data import random_tables
from data.row_choice import bounded
from sfumato.answers.counts import Needs
from sfumato.data import count, source
from sfumato.data.bounding import KEY_BYTES, Bounder
from sfumato.data.person_records import (
    DEFAULT_MEMORY,
    N_PARTITIONS,
    ExternalPartitions,
    JoinedPartitions,
    RowRecords,
    memory_limit,
)
from sfumato.data.priorities import KeyedHash, PersonRows
from sfumato.data.scan import CHUNK_ROWS
from sfumato.domain.domain import Domain, Interval, grid_axis
from sfumato.domain.lattice import Lattice
from sfumato.errors import DataError, UsageError
from support.workers import HANG

TWO = sf.Interval(0, 2)


def test_a_bad_limit_on_memory_is_refused_before_the_charge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SFUMATO_MEMORY", "a lot")
    publisher = sf.Publisher(
        sf.source(pa.table({"p": ["a"], "x": [1.0]}), sf.Domain(x=TWO), person="p"), budget=1
    )
    with pytest.raises(sf.UsageError, match="SFUMATO_MEMORY"):
        publisher.release(sf.Histogram("x"), epsilon=1)
    assert publisher.remaining == 1


DOMAIN = Domain(x=Interval(0, 1000, step=1), y=Interval(0, 1))


FINE = Lattice((grid_axis("x", DOMAIN["x"], 1000),))


OTHER = Lattice((grid_axis("y", DOMAIN["y"], 4),))


WIDE = Lattice((grid_axis("x", DOMAIN["x"], 2**40), grid_axis("y", DOMAIN["y"], 2**40)))


LATTICES = [FINE, OTHER, WIDE]


KEY = bytes(range(KEY_BYTES))


SMALL = "20K"


def _frame(rows: int, seed: int = 0) -> pa.Table:
    draw = np.random.default_rng(seed)
    x = draw.integers(0, 1000, rows).astype(object)
    person = draw.zipf(1.3, rows).clip(max=10**6).astype(object)
    x[draw.random(rows) < 0.1] = None
    person[draw.random(rows) < 0.1] = None
    return pa.table(
        {"x": pa.array(x, pa.int32()), "y": draw.random(rows), "p": pa.array(person, pa.int64())}
    )


FRAME = _frame(8_000)


def _cubes(data: object, r: int = 2) -> list[dict[tuple[int, ...], int]]:
    return [
        random_tables.found(cube)
        for cube in count(source(data, DOMAIN, person="p", rows_per_person=r), LATTICES, key=KEY)
    ]


@pytest.fixture(scope="module", params=[1, 3, 10_000])
def in_plain_python(request: pytest.FixtureRequest) -> tuple[int, list[dict[Any, int]]]:
    """A limit, and the rows of least priority of each person, chosen in the simplest way."""
    return request.param, bounded(FRAME.to_pylist(), LATTICES, KEY, request.param, "p")


@pytest.mark.parametrize("allowed", ["1", SMALL, "120K", "1G"])
def test_the_rows_kept_are_those_of_plain_python(
    allowed: str, in_plain_python: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_MEMORY", allowed)
    r, wanted = in_plain_python
    assert _cubes(FRAME, r) == wanted


@pytest.mark.parametrize("limit", [1, 5000, 2**20])
@pytest.mark.parametrize("is_read_whole", [False, True])
def test_records_come_back_whole_when_their_first_fields_need_all_bits_later_on(
    limit: int, is_read_whole: bool
) -> None:
    draw = np.random.default_rng(7)
    n_rows = 3000
    words = draw.integers(0, 2**32, n_rows, np.uint64) << np.uint64(32)
    words[n_rows // 3 :: 7] += np.uint64(1)  # from the second of three batches on
    numbers = np.arange(n_rows, dtype=np.int32)
    partitions = (words >> np.uint64(58)).astype(np.uint8)
    held = ExternalPartitions(limit, lambda records: [field[::-1] for field in records])
    try:
        for start in range(0, n_rows, n_rows // 3):
            part = slice(start, start + n_rows // 3)
            held.add(partitions[part], [words[part], numbers[part]])
        for partition in range(N_PARTITIONS):
            here = partitions == partition
            assert held.n_bytes(partition) == 12 * np.count_nonzero(here)
            if is_read_whole:
                pieces = [JoinedPartitions([held]).whole(partition)]
            else:
                pieces = [[field.copy() for field in piece] for piece in held.read(partition, 100)]
            found = [pair for piece in pieces for pair in zip(*map(list, piece), strict=True)]
            assert sorted(found) == sorted(zip(words[here], numbers[here], strict=True))
    finally:
        held.close()


@pytest.mark.parametrize("allowed", ["1", SMALL, "1G"])
def test_the_rows_kept_do_not_depend_on_when_large_ids_come(
    allowed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_MEMORY", allowed)
    monkeypatch.setattr("sfumato.data.scan.CHUNK_ROWS", 4096)
    large = pc.if_else(pc.greater(FRAME["p"], 2), pc.add(FRAME["p"], 2**32), FRAME["p"])
    frame = FRAME.set_column(2, "p", large)
    small_first = frame.take(pc.sort_indices(frame, [("p", "ascending")]))
    wanted = bounded(frame.to_pylist(), LATTICES, KEY, 2, "p")
    assert _cubes(small_first) == wanted
    assert _cubes(frame) == wanted


@pytest.mark.parametrize("ids", [pa.string(), pa.decimal128(12, 0), pa.float64(), pa.date32()])
@pytest.mark.parametrize("chunk", [1000, 4096, CHUNK_ROWS])
def test_neither_batches_nor_the_type_of_ids_change_what_is_kept(
    ids: Any, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = FRAME.set_column(2, "p", FRAME["p"].cast(pa.int32()).cast(ids))
    midnights = pa.timestamp("us")  # a date is its midnight, whatever the unit
    expected = _cubes(
        frame.set_column(2, "p", frame["p"].cast(midnights)) if ids == pa.date32() else FRAME
    )
    monkeypatch.setattr("sfumato.data.scan.CHUNK_ROWS", chunk)
    assert _cubes(frame) == expected
    monkeypatch.setenv("SFUMATO_MEMORY", SMALL)
    assert (
        _cubes(pa.concat_tables([frame.slice(0, 1), frame.slice(1, 3600), frame.slice(3601)]))
        == expected
    )


@pytest.mark.parametrize("alike", [True, False])
def test_one_person_with_all_rows_takes_no_more_memory(
    alike: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither tokens nor, if all rows are alike, priorities can split them."""
    rows = 200_000
    x = np.arange(rows) % 1000
    frame = pa.table(
        {
            "x": np.zeros(rows, np.int64) if alike else x,
            "y": np.zeros(rows) if alike else x / 1000,
            "p": np.zeros(rows, np.int64),
        }
    )
    expected = _cubes(frame, 3)
    held = []
    plain = RowRecords._in_order
    monkeypatch.setattr(
        RowRecords,
        "_in_order",
        lambda self, records, splits: (held.append(len(records[0])), plain(self, records, splits))[
            1
        ],
    )
    monkeypatch.setenv("SFUMATO_MEMORY", "300K")
    assert _cubes(frame, 3) == expected
    assert [sum(cube.values()) for cube in expected] == [3, 3, 3]
    assert max(held) < rows / 20


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("SFUMATO_MEMORY", SMALL)
    return tmp_path / "temporary"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[IO[bytes]]:
    files: list[IO[bytes]] = []
    plain = tempfile.TemporaryFile
    monkeypatch.setattr(
        tempfile, "TemporaryFile", lambda **kwargs: files.append(plain(**kwargs)) or files[-1]
    )
    return files


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are of another kind")
def test_files_are_the_owners_and_have_no_name(
    place: Path, opened: list[IO[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[os.stat_result] = []
    plain = ExternalPartitions.close

    def close(self: ExternalPartitions) -> None:
        looked.extend(os.fstat(file.fileno()) for file in opened if not file.closed)
        assert list(place.iterdir()) == []
        plain(self)

    monkeypatch.setattr(ExternalPartitions, "close", close)
    _cubes(FRAME)
    assert {stat.S_IMODE(found.st_mode) for found in looked} == {0o600}
    assert {found.st_nlink for found in looked} == {0}
    assert {found.st_dev for found in looked} == {place.stat().st_dev}
    assert all(file.closed for file in opened)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError, SystemExit])
@pytest.mark.parametrize("where", ["reading", "counting"])
def test_files_are_closed_whatever_happens(
    place: Path,
    opened: list[IO[bytes]],
    error: type[BaseException],
    where: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stop(*_: object) -> None:
        if opened:
            raise error

    progress = stop if where == "reading" else None
    if where == "counting":
        monkeypatch.setattr("sfumato.data.packed_counts.DenseCounts.add", stop)
    src = source(pa.concat_tables([FRAME] * 4), DOMAIN, person="p", rows_per_person=2)
    # An error in counting might quote a row, and is told in words of our own.
    told = DataError if where == "counting" and error is not KeyboardInterrupt else error
    with pytest.raises(told):
        count(src, LATTICES, progress)
    assert opened
    assert all(file.closed for file in opened)
    assert list(place.iterdir()) == []


SCAN = """
import signal, sys
# The background jobs of a shell ignore SIGINT when they begin.
signal.signal(signal.SIGINT, signal.default_int_handler)
import pyarrow as pa, numpy as np
from sfumato.data import count, source
from sfumato.data.person_records import ExternalPartitions
from sfumato.domain.domain import Domain, Interval, grid_axis
from sfumato.domain.lattice import Lattice
domain = Domain(x=Interval(0, 1))
frame = pa.table({"x": np.random.default_rng(0).random(400_000), "p": np.arange(400_000)})
plain = ExternalPartitions._flush
def shout(self, target):
    plain(self, target)
    print("flushed", flush=True)
    if sys.stdin.readline() == "":  # until the parent has answered, or is gone
        sys.exit(3)
ExternalPartitions._flush = shout
while True:
    count(source(frame, domain, person="p"), [Lattice((grid_axis("x", domain["x"], 10),))])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of another kind")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGKILL"])
def test_nothing_is_left_after_a_signal(name: str, place: Path) -> None:
    """One that comes when there are five files, and it waits to go on."""
    environment = {**os.environ, "TMPDIR": str(place), "SFUMATO_MEMORY": "1M"}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, "-c", SCAN], env=environment, **pipes) as process:  # type: ignore[call-overload]
        for last in (False, False, False, False, True):
            assert process.stdout.readline() == b"flushed\n"
            if not last:
                process.stdin.write(b"go on\n")
                process.stdin.flush()
        process.send_signal(signal.Signals[name])
        process.wait(HANG)
    assert process.returncode not in (0, 3)
    assert list(place.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_MEMORY", SMALL)
    monkeypatch.setattr(
        tempfile,
        "TemporaryFile",
        lambda **_: open("/dev/full", "r+b", buffering=0),  # noqa: SIM115
    )
    with pytest.raises(DataError) as caught:
        _cubes(FRAME)
    assert os.strerror(errno.ENOSPC) in caught.value.obstacle
    assert "TMPDIR" in caught.value.remedy
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", DEFAULT_MEMORY),
        ("4096", 4096),
        ("256M", 2**28),
        ("2g", 2**31),
        ("1 KiB", 1024),
        ("3MB", 3 * 2**20),
    ],
)
def test_amounts_of_memory_are_read_with_their_units(
    text: str, wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SFUMATO_MEMORY", text)
    assert memory_limit() == wanted


@pytest.mark.parametrize("text", ["much", "-1", "1.5G", "1T"])
def test_a_wrong_amount_of_memory_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_MEMORY", text)
    with pytest.raises(UsageError, match="256M"):
        memory_limit()


BATCHES = st.lists(
    st.lists(st.tuples(st.integers(0, N_PARTITIONS - 1), st.integers(0, 2**40)), max_size=50),
    max_size=12,
)


@given(BATCHES, st.sampled_from([1, 100, 1000, 10**6]), st.integers(1, 200))
def test_each_partition_gives_back_what_was_put_in(
    batches: list[list[tuple[int, int]]], limit: int, block: int
) -> None:
    parts = ExternalPartitions(limit)
    wanted = Counter(pair for batch in batches for pair in batch)
    for batch in batches:
        values = np.array([value for _, value in batch], np.int64)
        parts.add(np.array([part for part, _ in batch], np.uint8), [values, values.astype(float)])
    parts.settle()
    found: Counter[tuple[int, int]] = Counter()
    for part in range(N_PARTITIONS):
        size = parts.n_bytes(part)
        several = list(parts.read(part, block))
        assert sum(field.nbytes for records in several for field in records) == size
        for values, as_doubles in several:
            assert values.tolist() == as_doubles.tolist()
            found.update((part, value) for value in values.tolist())
    parts.close()
    assert found == wanted


MEASURE = """
import sys
from pathlib import Path
from sfumato.data import count, source
from sfumato.domain.domain import Domain, Interval, grid_axis
from sfumato.domain.lattice import Lattice
domain = Domain(x=Interval(0, 1))
lattice = Lattice((grid_axis("x", domain["x"], 64),))
for path in sys.argv[1:]:
    assert count(source(path, domain, person="p", rows_per_person=4), [lattice])[0].total > 0
    print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_memory_does_not_grow_with_the_persons(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    paths = []
    for rows in (2**19, 2**22):  # both are read by two threads
        paths.append(str(tmp_path / f"{rows}.parquet"))
        pq.write_table(
            pa.table({"x": draw.random(rows), "p": draw.integers(0, rows, rows)}),
            paths[-1],
            row_group_size=2**17,
        )
    words = [sys.executable, "-c", MEASURE, *paths]
    output = subprocess.run(
        words,
        env={**os.environ, "SFUMATO_MEMORY": "4M", "SFUMATO_THREADS": "2"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    first, second = (int(line) / 1024 for line in output.split())
    assert second - first < 40  # MB; the records of all rows are 64 MB


def test_a_bounder_without_rows_gives_nothing() -> None:
    bounder = Bounder(KEY, 1, [Needs(LATTICES[0], 1)])
    none = np.zeros(0, np.uint64)
    nobody = PersonRows([none], [none], [none], {}, KeyedHash(KEY, "rows"))
    bounder.add(nobody, dict.fromkeys(LATTICES[0].axes, np.zeros(0, np.int64)))
    assert list(bounder.of_persons()) == []
    bounder.close()
