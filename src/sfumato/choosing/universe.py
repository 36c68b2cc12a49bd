"""The epsilon for a disclosure risk, of an array, a frame or a file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import msgspec
import numpy as np

from sfumato import risk as risks
from sfumato.errors import UsageError, shown
from sfumato.numbers import Exactly
from sfumato.risk import Choice, Choices
from sfumato.risk.queries import QueryName
from sfumato.risk.universe import Universe, named_columns

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def choose(
    universe: Universe | str | os.PathLike[str],
    size: int | None = None,
    query: QueryName = "mean",
    risk: Exactly = 1 / 3,
    *,
    columns: Sequence[str] | None = None,
    missing: str = "refuse",
) -> Choice | Choices:
    """Which epsilon keeps the risk of disclosure within a limit?

    Parameters
    ----------
    universe : array of shape (n,), a frame or dict of columns, or a Parquet or CSV file
        All records that the adversary knows of; the published set is some of them. In a file, each
        column of numbers is a universe of its own.
    size : int or None
        How many records the published set has, 1 to n - 1; None: n - 1.
    query : "mean", "median", "sum", "count", "var", "std" or ("percentile", q)
        What is published of the set, with Laplace noise.
    risk : number in (0, 1)
        The largest probability that an adversary may come to give to any one possible set.
    columns : sequence of str or None
        Which columns of a frame or a file; None: all of them.
    missing : {"refuse", "drop"}
        Whether records without a number are an error, or are left out of the universe.

    Returns
    -------
    Choice, or Choices by column
        ``epsilon`` is the largest one within the risk. It depends on the universe: if that is
        private, so is the result.

    Raises
    ------
    Infeasible
        If the risk is below what the adversary believes before anything is published.
    UsageError
        If an argument is out of its range, or a frame lacks a column.
    DataError
        If a file cannot be read or lacks a column.

    Source: Lee and Clifton 2011.

    >>> round(choose([1, 2, 3, 4], size=3, query="mean", risk="1/3").epsilon, 9)
    0.525149687
    """
    if missing not in ("refuse", "drop"):
        raise UsageError(
            f"missing = {shown(missing)}", 'there are "refuse" and "drop"', "Name one of them"
        )
    found = _columns(universe, columns)
    if found is None:
        return _one(cast("ArrayLike", universe), size, query, risk, missing)  # which has no columns
    if not found:
        raise UsageError(
            "an empty frame", "it has no columns of numbers", "Give at least one column of numbers"
        )
    parts = [
        msgspec.structs.replace(_one(records, size, query, risk, missing, name), column=name)
        for name, records in found.items()
    ]
    return Choices(tuple(parts))


def _columns(
    universe: Universe | str | os.PathLike[str], wanted: Sequence[str] | None
) -> Mapping[str, ArrayLike] | None:
    """The columns of a frame or a file, by name; None for an array."""
    if isinstance(universe, str | os.PathLike):
        from sfumato.data.number_columns import read_numbers

        return read_numbers(universe, wanted)
    found = named_columns(universe)
    if found is None or wanted is None:
        return found
    for name in wanted:
        if name not in found:
            raise UsageError(
                f"column {name!r}",
                "the frame has no column of that name",
                "Name columns that it has",
            )
    return {name: found[name] for name in wanted}


def _one(
    records: ArrayLike,
    size: int | None,
    query: QueryName,
    risk: Exactly,
    missing: str,
    name: str | None = None,
) -> Choice:
    if missing == "drop":
        records = _present(records)
    if size is None:
        size = max(np.asarray(records).size - 1, 1)
    found = risks.choose({name: records} if name else records, size, query, risk)
    return found if isinstance(found, Choice) else found.parts[0]


def _present(records: ArrayLike) -> ArrayLike:
    """The records that are numbers.

    What is no array of numbers is left as it is, for ``risk.choose`` to refuse.
    """
    try:
        array = np.asarray(records)
        numbers = array.astype(float) if array.dtype.kind in "iufO" and array.ndim == 1 else None
    except (TypeError, ValueError):
        numbers = None
    return records if numbers is None else numbers[~np.isnan(numbers)]
