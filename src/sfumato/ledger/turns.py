"""One caller at a time: no second thread, and no signal handler within one thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from sfumato.errors import LedgerError
from sfumato.ledger.store import IN_USE, OUTSIDE, REOPEN

T = TypeVar("T")


class Turns:
    """Gives something that cannot be shared to one caller at a time, until it is closed.

    Parameters
    ----------
    label : str
        What messages call it.

    Attributes
    ----------
    lock : RLock
        Whoever holds it keeps all others out, also from closing.
    closed : bool
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self.closed = False
        self.renew()

    def renew(self) -> None:
        """Begin with a new lock, as a child process must: its parent may hold the old one."""
        self.lock = threading.RLock()
        self._entered = False

    def alone(self, action: Callable[[], T]) -> T:
        """Run an action while nobody else can run one.

        Raises
        ------
        LedgerError
            If this thread is in the middle of another one, or it is closed.
        """
        # The lock keeps other threads out, and lets this thread in again. So a flag refuses a
        # signal handler that interrupts this thread here: what it does would become part of the
        # open transaction. The ``with`` of a lock leaves no gap for an interrupt.
        with self.lock:
            if self._entered:
                raise LedgerError(self.label, IN_USE, OUTSIDE)
            if self.closed:
                raise LedgerError(self.label, "it is closed", REOPEN)
            self._entered = True
            try:
                return action()
            finally:
                self._entered = False
