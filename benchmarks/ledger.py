"""How many durable charges a ledger takes per second, beside bare synced appends to a file on the same disk.

    python benchmarks/ledger.py [--quick] [--json PATH] [--folder DIR]

Every charge is a transaction of its own, on disk before the next begins. The bare append is the disk's own limit: one process
at a time writes 512 bytes and syncs, with no database in between.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import multiprocessing
import os
import tempfile
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from sfumato.ledger import open_ledger

PROCESSES = (1, 4, 16)
COST = (1, 0)


def charge(path: str, seconds: float, barrier: Barrier, results: Any) -> None:
    """Reserve under fresh keys until the time is over."""
    waits = []
    with open_ledger(path) as ledger:
        barrier.wait()
        end = time.perf_counter() + seconds
        while (start := time.perf_counter()) < end:
            ledger.reserve("bench", f"{os.getpid()}-{len(waits)}", "0" * 64, COST, "benchmark")
            waits.append(time.perf_counter() - start)
    results.put(waits)


def append(path: str, seconds: float, barrier: Barrier, results: Any) -> None:
    """Append under a lock and sync until the time is over."""
    sync = getattr(os, "fdatasync", os.fsync)
    waits = []
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


def measure(name: str, worker: Any, path: str, processes: int, seconds: float) -> dict[str, Any]:
    """Run one worker in several processes that start together."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes), context.Queue()
    workers = [context.Process(target=worker, args=(path, seconds, barrier, results)) for _ in range(processes)]
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


def run(*, quick: bool = False, folder: str | None = None) -> list[dict[str, Any]]:
    """Measure charges and bare appends in turn, and verify every ledger that was filled."""
    seconds, rows = (0.5 if quick else 3.0), []
    with tempfile.TemporaryDirectory(dir=folder) as place:
        for processes in PROCESSES:
            path = os.path.join(place, f"{processes}.db")
            with open_ledger(path) as ledger:
                ledger.open_account("bench", "pure", (10**18, 0))
            rows.append(measure("durable charge", charge, path, processes, seconds))
            with open_ledger(path) as ledger:
                found = ledger.verify()
                if not found.ok or found.entries - 1 != ledger.account("bench").spent[0]:
                    raise SystemExit(f"the ledger does not verify: {found.fault}")
            rows.append(measure("bare synced append", append, os.path.join(place, f"{processes}.log"), processes, seconds))
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as text; rates are per second, and fewest and most are those of single processes."""
    heads = list(rows[0])
    cells = [heads, *([f"{value:,.1f}" if isinstance(value, float) else str(value) for value in row.values()] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(heads))]
    return "\n".join(
        "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=True)))
        for line in cells
    )


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="half a second for each row")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    parser.add_argument("--folder", help="a folder on the disk to measure")
    options = parser.parse_args()
    rows = run(quick=options.quick, folder=options.folder)
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
