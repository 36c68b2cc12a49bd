"""The error tree. Every message has three parts: what was asked, what stands in the way, what to do next.

SfumatoError
 +- UsageError          a parameter or a plan is wrong                      exit 2
 |   +- BoundsRequired      an axis has no public bounds
 |   +- Infeasible          no setting satisfies the request
 +- BudgetExceeded      .requested .remaining .account                      exit 3
 +- DataError           file, schema or engine problem; never quotes a value exit 4
 +- LedgerError         .account                                            exit 5
InternalError           a fault of ours; asks for a report                  exit 70
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class SfumatoError(Exception):
    """A refusal with a reason: ``asked``, ``obstacle`` and ``remedy`` are its three sentences, without full stops.

    No part may hold a value of the data or a fact about them that was not paid for: names of columns, parameters,
    paths and public bounds only.
    """

    exit_code = 1

    def __init__(self, asked: str, obstacle: str, remedy: str) -> None:
        super().__init__(asked, obstacle, remedy)
        self.asked, self.obstacle, self.remedy = asked, obstacle, remedy

    def __str__(self) -> str:
        return f"{self.asked}: {self.obstacle}{'' if self.obstacle.endswith('?') else '.'} {self.remedy}."


class UsageError(SfumatoError, ValueError):
    """A parameter or a plan is wrong."""

    exit_code = 2


class BoundsRequired(UsageError):
    """An axis has no public bounds, and bounds are never read off the data."""


class Infeasible(UsageError):
    """No setting satisfies the request; the remedy says which constraint to relax, and by how much."""


class BudgetExceeded(SfumatoError):
    """The account cannot pay. ``requested`` and ``remaining`` are in the account's own measure."""

    exit_code = 3

    def __init__(
        self, asked: str, obstacle: str, remedy: str, *, requested: object = None, remaining: object = None, account: str = ""
    ) -> None:
        super().__init__(asked, obstacle, remedy)
        self.requested, self.remaining, self.account = requested, remaining, account


class DataError(SfumatoError):
    """A file, a schema or an engine stands in the way. Never quotes a value."""

    exit_code = 4


class LedgerError(SfumatoError):
    """The ledger cannot be read, written or trusted."""

    exit_code = 5

    def __init__(self, asked: str, obstacle: str, remedy: str, *, account: str = "") -> None:
        super().__init__(asked, obstacle, remedy)
        self.account = account


class InternalError(Exception):
    """A fault of ours: please report it, with the message, which holds no data."""

    exit_code = 70


class SfumatoWarning(UserWarning):
    """Something works, and is not what most people want."""


def without_frames(function: Callable[P, T]) -> Callable[P, T]:
    """Let a public function raise its errors without the frames below it, and unforeseen ones without their words.

    The frames' local variables hold rows and true counts, and tools that report errors store local variables; what an
    engine says of a value may quote it. Nothing else is lost: our own messages stay whole, and a fault of ours names
    its place.
    """

    @functools.wraps(function)
    def guarded(*args: P.args, **named: P.kwargs) -> T:
        failure: BaseException
        try:
            return function(*args, **named)
        except (SfumatoError, InternalError, KeyboardInterrupt, GeneratorExit) as error:
            failure = error
        except BaseException as error:
            called = error.__traceback__ is not None and error.__traceback__.tb_next is not None
            # Arguments that do not fit the function at all are an error of its caller.
            failure = InternalError(_fault(error)) if called else error
        # Outside the except block, so that Python adds no context again.
        del args, named
        bare(failure)
        try:
            raise failure
        finally:
            del failure

    return guarded


def _fault(error: BaseException) -> str:
    return f"A fault of ours: {place_of(error)}. Please report this line; it holds no data."


def bare(error: BaseException) -> None:
    """Take from an error its frames, and the errors behind it, whose texts may quote what they met."""
    error.__traceback__ = error.__cause__ = error.__context__ = None


def place_of(error: BaseException) -> str:
    """The kind of an unforeseen error and where it came from; its own text might quote data, so it is left out."""
    import traceback
    from pathlib import Path

    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(frame.filename).name}, line {frame.lineno}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Name the known word closest to a wrong one, as half a sentence.

    >>> nearest("carier", ["carrier", "hour"])
    "did you mean 'carrier'?"
    >>> nearest("x", ["carrier", "hour"])
    "there are 'carrier', 'hour'"
    """
    words = [str(word) for word in known]
    close = difflib.get_close_matches(name, words, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    shown = ", ".join(repr(word) for word in words[:12])
    return f"there are {shown}" + (", ..." if len(words) > 12 else "") if words else "there are none"
