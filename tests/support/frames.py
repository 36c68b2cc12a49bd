"""What an exception carries out of a call.

It carries its frames with their local variables, the exceptions behind it, and those of threads.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from traceback import TracebackException, walk_tb
from types import FrameType
from typing import Any

import sfumato

ROOT = str(Path(sfumato.__file__).parent)
# The guard itself holds what the caller gave, as the caller does; generators are entered to close.
PASSED = ("guarded", "<genexpr>")


@dataclass
class Escaped:
    """The exceptions that came out of a call, as a tool would store them that reports errors."""

    errors: list[BaseException] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def add(self, error: BaseException) -> None:
        """Keep an exception with all that hangs on it, local variables included."""
        for one in _chain(error):
            told = TracebackException(type(one), one, one.__traceback__, capture_locals=True)
            self.errors.append(one)
            self.texts.append("".join(told.format()))
            self.texts.append(f"{one!r} {one.args!r} {vars(one)!r} {getattr(one, '__notes__', '')}")

    @property
    def frames(self) -> list[FrameType]:
        """Frames of the library, and of what it called, from the public call on."""
        found = []
        for error in self.errors:
            frames = [frame for frame, _ in walk_tb(error.__traceback__)]
            inside = [
                i for i, frame in enumerate(frames) if frame.f_code.co_filename.startswith(ROOT)
            ]
            found += frames[inside[0] :] if inside else []
        return found

    def seen(self, canaries: set[str]) -> set[str]:
        """Which canaries are in any text."""
        return {
            canary
            for canary in canaries
            if any(
                re.search(rf"(?<![0-9a-zA-Z]){canary}(?![0-9a-zA-Z])", text) for text in self.texts
            )
        }


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    waiting: list[Any] = [error]
    known: set[int] = set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, BaseException) and id(one) not in known:
            known.add(id(one))
            yield one
            waiting += [
                one.__cause__,
                one.__context__,
                *getattr(one, "exceptions", ()),
                *one.args,
                *vars(one).values(),
            ]


def escaped(call: Callable[[], object]) -> Escaped:
    """Run a call, and keep every exception of it.

    Some come out of the call, some are left by its threads, some Python can only report.
    """
    found = Escaped()
    before = threading.excepthook, sys.unraisablehook
    threading.excepthook = lambda args: (
        found.add(args.exc_value) if args.exc_value is not None else None
    )
    sys.unraisablehook = lambda args: (
        found.add(args.exc_value) if args.exc_value is not None else None
    )
    try:
        call()
    except BaseException as error:  # whatever comes out
        found.add(error)
    finally:
        threading.excepthook, sys.unraisablehook = before
    return found


class Fault:
    """Raises at the n-th entry of a function of the library; counts the entries only if n is 0.

    Parameters
    ----------
    at : int
    make : callable
        Makes the exception.
    after, before : str
        Entries count once a function named ``after`` was entered, and until one named ``before``
        is; "": all of them.
    """

    def __init__(
        self, at: int, make: Callable[[], BaseException], after: str = "", before: str = ""
    ) -> None:
        self.entries, self._at, self._make, self._after, self._before = 0, at, make, after, before

    def __enter__(self) -> Fault:
        sys.setprofile(self._look)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _look(self, frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_name
        if (
            event != "call"
            or not frame.f_code.co_filename.startswith(ROOT)
            or name in PASSED
            or _is_finalised(frame)
        ):
            return
        if self._after:
            self._after = "" if name == self._after else self._after
            return
        if name == self._before:
            sys.setprofile(None)
            return
        self.entries += 1
        if self.entries == self._at:
            sys.setprofile(None)
            raise self._make()


def _is_finalised(frame: FrameType | None) -> bool:
    """Whether an object goes: Python catches what is raised there."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False
