"""What a child process must not inherit from its parent's threads: locks, and half-done work.

A thread that held a lock at the moment of a fork does not exist in the child, and would never give
it back.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_LIVE: weakref.WeakKeyDictionary[object, Callable[[], None]] = weakref.WeakKeyDictionary()
_ADDING = threading.RLock()


def renewed_in_children(thing: T, renew: Callable[[T], None]) -> None:
    """Let a thing that threads share begin anew in each child process: with new locks, and idle."""
    found = weakref.ref(thing)  # a plain reference would keep the thing alive in its own entry

    def renew_it() -> None:
        alive = found()
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
