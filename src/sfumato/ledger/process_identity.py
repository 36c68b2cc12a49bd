"""The identity of a process, and whether that process has surely ended.

A lease of a process that has ended is free at once. To take over the lease of one that still works
would answer one key twice, so every doubt counts as "still works".
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

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
    if not namespace or not number.isdigit() or namespace != _namespace():
        return False
    # Signal 0 is not sent; it only asks whether there is such a process.
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    now = _started(int(number))
    return now is not None and now != started
