"""Bins of numbers of rows per person: fixed by public numbers, with ends that people choose."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.domain.lattice import EdgesAxis

ENDS_PER_DECADE = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)  # tenths
LARGEST = 10**9
"""The largest number of rows of a person that can be declared."""
WITHOUT_MOST_ROWS = 10**4
"""The last end where no largest number of rows is declared: the last bin is then above it."""
AXIS = "rows"


@lru_cache(maxsize=32)
def upper_ends(most_rows: int | None) -> tuple[int, ...]:
    """The largest number of rows in each bin: 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, .. most_rows.

    Limits that people choose are ends of bins, so that what such a limit leaves out is the sum of
    whole bins. Without ``most_rows`` the last bin has no end: it is ``LARGEST``.

    >>> upper_ends(30)
    (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30)
    >>> len(upper_ends(1000))
    28
    """
    last = WITHOUT_MOST_ROWS if most_rows is None else most_rows
    ends = {last, LARGEST if most_rows is None else last}
    decade = 1
    while decade <= last:
        whole = (tenths * decade // 10 for tenths in ENDS_PER_DECADE if tenths * decade % 10 == 0)
        ends |= {end for end in whole if end <= last}
        decade *= 10
    return tuple(sorted(ends))


def lower_ends(most_rows: int | None) -> Array:
    """The smallest number of rows in each bin: int64 ndarray."""
    ends = upper_ends(most_rows)
    return np.array([1, *(end + 1 for end in ends[:-1])], np.int64)


def rows_axis(most_rows: int | None) -> EdgesAxis:
    """The axis on which persons are counted: a person with more rows is in the last bin."""
    edges = (1.0, *(end + 1.0 for end in upper_ends(most_rows)))
    return EdgesAxis(AXIS, edges, step=1.0, origin=1.0)


def bin_names(most_rows: int | None, *, exact: bool = False) -> list[str]:
    """Name the bins, such as "7 to 8"; ``exact`` where nobody can have more than ``most_rows``.

    >>> bin_names(10)
    ['1', '2', '3', '4', '5', '6', '7 to 8', '9 or more']
    """
    names = []
    first_rows = lower_ends(most_rows).tolist()
    for first, last in zip(first_rows, upper_ends(most_rows), strict=True):
        names.append(f"{first:,}" if first == last else f"{first:,} to {last:,}")
    # Where persons have more rows than was declared, they are counted in the last bin.
    if not exact:
        names[-1] = f"{first_rows[-1]:,} or more"
    return names
