"""Red team: nothing unpaid is reachable, and keys keep their word.

The attacks look at releases, at an engine's failure and at the ledger's bytes.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.publishing.answering import release_hashes
from sfumato.testing import deterministic

CANARY = "zebracanary77"
DOMAIN = {"x": sf.Interval(0, 10)}
QUESTION = sf.Histogram("x", bins=2)


def reachable(thing: object, depth: int = 8) -> Iterator[object]:
    seen, waiting = set(), [(thing, 0)]
    while waiting:
        one, at = waiting.pop()
        if (
            id(one) in seen
            or at > depth
            or isinstance(one, type)
            or callable(one)
            or type(one).__name__ == "module"
        ):
            continue
        seen.add(id(one))
        yield one
        waiting += [(other, at + 1) for other in gc.get_referents(one)]


@pytest.mark.parametrize("question", [QUESTION, sf.UniformPartitioner()])
def test_no_cube_and_no_data_can_be_reached_from_a_release(question: Any) -> None:
    src = sf.source(pd.DataFrame({"x": [3.0] * 77_777}), DOMAIN)
    with sf.Publisher(src, budget=1) as publisher:
        release = publisher.release(question, epsilon="0.01")
    found = list(reachable(release))
    assert not {
        "Cube",
        "Source",
        "Publisher",
        "DataFrame",
        "Table",
        "Book",
        "SQLiteStore",
        "Database",
    } & {type(one).__name__ for one in found}
    assert not any(isinstance(one, int) and one == 77_777 for one in found)


class BadStream:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise ValueError(CANARY)


def broken_reader() -> pa.RecordBatchReader:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"x": [1.0]})
        raise ValueError(CANARY)

    return pa.RecordBatchReader.from_batches(pa.schema([("x", pa.float64())]), batches())


FAILURES: list[Callable[[], object]] = [BadStream, broken_reader]


@pytest.mark.parametrize("make", FAILURES)
def test_engines_fail_without_quoting(make: Callable[[], object]) -> None:
    with (
        sf.Publisher(sf.source(make(), DOMAIN), budget=1) as publisher,
        pytest.raises(sf.DataError) as caught,
    ):
        publisher.release(QUESTION, epsilon=1)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert CANARY not in f"{error!r} {error} {error.args} {getattr(error, '__notes__', '')}"


def test_an_object_that_is_no_number_is_a_missing_value() -> None:
    """Whether it is refused would tell that somebody has it."""
    frame = pd.DataFrame({"x": [1, CANARY]})
    with sf.Publisher(sf.source(frame, DOMAIN), budget=1) as publisher:
        assert publisher.release(QUESTION, epsilon=1).values.shape


def test_nothing_true_rests_in_the_ledger(tmp_path: Path) -> None:
    src = sf.source(pd.DataFrame({"x": [3.0] * 77_777 + [7.0] * 3, "k": [CANARY] * 77_780}), DOMAIN)
    with sf.Publisher(src, ledger=tmp_path / "b.db", budget=1) as publisher:
        publisher.release(QUESTION, epsilon="0.001")
    rest = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert not any(fact in rest for fact in (CANARY.encode(), b"77777", b"77780"))


def test_a_key_press_in_the_scan_keeps_the_charge_and_publishes_nothing(tmp_path: Path) -> None:
    def stop(done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    publisher = sf.Publisher(
        sf.source(np.ones((10, 1)), DOMAIN), ledger=tmp_path / "b.db", budget=2
    )
    with publisher:
        for _ in range(4):  # the charge, and its resumptions: each would draw the same
            with pytest.raises(KeyboardInterrupt):
                publisher.release(QUESTION, epsilon=1, progress=stop)
            assert publisher.remaining == 1
        assert "store" not in {entry.kind for entry in publisher.ledger.log()}
        publisher.release(QUESTION, epsilon=1)
        assert publisher.remaining == 1
        assert publisher.ledger.verify().ok


def test_a_file_that_changes_between_label_and_scan_gets_no_second_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "m.parquet"
    pq.write_table(pa.table({"x": [1.0] * 50}), file)
    publisher = sf.Publisher(sf.source(file, DOMAIN), budget=2)

    def late(*order: Any) -> list[str]:
        found = release_hashes(*order)
        pq.write_table(pa.table({"x": [9.0] * 50}), file)
        os.utime(file, ns=(time.time_ns(), time.time_ns() + 10**9))
        return found

    monkeypatch.setattr("sfumato.publishing.publisher.release_hashes", late)
    with pytest.raises(sf.DataError, match="changed"):
        publisher.release(QUESTION, epsilon=1, key="k")
    monkeypatch.undo()
    with pytest.raises(sf.UsageError):
        publisher.release(QUESTION, epsilon=1, key="k")
    assert publisher.remaining == 1


def test_noise_from_a_seed_is_never_replayed_as_private() -> None:
    publisher = sf.Publisher(sf.source(np.ones((10, 1)), DOMAIN), budget=9)
    with deterministic(1):
        assert not publisher.release(QUESTION, epsilon=1).guarantee.private
        publisher.release(QUESTION, epsilon=2, key="k")
    assert publisher.release(QUESTION, epsilon=1).guarantee.private
    with pytest.raises(sf.UsageError):
        publisher.release(QUESTION, epsilon=2, key="k")
