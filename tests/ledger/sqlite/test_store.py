"""Many processes and threads on one ledger, some of them killed at many places in their work."""

from __future__ import annotations

import hashlib
import os
import threading
from functools import partial
from pathlib import Path

import pytest

from sfumato.errors import BudgetExceeded, LedgerError
from sfumato.ledger import open_ledger, process_identity
from support.workers import (
    FORK,
    HANG,
    AfterStatement,
    AtByte,
    Fate,
    SoonAfter,
    all_end_well,
    statements,
    storm,
)

told = pytest.mark.skipif(
    not process_identity.current(), reason="this system does not tell who has died"
)


def test_racing_processes_return_identical_bytes(path, tmp_path):
    with open_ledger(path) as ledger:
        ledger.open_account("trips", "marbles", (1000, 0))
    start = FORK.Barrier(8, timeout=HANG)

    def race(name: int) -> None:
        lines = []
        with open_ledger(path) as ledger:
            start.wait()
            for number in range(10):
                with ledger.reserve(
                    "trips", str(number), "digest", (1, 0), "", lease=0, resumes=None
                ) as hold:
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


def published(place: Path, name: int) -> list[tuple[str, str]]:
    """What one worker has shown to the world: whole lines of key and answer's hash."""
    file = place / f"{name}.out"
    text = file.read_text() if file.exists() else ""
    return [tuple(line.split()) for line in text.splitlines()]


def work(place: Path, name: int, tasks: int, early: bool = False) -> None:
    """Release one key after another until the account refuses.

    The first key is the first that was not shown in an earlier life.
    A broken worker is ``early``: it shows an answer before the ledger has it.
    """
    done = {key for key, _ in published(place, name)}
    out = os.open(place / f"{name}.out", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    show = partial(os.write, out)
    with open_ledger(place / "budget.db") as ledger:
        for number in range(tasks):
            key = f"{name}-{number}"
            if key in done:
                continue
            try:
                with ledger.reserve("trips", key, f"digest of {key}", (3, 1), "") as hold:
                    answer = os.urandom(64)
                    if early:
                        show(line(key, answer))
                    answer = hold.store(answer)
            except BudgetExceeded:
                break
            except LedgerError as error:
                # The worker was killed twice at this key: its charge stands, and is not resumed.
                if "choose another key" not in str(error):
                    raise
                continue
            if not early:
                show(line(key, answer))
    os.close(out)


def line(key: str, answer: bytes) -> bytes:
    """What is shown of an answer."""
    return f"{key} {hashlib.sha256(answer).hexdigest()}\n".encode()


def judge(place: Path, names: int) -> None:
    """Compare what was shown with what the ledger holds."""
    shown = dict(pair for name in range(names) for pair in published(place, name))
    with open_ledger(place / "budget.db") as ledger:
        found = ledger.verify()
        account = ledger.account("trips")
        entries = list(ledger.log())
        assert found.ok, found.faults
        stored = {entry.key: entry.payload_hash for entry in entries if entry.kind == "store"}
        charged = [entry.key for entry in entries if entry.kind == "reserve"]
        handed = {entry.key for entry in entries if entry.kind == "hand"}
        assert len(charged) == len(set(charged))
        assert account.spent == (3 * len(charged), len(charged))
        assert account.remaining[0] >= 0
        assert account.remaining[1] >= 0
        assert shown.items() <= stored.items(), (
            "every answer that was shown is stored, byte for byte"
        )
        assert shown.keys() <= handed
        assert account.remaining[0] == 0, "they went on until the account refused"
        with pytest.raises(BudgetExceeded):
            ledger.reserve("trips", "one more", "digest", (3, 1), "")


@told
@pytest.mark.parametrize("early", [False, True])
def test_a_worker_killed_after_each_of_its_statements(tmp_path, early):
    """They are those of opening the ledger and of two releases.

    Control: a worker that shows answers before the ledger has them is found out.
    """
    with open_ledger(tmp_path / "budget.db") as ledger:
        ledger.open_account("trips", "marbles", (300, 101))
        release = statements(
            lambda: ledger.reserve("trips", "0-0", "digest of 0-0", (3, 1), "").store(b"noisy")
        )
    opening = statements(lambda: open_ledger(tmp_path / "budget.db").close())
    fates = [AfterStatement(number) for number in range(1, opening + 2 * release + 1)]
    deaths = storm([partial(work, tmp_path, 0, 100, early)], [fates])
    assert deaths == len(fates)
    if early:
        with pytest.raises(AssertionError, match="is stored, byte for byte"):
            judge(tmp_path, 1)
    else:
        judge(tmp_path, 1)


def fate(path: Path, number: int) -> Fate:
    """One fate after another: of each kind, spread over the first 59 statements or kilobytes."""
    at = 1 + number * 7 % 59
    log = Path(f"{path}-wal")
    fates = (AfterStatement(at), SoonAfter(at), AtByte(log, 1000 * at, 59))
    return fates[number % 3]


@told
@pytest.mark.parametrize(
    ("tasks", "lives"), [(25, 5), pytest.param(250, 60, marks=pytest.mark.deep)]
)
def test_killed_processes_lose_nothing_and_never_overspend(tmp_path, tasks, lives):
    with open_ledger(tmp_path / "budget.db") as ledger:
        ledger.open_account("trips", "marbles", (3 * (8 * tasks * 3 // 4), 8 * tasks))
    fates = [
        [fate(tmp_path / "budget.db", 8 * life + name) for life in range(lives)]
        for name in range(8)
    ]
    deaths = storm([partial(work, tmp_path, name, tasks) for name in range(8)], fates)
    assert deaths == 8 * lives
    judge(tmp_path, 8)
