"""How many charges and complete spends a ledger takes per second, in a file and on a server.

Every charge is a transaction of its own, on disk before the next one begins. A complete spend
charges, stores an answer and hands it over. The bare append shows the limit of the disk: one
process at a time writes 512 bytes and syncs, without a database. The bare insert shows that of the
server: one connection adds one row with each commit.

Which server that is, says ``server.py``; where there is none, there are no rows of a server.
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
from typing import TypeAlias

from benchmarks.measuring import Chart, Row
from benchmarks.server import measured_server
from sfumato.errors import InternalError
from sfumato.ledger import Book, open_ledger

BARE_INSERT = "bare durable insert, PostgreSQL"
CHART = Chart("per_second", ("what", "processes"), others=("bare synced append", BARE_INSERT))
PROCESSES = (1, 4, 16)
COST = (1, 0)
ANSWER = bytes(512)

Worker: TypeAlias = Callable[[str, float, "Barrier", "Queue[list[float]]"], None]


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


def spend(path: str, seconds: float, barrier: Barrier, results: Queue[list[float]]) -> None:
    """Charge, store an answer and hand it over, under new keys until the time is over."""
    waits: list[float] = []
    with open_ledger(path) as ledger:
        _spend_once(ledger, "first")
        barrier.wait()
        end = time.perf_counter() + seconds
        while (start := time.perf_counter()) < end:
            _spend_once(ledger, str(len(waits)))
            waits.append(time.perf_counter() - start)
    results.put(waits)


def _spend_once(ledger: Book, number: str) -> None:
    key = f"{os.getpid()}-{number}"
    with ledger.reserve("bench", key, f"question {key}", COST, "benchmark") as hold:
        hold.store(ANSWER)


def insert(path: str, seconds: float, barrier: Barrier, results: Queue[list[float]]) -> None:
    """Add one row with each commit, over one connection, until the time is over."""
    import psycopg

    waits: list[float] = []
    with psycopg.connect(path, autocommit=True) as db:
        db.execute("CREATE TABLE IF NOT EXISTS bare (number BIGINT PRIMARY KEY, text TEXT)")
        db.execute("TRUNCATE bare")
        barrier.wait()
        end = time.perf_counter() + seconds
        while (start := time.perf_counter()) < end:
            db.execute("INSERT INTO bare VALUES (%s, %s)", (len(waits), "x" * 512))
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
    worker: Worker,
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
    """Measure a file and a server, each beside its limit, and verify every ledger."""
    seconds = 0.5 if quick else 3.0
    with tempfile.TemporaryDirectory() as folder:
        found = _of_files(folder, seconds)
        with measured_server(folder) as address:
            if address is not None:
                found += _of_server(address, seconds)
    return found


def _of_files(folder: str, seconds: float) -> list[Row]:
    """Charges, spends and bare appends in turn, in SQLite."""
    found = []
    for processes in PROCESSES:
        log = os.path.join(folder, f"{processes}.log")
        for name, worker in (("durable charge", charge), ("complete spend", spend)):
            path = os.path.join(folder, f"{processes} {name}.db")
            with open_ledger(path) as ledger:
                ledger.open_account("bench", "pure", (10**18, 0))
            found.append(measure(name, worker, path, processes, seconds))
            _verify(path)
        found.append(measure("bare synced append", append, log, processes, seconds))
    return found


def _of_server(address: str, seconds: float) -> list[Row]:
    """Spends of one and of 16 processes, each beside bare inserts just before and after it."""
    with open_ledger(address) as ledger:
        ledger.open_account("bench", "pure", (10**18, 0))
    found = [measure(BARE_INSERT, insert, address, 1, seconds)]
    for processes in (1, 16):
        row = measure("complete spend, PostgreSQL", spend, address, processes, seconds)
        bare = measure(BARE_INSERT, insert, address, 1, seconds)
        limit = (float(found[-1]["per_second"]) + float(bare["per_second"])) / 2
        row["of_bare"] = float(row["per_second"]) / limit
        found += [row, bare]
    _verify(address)
    return found


def _verify(path: str) -> None:
    with open_ledger(path) as ledger:
        checked = ledger.verify()
        # Every charge costs one unit.
        charges = sum(entry.kind == "reserve" for entry in ledger.log())
        if not checked.ok or charges != ledger.account("bench").spent[0]:
            raise InternalError(f"The ledger does not verify: {checked.fault}")
