"""A child process does not wait for locks of threads that it does not have."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import numpy as np

import sfumato as sf


def test_a_child_does_not_wait_for_threads_that_it_does_not_have(tmp_path: Path) -> None:
    """A thread of the parent is counting, and another one is pushing, at the moment of the fork."""
    source = sf.source(np.zeros((3, 1)), sf.Domain(x=sf.Interval(0, 4)), name="n")
    publisher = sf.Publisher(source, ledger=tmp_path / "b.db", account="a", budget="9")
    stream = publisher.open(sf.Counter(9), epsilon="1", key="s")
    stream.push(1)
    held, done = threading.Barrier(2), threading.Event()

    def hold() -> None:
        with publisher._answering.counting.lock, stream._lock:
            held.wait()
            done.wait()

    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # only ever ends a hang
        try:
            publisher.release(sf.Histogram("x"), epsilon="1", key="k")
            os._exit(0 if stream.push(1).step == 2 and len(stream.history().values) == 2 else 1)
        finally:
            os._exit(1)
    code = os.waitpid(child, 0)[1]
    done.set()
    other.join()
    assert code == 0
    assert publisher.release(sf.Histogram("x"), epsilon="1", key="k").replayed
