"""Many processes and threads on one ledger, and some of them killed at random moments."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import threading
import time
from pathlib import Path

import pytest

from sfumato.errors import BudgetExceeded, LedgerError
from sfumato.ledger import open_ledger

FORK = multiprocessing.get_context("fork")


def wait_for(processes) -> None:
    """All of them ended well."""
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0] * len(processes)


def test_racing_processes_return_identical_bytes(path):
    with open_ledger(path) as ledger:
        ledger.open_account("trips", "marbles", (1000, 0))
    results, start = FORK.Queue(), FORK.Barrier(8)

    def race() -> None:
        with open_ledger(path) as ledger:
            start.wait()
            for number in range(10):
                with ledger.reserve("trips", str(number), "digest", (1, 0), "", lease=0, resumes=None) as hold:
                    results.put((number, hold.store(os.urandom(16))))

    processes = [FORK.Process(target=race) for _ in range(8)]
    for process in processes:
        process.start()
    answers = [results.get(timeout=30) for _ in range(80)]
    wait_for(processes)
    assert len(set(answers)) == 10
    with open_ledger(path) as ledger:
        assert ledger.account("trips").spent == (10, 0)
        assert ledger.verify().ok


def test_processes_that_create_one_ledger_at_once_agree(path):
    start = FORK.Barrier(8)

    def create() -> None:
        start.wait()
        with open_ledger(path) as ledger:
            ledger.open_account("trips", "marbles", (8, 0))
            ledger.reserve("trips", str(os.getpid()), "digest", (1, 0), "")

    processes = [FORK.Process(target=create) for _ in range(8)]
    for process in processes:
        process.start()
    wait_for(processes)
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

        processes = [FORK.Process(target=child, args=(name,)) for name in range(4)]
        for process in processes:
            process.start()
        wait_for(processes)
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

        process = FORK.Process(target=child)
        process.start()
        wait_for([process])
        release(ledger, "a")


def published(place: Path, name: int) -> list[tuple[str, str]]:
    """What one worker has shown to the world: whole lines of key and answer's hash."""
    file = place / f"{name}.out"
    text = file.read_text() if file.exists() else ""
    return [tuple(line.split()) for line in text.splitlines()]


def work(place: Path, name: int, tasks: int) -> None:
    """Release one key after another until the account refuses, beginning with the first that was not shown."""
    done = {key for key, _ in published(place, name)}
    out = os.open(place / f"{name}.out", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    with open_ledger(place / "budget.db") as ledger:
        for number in range(tasks):
            key = f"{name}-{number}"
            if key in done:
                continue
            try:
                with ledger.reserve("trips", key, f"digest of {key}", (3, 1), "") as hold:
                    answer = hold.store(os.urandom(64))
            except BudgetExceeded:
                break
            except LedgerError as error:  # killed twice at this key: its charge stands, and it stays shut
                if "choose another key" not in str(error):
                    raise
                continue
            os.write(out, f"{key} {hashlib.sha256(answer).hexdigest()}\n".encode())
    os.close(out)


def storm(place: Path, tasks: int, total: tuple[int, int]) -> int:
    """Eight workers, killed at random moments and started anew, until all of them have ended by themselves; the number of kills."""
    kills, dice = 0, random.Random()
    with open_ledger(place / "budget.db") as ledger:
        ledger.open_account("trips", "marbles", total)
    workers = {name: FORK.Process(target=work, args=(place, name, tasks)) for name in range(8)}
    for process in workers.values():
        process.start()
    while any(process.is_alive() for process in workers.values()):
        time.sleep(dice.uniform(0.001, 0.03))
        name = dice.choice(list(workers))
        if workers[name].is_alive() and kills < tasks * 4:
            workers[name].kill()
            workers[name].join()
            kills += workers[name].exitcode == -9
            workers[name] = FORK.Process(target=work, args=(place, name, tasks))
            workers[name].start()
    wait_for(workers.values())
    return kills


@pytest.mark.parametrize("tasks", [25, pytest.param(250, marks=pytest.mark.deep)])
def test_killed_processes_lose_nothing_and_never_overspend(tmp_path, tasks):
    total = (3 * (8 * tasks * 3 // 4), 8 * tasks)
    kills = storm(tmp_path, tasks, total)
    assert kills >= min(tasks // 5, 20)
    shown = dict(line for name in range(8) for line in published(tmp_path, name))
    with open_ledger(tmp_path / "budget.db") as ledger:
        found, account, entries = ledger.verify(), ledger.account("trips"), list(ledger.log())
        assert found.ok, found.faults
        stored = {entry.key: entry.payload_hash for entry in entries if entry.kind == "store"}
        charged = [entry.key for entry in entries if entry.kind == "reserve"]
        handed = {entry.key for entry in entries if entry.kind == "hand"}
        assert len(charged) == len(set(charged))
        assert account.spent == (3 * len(charged), len(charged))
        assert account.remaining[0] == 0, "they went on until the account refused"
        assert account.remaining[1] >= 0
        assert shown.items() <= stored.items(), "every answer that was shown is stored, byte for byte"
        assert shown.keys() <= handed
        with pytest.raises(BudgetExceeded):
            ledger.reserve("trips", "one more", "digest", (3, 1), "")
