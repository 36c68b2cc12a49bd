"""Sentences about several answers are said once."""

from __future__ import annotations

from sfumato.answers.release import said_once, which_answers


def test_answers_are_named_by_their_places() -> None:
    assert which_answers([1], 3) == "Answer 2"
    assert which_answers([0, 2], 3) == "Answers 1 and 3"
    assert which_answers([0, 1, 3], 4) == "Answers 1, 2 and 4"
    assert which_answers([0, 1, 2], 3) == "Each of the 3 answers"


def test_each_sentence_stands_once_in_the_order_of_the_answers() -> None:
    assert said_once(["b", "a", "b"]) == ["Answers 1 and 3: b", "Answer 2: a"]
    assert said_once(["a"]) == ["a"]
    assert said_once([]) == []
