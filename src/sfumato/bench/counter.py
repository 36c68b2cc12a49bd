"""How many durable steps a stream takes per second, beside bare synced appends of one process to a file on the same disk.

Every step is a transaction of its own, on disk before its total is returned. The two take turns in short slices, so that a disk that is
busy for a while slows both. Beside them, the same steps on a ledger in memory: what is left without a disk.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from sfumato.bench.measuring import Chart, Row
from sfumato.errors import InternalError

if TYPE_CHECKING:
    from sfumato.counters.methods import Method
    from sfumato.publishing.publisher import Publisher
    from sfumato.publishing.stream import Stream

SLICE = 0.25  # seconds
WARM = 20
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
    with tempfile.TemporaryDirectory() as place:
        for name, (horizon, method) in CASES.items():
            found += _case(name, horizon, method, place, seconds)
    return found


def _case(name: str, horizon: int | None, method: Method, place: str, seconds: float) -> list[Row]:
    held = [
        _stream(horizon, method, where)
        for where in (os.path.join(place, f"{method}{horizon}.db"), None)
    ]
    handle = os.open(os.path.join(place, "log"), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    sync = getattr(os, "fdatasync", os.fsync)

    def append() -> None:
        os.write(handle, b"x" * 512)
        sync(handle)

    for _, renewed in held:  # libraries and tables are loaded by the first steps
        for _ in range(WARM):
            renewed.push()
    works = {"durable step": held[0][1].push, BARE: append, "step in memory": held[1][1].push}
    times: dict[str, list[float]] = {what: [] for what in works}
    spent = dict.fromkeys(works, 0.0)
    while min(spent.values()) < seconds:
        for what, work in works.items():
            spent[what] += _slice(work, times[what])
    os.close(handle)
    for publisher, _ in held:
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

    from sfumato.counters.question import Counter
    from sfumato.data import source
    from sfumato.domain import Interval
    from sfumato.privacy.measures import ZCDP
    from sfumato.publishing.publisher import Publisher

    src = source(np.empty((0, 1)), {"x": Interval(0, 1)}, name="bench")
    publisher = Publisher(src, ledger=ledger, account="bench", budget=ZCDP(1000))
    counter = Counter(horizon, method=method)
    return publisher, _Renewed(lambda key: publisher.open(counter, rho="0.5", key=key))


class _Renewed:
    """A stream that is followed by another one when its horizon is reached."""

    def __init__(self, open_: Callable[[str], Stream]) -> None:
        self._open, self._number, self._taken, self.stream = open_, 0, 0, open_("0")

    def push(self) -> None:
        if self._taken == self.stream.horizon:
            self._number, self._taken = self._number + 1, 0
            self.stream = self._open(str(self._number))
        self.stream.push(3)
        self._taken += 1


def _slice(work: Callable[[], None], times: list[float]) -> float:
    """Repeat some work for a slice of time; how long it took."""
    began = time.perf_counter()
    while (start := time.perf_counter()) < began + SLICE:
        work()
        times.append(time.perf_counter() - start)
    return time.perf_counter() - began
