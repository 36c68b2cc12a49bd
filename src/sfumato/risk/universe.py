"""The universe that the adversary knows, one column of numbers or several by name, and its queries.

No message quotes a value of the universe. Queries (``Query``) are those that may be asked of a
world; ``answers`` gives their answers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, Protocol, SupportsIndex, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from sfumato.basics import Array, Exactly, fraction
from sfumato.errors import UsageError, nearest

# --- the universe ---------------------------------------------------------------------------------

T = TypeVar("T")
V = TypeVar("V")


class Pick(Protocol):
    """Picks one column's part of an argument, which may be given as a dict by column."""

    def __call__(self, argument: ByColumn[V]) -> V: ...


@runtime_checkable
class Frame(Protocol):
    """Anything with columns by name: a frame of pandas, polars or Arrow, or records of numpy."""

    def __getitem__(self, name: str, /) -> np.typing.ArrayLike: ...


# An argument for all columns, or one for each by name.
ByColumn: TypeAlias = V | Mapping[str, V]
Universe: TypeAlias = np.typing.ArrayLike | Mapping[str, np.typing.ArrayLike] | Frame
ROUNDING = 64 * np.finfo(float).eps
# A number of worlds that is more than anything here lists or counts one by one.
MANY = 2**63 - 1
# The range of the largest record, within which its square times the number of records is a float.
SMALLEST = 1e-100
LARGEST = 1e140


