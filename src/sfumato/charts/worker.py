"""Pictures of releases for a page, drawn by several processes where there are many.

``python -m sfumato.charts.worker`` is one of them: it reads an order on each line, and writes the
pictures on a line, until there are no more orders. It gets what a release says as JSON, and no
file. What it does not draw, because it cannot, warns, or was ended, is drawn by the process that
asked. So pages are the same to the last byte.

Processes are started by their command and not by ``multiprocessing``: that would run the user's
script once more in each of them, or copy locks that other threads hold.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeAlias

import msgspec

from sfumato.answers import Panels, Release, stored_releases
from sfumato.basics import thread_limit, to_bytes
from sfumato.charts import style

# With fewer, no process is worth its start.
LEAST_ORDERS = 20

# One for a page, and the same for a phone: SVG.
Pictures: TypeAlias = tuple[str, ...]


class Order(msgspec.Struct, frozen=True):
    """A release to draw.

    Attributes
    ----------
    release : Release
    title, description : str
        What a reader who cannot see the pictures is told.
    name : str
        Distinct for each order of a page.
    """

    release: Release
    title: str
    description: str
    name: str

    def pictures(self) -> Pictures:
        """Draw the release in this process."""
        return pictures(self.release.plot, self.title, self.description, self.name)


# The fields of an order; the release is JSON.
_Line: TypeAlias = tuple[msgspec.Raw, str, str, str]


def pictures(plot: Callable[[], Panels], title: str, description: str, name: str) -> Pictures:
    """Draw for a page, and the same for a phone; what is told and named is as for an `Order`."""
    drawn = []
    with style.house():
        for width, size in ((style.WIDE, "wide"), (style.NARROW, "narrow")):
            with style.sized(width):
                (ax, *_) = style.panels_of(plot())
            figure = style.figure_of(ax)
            drawn.append(style.svg(figure, title, description, name=f"{name}-{size}"))
    return tuple(drawn)


def drawn_together(orders: Sequence[Order]) -> list[Pictures]:
    """Draw all orders, in worker processes too where there are many; the pictures of each."""
    desk = _Desk(orders)
    workers = _started(desk)
    try:
        # This process draws as well, from the first moment on.
        with _at_work():
            for at in desk:
                desk.done[at] = orders[at].pictures()
    except BaseException:
        for worker in workers:
            worker.process.kill()
        raise
    finally:
        for worker in workers:
            worker.thread.join()
    return [
        order.pictures() if drawn is None else drawn
        for order, drawn in zip(orders, desk.done, strict=True)
    ]


@contextmanager
def _at_work() -> Iterator[None]:
    """Do what each picture would else do by itself, and takes long, once for all of them."""
    # Pictures leave much garbage, and nobody need look for it among what was there before.
    is_frozen_here = not gc.get_freeze_count()
    if is_frozen_here:
        gc.freeze()
    try:
        with style.house():
            yield
    finally:
        if is_frozen_here:
            gc.unfreeze()


def _started(desk: _Desk) -> list[_Worker]:
    """Start workers, one for each further core, if there is enough for them to do."""
    # The path may be that of a program that has Python inside it.
    is_python = "python" in os.path.basename(sys.executable or "").lower()
    if len(desk.orders) < LEAST_ORDERS or not is_python:
        return []
    try:
        return [_Worker(desk) for _ in range(thread_limit() - 1)]
    except OSError:  # no further process may run; those that do end without us
        return []


class _Desk:
    """Hands out the numbers of orders, each once; ``done`` has their pictures."""

    def __init__(self, orders: Sequence[Order]) -> None:
        self.orders = orders
        self.done: list[Pictures | None] = [None] * len(orders)
        self._next = iter(range(len(orders)))
        self._lock = threading.Lock()

    def __iter__(self) -> _Desk:
        return self

    def __next__(self) -> int:
        with self._lock:
            return next(self._next)


class _Worker:
    """A process that draws, and the thread that brings it orders."""

    def __init__(self, desk: _Desk) -> None:
        # The modules of this process, wherever it found them, and none from the current folder.
        paths = os.pathsep.join(filter(None, sys.path))
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": paths},
        )
        self._desk = desk
        self.thread = threading.Thread(target=self._bring, daemon=True)
        self.thread.start()

    def _bring(self) -> None:
        """Bring orders until there are no more, or the process has ended; then it ends."""
        # What a process leaves undone, because it ended or says what is not understood, is drawn
        # where all orders come together.
        with suppress(OSError, TypeError, ValueError), self.process as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for at in self._desk:
                process.stdin.write(_written(self._desk.orders[at]) + b"\n")
                process.stdin.flush()
                reply = process.stdout.readline()
                self._desk.done[at] = msgspec.json.decode(reply, type=Pictures | None)


def _written(order: Order) -> bytes:
    release = msgspec.Raw(to_bytes(order.release))
    line: _Line = (release, order.title, order.description, order.name)
    return msgspec.json.encode(line)


def _reply(line: bytes) -> bytes:
    """Return the pictures of an order as JSON: null if they cannot be drawn without a warning."""
    try:
        written, *told = msgspec.json.decode(line, type=_Line)
        (release,) = stored_releases(b"[%b]" % written)
        return msgspec.json.encode(Order(release, *told).pictures())
    except Exception:
        # Whatever it is, the process that asked meets it as well, and tells its user.
        return b"null"


def main() -> None:
    """Draw orders from stdin until it ends."""
    gc.set_threshold(100_000)  # a picture makes about as many objects, and leaves few of them
    replies = sys.stdout.buffer
    sys.stdout = sys.stderr  # nothing else is a reply
    warnings.simplefilter("error")
    with _at_work():
        for line in sys.stdin.buffer:
            replies.write(_reply(line) + b"\n")
            replies.flush()


if __name__ == "__main__":
    main()
