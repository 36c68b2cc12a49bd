"""Many processes and threads on one ledger."""

from __future__ import annotations

import os
import threading
from functools import partial

import pytest

from sfumato.errors import LedgerError
from sfumato.ledger import open_ledger
from support.workers import FORK, HANG, all_end_well


def test_racing_processes_return_identical_bytes(path, tmp_path):
    with open_ledger(path) as ledger:
        ledger.open_account("trips", "marbles", (1000, 0))
    start = FORK.Barrier(8, timeout=HANG)

    def race(name: int) -> None:
        lines = []
        with open_ledger(path) as ledger:
            start.wait()
            for number in range(10):
                with ledger.reserve("trips", str(number), "digest", (1, 0), "", lease=0) as hold:
                    lines.append(f"{number} {hold.store(os.urandom(16)).hex()}")
        (tmp_path / f"{name}.out").write_text("\n".join(lines))

    all_end_well(partial(race, name) for name in range(8))
    answers = [
        line for name in range(8) for line in (tmp_path / f"{name}.out").read_text().splitlines()
    ]
    assert len(answers) == 80
    assert len(set(answers)) == 10
    with open_ledger(path) as ledger:
        assert ledger.account("trips").spent == (10, 0)
        assert ledger.verify().ok


def test_processes_that_create_one_ledger_at_once_agree(path):
    start = FORK.Barrier(8, timeout=HANG)

    def create() -> None:
        start.wait()
        with open_ledger(path) as ledger:
            ledger.open_account("trips", "marbles", (8, 0))
            ledger.reserve("trips", str(os.getpid()), "digest", (1, 0), "")

    all_end_well([create] * 8)
    with open_ledger(path) as ledger:
        assert ledger.account("trips").remaining == (0, 0)
        assert ledger.verify().ok


def test_threads_share_a_ledger(ledger, release):
    failures = []

    def work(name: int) -> None:
        try:
            for number in range(25):
                release(ledger, f"{name}-{number}", b"x", (2, 0))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert ledger.account("trips").spent == (400, 0)
    assert ledger.verify().ok


def test_a_ledger_in_a_file_crosses_a_fork_while_threads_use_it(path, release):
    with open_ledger(path) as ledger:
        ledger.open_account("trips", "marbles", (1000, 0))
        stop = threading.Event()

        def busy() -> None:
            number = 0
            while not stop.is_set():
                release(ledger, f"parent-{number}", b"x", (0, 0))
                number += 1

        thread = threading.Thread(target=busy)
        thread.start()

        def child(name: int) -> None:
            for number in range(10):
                release(ledger, f"{name}-{number}", b"x", (1, 0))
            ledger.close()

        try:
            all_end_well(partial(child, name) for name in range(4))
        finally:
            stop.set()
            thread.join()
        assert ledger.account("trips").spent == (40, 0)
        assert ledger.verify().ok


def test_a_ledger_in_memory_does_not_cross_a_fork(release):
    with open_ledger(None) as ledger:
        ledger.open_account("trips", "marbles", (1000, 0))

        def child() -> None:
            with pytest.raises(LedgerError, match="another process"):
                release(ledger, "a")

        all_end_well([child])
        release(ledger, "a")
