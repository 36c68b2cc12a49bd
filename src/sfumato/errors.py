"""The error tree.

Every message has three parts: what was asked, what stands in the way, what to do next.

SfumatoError
 +- UsageError          a parameter or a plan is wrong                      exit 2
 |   +- BoundsRequired      an axis has no public bounds
 |   +- ArgumentError       a call does not fit; also a TypeError
 |   +- NameUnknown         a module has no such name; also an AttributeError
 |   +- Infeasible          no setting satisfies the request
 |   +- StoredElsewhere     paid for, about another state of the data; .entry .day
 +- BudgetExceeded      .requested .remaining .account                      exit 3
 +- DataError           file, schema or engine problem; never quotes a value exit 4
 +- LedgerError         .account                                            exit 5
InternalError           a fault of ours; asks for a report                  exit 70
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import os
import re
import types
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LONGEST_SHOWN = 80
CLOSE = 0.65  # how alike two words are of which one may be meant by the other
_CREDENTIALS = re.compile(
    r"(\w:/{1,3})[^\s:/@]*:\S*@"  # of an address
    r"|((?<![^\s'\"(=]))[^\s:/@'\"]{2,}:(?!/)\S*@"  # before a host alone
)
_PASSWORD = re.compile(r"(pass(?:word|wd|phrase)?=|pwd=)[^\s&'\"]+", re.I)
_STEERING = ("Cc", "Cf", "Cs", "Zl", "Zp")
_JOINERS = "\u200c\u200d"  # part of words in Persian and Indian scripts, and of emoji


def printable(text: str) -> str:
    """Write what would break a line, steer a terminal or hide in it as its escape.

    Control characters, line and paragraph separators, bidirectional marks and overrides, invisible
    format characters and lone surrogates: whoever chose a label or the name of a column must not
    choose what the terminal does.

    >>> printable("a\\tb")
    'a\\\\tb'
    >>> printable("total\\u202e5")
    'total\\\\u202e5'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c.encode("unicode_escape").decode("ascii") if steers(c) else c for c in text)


def steers(character: str) -> bool:
    """Whether a character may steer a screen or hide on it, rather than be seen."""
    return unicodedata.category(character) in _STEERING and character not in _JOINERS


def printable_lines(text: str) -> str:
    """The same for text of several lines: the line breaks are ours, and stay."""
    return "\n".join(map(printable, text.split("\n")))


def without_passwords(text: str) -> str:
    """Leave out the passwords of addresses that a message quotes, such as a mistyped option's.

    No message is meant to quote one: this is for those that quote what somebody typed.

    >>> without_passwords("opening mysql:/ada:secret@host/db?ssl_password=secret&a=b")
    'opening mysql:/...@host/db?ssl_password=...&a=b'
    """
    if "@" not in text and "=" not in text:
        return text
    return _PASSWORD.sub(r"\1...", _CREDENTIALS.sub(r"\1\2...@", text))


def shown(value: object) -> str:
    """A parameter as a message may quote it: in short, whatever it is.

    Python refuses to print integers of more than 4,300 digits, and nobody reads one of forty.

    >>> shown("0,5"), shown(10**5000)
    ("'0,5'", 'an integer of more than 40 digits')
    """
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**40:
        return "an integer of more than 40 digits"
    if hasattr(value, "dtype") or hasattr(value, "__arrow_c_stream__"):
        # An array or a frame given by mistake may hold the data.
        return f"a value of type {type(value).__name__}"
    if isinstance(value, str) and len(value) > LONGEST_SHOWN:
        return f"{value[:LONGEST_SHOWN]!r}... ({len(value):,} characters)"
    try:
        text = repr(value)
    except ValueError:  # a list or a Fraction that holds such an integer
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= 2 * LONGEST_SHOWN else f"{text[: 2 * LONGEST_SHOWN]}..."