@dataclass(frozen=True, eq=False)
class Column:
    """One column of the universe, and the size of the data sets drawn from it.

    Attributes
    ----------
    records : float64 ndarray of shape (n,)
        In the order given.
    size : int
    """

    records: Array
    size: int

    @property
    def n(self) -> int:
        return len(self.records)

    @cached_property
    def ordered(self) -> Array:
        """The records in ascending order."""
        return np.sort(self.records)

    @cached_property
    def centred(self) -> Array:
        """The ordered records less their median, so that queries of differences round less."""
        return np.asarray(self.ordered - self.ordered[self.n // 2])

    @property
    def leaves_one_out(self) -> bool:
        return self.size == self.n - 1

    @property
    def worlds(self) -> int:
        """The number of data sets of that size; ``MANY`` if there are more."""
        return how_many(self.n, self.size)

    @property
    def log_worlds(self) -> float:
        return log_choose(self.n, self.size)


def log_choose(n: int, k: int) -> float:
    """Return ln C(n, k), exactly rounded where the number is small enough to compute."""
    if min(k, n - k) <= 64 or n <= 2000:
        return math.log(math.comb(n, k))
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def how_many(n: int, k: int) -> int:
    """Return C(n, k), or ``MANY`` if it is more."""
    # A number of millions of digits would take hours to compute.
    if log_choose(n, k) >= 2 * math.log(MANY):
        return MANY
    return min(math.comb(n, k), MANY)


def by_column(universe: Universe, size: int, work: Callable[[Column, Pick], T]) -> T | dict[str, T]:
    """Apply ``work`` to a single column, or to each of several, for a dict by name."""
    columns = named_columns(universe)
    if columns is None:
        return work(column_of(universe, size), _whole_argument)
    if not columns:
        raise UsageError(
            "an empty frame", "it has no columns", "Give at least one column of numbers"
        )
    made = {name: column_of(records, size, f" {name!r}") for name, records in columns.items()}
    return {name: work(column, _picker(name)) for name, column in made.items()}


def _whole_argument(argument: ByColumn[V]) -> V:
    """Return the argument of a single column; a mapping is refused, since it can be no value."""
    if isinstance(argument, Mapping):
        raise UsageError(
            "an argument by column", "the universe is a single column", "Give one value"
        )
    return argument


def _picker(name: str) -> Pick:
    def pick(argument: ByColumn[V]) -> V:
        if not isinstance(argument, Mapping):
            return argument
        if name not in argument:
            raise UsageError(
                f"an argument by column, without {name!r}",
                "every column needs its own",
                f"Add {name!r}, or drop the column",
            )
        return argument[name]

    return pick


def named_columns(universe: Universe) -> dict[str, np.typing.ArrayLike] | None:
    """Return the columns of a dict or of a frame; None for a single array."""
    if isinstance(universe, Mapping):
        return {str(name): records for name, records in universe.items()}
    # Arrow has column_names, pandas and polars have columns, and records of numpy name their
    # fields.
    names = getattr(universe, "column_names", None)
    if names is None:
        names = getattr(universe, "columns", None)
    if names is None:
        names = getattr(getattr(universe, "dtype", None), "names", None)
    if names is None or callable(names) or not isinstance(universe, Frame):
        return None
    return {str(name): universe[name] for name in names}


def column_of(records: Universe, size: int, name: str = "") -> Column:
    """Check one column, and the size of the data sets."""
    what = f"the universe{name}"
    try:
        raw = np.asarray(records)
        # Logicals count as 0 and 1: their mean is the share of true ones.
        array = raw.astype(float) if raw.dtype.kind in "iufbO" else None
    except (TypeError, ValueError, OverflowError):
        array = None
    if array is None:
        raise UsageError(
            what, "it does not hold numbers", "Keep the columns of numbers, as in universe[[...]]"
        )
    if array.ndim != 1:
        raise UsageError(
            what,
            f"it has {array.ndim} dimensions",
            "Give one number a record, or a dict of columns",
        )
    if np.isnan(array).any():
        raise UsageError(
            what,
            "some records have no number there: an empty field, or NaN",
            'Leave them out (missing="drop" of sf.choose; command line: --drop-missing), or fill '
            "them in",
        )
    if np.isinf(array).any():
        raise UsageError(
            what,
            "some records are infinite",
            "Leave these records out of the table, or write a number there",
        )
    largest = float(np.abs(array).max(initial=0.0))
    if largest and not SMALLEST <= largest <= LARGEST:
        raise UsageError(
            what,
            f"its records leave the range from {SMALLEST:g} to {LARGEST:g}",
            "Count in another unit: a scale changes nothing",
        )
    return Column(array, _size(size, len(array), what))


def _size(size: object, n: int, what: str) -> int:
    whole = _whole(size)
    if not 1 <= whole < n:
        shown = size if isinstance(size, int | float) else type(size).__name__
        raise UsageError(
            f"data sets of size {shown} from {what}",
            f"it has {n:,} records, and a published set is a proper part of it",
            f"Choose a whole size from 1 to {n - 1:,}" if n > 1 else "Give at least two records",
        )
    return whole


def _whole(value: object) -> int:
    """Return a whole number; for anything else 0, which is out of range everywhere."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return 0
    try:
        return operator.index(value)
    except TypeError:
        return 0


def distance_of(distance: object, column: Column) -> int:
    """Check a distance, which is the number of records that are removed, added or exchanged."""
    most = min(column.size - 1, column.n - column.size)
    whole = _whole(distance)
    if not 1 <= whole <= most:
        shown = distance if isinstance(distance, int | float) else type(distance).__name__
        raise UsageError(
            f"distance {shown} for data sets of size {column.size:,} from {column.n:,} records",
            f"at least one record must stay, and only {column.n - column.size:,} can be added",
            f"Choose a distance from 1 to {most:,}" if most >= 1 else "Choose a larger size",
        )
    return whole


# --- queries --------------------------------------------------------------------------------------

QueryName: TypeAlias = str | Sequence[Exactly]
Name: TypeAlias = Literal["mean", "median", "sum", "count", "var", "std", "percentile"]
NAMES: tuple[Name, ...] = ("mean", "median", "sum", "count", "var", "std")


@dataclass(frozen=True)
class Query:
    """A query of one column.

    Attributes
    ----------
    name : str
    at : Fraction or None
        The quantile of an order statistic, in [0, 1]; None for other queries.
    """

    name: Name
    at: Fraction | None = None

    def rank(self, size: int) -> tuple[int, float]:
        """Return the rank of an order statistic among ``size`` records, and the next rank's weight.

        Ranks count from 0. By linear interpolation the answer is (1 - weight) x[rank] +
        weight x[rank + 1], with rank + weight = (size - 1) at.
        """
        assert self.at is not None
        position = (size - 1) * self.at
        rank = math.floor(position)
        return rank, float(position - rank)

    def __str__(self) -> str:
        return self.name if self.name in NAMES else f"percentile {float(100 * (self.at or 0)):g}"


def parse(query: QueryName) -> Query:
    """Read "mean", "median", "sum", "count", "var", "std" or ("percentile", 25).

    >>> parse(("percentile", 25)).rank(3)
    (0, 0.5)
    """
    if isinstance(query, str) and query in NAMES:
        return Query(query, Fraction(1, 2) if query == "median" else None)
    if isinstance(query, tuple | list) and len(query) == 2 and query[0] == "percentile":
        at = fraction(query[1], "percentile") / 100
        if not 0 <= at <= 1:
            raise UsageError(
                "a percentile outside 0 to 100", "there is none", 'Write ("percentile", 25)'
            )
        return Query("percentile", at)
    raise _unknown(query)


def _unknown(query: object) -> UsageError:
    if not isinstance(query, str | tuple | list):
        return UsageError(
            f"a query of type {type(query).__name__}",
            "it is neither a name nor a pair",
            'Write "mean", or ("percentile", 25)',
        )
    if query == "percentile":
        return UsageError(
            'query "percentile"', "it does not say which one", 'Write ("percentile", 25)'
        )
    what = f"query {query!r}" if isinstance(query, str) else f"a query of {len(query)} parts"
    return UsageError(
        what, f"it is unknown; {nearest(query, NAMES)}", 'Name one of them, or ("percentile", 25)'
    )


def answers(query: Query, rows: Array) -> Array:
    """Return the answer for each row of records: a float64 ndarray of shape (rows,).

    For order statistics each row must be sorted.
    """
    size = rows.shape[-1]
    match query.name:
        case "count":
            return np.full(rows.shape[0], float(size))
        case "sum":
            return np.asarray(rows.sum(axis=-1))
        case "mean":
            return np.asarray(rows.sum(axis=-1) / size)
        case "var":
            return np.asarray(rows.var(axis=-1))
        case "std":
            return np.asarray(rows.std(axis=-1))
        case "median" | "percentile":
            low, weight = query.rank(size)
            return interpolate(rows[:, low], rows[:, min(low + 1, size - 1)], weight)


def interpolate(low: Array, high: Array, weight: float) -> Array:
    """Return a point between two order statistics.

    It is exactly ``low`` where the weight is 0 or the two are equal.
    """
    return low + weight * (high - low)


def at_least_zero(value: Exactly, name: str) -> float:
    """Read a number of at least 0, such as an epsilon of a curve."""
    exact = fraction(value, name)
    if exact < 0:
        raise UsageError(
            f"{name} below 0", f"{name} must not be negative", f'Choose {name} such as "0.5"'
        )
    return float(exact)
