"""How many threads or processes may work at a time, and new locks for child processes.

A child process has only the thread that forked it. If another thread of the parent held a lock at
that moment, nobody in the child would ever release it. What that thread had half done must not be
used either.
"""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa

from sfumato.errors import UsageError

T = TypeVar("T")

MOST_THREADS = 64
"""More threads than this would share little memory, and wait for each other."""

_LIVE: weakref.WeakKeyDictionary[object, Callable[[], None]] = weakref.WeakKeyDictionary()
_ADDING = threading.RLock()  # held across a fork, so that the child's table is whole


def thread_limit() -> int:
    """Read how many threads or processes may work at a time: ``SFUMATO_THREADS``, or one a core.

    Cores are those that this process may use; more than ``MOST_THREADS`` are never taken.

    Raises
    ------
    UsageError
        If the variable is no number of threads.
    """
    text = os.environ.get("SFUMATO_THREADS", "").strip()
    if not text:
        return min(int(pa.cpu_count()), MOST_THREADS)
    if not re.fullmatch(r"0*[1-9][0-9]{0,8}", text):
        raise UsageError(
            f"SFUMATO_THREADS={text!r}",
            "it is not a number of threads",
            "Write it as 1 or 4, or leave it out, for one thread on each core",
        )
    return min(int(text), MOST_THREADS)


def renewed_in_children(thing: T, renew: Callable[[T], None]) -> None:
    """Renew an object that threads share in each child process.

    Parameters
    ----------
    thing : object
        Anything that can be a key and be weakly referenced; it is not kept alive.
    renew : callable
        Gives it new locks, and lets it forget what was half done.
    """
    # A plain reference would keep the thing alive: it would be reachable from its own entry.
    reference = weakref.ref(thing)

    def renew_it() -> None:
        alive = reference()
        if alive is not None:
            renew(alive)

    with _ADDING:
        _LIVE[thing] = renew_it


def _after_in_child() -> None:
    _ADDING.release()
    for renew_it in list(_LIVE.values()):
        renew_it()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_ADDING.acquire,
        after_in_parent=_ADDING.release,
        after_in_child=_after_in_child,
    )
