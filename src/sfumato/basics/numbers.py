"""Exact numbers, the limits on the size of an answer, and arrays of numpy.

*Exact numbers.* What people write is read as a Fraction, and the ledger counts whole units: epsilon
in units of 1e-9, delta in units of 1e-18, rho in units of 1e-12. Costs round up, limits round down.

*Limits.* How large an answer may be follows from the domain and the question alone, so that what is
too large is refused before the charge. A release holds integers. Measured at the limits, noise of
scale 10^6, with counting, noise, JSON, storing, reading back and saving: 120 bytes of memory for
each number of a histogram, 210 for each cell of a grid, 620 for each cell of a tree (``make deep``
repeats it). JSON takes 8, 8 and 42 bytes of them, and at most 21 for a number: 20 digits and a
comma.

*Arrays.* Their type in annotations, and how they are read from what somebody gives. Shape and dtype
stand in docstrings, because most functions here take several of both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import msgspec
import numpy as np

from sfumato.errors import UsageError, shown

Exactly: TypeAlias = "str | int | Fraction | Decimal | float"

if TYPE_CHECKING:
    # Fields that take what Exactly holds and are Fractions once they are made. Type checkers read
    # such a field as a descriptor: ``__set__`` says what is given, ``__get__`` what is found.

    class Number:
        def __init__(self, value: Exactly) -> None: ...
        def __get__(self, thing: object, owner: type | None = None) -> Fraction: ...
        def __set__(self, thing: object, value: Exactly) -> None: ...

    class Numbers:
        def __init__(self, values: Sequence[Exactly]) -> None: ...
        def __get__(self, thing: object, owner: type | None = None) -> tuple[Fraction, ...]: ...
        def __set__(self, thing: object, value: Sequence[Exactly]) -> None: ...

    GivenNumbers: TypeAlias = Sequence[Exactly]
else:
    Number = Fraction
    Numbers = tuple[Fraction, ...]
    GivenNumbers = Sequence[Fraction]

EPSILON_UNITS = 10**9
DELTA_UNITS = 10**18
RHO_UNITS = 10**12
# What is safely a double.
SMALLEST = Fraction(1, 10**300)
LARGEST = Fraction(10**300)

# Work on a number grows with its digits, so the digits are bounded before anything is converted:
# 400 are more than any parameter has, and an exponent of 999 is beyond every double. A Fraction
# that was computed may be as long as text of both kinds together.
MOST_DIGITS = 400
MOST_EXPONENT = 999
MOST_BITS = 4700  # of numerator and denominator: 10^(400 + 999) has 4,648

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_RATIO = re.compile(r"[+-]?[0-9]+/[0-9]+")
_WHOLE = re.compile(r"[+-]?[0-9]+")
# What people write in place of a number, short enough to be written back.
_PERCENTAGE = re.compile(r"[+-]?[0-9]{1,9}(?:\.[0-9]{1,9})? ?%")
_COMMA = re.compile(r"[+-]?[0-9]{1,9},[0-9]{1,9}")


def fraction(value: Exactly, name: str) -> Fraction:
    """Read a number exactly; a float is read as its shortest decimal.

    Parameters
    ----------
    value : str, int, Fraction, Decimal or float
        Text holds ASCII digits, at most 400 characters and an exponent of at most three digits.
    name : str
        What the number is called in an error message.

    >>> fraction(0.1, "epsilon")
    Fraction(1, 10)
    >>> fraction("1/3", "risk")
    Fraction(1, 3)
    """
    exact = _exact(value)
    if exact is not None:
        return exact
    stated = f"{name} as {type(value).__name__}"
    if isinstance(value, str | int | float):
        stated = f"{name} = {shown(value)}"
    plain = value.strip() if isinstance(value, str) else ""
    if _PERCENTAGE.fullmatch(plain):
        meant = Fraction(plain.rstrip("% ")) / 100
        raise UsageError(
            stated,
            "it is a percentage, and a number is wanted",
            f"Write {decimal(meant)}",
        )
    if is_decimal_comma(plain):
        raise UsageError(stated, "it has a decimal comma", f"Write {plain.replace(',', '.')}")
    obstacle = "it is not a finite number"
    if len(plain) > MOST_DIGITS or isinstance(value, int | Fraction | Decimal):
        obstacle = f"{obstacle} of at most {MOST_DIGITS} digits"
    raise UsageError(stated, obstacle, f'Give {name} as a number or as text such as "0.5" or "1/3"')


def is_decimal_comma(text: str) -> bool:
    """Whether a text is digits, a comma and digits, as many languages write a decimal.

    >>> is_decimal_comma("0,5"), is_decimal_comma("3,1e-6")
    (True, False)
    """
    return _COMMA.fullmatch(text.strip()) is not None


def _exact(value: object) -> Fraction | None:
    """The number that a value is, or None; the work is bounded whatever the value."""
    match value:
        case bool():
            return None
        case int() | Fraction():
            short = max(value.numerator.bit_length(), value.denominator.bit_length()) <= MOST_BITS
            return Fraction(value) if short else None
        case Decimal():
            return Fraction(value) if _is_short(value) else None
        case _:
            # Text, or a float of Python or numpy: its shortest decimal. Python's own readers also
            # take underscores and the digits of every script. What is longer is cut, and refused.
            plain = str(value).strip()[: MOST_DIGITS + 1]
            is_number = _DECIMAL.fullmatch(plain) or _RATIO.fullmatch(plain)
            try:
                return Fraction(plain) if len(plain) <= MOST_DIGITS and is_number else None
            except ZeroDivisionError:
                return None


def _is_short(value: Decimal) -> bool:
    """Look at the exponent of a decimal before any power of ten is written out."""
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or abs(value.adjusted()) > MOST_EXPONENT:
        return False  # the exponent of an infinity is a letter
    return abs(exponent) <= MOST_EXPONENT + MOST_DIGITS


def whole_of_text(text: str) -> int | None:
    """The integer that a text holds in ASCII digits, or None.

    >>> whole_of_text("12"), whole_of_text("1_2"), whole_of_text("\u0661")
    (12, None, None)
    """
    plain = text.strip()
    return int(plain) if len(plain) <= MOST_DIGITS and _WHOLE.fullmatch(plain) else None


def float_of_text(text: str) -> float | None:
    """The finite double nearest to the decimal number that a text holds in ASCII digits, or None.

    >>> float_of_text("0.5"), float_of_text("1_0"), float_of_text("1e999"), float_of_text("nan")
    (0.5, None, None, None)
    """
    plain = text.strip()
    if len(plain) > MOST_DIGITS or not _DECIMAL.fullmatch(plain):
        return None
    number = float(plain)
    return number if math.isfinite(number) else None


def positive(value: Exactly, name: str) -> Fraction:
    """Read an exact number above zero."""
    exact = fraction(value, name)
    if exact <= 0:
        raise UsageError(
            f"{name} = {decimal(exact)}",
            f"{name} must be above 0",
            f'Give a positive number for {name}, such as "0.5"',
        )
    return exact


def probability(value: Exactly, name: str) -> Fraction:
    """Read an exact number strictly between zero and one."""
    exact = fraction(value, name)
    if not 0 < exact < 1:
        raise UsageError(
            f"{name} = {decimal(exact)}",
            f"{name} must lie strictly between 0 and 1",
            f"Write {decimal(exact / 100)} for {decimal(exact)}%"
            if 1 <= exact < 100
            else f"Choose {name} between 0 and 1",
        )
    return exact


def sidak(alpha: float, cells: int) -> float:
    """The error probability of each of ``cells`` independent intervals.

    At this probability all of them hold together with probability 1 - alpha.

    Parameters
    ----------
    alpha : float in (0, 1)
    cells : int
        At least 1.

    Returns
    -------
    float

    >>> from sfumato.extending import sidak
    >>> round(sidak(0.05, 10), 6)
    0.005116
    """
    return -math.expm1(math.log1p(-alpha) / max(cells, 1))


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """The fields of a class. To find them takes longer than all else that is done to a question."""
    return msgspec.structs.fields(kind)


def settle(fields: msgspec.Struct, **plain: object) -> None:
    """Bring some fields into their plain form, and those that equal their default to that object.

    msgspec omits a field only when it *is* the default object. So the same question has the same
    bytes, and the same key in the ledger, whether or not its defaults were written out.
    """
    for name, form in plain.items():
        msgspec.structs.force_setattr(fields, name, form)
    for field in _fields(type(fields)):
        value: object = getattr(fields, field.name)
        if type(value) is type(field.default) and value == field.default:
            msgspec.structs.force_setattr(fields, field.name, field.default)


def units_up(value: Fraction, units: int) -> int:
    """Round a cost up to whole units: a charge is never smaller than what was spent."""
    return math.ceil(value * units)


def units_down(value: Fraction, units: int) -> int:
    """Round a limit or a share down to whole units."""
    return math.floor(value * units)


def split(total: int, weights: list[Fraction]) -> list[int]:
    """Share whole units in proportion to weights.

    Each share is rounded down, and the last one above 0 takes the rest.

    >>> split(10, [Fraction(1), Fraction(1), Fraction(1)])
    [3, 3, 4]
    """
    weight = sum(weights, Fraction(0))
    if weight <= 0 or any(w < 0 for w in weights):
        raise UsageError(
            "shares",
            "shares must not be negative, and one must be above 0",
            "Give a positive share to each question",
        )
    shares = [math.floor(total * w / weight) for w in weights]
    # Rounded down, shares add up to at most the total. What is left goes to one of them, so that
    # they add up to it exactly: nothing is lost, and nothing is spent twice.
    last = max(i for i, w in enumerate(weights) if w > 0)
    shares[last] += total - sum(shares)
    return shares


def is_whole(number: object, least: float, most: float = math.inf) -> TypeGuard[int]:
    """Whether it is an integer from the least to the most, of Python or numpy, and no boolean.

    >>> is_whole(3, 1), is_whole(3.0, 1), is_whole(True, 1), is_whole(0, 1)
    (True, False, False, False)
    """
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        return False
    return bool(least <= number <= most)


def whole(
    number: object, name: str, least: int, most: float = math.inf, *, obstacle: str, remedy: str
) -> int:
    """Read a whole number from the least to the most.

    Parameters
    ----------
    number : object
    name : str
        What it is called in an error message, which goes on with ``obstacle`` and ``remedy``.
    least, most : number
    """
    if not is_whole(number, least, most):
        # Anything else that is given by mistake may hold the data.
        is_short = isinstance(number, int | float | str)
        given = f"= {shown(number)}" if is_short else f"of type {type(number).__name__}"
        raise UsageError(f"{name} {given}", obstacle, remedy)
    return int(number)


def least_whole(satisfies: Callable[[int], bool], low: int, high: int) -> int:
    """Find the least whole number that satisfies what all larger ones do too, by bisection.

    Parameters
    ----------
    satisfies : callable
        Called between ``low`` and ``high`` only.
    low, high : int
        It is known that ``low`` does not satisfy it, and that ``high`` does.

    >>> least_whole(lambda number: number**2 >= 50, 0, 50)
    8
    """
    while high - low > 1:
        middle = (low + high) // 2
        if satisfies(middle):
            high = middle
        else:
            low = middle
    return high


def root(
    satisfies: Callable[[float], bool], low: float, high: float, close: float
) -> tuple[float, float]:
    """Enclose the number from which on something is satisfied, by bisection.

    Parameters
    ----------
    satisfies : callable
        Called between ``low`` and ``high`` only.
    low, high : float
        It is known that ``low`` does not satisfy it, and that ``high`` does.
    close : float
        The most by which the ends that are returned differ, as a share of the lower one.

    >>> low, high = root(lambda number: number**2 >= 2, 1, 2, 1e-12)
    >>> low < 2**0.5 <= high
    True
    """
    while high > low * (1 + close):
        middle = (low + high) / 2
        if satisfies(middle):
            high = middle
        else:
            low = middle
    return low, high


def roots(
    satisfies: Callable[[Array], Array], low: Array, high: Array, steps: int
) -> tuple[Array, Array]:
    """Enclose many such numbers at once, by so many halvings of the distance between two ends.

    Parameters
    ----------
    satisfies : callable
        From a float64 ndarray to a bool ndarray like it.
    low, high : float64 ndarrays of one shape
        The ends of each. ``high`` may lie below ``low``.
    steps : int
    """
    for _ in range(steps):
        middle = (low + high) / 2
        is_satisfied = satisfies(middle)
        low = np.where(is_satisfied, low, middle)
        high = np.where(is_satisfied, middle, high)
    return low, high


def decimal(value: Fraction, digits: int = 6) -> str:
    """Print an exact number shortly: all digits where they are few, else the first ones.

    >>> decimal(Fraction(1, 10)), decimal(Fraction(1, 3)), decimal(Fraction(3))
    ('0.1', '0.333333', '3')
    """
    if value.denominator == 1 and abs(value) < 10**12:
        return str(value.numerator)
    if value and not SMALLEST <= abs(value) <= LARGEST:
        with localcontext(prec=digits):  # no double holds it
            return f"{(Decimal(value.numerator) / Decimal(value.denominator)).normalize():e}"
    for places in range(1, 13):
        if (value * 10**places).denominator == 1 and abs(value) >= Fraction(1, 10**6):
            return f"{Decimal(value.numerator) / Decimal(value.denominator):f}"
    return f"{float(value):.{digits}g}"


def rounded(value: Fraction | float, digits: int, *, up: bool) -> str:
    """Print a number above 0 in a few digits, rounded so that what is quoted holds too.

    A floor is rounded up, a ceiling down.

    >>> rounded(1.650680762, 4, up=False), rounded(Fraction("0.335061608"), 4, up=True)
    ('1.65', '0.3351')
    """
    exact = Fraction(value)
    last_digit = Fraction(10) ** (math.floor(math.log10(exact)) + 1 - digits)
    steps = math.ceil(exact / last_digit) if up else math.floor(exact / last_digit)
    return f"{float(steps * last_digit):.{digits}g}"


# --- how large an answer may be -------------------------------------------------------------------

# Of one answer: at 120 bytes each, 2 GB of memory; as JSON at most 350 MB.
MOST_NUMBERS = 2**24

# Of one partition: at 620 bytes each 2.6 GB.
MOST_PARTITION_CELLS = 2**22

# Of all answers of a plan: they are stored as one value, and SQLite's longest has 10^9 bytes.
MOST_STORED = 10**9 // 21

# Cells that one scan counts in arrays, for all questions of a plan: 2 GB at 8 bytes each.
MOST_COUNTED = 2**28


def require_numbers(request: str, numbers: int) -> None:
    """Refuse an answer that no memory holds.

    Raises
    ------
    UsageError
        If there are more than 2^24 numbers.
    """
    if numbers > MOST_NUMBERS:
        raise UsageError(
            request,
            f"it would have {numbers:,} cells, and the limit is {MOST_NUMBERS:,}",
            "Take fewer bins or fewer axes",
        )


def require_plan(request: str, numbers: int, counted: int) -> None:
    """Refuse a plan whose answers cannot be counted or stored together.

    Raises
    ------
    UsageError
        If its answers may hold more numbers than the ledger stores at once, or its scan would fill
        too many cells.
    """
    if numbers > MOST_STORED:
        raise UsageError(
            request,
            f"its answers may hold {numbers:,} numbers, and {MOST_STORED:,} are stored at once",
            "Ask its questions in several plans, or take fewer cells",
        )
    if counted > MOST_COUNTED:
        raise UsageError(
            request,
            f"its scan would count {counted:,} cells, and the limit is {MOST_COUNTED:,}",
            "Ask its questions in several plans, or take fewer cells",
        )


# --- arrays ---------------------------------------------------------------------------------------

# An ndarray of any shape and dtype: the same type as the bare ``np.ndarray``.
#
# A checker that refuses an explicit ``Any`` refuses the bare name wherever it stands, and this one
# here only.
Array: TypeAlias = np.ndarray[tuple[Any, ...], np.dtype[Any]]


def as_floats(values: object) -> np.typing.NDArray[np.float64]:
    """Read doubles as numpy does; anything else gives an empty array.

    Callers refuse an empty array when they check its shape, without a word of what was given.

    What numpy says of such values may quote them, and no message of ours does.

    >>> as_floats([[1, 2], [3, 4]]).shape, as_floats(["a"]).shape
    ((2, 2), (0,))
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.empty(0)


def largest_remainders(numbers: Array, total: int) -> Array:
    """Round numbers to whole ones that add up to about their sum: the largest remainders up.

    Parameters
    ----------
    numbers : float64 ndarray of shape (n,)
    total : int
        What they add up to, but for the rounding of doubles.

    Returns
    -------
    int64 ndarray of shape (n,)

    >>> largest_remainders(np.array([0.5, 1.3, 1.2]), 3).tolist()
    [1, 1, 1]
    """
    whole = np.floor(numbers).astype(np.int64)
    missing = max(total - int(whole.sum()), 0)
    whole[np.argsort(whole - numbers, kind="stable")[:missing]] += 1
    return whole
