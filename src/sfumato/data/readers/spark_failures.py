"""Say what failed in Spark, without a word of its messages: they quote values of the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sfumato.data.guard import guarded
from sfumato.errors import DataError, InternalError, SfumatoError

T = TypeVar("T")

_STOPPED = (
    "its SparkSession was stopped, or its server does not answer",
    "Start a session, and make the DataFrame in it",
)
_GONE = (
    "the table, or a file of it, is no longer there",
    "Make the DataFrame again when nobody writes to the table",
)
_CONDITIONS = {
    "TABLE_OR_VIEW_NOT_FOUND": _GONE,
    "PATH_NOT_FOUND": _GONE,
    "FAILED_READ_FILE": _GONE,
    "FAILED_READ_FILE.FILE_NOT_EXIST": _GONE,
    # Over Connect files are listed at the first use of a DataFrame, and here none was found.
    "UNABLE_TO_INFER_SCHEMA": _GONE,
    "SESSION_CLOSED": _STOPPED,
    "INVALID_HANDLE.SESSION_CLOSED": _STOPPED,
    "INVALID_HANDLE.SESSION_NOT_FOUND": _STOPPED,
    "NO_ACTIVE_SESSION": _STOPPED,
}
"""What Spark's error conditions mean; they are names, and hold no value."""


def spark_guarded(name: str, frame: object, action: Callable[[], T]) -> T:
    """Do something with Spark. If it fails, say which kind of failure it was, and no more.

    Parameters
    ----------
    name : str
        What the error calls the table.
    frame : DataFrame or SparkSession
    action : callable
    """
    try:
        return action()
    except (SfumatoError, InternalError, KeyboardInterrupt):
        raise
    except BaseException as error:
        known = _known(error, frame)
        kept = error if known is None else None
    # Raised outside the except block: the context that Python adds there would quote values.
    if known is not None:
        raise DataError(name, *known)

    def again() -> T:
        assert kept is not None
        raise kept

    return guarded(name, again)


def _known(error: BaseException, frame: object) -> tuple[str, str] | None:
    """What stands in the way, and what to do; None where it is not known."""
    condition = getattr(error, "getCondition", lambda: None)()
    if condition in _CONDITIONS:
        return _CONDITIONS[condition]
    # Errors of Java that pyspark passes on name their condition, or that of their cause, in a text.
    said = "" if condition is not None else str(error)
    for name, known in _CONDITIONS.items():
        if f"[{name}]" in said:
            return known
    return _STOPPED if is_stopped(frame) else None


def is_stopped(frame: object) -> bool:
    """Whether the session of a DataFrame was stopped, as far as its client knows."""
    session = getattr(frame, "sparkSession", frame)
    if (stopped := getattr(session, "is_stopped", None)) is not None:
        return bool(stopped)
    context = getattr(session, "_sc", None)
    return context is not None and getattr(context, "_jsc", True) is None
