"""How many durable steps a stream takes per second, beside bare synced appends to a file.

Every step is a transaction of its own, on disk before its total is returned. The file is on the
same disk. Steps and appends take turns in short slices, so that a disk that is busy for a while
slows both. Beside them are the same steps on a ledger in memory, to show the cost without a disk.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks.measuring import Chart, Row
from sfumato.errors import InternalError

if TYPE_CHECKING:
    from sfumato.publishing.publisher import Publisher
    from sfumato.publishing.stream import Stream
    from sfumato.questions.counters.methods import Method

SLICE_SECONDS = 0.25
WARM_UP_STEPS = 20
BARE = "bare synced append"
CHART = Chart("per_second", ("what", "stream"), others=(BARE,))
CASES: dict[str, tuple[int | None, Method]] = {
    "tree, 10^6 steps laid out": (10**6, "tree"),
    "Toeplitz, 1,024 steps laid out": (1_024, "toeplitz"),
    "buffers, 10^6 steps laid out": (10**6, "blt"),
    "any number of steps": (None, "tree"),
}


def rows(quick: bool = False) -> list[Row]:
    """Measure each kind of stream on disk and in memory, and bare appends, in turn."""
    seconds = 0.5 if quick else 4.0
    found: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (horizon, method) in CASES.items():
            found += _case(name, horizon, method, folder, seconds)
    return found


def _case(name: str, horizon: int | None, method: Method, folder: str, seconds: float) -> list[Row]:
    on_disk = _stream(horizon, method, os.path.join(folder, f"{method}{horizon}.db"))
    in_memory = _stream(horizon, method, None)
    handle = os.open(os.path.join(folder, "log"), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    sync = getattr(os, "fdatasync", os.fsync)

    def append() -> None:
        os.write(handle, b"x" * 512)
        sync(handle)

    # The first steps load libraries and tables.
    for _, renewed in (on_disk, in_memory):
        for _ in range(WARM_UP_STEPS):
            renewed.push()
    works = {"durable step": on_disk[1].push, BARE: append, "step in memory": in_memory[1].push}
    times: dict[str, list[float]] = {what: [] for what in works}
    spent = dict.fromkeys(works, 0.0)
    while min(spent.values()) < seconds:
        for what, work in works.items():
            spent[what] += _slice(work, times[what])
    os.close(handle)
    for publisher, _ in (on_disk, in_memory):
        if not publisher.ledger.verify().ok:
            raise InternalError("The ledger of the benchmark does not verify.")
        publisher.close()
    rate = {what: len(times[what]) / spent[what] for what in works}
    return [_row(what, name, rate[what], rate[BARE], sorted(times[what])) for what in works]


def _row(what: str, stream: str, rate: float, bare: float, waits: list[float]) -> Row:
    return {
        "what": what,
        "stream": stream,
        "per_second": rate,
        "of_bare": rate / bare,
        "median_ms": 1000 * waits[len(waits) // 2],
        "p99_ms": 1000 * waits[int(0.99 * len(waits))],
    }


def _stream(horizon: int | None, method: Method, ledger: str | None) -> tuple[Publisher, _Renewed]:
    import numpy as np

    from sfumato.data import source
    from sfumato.domain.domain import Interval
    from sfumato.privacy.measures import ZCDP
    from sfumato.publishing.publisher import Publisher
    from sfumato.questions.counters.question import Counter

    src = source(np.empty((0, 1)), {"x": Interval(0, 1)}, name="bench")
    publisher = Publisher(src, ledger=ledger, account="bench", budget=ZCDP(1000))
    counter = Counter(horizon, method=method)
    return publisher, _Renewed(lambda key: publisher.open(counter, rho="0.5", key=key))


class _Renewed:
    """A stream that is replaced by a new one when its horizon is reached."""

    def __init__(self, open_: Callable[[str], Stream]) -> None:
        self._open = open_
        self._number = 0
        self._taken = 0
        self.stream = open_("0")

    def push(self) -> None:
        """Take one step."""
        if self._taken == self.stream.horizon:
            self._number += 1
            self._taken = 0
            self.stream = self._open(str(self._number))
        self.stream.push(3)
        self._taken += 1


def _slice(work: Callable[[], None], times: list[float]) -> float:
    """Repeat some work for a slice of time, note the time of each, and return the time of all."""
    began = time.perf_counter()
    while (start := time.perf_counter()) < began + SLICE_SECONDS:
        work()
        times.append(time.perf_counter() - start)
    return time.perf_counter() - began
