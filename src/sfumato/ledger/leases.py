"""Leases of this process under which nobody works, and how a process is known to have ended.

*Own leases*: their caller was given an error. A connection may be cut after the server has
committed a charge and before the caller hears of it; an anchor may be on a full disk. Then the
charge stands, and so does its lease, for a process that knows nothing of it. This process remembers
what it tried to write, by the hash of the entry. So it goes on at once when it is asked again. All
others wait for the lease to end, as for any other. The hash tells the lease from those of all
others, other threads of this process included: it covers the time, the process and all entries
before.

*The identity of a process*, and whether that process has surely ended. A lease of a process that
has ended is free at once. To take over the lease of one that still works would answer one key
twice, so every doubt counts as "still works".
"""

from __future__ import annotations

import os
import threading
from functools import lru_cache
from pathlib import Path

from sfumato.basics import renewed_in_children
from sfumato.ledger.entries import Entry


class OwnLeases:
    """Leases that this process wrote, or may have written, and that none of its threads uses.

    A lease is *unused* if no data were read under it: it may be used as it is. It is *ended* if
    somebody did read data under it, and could not tell the ledger that they gave up.
    """

    def __init__(self) -> None:
        self._renew()
        renewed_in_children(self, OwnLeases._renew)

    def _renew(self) -> None:
        """Begin with none, as a child process must: it is another process than the one that wrote.

        The lock is new as well: a thread of the parent may hold the old one.
        """
        self._lock = threading.Lock()
        self._unused: set[str] = set()
        self._ended: set[str] = set()

    def add_unused(self, entry: Entry) -> None:
        """Remember a lease that may be there, and of which no caller was told."""
        with self._lock:
            self._unused.add(entry.hash)

    def add_ended(self, entry: Entry) -> None:
        """Remember a lease whose caller gave up, which the ledger does not know."""
        with self._lock:
            self._ended.add(entry.hash)

    def is_unused(self, entry: Entry) -> bool:
        """Whether the last entry of a key is a lease that this process may use as it is."""
        return entry.hash in self._unused

    def is_ended(self, entry: Entry) -> bool:
        """Whether the last entry of a key is a lease that its caller gave up."""
        return entry.hash in self._ended

    def use(self, entry: Entry) -> bool:
        """Take an unused lease; no where another thread was faster."""
        # Asked and taken under one lock: two threads would otherwise answer under one lease.
        with self._lock:
            if not self.is_unused(entry):
                return False
            self._unused.discard(entry.hash)
            return True


OWN_LEASES = OwnLeases()
"""Those of this process, in whatever ledgers they are."""


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
