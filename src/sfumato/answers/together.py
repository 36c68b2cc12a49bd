"""What is true of several answers is said once, with the answers that it is true of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def which_answers(together: Sequence[int], number: int) -> str:
    """Name answers of a plan, by their places from 0 on, as the subject of a sentence.

    >>> which_answers([0, 2, 3], 4), which_answers([1], 4), which_answers([0, 1], 2)
    ('Answers 1, 3 and 4', 'Answer 2', 'Each of the 2 answers')
    """
    if len(together) == number:
        return f"Each of the {number:,} answers"
    *others, last = [f"{at + 1:,}" for at in together]
    return f"Answers {', '.join(others)} and {last}" if others else f"Answer {last}"


def said_once(texts: Iterable[str]) -> list[str]:
    """Texts that are said of answers, each once, with the answers that it is said of.

    >>> said_once(["a", "b", "a"]), said_once(["a"]), said_once(["a", "a"])
    (['Answers 1 and 3: a', 'Answer 2: b'], ['a'], ['Each of the 2 answers: a'])
    """
    found: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        found.setdefault(text, []).append(number)
    answers = sum(map(len, found.values()))
    if answers < 2:
        return list(found)
    return [f"{which_answers(together, answers)}: {text}" for text, together in found.items()]
