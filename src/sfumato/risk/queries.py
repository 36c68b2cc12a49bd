"""The queries that may be asked of a world, and their answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from sfumato.basics.numbers import Array, Exactly, fraction
from sfumato.errors import UsageError, nearest

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
    if not isinstance(query, str | tuple | list):
        raise UsageError(
            f"a query of type {type(query).__name__}",
            "it is neither a name nor a pair",
            'Write "mean", or ("percentile", 25)',
        )
    if not isinstance(query, str) and len(query) == 2 and query[0] == "percentile":
        at = fraction(query[1], "percentile") / 100
        if 0 <= at <= 1:
            return Query("percentile", at)
        raise UsageError(
            "a percentile outside 0 to 100", "there is none", 'Write ("percentile", 25)'
        )
    if query == "percentile":
        raise UsageError(
            'query "percentile"', "it does not say which one", 'Write ("percentile", 25)'
        )
    asked = f"query {query!r}" if isinstance(query, str) else f"a query of {len(query)} parts"
    raise UsageError(
        asked, f"it is unknown; {nearest(query, NAMES)}", 'Name one of them, or ("percentile", 25)'
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
    return np.asarray(low + weight * (high - low))


def at_least_zero(value: Exactly, name: str) -> float:
    """Read a number of at least 0, such as an epsilon of a curve."""
    exact = fraction(value, name)
    if exact < 0:
        raise UsageError(
            f"{name} below 0", f"{name} must not be negative", f'Choose {name} such as "0.5"'
        )
    return float(exact)
