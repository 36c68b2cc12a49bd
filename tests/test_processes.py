"""Many processes, one account, kill -9 at random moments: never over the total, no half-written release."""

from __future__ import annotations

import multiprocessing
import random
import signal
import time
from collections.abc import Callable
from multiprocessing.context import ForkProcess
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.ledger import open_ledger
from sfumato.release import from_bytes
from sfumato.releases import AnyRelease

DOMAIN = sf.Domain(x=sf.Interval(0, 1))
POINTS = np.random.default_rng(3).random((1_000, 1))
STEP = "0.01"


def work(ledger: Path, worker: int, attempts: int) -> None:
    """Release until the account refuses; some of the answers are asked for twice."""
    source = sf.source(POINTS, DOMAIN, name="shared")
    with sf.Publisher(source, ledger=ledger, account="a") as publisher:
        for attempt in range(attempts):
            try:
                publisher.release(sf.Histogram("x", bins=50), epsilon=STEP, key=f"{worker}.{attempt // 2}")
            except sf.BudgetExceeded:
                return
            except sf.LedgerError as error:
                if "it stays shut" not in str(error):  # the key of a run that was killed twice
                    raise


def storm(ledger: Path, *, total: str, attempts: int, workers: int, kills: int) -> dict[str, int]:
    """Run workers against one account, killing some at random moments and starting others in their place."""
    context, chance = multiprocessing.get_context("fork"), random.Random(1)
    sf.Publisher(sf.source(POINTS, DOMAIN, name="shared"), ledger=ledger, account="a", budget=total).close()
    each, at_work, ended = 2 * attempts // workers, dict[int, ForkProcess](), list[int | None]()

    def start(worker: int) -> None:
        at_work[worker] = context.Process(target=work, args=(ledger, worker, each))
        at_work[worker].start()

    for worker in range(workers):
        start(worker)
    killed = 0
    while any(process.is_alive() for process in at_work.values()):
        time.sleep(chance.uniform(0.01, 0.08))
        victim = chance.randrange(workers)
        if killed < kills and at_work[victim].is_alive():
            at_work[victim].kill()
            at_work[victim].join()
            ended.append(at_work[victim].exitcode)
            killed += 1
            start(victim)
    ended += [process.exitcode for process in at_work.values()]
    assert set(ended) <= {0, -signal.SIGKILL}  # none ended by an error of its own
    return {"started": len(ended), "killed": killed}


def inspect(path: Path, total: int) -> dict[str, int]:
    """What the ledger says after the storm."""
    with open_ledger(path) as ledger:
        assert ledger.verify().ok, ledger.verify().faults
        account, entries = ledger.account("a"), list(ledger.log("a"))
        reserved = {entry.key for entry in entries if entry.kind == "reserve"}
        stored = {entry.key for entry in entries if entry.kind == "store"}
        assert account.spent[0] <= total
        assert account.spent[0] == len(reserved) * 10_000_000
        assert stored <= reserved
        for entry in entries:
            if entry.kind == "reserve" and entry.key in stored:
                with ledger.reserve("a", entry.key, entry.digest, entry.cost, "look") as hold:
                    (release,) = from_bytes(hold.stored or b"", list[AnyRelease])
                    assert release.values.shape == (50,)
                    assert release.receipt.entry == entry.sequence
                    assert release.receipt.entry_hash == entry.hash
    return {"reserved": len(reserved), "stored": len(stored), "spent_units": account.spent[0], "total_units": total}


def test_a_small_storm(tmp_path: Path) -> None:
    storm(tmp_path / "b.db", total="0.5", attempts=80, workers=4, kills=6)
    assert inspect(tmp_path / "b.db", 500_000_000)["reserved"] == 50  # the account was spent to the last unit


@pytest.mark.deep
def test_eight_processes_two_thousand_attempts(tmp_path: Path, evidence: Callable[[str, object], None]) -> None:
    run = storm(tmp_path / "b.db", total="15", attempts=2_000, workers=8, kills=60)
    found = inspect(tmp_path / "b.db", 15_000_000_000)
    assert found["reserved"] == 1_500
    evidence("processes", {**run, **found})
