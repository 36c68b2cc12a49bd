"""How many durable charges a ledger takes per second, beside bare synced appends to a file.

Every charge is a transaction of its own, on disk before the next one begins. The bare append shows
the limit of the disk: one process at a time writes 512 bytes and syncs, without a database.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier

from sfumato.bench.measuring import Chart, Row
from sfumato.errors import InternalError
from sfumato.ledger import open_ledger

CHART = Chart("per_second", ("what", "processes"), others=("bare synced append",))
PROCESSES = (1, 4, 16)
COST = (1, 0)


def charge(path: str, seconds: float, barrier: Barrier, results: Queue[list[float]]) -> None:
    """Reserve under new keys until the time is over."""
    waits: list[float] = []
    with open_ledger(path) as ledger:
        barrier.wait()
        end = time.perf_counter() + seconds
        while (start := time.perf_counter()) < end:
            ledger.reserve("bench", f"{os.getpid()}-{len(waits)}", "0" * 64, COST, "benchmark")
            waits.append(time.perf_counter() - start)
    results.put(waits)


def append(path: str, seconds: float, barrier: Barrier, results: Queue[list[float]]) -> None:
    """Append under a lock and sync until the time is over."""
    sync = getattr(os, "fdatasync", os.fsync)
    waits: list[float] = []
    handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    barrier.wait()
    end = time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        fcntl.flock(handle, fcntl.LOCK_EX)
        os.write(handle, b"x" * 512)
        sync(handle)
        fcntl.flock(handle, fcntl.LOCK_UN)
        waits.append(time.perf_counter() - start)
    os.close(handle)
    results.put(waits)


def measure(
    name: str,
    worker: Callable[[str, float, Barrier, Queue[list[float]]], None],
    path: str,
    processes: int,
    seconds: float,
) -> Row:
    """Run one worker in several processes that start together."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(processes)
    results = context.Queue()
    workers = [
        context.Process(target=worker, args=(path, seconds, barrier, results))
        for _ in range(processes)
    ]
    for process in workers:
        process.start()
    shares = [results.get() for _ in workers]
    for process in workers:
        process.join()
    waits = sorted(wait for share in shares for wait in share)
    return {
        "what": name,
        "processes": processes,
        "per_second": len(waits) / seconds,
        "fewest": min(len(share) for share in shares) / seconds,
        "most": max(len(share) for share in shares) / seconds,
        "median_ms": 1000 * waits[len(waits) // 2],
        "p99_ms": 1000 * waits[int(0.99 * len(waits))],
        "worst_ms": 1000 * waits[-1],
    }


def rows(quick: bool = False) -> list[Row]:
    """Measure charges and bare appends in turn, and verify every ledger that was filled."""
    seconds = 0.5 if quick else 3.0
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for processes in PROCESSES:
            path = os.path.join(folder, f"{processes}.db")
            with open_ledger(path) as ledger:
                ledger.open_account("bench", "pure", (10**18, 0))
            found.append(measure("durable charge", charge, path, processes, seconds))
            _verify(path)
            log = os.path.join(folder, f"{processes}.log")
            found.append(measure("bare synced append", append, log, processes, seconds))
    return found


def _verify(path: str) -> None:
    with open_ledger(path) as ledger:
        checked = ledger.verify()
        # Every entry but the opening one is a charge of one unit.
        if not checked.ok or checked.entries - 1 != ledger.account("bench").spent[0]:
            raise InternalError(f"The ledger does not verify: {checked.fault}")
