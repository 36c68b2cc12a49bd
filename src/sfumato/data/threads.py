"""Threads that share the work of one scan, and end together.

Every kernel that a scan spends its time in releases the interpreter's lock, so threads count at the
same time. Each works on what is its own; what is shared is handed out under a lock (``Turns``).

The calling thread works as well, and it alone calls code of the user. If a thread fails, the others
end at their next step, and the first error is raised in the calling thread. So does an interrupt,
which Python delivers to the main thread: no thread outlives the call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")


class Turns(Generic[T]):
    """Hands out what an iterator gives to several threads, one at a time."""

    def __init__(self, given: Iterable[T]) -> None:
        self._given = iter(given)
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        with self._lock:
            return next(self._given)


class Team:
    """Threads that end together.

    Attributes
    ----------
    is_ending : bool
        Whether a thread has failed, or the calling one was interrupted: work looks at it at each
        step, and ends.
    """

    def __init__(self) -> None:
        self.is_ending = False
        self._lock = threading.Lock()
        self._error: BaseException | None = None

    def work(self, parts: Sequence[Callable[[], None]]) -> None:
        """Do the parts at the same time: the first in the calling thread, each other in its own.

        Raises
        ------
        BaseException
            The first error of any part, without the frames of another thread; or the interrupt.
        """
        others = [_Other(partial(self._try, part)) for part in parts[1:]]
        try:
            for other in others:
                other.start()
            try:
                parts[0]()
            # An interrupt, or a request to exit, is no error of a part, and passes at once.
            except Exception as failure:
                self._end_with(failure)
            for other in others:
                other.wait()
        except BaseException:
            self.is_ending = True
            for other in others:
                other.wait()
            raise
        error = self._error
        self._error = None
        if error is not None:
            try:
                raise error
            finally:
                # Otherwise the error and this frame would keep each other alive.
                del error

    def _try(self, part: Callable[[], None]) -> None:
        """Do a part in a thread of its own."""
        if self.is_ending:
            return
        try:
            part()
        except BaseException as error:
            self._end_with(error)
            # Another thread's frames hold rows, and mean nothing here.
            error.__traceback__ = None

    def _end_with(self, error: BaseException) -> None:
        """Let all parts end, as one has failed; the first error is kept."""
        with self._lock:
            if not self.is_ending:
                self.is_ending = True
                self._error = error


class _Other:
    """A thread beside the calling one."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self._action()
        finally:
            self._has_ended.set()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wait(self) -> None:
        """Wait until it has ended, if it has begun.

        ``join`` alone does not do: interrupted, it takes a thread that runs for one that has ended.
        """
        if self._thread.ident is not None:
            self._has_ended.wait()
            self._thread.join()
