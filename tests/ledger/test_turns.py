"""One caller at a time."""

from __future__ import annotations

import threading

import pytest

from sfumato.errors import LedgerError
from sfumato.ledger.sqlite_file import Turns


def test_a_second_thread_waits_until_the_first_is_done() -> None:
    turns = Turns("it")
    began = threading.Event()
    seen: list[str] = []

    def second() -> None:
        began.set()
        turns.alone(lambda: seen.append("second"))

    thread = threading.Thread(target=second)

    def first() -> None:
        thread.start()
        began.wait()
        seen.append("first")

    turns.alone(first)
    thread.join()
    assert seen == ["first", "second"]


def test_a_caller_in_the_middle_of_a_turn_is_refused_and_the_turn_goes_on() -> None:
    turns = Turns("it")

    def within() -> str:
        with pytest.raises(LedgerError, match="in the middle of using it"):
            turns.alone(lambda: None)
        return "done"

    assert turns.alone(within) == "done"
    assert turns.alone(lambda: "next") == "next"


def test_a_turn_that_fails_leaves_nothing_behind() -> None:
    turns = Turns("it")
    with pytest.raises(ZeroDivisionError):
        turns.alone(lambda: 1 // 0)
    assert turns.alone(lambda: "next") == "next"


def test_what_was_closed_says_so_also_with_a_new_lock() -> None:
    turns = Turns("it")
    turns.closed = True
    turns.renew()
    with pytest.raises(LedgerError, match="it: it is closed"):
        turns.alone(lambda: None)
