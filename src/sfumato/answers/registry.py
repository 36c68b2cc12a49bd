"""Which questions and answers there are: those that the stub lists, and those that register.

What is listed is imported when it is first needed. What a file holds never decides what is
imported: a file names a question by its tag, and only tags of registered classes are understood.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, reduce
from operator import or_
from typing import ForwardRef, TypeVar, cast

import msgspec

from sfumato.answers.installed import Declared, declared
from sfumato.answers.question import AnyQuestion, Question
from sfumato.answers.release import Release
from sfumato.basics import imported, listed
from sfumato.basics.structs import DECODERS, from_plain
from sfumato.errors import InternalError, SfumatoError, UsageError, nearest
from sfumato.privacy import Proof

Q = TypeVar("Q", bound=type[Question[Release]])
T = TypeVar("T")

LONGEST_REASON = 200

# Questions that other packages registered, by their tag.
_outside: dict[str, type[Question[Release]]] = {}

# Why questions that installed packages declare are not known, by the names that they declare.
_refused: dict[str, UsageError] = {}


@cache
def questions() -> tuple[type[Question[Release]], ...]:
    """All kinds of questions, in the order of the registry; those of other packages last."""
    return (*map(listed_question, listed("sfumato.questions").values()), *_outside.values())


def listed_question(place: str) -> type[Question[Release]]:
    """Import a question that the library lists, by "module:Class"."""
    return _class(place, Question)


@cache
def releases() -> tuple[type[Release], ...]:
    """All kinds of answers."""
    # No question of the publisher's gives the answer of a stream.
    streamed = _class("sfumato.questions.counters:CounterRelease", Release)
    return tuple(dict.fromkeys([*map(answer_of, questions()), streamed]))


@cache
def question_type() -> type[Question[Release]]:
    """What a question is decoded as: the union of all kinds."""
    return reduce(or_, questions())


def _question(plain: object) -> object:
    """Decode a question by its tag; where that fails, name the field."""
    tag = plain.get("type") if isinstance(plain, dict) else None
    tags = [tag_of(kind) for kind in questions()]
    if isinstance(tag, str) and tag not in tags:
        if tag in _refused:
            raise _refused[tag]
        raise UsageError(
            f"a question of type {tag!r}",
            f"there is none of that name; {nearest(tag, tags)}",
            "Name one of them, or install the package that defines it",
        )
    try:
        return from_plain(plain, question_type())
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, SfumatoError):
            raise
        obstacle, _, path = str(error).partition(" - at `$")
    where = path.strip("`").lstrip(".")
    raise ValueError(f"{obstacle}, in `{where}`" if where else obstacle)


DECODERS[AnyQuestion] = _question


@cache
def release_type() -> type[Release]:
    """What a release is decoded as: the union of all kinds."""
    return reduce(or_, releases())


def answers_type(questions: Iterable[Question[Release]]) -> type[list[Release]]:
    """What the answers to some questions are decoded as.

    No other kind of answer is imported for it.
    """
    return list_of(reduce(or_, dict.fromkeys(answer_of(type(question)) for question in questions)))


def list_of(kind: type[Release]) -> type[list[Release]]:
    """What a list of such releases is decoded as."""
    return cast("type[list[Release]]", types.GenericAlias(list, (kind,)))


def tag_of(kind: type[msgspec.Struct]) -> str:
    """The name of a class in files."""
    return str(kind.__struct_config__.tag)


def answer_of(question: type[Question[Release]]) -> type[Release]:
    """Which answer a question gives, as ``class Total(Question[TotalRelease])`` says."""
    for base in getattr(question, "__orig_bases__", ()):
        for answer in getattr(base, "__args__", ()):
            if isinstance(answer, ForwardRef) and answer.__forward_arg__ in listed("sfumato"):
                return _class(listed("sfumato")[answer.__forward_arg__], Release)
            if isinstance(answer, type) and issubclass(answer, Release):
                return answer
    raise _not_registered(
        question,
        "it does not say which release answers it",
        "Write class Total(Question[TotalRelease], ...)",
    )


def register(question: Q) -> Q:
    """Make a question of your own known, so that it can be asked, stored, loaded and planned.

    Use it as a decorator. Defining the class again, as in a notebook, replaces it.

    Parameters
    ----------
    question : subclass of Question

    Returns
    -------
    The class itself.

    Raises
    ------
    UsageError
        If the class does not implement ``Question``, or its tag or that of its release is
        another's.

    >>> import sfumato as sf
    >>> from sfumato.extending import register
    >>> register(sf.Domain)
    Traceback (most recent call last):
    sfumato.errors.UsageError: registering Domain: it does not say which release answers it. ...
    """
    answer = answer_of(question)
    _require_whole(question, answer)
    before = _outside.get(tag_of(question))
    if before is question:
        return question
    # A class that is defined again, as a notebook does, takes the place of the former one.
    if before is not None and _same(question, before):
        del _outside[tag_of(question)]
        _clear()
    _require_fitting(question, questions())
    _require_fitting(answer, releases())
    _outside[tag_of(question)] = question
    _clear()
    return question


def _require_whole(question: type[Question[Release]], answer: type[Release]) -> None:
    """Refuse a question that does not implement all of ``Question``."""
    for kind in (question, answer):
        config = kind.__struct_config__
        if not (config.frozen and config.tag and config.forbid_unknown_fields):
            raise _not_registered(
                kind,
                "files could not tell its values from others",
                'Write class ...(..., frozen=True, tag="a-name", forbid_unknown_fields=True)',
            )
    for name in ("title", "needs", "preview", "answer"):
        if getattr(question, name) is getattr(Question, name):
            raise _not_registered(
                question, f"it has no {name!r} of its own", "Implement it; see docs/extending.md"
            )
    if not isinstance(getattr(question, "proof", None), Proof):
        raise _not_registered(
            question, "it has no proof", "Give it proof: ClassVar[Proof] = Proof(...)"
        )


def discover() -> Mapping[str, UsageError]:
    """Import what installed packages declare as questions, by their entry points.

    What is installed decides what is imported: never a plan, and never a release.

    Returns
    -------
    mapping of UsageError
        Why some of them are not known here, by the names that packages declare. A package that
        fails stands in the way of its own questions only.
    """
    _refused.clear()
    for declaration in declared():
        try:
            declared_question(declaration)
        except UsageError as error:
            _refused[declaration.name] = error
    return dict(_refused)


def declared_question(declaration: Declared) -> type[Question[Release]]:
    """Import and register the question that a package declares.

    Raises
    ------
    UsageError
        If the package cannot be imported, or what it names is no question.
    """
    request = f"the question {declaration.name!r} of the package {declaration.package!r}"
    remedy = "Repair that package, or uninstall it"
    try:
        kind = imported(declaration.place)
    except (Exception, SystemExit) as error:  # whatever the package does when it is imported
        raise UsageError(
            request,
            f"it cannot be imported ({type(error).__name__}: {str(error)[:LONGEST_REASON]})",
            remedy,
        ) from None
    if not (isinstance(kind, type) and issubclass(kind, Question)):
        raise UsageError(request, f"{declaration.place} is not a question", remedy)
    register(kind)
    try:  # now that the module is complete, its classes must be known by all names that they use
        msgspec.json.Decoder(question_type())
        msgspec.json.Decoder(release_type())
    except (TypeError, NameError) as error:
        del _outside[tag_of(kind)]
        _clear()
        raise UsageError(request, _undecodable(error), remedy) from None
    return kind


def require_registered(charged: Sequence[Question[Release]]) -> None:
    """Refuse a question whose answer could not be read back once it is stored.

    Raises
    ------
    UsageError
        Before anything is charged.
    """
    places = listed("sfumato.questions").values()
    for kind in map(type, charged):
        name = kind.__name__
        # No other kind of question is imported to find this one.
        own = (listed_question(place) for place in places if place.endswith(f":{name}"))
        if kind not in _outside.values() and kind not in own:
            raise UsageError(
                f"asking a {name}",
                "this kind of question is not registered",
                f"Write @register above class {name}; see docs/extending.md",
            )


def _class(place: str, base: type[T]) -> type[T]:
    kind = imported(place)
    if not (isinstance(kind, type) and issubclass(kind, base)):
        raise InternalError(f"{place} is listed, and is no {base.__name__}.")
    return kind


def _require_fitting(kind: type[msgspec.Struct], others: tuple[type[msgspec.Struct], ...]) -> None:
    """Refuse a class beside which the others could no longer be decoded."""
    for other in others:
        if tag_of(other) == tag_of(kind) and other is not kind:
            raise _not_registered(
                kind,
                f"{other.__module__} has a class of the tag {tag_of(kind)!r}",
                "Give it another tag",
            )
    try:
        msgspec.json.Decoder(reduce(or_, (*others, kind)))
    except NameError:  # a release may hold its question, whose class is not complete yet
        return
    except TypeError as error:
        raise _not_registered(
            kind, _undecodable(error), "Declare fields of types that msgspec reads"
        ) from None


def _undecodable(error: Exception) -> str:
    return f"its fields cannot be decoded ({str(error)[:LONGEST_REASON]})"


def _same(kind: type, other: type) -> bool:
    """Whether a class is another one defined again."""
    return (kind.__module__, kind.__qualname__) == (other.__module__, other.__qualname__)


def _clear() -> None:
    for cached in (questions, releases, question_type, release_type):
        cached.cache_clear()


def _not_registered(kind: type, obstacle: str, remedy: str) -> UsageError:
    return UsageError(f"registering {kind.__name__}", obstacle, remedy)
