"""Stopping at a signal, between two steps and never within one."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class StopRequest:
    """Whether a signal (Ctrl-C, or SIGTERM) has asked the command to stop.

    While the command waits for input it stops at once; while it works on a step, it stops when
    that step is published and printed.
    """

    def __init__(self) -> None:
        self.asked = False
        self._waiting = False

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Catch SIGINT and SIGTERM while the block runs."""
        handlers = {
            number: signal.signal(number, self._caught)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _caught(self, number: int, frame: object) -> None:
        self.asked = True
        if self._waiting:
            raise _Stop

    def until_asked(self, items: Iterator[T]) -> Iterator[T]:
        """Pass items on until they end or a signal comes."""
        while not self.asked:
            # The handler may raise only between these two assignments, where nothing is half done:
            # an item is either not read yet, or returned.
            self._waiting = True
            try:
                item = next(items, None)
            except _Stop:
                return
            finally:
                self._waiting = False
            if item is None:
                return
            yield item


class _Stop(Exception):
    """A signal came while the command was waiting for input."""