class SfumatoError(Exception):
    """A refusal with a reason: ``asked``, ``obstacle`` and ``remedy``, without full stops.

    No part may hold a value of the data or a fact about them that was not paid for: names of
    columns, parameters, paths and public bounds only.

    >>> import sfumato as sf
    >>> try:
    ...     sf.Interval(10, 5)
    ... except sf.SfumatoError as error:
    ...     print(error.obstacle)
    ...     print(error.remedy)
    lower must be below upper
    Swap the bounds, or widen them
    """

    exit_code = 1

    def __init__(self, asked: str, obstacle: str, remedy: str) -> None:
        asked, obstacle, remedy = map(without_passwords, (asked, obstacle, remedy))
        super().__init__(asked, obstacle, remedy)
        self.asked = asked
        self.obstacle = obstacle
        self.remedy = remedy

    def __str__(self) -> str:
        # The parts name columns, labels and paths, which others may have chosen.
        asked, obstacle, remedy = map(printable, (self.asked, self.obstacle, self.remedy))
        return f"{asked}: {obstacle}{'' if obstacle.endswith('?') else '.'} {remedy}."


class UsageError(SfumatoError, ValueError):
    """A parameter or a plan is wrong.

    >>> import sfumato as sf
    >>> sf.Interval(10, 5)
    Traceback (most recent call last):
    sfumato.errors.UsageError: Interval(10, 5): lower must be below upper. Swap the bounds, or ...
    """

    exit_code = 2


class BoundsRequired(UsageError):
    """An axis has no public bounds, and bounds are never read off the data.

    >>> import sfumato as sf
    >>> try:
    ...     sf.Domain(age=float)
    ... except sf.BoundsRequired as error:
    ...     print(error.remedy)
    Write age=Interval(0, 100), age=Categories(["a", "b"]) or age=Keys()
    """


def not_saved(name: str, obstacle: str) -> UsageError:
    """Return the refusal of what only an edited file can hold, since its parts do not fit."""
    return UsageError(name, obstacle, "Load a file that release.save wrote")


def require_fitting(fits: bool, name: str, obstacle: str) -> None:
    """Refuse parts that do not fit together, which only an edited file can hold."""
    if not fits:
        raise not_saved(name, obstacle)


class ArgumentError(UsageError, TypeError):
    """A call does not fit the function: an argument too many, too few, or of an unknown name."""


class NameUnknown(UsageError, AttributeError):
    """A module has no such name; where people look for it, the remedy says what is here instead."""


class Infeasible(UsageError):
    """No setting satisfies the request; the remedy says what to relax, and by how much.

    >>> import sfumato as sf
    >>> try:
    ...     sf.Risk(prior="0.5", posterior="0.4")
    ... except sf.Infeasible as error:
    ...     print(error.obstacle)
    guessing already reaches it: 0.4 is not above 0.5
    """


class StoredElsewhere(UsageError):
    """The question was paid for when the data were in another state; nothing is charged.

    Attributes
    ----------
    entry : int
        The entry of the ledger that paid for it.
    day : str
        The day of that payment, as in "2026-11-27".

    >>> from sfumato.ledger import open_ledger
    >>> ledger = open_ledger(None)
    >>> account = ledger.open_account("trips", "pure", (3_000_000_000, 0))
    >>> cost, place = (500_000_000, 0), "a histogram of trips.csv"
    >>> hold = ledger.reserve("trips", None, f"{place}, as on Monday", cost, "", place=place)
    >>> try:
    ...     ledger.reserve("trips", None, f"{place}, as on Tuesday", cost, "", place=place)
    ... except StoredElsewhere as error:
    ...     print(error.entry == hold.entry.sequence, ledger.account("trips").spent == cost)
    True True
    """

    def __init__(
        self, asked: str, obstacle: str, remedy: str, *, entry: int = 0, day: str = ""
    ) -> None:
        super().__init__(asked, obstacle, remedy)
        self.entry = entry
        self.day = day


class BudgetExceeded(SfumatoError):
    """The account cannot pay. ``requested`` and ``remaining`` are in the account's own measure.

    On an account by curves, ``requested`` is the rho of an answer that costs rho alone.

    >>> import numpy as np, sfumato as sf
    >>> ages = np.array([[31.0], [35.5], [64.0]])
    >>> src = sf.source(ages, sf.Domain(age=sf.Interval(0, 100)), name="ages")
    >>> try:
    ...     sf.Publisher(src, budget="1").release(sf.Histogram("age", bins=4), epsilon="2")
    ... except sf.BudgetExceeded as error:
    ...     print(error.obstacle)
    epsilon = 1 is left of epsilon = 1
    """

    exit_code = 3

    def __init__(
        self,
        asked: str,
        obstacle: str,
        remedy: str,
        *,
        requested: object = None,
        remaining: object = None,
        account: str = "",
    ) -> None:
        super().__init__(asked, obstacle, remedy)
        self.requested = requested
        self.remaining = remaining
        self.account = account


