"""Many processes, one account, each killed at many places in its work.

The total is never passed, and no release is half written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.basics import processes as process_identity
from sfumato.ledger import open_ledger
from support import workers
from support.workers import AfterStatement, AtByte, Fate, SoonAfter

told = pytest.mark.skipif(
    not process_identity.current(), reason="this system does not tell who has died"
)


DOMAIN = sf.Domain(x=sf.Interval(0, 1))
POINTS = np.random.default_rng(3).random((1_000, 1))
STEP = "0.01"


def work(ledger: Path, worker: int, attempts: int) -> None:
    """Release until the account refuses; some of the answers are asked for twice."""
    source = sf.source(POINTS, DOMAIN, name="shared")
    with sf.Publisher(source, ledger=ledger, account="a") as publisher:
        for attempt in range(attempts):
            try:
                publisher.release(
                    sf.Histogram("x", bins=50), epsilon=STEP, key=f"{worker}.{attempt // 2}"
                )
            except sf.BudgetExceeded:
                return
            except sf.LedgerError as error:
                # The key of a run that was killed twice.
                if "it is not resumed again" not in str(error):
                    raise


def fate(ledger: Path, number: int) -> Fate:
    """One fate after another: of each kind, spread over the first 53 statements or kilobytes."""
    at = 1 + number * 7 % 53
    log = Path(f"{ledger}-wal")
    fates = (AfterStatement(at), SoonAfter(at), AtByte(log, 1000 * at, 53))
    return fates[number % 3]


def storm(ledger: Path, *, total: str, attempts: int, at_once: int, lives: int) -> dict[str, int]:
    """Run workers against one account; each is killed several times, and started again."""
    sf.Publisher(
        sf.source(POINTS, DOMAIN, name="shared"), ledger=ledger, account="a", budget=total
    ).close()
    actions = [partial(work, ledger, worker, 2 * attempts // at_once) for worker in range(at_once)]
    fates = [
        [fate(ledger, at_once * life + worker) for life in range(lives)]
        for worker in range(at_once)
    ]
    killed = workers.storm(actions, fates)
    assert killed == at_once * lives
    return {"started": killed + at_once, "killed": killed}


def inspect(path: Path, total: int) -> dict[str, int]:
    """What the ledger says after the storm."""
    with open_ledger(path) as ledger:
        assert ledger.verify().ok, ledger.verify().faults
        account = ledger.account("a")
        entries = list(ledger.log("a"))
        reserved = {entry.key for entry in entries if entry.kind == "reserve"}
        stored = {entry.key for entry in entries if entry.kind == "store"}
        assert account.spent[0] <= total
        assert account.spent[0] == len(reserved) * 10_000_000
        assert stored <= reserved
        held = {
            entry.key: entry for entry in entries if entry.kind == "reserve" and entry.key in stored
        }
    with sf.Publisher(
        sf.source(POINTS, DOMAIN, name="shared"), ledger=path, account="a"
    ) as publisher:
        before = publisher.remaining
        for key, entry in held.items():
            release = publisher.release(sf.Histogram("x", bins=50), epsilon=STEP, key=key)
            assert release.replayed
            assert release.values.shape == (50,)
            assert release.receipt is not None
            assert release.receipt.entry == entry.sequence
            assert release.receipt.entry_hash == entry.hash
        assert publisher.remaining == before
    return {
        "reserved": len(reserved),
        "stored": len(stored),
        "spent_units": account.spent[0],
        "total_units": total,
    }


@told
def test_a_small_storm(tmp_path: Path) -> None:
    storm(tmp_path / "b.db", total="0.5", attempts=80, at_once=4, lives=3)
    found = inspect(tmp_path / "b.db", 500_000_000)
    assert found["reserved"] == 50, "the account is spent to the last unit"


@told
@pytest.mark.deep
def test_eight_processes_two_thousand_attempts(
    tmp_path: Path, evidence: Callable[[str, object], None]
) -> None:
    run = storm(tmp_path / "b.db", total="15", attempts=2_000, at_once=8, lives=30)
    found = inspect(tmp_path / "b.db", 15_000_000_000)
    assert found["reserved"] == 1_500
    evidence("processes", {**run, **found})
