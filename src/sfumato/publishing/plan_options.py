"""What a plan asks of each question: how accurate it must be, and what it weighs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, get_args

from sfumato.answers.accuracy import Within
from sfumato.answers.question import AnyQuestion, Question
from sfumato.basics.numbers import Exactly, positive
from sfumato.errors import UsageError, is_one_of, nearest, shown

Minimised: TypeAlias = Literal["absolute", "squared"]
"""Which error of all numbers together the shares make as small as they can be."""

PlanNoise: TypeAlias = Literal["laplace", "gaussian"]

Accuracies: TypeAlias = tuple[Within | None, ...]
Weights: TypeAlias = tuple[Fraction, ...]

if TYPE_CHECKING:
    # What is given; what is stored is one entry for each question, in their order. A Mapping would
    # have to have exactly this type of keys: a dict of histograms would be refused.
    Wanted: TypeAlias = Within | Exactly | None

    class WantedByQuestion(Protocol):
        def items(self) -> Iterable[tuple[AnyQuestion | str, Wanted]]: ...

    class WeightsByQuestion(Protocol):
        def items(self) -> Iterable[tuple[AnyQuestion | str, Exactly]]: ...

    GivenAccuracies: TypeAlias = WantedByQuestion | Sequence[Wanted] | Wanted
    GivenWeights: TypeAlias = WeightsByQuestion | Sequence[Exactly | None]
else:
    GivenAccuracies = Accuracies
    GivenWeights = Weights


def read_accuracies(given: object, questions: Sequence[AnyQuestion]) -> Accuracies:
    """How accurate each question must be; None for those of which nothing is asked.

    Parameters
    ----------
    given : Within, number, list or dict
        One for all questions, one for each of them in their order, or some of them by question or
        name.

    Raises
    ------
    UsageError
        If one is no accuracy, belongs to no question or to several, or none is given.
    """
    if isinstance(given, Within | str) or not isinstance(given, Mapping | Sequence):
        given = [given] * len(questions)
    found = tuple(map(_within, _by_question(given, questions, "accuracies", "sf.Within(20)")))
    if not any(found):
        obstacle = "it asks nothing of any question"
        raise UsageError("the accuracy of a plan", obstacle, "Write accuracy=sf.Within(20)")
    return found


def read_weights(given: object, questions: Sequence[AnyQuestion]) -> Weights:
    """What the errors of each question weigh; 1 for those of which nothing is said.

    Raises
    ------
    UsageError
        If one is not a number above 0, or belongs to no question or to several.
    """
    if isinstance(given, str) or not isinstance(given, Mapping | Sequence):
        asked = f"weights of type {type(given).__name__}"
        raise UsageError(asked, "weights are a list or a dict", "Write weights=[2, 1]")
    found = _by_question(given, questions, "weights", "2")
    return tuple(
        Fraction(1) if one is None else positive(one, "a weight")  # type: ignore[arg-type]
        for one in found
    )


def check_word(value: object, name: str, words: object) -> None:
    """Refuse a word that is none of those listed."""
    known: tuple[str, ...] = get_args(words)
    if not is_one_of(value, known):
        obstacle = f"it is unknown; {nearest(value, known)}"
        raise UsageError(f"{name} = {shown(value)}", obstacle, f'Write {name}="{known[0]}"')


MOST_ROWS = 10**15  # of a guess


def check_rows(rows: object) -> None:
    """Refuse a guess of the number of rows that is none."""
    if rows is None:
        return
    if isinstance(rows, int) and not isinstance(rows, bool) and 0 <= rows <= MOST_ROWS:
        return
    raise UsageError(
        "rows",
        "your guess of the number of rows is a whole number from 0 to 10^15",
        "Write rows=100_000",
    )


def _within(given: object) -> Within | None:
    if given is None or isinstance(given, Within):
        return given
    try:
        # Whatever is no number is refused there.
        return Within(given)  # type: ignore[arg-type]
    except UsageError as error:
        where = f"the accuracy of a plan, {error.asked}"
        remedy = "Give a half-width above 0, or sf.Within(20, simultaneous=True)"
        raise UsageError(where, error.obstacle, remedy) from None


def _by_question(
    given: Mapping[object, object] | Sequence[object],
    questions: Sequence[AnyQuestion],
    what: str,
    example: str,
) -> list[object]:
    """One entry for each question, in their order; None where nothing is given."""
    number = len(questions)
    if not isinstance(given, Mapping):
        if len(given) != number:
            asked = f"{len(given)} {what} for {number} questions"
            remedy = f'Give one for each, or some by name: {{"{questions[0].title}": {example}}}'
            raise UsageError(asked, "there is one for each question", remedy)
        return list(given)
    found: list[object] = [None] * number
    for key, value in given.items():
        for i in _places(key, questions, what):
            found[i] = value
    return found


def _places(key: object, questions: Sequence[AnyQuestion], what: str) -> list[int]:
    """Which questions are meant by a question, a title or a heading."""
    if isinstance(key, Question):
        places = [i for i, each in enumerate(questions) if each == key]
        if places:
            return places
        remedy = "Name questions of the plan"
        raise UsageError(f"{what} of {key.title}", "the plan does not ask it", remedy)
    named = [_names(each) for each in questions]
    places = [i for i, names in enumerate(named) if key in names]
    if not places:
        every = [name for names in named for name in names]
        obstacle = f"no question has that name; {nearest(key, every)}"
        raise UsageError(f"{what} of {shown(key)}", obstacle, "Name a question by its title")
    if any(questions[i] != questions[places[0]] for i in places):
        obstacle = f"{len(places)} questions have that name"
        remedy = "Give each question a heading= of its own, or a list with one entry for each"
        raise UsageError(f"{what} of {shown(key)}", obstacle, remedy)
    return places


def _names(question: AnyQuestion) -> list[str]:
    """What a question is called: its heading, if it has one, and its title."""
    captions = question.captions
    heading = "" if captions is None else captions.heading
    return [name for name in (heading, question.title) if name]