class DataError(SfumatoError):
    """A file, a schema or an engine stands in the way. Never quotes a value.

    >>> import sfumato as sf
    >>> domain = sf.Domain(age=sf.Interval(0, 100))
    >>> src = sf.source("no such file.csv", domain)
    >>> try:
    ...     sf.Publisher(src, budget="1").release(sf.Histogram("age", bins=4), epsilon="1")
    ... except sf.DataError as error:
    ...     print(error.obstacle)
    there is no such file
    """

    exit_code = 4


class LedgerError(SfumatoError):
    """The ledger cannot be read, written or trusted.

    >>> import numpy as np, sfumato as sf
    >>> ages = np.array([[31.0], [35.5], [64.0]])
    >>> src = sf.source(ages, sf.Domain(age=sf.Interval(0, 100)), name="ages")
    >>> try:
    ...     sf.Publisher(src, ledger="no such folder/sfumato.db", budget="1")
    ... except sf.LedgerError as error:
    ...     print(error.obstacle)
    its folder does not exist
    """

    exit_code = 5

    def __init__(self, asked: str, obstacle: str, remedy: str, *, account: str = "") -> None:
        super().__init__(asked, obstacle, remedy)
        self.account = account


class InternalError(Exception):
    """A fault of ours: please report it, with the message, which holds no data.

    >>> import sfumato as sf
    >>> sf.InternalError.exit_code
    70
    """

    exit_code = 70


class SfumatoWarning(UserWarning):
    """Something works, and is not what most people want."""


_said: set[str] = set()


def warn_once(text: str, stacklevel: int) -> None:
    """Say something once in a process, whatever filters of warnings are set.

    Parameters
    ----------
    text : str
    stacklevel : int
        As ``warnings.warn`` takes it, counted from whoever calls this.
    """
    if text not in _said:
        _said.add(text)
        warnings.warn(text, SfumatoWarning, stacklevel + 1)


def without_frames(function: Callable[P, T]) -> Callable[P, T]:
    """Wrap a public function so that its errors carry nothing of the data.

    An error loses the frames below the public call. An unforeseen one loses its text, too.

    The frames' local variables hold rows and true counts, and tools that report errors store local
    variables; what an engine says of a value may quote it. Nothing else is lost: our own messages
    stay whole, and a fault of ours names its place.
    """

    @functools.wraps(function)
    def guarded(*args: P.args, **named: P.kwargs) -> T:
        failure: BaseException
        try:
            return function(*args, **named)
        except (SfumatoError, InternalError, KeyboardInterrupt, GeneratorExit) as error:
            failure = error
        except SfumatoWarning as error:  # where filters make errors of warnings
            failure = error
        except SystemExit as error:  # of a signal handler; an engine's may quote what it met
            status = isinstance(error.code, int) and 0 <= error.code <= 255
            failure = SystemExit(error.code if status else 1)
        except BaseException as error:
            # Arguments that do not fit the function at all are an error of its caller.
            failure = misfit(function, args, named, error) or InternalError(
                f"A fault of ours: {place_of(error)}. Please report this line; it holds no data."
            )
        # Outside the except block, so that Python adds no context again.
        del args, named
        bare(failure)
        try:
            raise failure
        finally:
            del failure

    return guarded


def explained(function: Callable[P, T]) -> Callable[P, T]:
    """Wrap a public function so that it refuses in three parts, and in one frame of ours.

    Arguments that do not fit it are refused. A refusal from within it loses the frames below this
    one, unless ``SFUMATO_TRACEBACK=full`` is set; any other error stays as it is.
    """

    @functools.wraps(function)
    def called(*args: P.args, **named: P.kwargs) -> T:
        try:
            return function(*args, **named)
        except SfumatoError as error:
            refusal = error
        except TypeError as error:
            unfit = misfit(function, args, named, error)
            if unfit is None:
                raise
            refusal = unfit
        # Outside the except block, so that Python adds no context again.
        try:
            raise shortened(refusal)
        finally:
            del refusal

    return called


C = TypeVar("C", bound=type)


