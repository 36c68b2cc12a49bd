"""What fails in Spark is said without a word of its own."""

from __future__ import annotations

import pytest

from sfumato.data.readers.spark import is_stopped, spark_guarded
from sfumato.errors import DataError, UsageError

CANARY = "hunter2-canary"


class SparkError(Exception):
    def __init__(self, condition: str | None) -> None:
        super().__init__(f"[{condition}] the value {CANARY} is malformed")
        self.condition = condition

    def getCondition(self) -> str | None:
        return self.condition


class Session:
    def __init__(self, *, is_stopped: bool) -> None:
        self.is_stopped = is_stopped


def failure(error: BaseException, session: Session) -> DataError:
    def fail() -> None:
        raise error

    with pytest.raises(DataError) as raised:
        spark_guarded("visits", session, fail)
    found = raised.value
    assert CANARY not in str(found)
    assert found.__cause__ is None
    assert found.__context__ is None
    return found


@pytest.mark.parametrize(
    ("condition", "stopped", "words"),
    [
        ("FAILED_READ_FILE.FILE_NOT_EXIST", False, "no longer there"),
        ("TABLE_OR_VIEW_NOT_FOUND", False, "no longer there"),
        ("UNABLE_TO_INFER_SCHEMA", False, "no longer there"),
        ("NO_ACTIVE_SESSION", False, "its SparkSession was stopped"),
        (None, True, "its SparkSession was stopped"),
        ("CAST_INVALID_INPUT", False, "its message is withheld"),
    ],
)
def test_the_kind_of_a_failure_is_said(condition: str | None, stopped: bool, words: str) -> None:
    found = failure(SparkError(condition), Session(is_stopped=stopped))
    assert words in str(found)


def test_other_errors_are_said_by_their_kind() -> None:
    assert "ValueError" in str(failure(ValueError(CANARY), Session(is_stopped=False)))


def test_an_error_of_java_names_its_condition_in_a_text() -> None:
    error = RuntimeError(f"o7.collect: x: [FAILED_READ_FILE.FILE_NOT_EXIST] {CANARY} is gone")
    assert "no longer there" in str(failure(error, Session(is_stopped=False)))


def test_a_refusal_of_ours_stays_as_it_is() -> None:
    def refuse() -> None:
        raise UsageError("asked", "obstacle", "Remedy")

    with pytest.raises(UsageError):
        spark_guarded("visits", Session(is_stopped=False), refuse)


def test_a_classic_session_without_its_context_is_stopped() -> None:
    context = type("Context", (), {"_jsc": None})()
    assert is_stopped(type("Classic", (), {"_sc": context})())
    assert not is_stopped(object())
