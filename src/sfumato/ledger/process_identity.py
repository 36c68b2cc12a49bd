"""Which process holds a lease, and whether it has surely ended."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

PROC = Path("/proc")


def current() -> str:
    """Name this process beyond reuse of its number, or return "" where the system does not tell."""
    return _named(os.getpid())


@lru_cache(maxsize=4)
def _named(pid: int) -> str:
    started = _started(pid)
    place = _place()
    return f"{place}/{pid}/{started}" if place and started else ""


def _place() -> str:
    """The boot of this machine and the space of process numbers in it."""
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


def ended(holder: str) -> bool:
    """Whether the process that took a lease has surely ended; False whenever in doubt.

    >>> ended(current()), ended("")
    (False, False)
    """
    place, _, started = holder.rpartition("/")
    place, _, number = place.rpartition("/")
    if not place or not number.isdigit() or place != _place():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    now = _started(int(number))
    return now is not None and now != started