def explained_methods(kind: C) -> C:
    """Make each public method that a class defines, and its ``__init__``, a public function.

    See ``explained``. What is wrapped already stays as it is.
    """
    for name, method in list(vars(kind).items()):
        if name.startswith("_") and name != "__init__":
            continue
        function = getattr(method, "__func__", method)
        if isinstance(function, types.FunctionType) and not hasattr(function, "__wrapped__"):
            wrapped = explained(function)
            binds = isinstance(method, classmethod | staticmethod)
            setattr(kind, name, type(method)(wrapped) if binds else wrapped)
    return kind


def shortened(refusal: SfumatoError) -> SfumatoError:
    """The refusal without the frames that it came through, unless all are asked for."""
    if os.environ.get("SFUMATO_TRACEBACK") != "full":
        bare(refusal)
    return refusal


def was_entered(error: BaseException) -> bool:
    """Whether an error comes from within what was called, and not from the call itself."""
    frames = error.__traceback__
    return frames is None or frames.tb_next is not None


def misfit(
    function: Callable[P, T], args: Sequence[object], named: Mapping[str, object], error: object
) -> ArgumentError | None:
    """The error of a call whose arguments do not fit a function; None if they do.

    It names parameters and numbers of arguments, never what was given for them.

    Parameters
    ----------
    function, args, named
        What was called, and with what.
    error : exception
        What came of it. One from within the function is none of its caller.
    """
    import inspect

    if not isinstance(error, TypeError) or was_entered(error):
        return None
    signature = inspect.signature(function)
    with contextlib.suppress(TypeError):
        signature.bind(*args, **named)
        return None
    own = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    first = [p.name for p in own if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    others = [p.name for p in own if p.kind is p.KEYWORD_ONLY]
    needed = [p.name for p in own if p.default is p.empty and p.name in {*first, *others}]
    n_given = len(args) - (len(signature.parameters) - len(own))
    # A constructor is called by the name of the class that is made, which may inherit it.
    made = function.__name__ == "__init__" and args
    name = type(args[0]).__name__ if made else function.__qualname__
    return misfit_of(name, first, others, needed, n_given, named)


def misfit_of(
    name: str,
    first: Sequence[str],
    others: Sequence[str],
    needed: Sequence[str],
    n_given: int,
    named: Iterable[str],
) -> ArgumentError:
    """The error of a call whose arguments do not fit, by the names of the parameters.

    Parameters
    ----------
    name : str
        What is called.
    first, others : sequence of str
        The parameters that may be given by position, and those that may not.
    needed : sequence of str
        Those without a default.
    n_given : int
        How many arguments were given by position.
    named : iterable of str
        The names of the others.
    """
    by_place = [word for word in first if word in needed] or list(first[:1])
    by_name = [f"{word}=..." for word in (*first, *others) if word not in by_place]
    more = ["..."] if len(by_name) > 4 else []
    remedy = f"Write {name}({', '.join([*by_place, *by_name[:4], *more])})"
    unknown = [word for word in named if word not in (*first, *others)]
    lacking = [word for word in needed if word not in {*first[:n_given], *named}]
    if unknown:
        call = f"{name}({unknown[0]}=...)"
        known = [*first, *others]
        meant = [argument for argument in MEANT.get(unknown[0], ()) if argument in known]
        obstacle = "it has no argument of that name"
        if meant:
            obstacle += f"; did you mean {meant[0]!r}?"
        elif unknown[0] in BELONGS and "heading" in known:
            reason, remedy = BELONGS[unknown[0]]
            obstacle += f": {reason}"
        else:
            obstacle += f"; {nearest(unknown[0], known)}"
    elif n_given > len(first):
        call = f"{name}() of {n_given} arguments without a name"
        most = f"at most {len(first)} by position: {', '.join(first)}"
        obstacle = f"it takes {most}" if first else "it takes none by position"
    else:
        call = f"{name}()"
        obstacle = f"it lacks {' and '.join(lacking)}" if lacking else "an argument is given twice"
    return ArgumentError(call, obstacle, remedy)


# The arguments that may be meant by a name that a call does not have.
MEANT = {
    "axis": ("axes", "value"),
    "axes": ("value",),
    "column": ("axes", "value"),
    "columns": ("axes", "value"),
    "value": ("axes",),
    "groupby": ("by", "axes"),
    "group_by": ("by", "axes"),
    "k": ("n_clusters",),
    "clusters": ("n_clusters",),
    "quantiles": ("at",),
    "q": ("at",),
    "eps": ("epsilon",),
    "seed": ("random_state",),
    "domain": ("universe",),
    "data": ("universe",),
    "adv": ("advantage",),
}

COST = 'Write it where the question is asked: publisher.release(question, epsilon="0.5")'
SOURCE = 'Write it where the table is named: sf.source(data, domain, person="patient", ...)'
ACCOUNT = 'Write it where the account is named: sf.Publisher(source, ledger="sfumato.db", ...)'
# Where an argument belongs that is given to another call: obstacle and remedy.
BELONGS = {
    "epsilon": ("a question states no cost", COST),
    "delta": ("a question states no cost", COST),
    "rho": ("a question states no cost", COST),
    "by": (
        "it takes no groups of its own",
        'Name groups among the axes, as in sf.Histogram(["ward", "age"]); sf.Mean, sf.Sum and '
        'sf.Quantiles take by="ward"',
    ),
    "bins": (
        "only a histogram has bins",
        'Write sf.Histogram("age", bins=10); groups of other questions are axes: by="ward"',
    ),
    "person": ("the source says who a person is", SOURCE),
    "rows_per_person": ("the source limits a person's rows", SOURCE),
    "neighbours": ("the source says what one person can change", SOURCE),
    "ledger": ("the publisher has the ledger", ACCOUNT),
    "account": ("the publisher has the account", ACCOUNT),
    "budget": ("the publisher has the account, and its budget", ACCOUNT),
}


def bare(error: BaseException) -> None:
    """Remove an error's frames, and the errors behind it, whose texts may quote the data."""
    error.__traceback__ = error.__cause__ = error.__context__ = None


def place_of(error: BaseException) -> str:
    """The kind of an unforeseen error and its place; its text is left out, as it may quote data."""
    import traceback
    from pathlib import Path

    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(frame.filename).name}, line {frame.lineno}"


