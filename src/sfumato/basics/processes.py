"""New locks for child processes.

A child process has only the thread that forked it. If another thread of the parent held a lock at
that moment, nobody in the child would ever release it. What that thread had half done must not be
used either.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_LIVE: weakref.WeakKeyDictionary[object, Callable[[], None]] = weakref.WeakKeyDictionary()
_ADDING = threading.RLock()  # held across a fork, so that the child's table is whole


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
