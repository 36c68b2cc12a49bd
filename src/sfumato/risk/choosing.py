"""The epsilon for a disclosure risk, of an array, a frame or a file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from sfumato.basics import Exactly
from sfumato.data.options import FileOptions, StatedOptions, file_options, refuse_without_files
from sfumato.errors import UsageError, explained, shown
from sfumato.risk import Choice, Choices, choice
from sfumato.risk.bounds import Prior
from sfumato.risk.choice import Epsilons
from sfumato.risk.universe import QueryName, Universe, named_columns

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@explained
def choose(
    universe: Universe | str | os.PathLike[str],
    size: int | None = None,
    query: QueryName = "mean",
    risk: Exactly = 1 / 3,
    *,
    columns: Sequence[str] | None = None,
    missing: str = "refuse",
    prior: Prior = None,
    epsilons: Epsilons = None,
    separator: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    date_format: str | Mapping[str, str] | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
) -> Choice | Choices:
    """Which epsilon keeps the risk of disclosure within a limit?

    Parameters
    ----------
    universe : array of shape (n,), a frame or dict of columns, or a Parquet, CSV or Excel file
        All records that the adversary knows of; the published set is some of them. In a file, each
        column of numbers is a universe of its own. Logicals count as 0 and 1.
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
    prior : array of shape (worlds,), or a dict of them by column, optional
        What the adversary believes of each possible set beforehand, in the order of
        ``itertools.combinations``; adds up to 1. None: every set is as likely.
    epsilons : number or increasing sequence of numbers, optional
        Of the picture: the largest epsilon, or all of them, as in ``numpy.linspace(0, 5, 500)``.
        None: up to four times the epsilon that is found.
    separator, decimal, thousands, encoding, date_format, sheet, header_row : optional
        How a file is written, as for ``source``.

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
    written = StatedOptions(
        separator=separator,
        decimal=decimal,
        thousands=thousands,
        encoding=encoding,
        date_format=date_format,
        sheet=sheet,
        header_row=header_row,
    )
    named = _columns(universe, columns, file_options(written))
    choose_for = partial(
        _choice_of_column,
        size=size,
        query=query,
        risk=risk,
        missing=missing,
        prior=prior,
        epsilons=epsilons,
    )
    if named is None:
        return choose_for(cast("ArrayLike", universe))  # which has no columns
    if not named:
        raise UsageError(
            "an empty frame", "it has no columns of numbers", "Give at least one column of numbers"
        )
    return Choices(tuple(choose_for(records, name) for name, records in named.items()))


def _columns(
    universe: Universe | str | os.PathLike[str],
    wanted: Sequence[str] | None,
    options: FileOptions,
) -> Mapping[str, ArrayLike] | None:
    """Return the columns of a frame or a file, by name; None for an array."""
    if isinstance(universe, str | os.PathLike):
        from sfumato.data.describe import read_numbers

        return read_numbers(universe, wanted, options)
    refuse_without_files(options)
    named = named_columns(universe)
    if named is None or wanted is None:
        return named
    for name in wanted:
        if name not in named:
            raise UsageError(
                f"column {name!r}",
                "the frame has no column of that name",
                "Name columns that it has",
            )
    return {name: named[name] for name in wanted}


def _choice_of_column(
    records: ArrayLike,
    name: str | None = None,
    *,
    size: int | None,
    query: QueryName,
    risk: Exactly,
    missing: str,
    prior: Prior,
    epsilons: Epsilons,
) -> Choice:
    if missing == "drop":
        # The records that are numbers are left. What is no array of numbers is left as it is, to be
        # refused with the universe.
        try:
            array = np.asarray(records)
            numbers = (
                array.astype(float) if array.dtype.kind in "iufO" and array.ndim == 1 else None
            )
        except (TypeError, ValueError):
            numbers = None
        records = records if numbers is None else numbers[~np.isnan(numbers)]
    if size is None:
        size = max(np.asarray(records).size - 1, 1)
    universe = {name: records} if name else records
    chosen = choice.choose(universe, size, query, risk, prior=prior, epsilons=epsilons)
    return chosen if isinstance(chosen, Choice) else chosen.parts[0]