def is_one_of(value: object, known: Iterable[str]) -> bool:
    """Whether a value is one of these words; arrays and frames, which compare to arrays, are not.

    >>> is_one_of("a", ["a", "b"]), is_one_of(3, ["a", "b"])
    (True, False)
    """
    return isinstance(value, str) and value in known


def require_word(value: object, name: str, known: Iterable[str]) -> None:
    """Refuse what is none of the words that a parameter may be."""
    if not is_one_of(value, known):
        kind = "unknown" if isinstance(value, str) else "not a word"
        obstacle = f"it is {kind}; {nearest(value, known)}"
        raise UsageError(f"{name} = {shown(value)}", obstacle, "Name one of them")


def missing_file(path: str | os.PathLike[str]) -> str:
    """Say that a file is not there, and name the one beside it whose name is close, if any.

    Other names are not listed: nobody asked for them, and names of files may name persons.

    >>> missing_file("none.csv")
    'there is no such file'
    """
    wrong = os.fspath(path)
    folder, name = os.path.split(wrong)
    try:
        beside = os.listdir(folder or ".")
    except OSError:
        return "there is no such file, and no such folder"
    close = difflib.get_close_matches(name[:LONGEST_SHOWN], beside, n=1)
    likely = f"; did you mean {close[0]!r}?" if close else ""
    return f"there is no such file{likely}"


def nearest(name: object, known: Iterable[str]) -> str:
    """Name the known word closest to a wrong one, as half a sentence.

    >>> nearest("carier", ["carrier", "hour"])
    "did you mean 'carrier'?"
    >>> nearest("x", ["carrier", "hour"])
    "there are 'carrier', 'hour'"
    """
    words = [str(word) for word in known]
    # The search takes time in proportion to both lengths, so what was written is cut.
    wrong = name if isinstance(name, str) else shown(name)
    wrong = wrong[:LONGEST_SHOWN]
    close = [word for word in words if word.casefold() == wrong.casefold()]
    close += difflib.get_close_matches(wrong, words, n=1, cutoff=CLOSE)
    close += [word for word in words if len(wrong) > 2 and word.startswith(wrong)]
    if close:
        return f"did you mean {close[0]!r}?"
    if not words:
        return "there are none"
    listed = ", ".join(repr(word) for word in words[:12])
    return f"there are {listed}" + (f" and {len(words) - 12} more" if len(words) > 12 else "")
