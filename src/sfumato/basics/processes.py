"""How many threads or processes may work at a time, what a child begins anew, and who still works.

*New locks for child processes.* A child process has only the thread that forked it. If another
thread of the parent held a lock at that moment, nobody in the child would ever release it. What
that thread had half done must not be used either.

*The identity of a process*, and whether that process has surely ended. To take over the work of one
that still works would do it twice, so every doubt counts as "still works".
"""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from sfumato.errors import UsageError

T = TypeVar("T")

# More threads than this would share little memory, and wait for each other.
MOST_THREADS = 64

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


# --- the identity of a process --------------------------------------------------------------------

PROC = Path("/proc")


def current() -> str:
    """The identity of this process; "" where the system does not tell.

    It has the form NAMESPACE/NUMBER/START. The start tells this process from a later one of the
    same number, the namespace from processes of other machines, boots and containers.
    """
    return _identity(os.getpid())


@lru_cache(maxsize=4)
def _identity(pid: int) -> str:
    started = _started(pid)
    namespace = _namespace()
    return f"{namespace}/{pid}/{started}" if namespace and started else ""


if hasattr(os, "register_at_fork"):
    # A descendant may be given the number of an ancestor that has ended. As that one, it would seem
    # to have ended, too.
    os.register_at_fork(after_in_child=_identity.cache_clear)


def _namespace() -> str:
    """This boot of this machine, and the namespace of its process numbers."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink(PROC / 'self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """When a process started, in ticks; "" if it is a zombie; None if that cannot be read."""
    try:
        fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


def ended(identity: str) -> bool:
    """Whether the process of an identity has surely ended; False whenever in doubt.

    >>> ended(current()), ended("")
    (False, False)
    """
    without_start, _, started = identity.rpartition("/")
    namespace, _, number = without_start.rpartition("/")
    # A process of another machine or boot cannot be asked about. Its lease is left to run out:
    # taken over early, two processes would draw noise for one charge.
    if not namespace or not number.isdigit() or namespace != _namespace():
        return False
    # Signal 0 is not sent; it only asks whether there is such a process.
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    # The number may have been given to a later process. Where the start cannot be read, the
    # process counts as alive.
    now = _started(int(number))
    return now is not None and now != started
