"""Processes of tests: all are started, awaited and killed here.

They are awaited by their own progress, never by the clock.

A worker that is to die has a fate, which says where in its own work it dies:

* ``AfterStatement(n)``: once SQLite, or PostgreSQL, has carried out its n-th statement. Exact;
  statements that found the file busy do not count.
* ``AtByte(path, n)``: in the middle of the first write that would let a file, or any other, grow
  beyond n bytes more than that file has when the worker begins; what fits is written. Exact where
  no other process writes to the file. Where others may shorten it meanwhile, a latest statement
  says when the worker dies in any case.
* ``SoonAfter(n)``: its n-th statement is reported to the parent, which kills it wherever it is by
  then. It never comes past its statement n + ROOM, so that a slow parent changes where it dies, and
  never whether.

A worker whose fate never came ends with an exit code that `Worker.join` refuses: a test knows how
many it has killed.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import psycopg

FORK = multiprocessing.get_context("fork")
# Seconds until a test that hangs is given up. It only ends a hang, and never decides an outcome.
HANG = 1800.0
ROOM = 12  # statements between the report of a worker and the place where it waits for its death
MISSED = 3  # exit code of a worker that should have died and came to its end


@dataclass(frozen=True)
class AfterStatement:
    """Dies by SIGKILL when its n-th statement is done."""

    number: int
    ends_by = (signal.SIGKILL,)

    def prepare(self, _: int) -> None:
        """Called in the worker."""
        watch(lambda done: _die() if done == self.number else None)


@dataclass(frozen=True)
class AtByte:
    """Dies in the write that would let a file grow beyond so many bytes more than it has now."""

    path: Path
    more: int
    latest: int | None = None

    @property
    def ends_by(self) -> tuple[signal.Signals, ...]:
        """SIGKILL only at the latest statement."""
        return (signal.SIGXFSZ,) if self.latest is None else (signal.SIGXFSZ, signal.SIGKILL)

    def prepare(self, _: int) -> None:
        """Called in the worker."""
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it
        if self.latest is not None:
            AfterStatement(self.latest).prepare(0)
        limit_files(self.more + (self.path.stat().st_size if self.path.exists() else 0))


@dataclass(frozen=True)
class SoonAfter:
    """Is killed by its parent, which hears of its n-th statement while it goes on."""

    number: int
    ends_by = (signal.SIGKILL,)

    def prepare(self, report: int) -> None:
        """Called in the worker."""
        parent = os.getppid()

        def notice(done: int) -> None:
            if done == self.number:
                os.write(report, b".")
            elif done == self.number + ROOM:
                _wait_for_death(parent)

        watch(notice)


Fate = AfterStatement | AtByte | SoonAfter


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _wait_for_death(parent: int) -> NoReturn:
    while os.getppid() == parent:
        time.sleep(0.01)
    os._exit(1)


def limit_files(size: int | None) -> None:
    """Let no file of this process grow beyond a size (None: let them grow again)."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard if size is None else size, hard))


def watch(notice: Callable[[int], object]) -> None:
    """Call with 1, 2, ... whenever a database has carried out a statement of this thread.

    What it refused does not count.
    """
    done = 0

    def look(frame: FrameType, event: str, found: Any) -> None:
        nonlocal done
        if _by_sqlite(event, found) or _by_postgres(frame, event, found):
            done += 1
            notice(done)

    sys.setprofile(look)


def _by_sqlite(event: str, called: Any) -> bool:
    if event != "c_return" or not called.__name__.startswith("execute"):
        return False
    return isinstance(called.__self__, sqlite3.Connection | sqlite3.Cursor)


def _by_postgres(frame: FrameType, event: str, result: Any) -> bool:
    """Whether a statement of psycopg returns, and not because it failed."""
    return event == "return" and frame.f_code is psycopg.Cursor.execute.__code__ and bool(result)


def statements(action: Callable[[], object]) -> int:
    """How many statements a database carries out for an action."""
    done = [0]
    watch(done.append)
    try:
        action()
    finally:
        sys.setprofile(None)
    return done[-1]


class Worker:
    """A forked process that does something, and dies by its fate if it has one."""

    def __init__(self, action: Callable[[], object], fate: Fate | None = None) -> None:
        self.fate = fate
        self._heard, self._report = os.pipe()
        self._process = FORK.Process(target=self._run, args=(action,), daemon=True)
        self._process.start()
        os.close(self._report)  # so that the end of the worker ends the pipe
        self.sentinels: list[int] = (
            [self._heard] if isinstance(fate, SoonAfter) else [self._process.sentinel]
        )

    def _run(self, action: Callable[[], object]) -> None:
        os.close(self._heard)
        if self.fate is None:
            action()
            return
        self.fate.prepare(self._report)
        try:
            action()
        finally:  # an error of its own is printed, and must not look like its fate
            sys.setprofile(None)
            limit_files(None)
        os._exit(MISSED)

    @property
    def failed(self) -> bool:
        """Whether it has ended by an error."""
        return self._process.exitcode not in (None, 0)

    def join(self) -> None:
        """Wait until it has ended, by its fate if it has one, and otherwise well."""
        if isinstance(self.fate, SoonAfter) and os.read(self._heard, 1):
            self._process.kill()
        self._process.join(HANG)
        code = self._process.exitcode
        self.stop()
        wanted = {0} if self.fate is None else {-number for number in self.fate.ends_by}
        assert code in wanted, f"a worker with the fate {self.fate} ended by {code}"

    def stop(self) -> None:
        """Leave nothing of it behind; stopping twice is harmless."""
        if self._heard >= 0:
            self._process.kill()
            self._process.join()
            os.close(self._heard)
            self._heard = -1


def all_end_well(actions: Iterable[Callable[[], object]]) -> None:
    """Run actions at once, each in a process of its own."""
    workers = [Worker(action) for action in actions]
    try:
        for worker in workers:
            worker.join()
    finally:
        for worker in workers:
            worker.stop()


def storm(actions: Sequence[Callable[[], object]], fates: Sequence[Sequence[Fate]]) -> int:
    """Run all actions at once, each again and again: once for each of its fates; then all at once
    to their good ends. Returns the number of deaths.

    Nobody begins its last life before all have died: those that go on to their ends could take
    all that there is to do from a slow one, which would not come to its fate.
    """
    deaths = _run(
        [
            [partial(Worker, action, one) for one in several]
            for action, several in zip(actions, fates, strict=True)
        ]
    )
    _run([[partial(Worker, action)] for action in actions])
    return deaths


def _run(lives: list[list[Callable[[], Worker]]]) -> int:
    """Run several rows of lives at once, those of one row after each other; the number of lives."""
    done = 0
    at_work = {number: row.pop(0)() for number, row in enumerate(lives) if row}
    try:
        while at_work:
            ready = wait(
                [sentinel for worker in at_work.values() for sentinel in worker.sentinels], HANG
            )
            assert ready, "every worker hangs"
            for number, worker in list(at_work.items()):
                if worker.sentinels[0] not in ready:
                    continue
                worker.join()
                done += 1
                del at_work[number]
                if lives[number]:
                    at_work[number] = lives[number].pop(0)()
    finally:
        for worker in at_work.values():
            worker.stop()
    return done
