"""What a child process must not inherit from the threads of its parent: their locks, and work that they had half done.

A thread that held a lock at the moment of a fork does not exist in the child, and would never give it back.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import TypeVar, cast

T = TypeVar("T")

_LIVE: weakref.WeakKeyDictionary[object, Callable[[object], None]] = weakref.WeakKeyDictionary()
_ADDING = threading.RLock()


def renewed_in_children(thing: T, renew: Callable[[T], None]) -> None:
    """Let a thing that threads share begin with new locks, and without what was being done, in each child process."""
    with _ADDING:
        _LIVE[thing] = cast(Callable[[object], None], renew)  # it is called on this thing only


def _after_in_child() -> None:
    _ADDING.release()
    for thing, renew in list(_LIVE.items()):
        renew(thing)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_ADDING.acquire, after_in_parent=_ADDING.release, after_in_child=_after_in_child)
