"""What is measured of each person, the bins of persons, and which share of the rows a limit keeps.

``Measured`` is one such number: which limit of the source bounds it, and how it is said. Bins of
numbers of rows per person are fixed by public numbers, with ends that people choose
(``upper_ends``).

*Which share of the rows a limit keeps* (``share_bounds``): bounds that hold, from noisy counts of
persons.

A person in the bin from a to b has x rows, a <= x <= b. A limit of r keeps min(x, r) of them. For
the true share s the sum of min(x, r) - s x over all persons is 0. So with n_b persons in bin b,

    sum_b n_b A_b(s) >= 0 >= sum_b n_b a_b(s),

A_b(s) and a_b(s) being the largest and smallest value of min(x, r) - s x in the bin. Noisy counts
in place of n_b move the two sums by weighted sums of the noise. Each s is kept for which neither
sum is further on the wrong side of 0 than noise explains. That is a test of each s at fixed
weights: it errs with the stated probability however many persons there are, also if there are none.

The shares are tested on a fixed grid. A_b and a_b decrease in s. So whichever s between two points
of the grid is true, the first inequality holds at the lower point, and the second at the upper one.

*What every limit leaves out* (``Distribution``): of draws of numbers of persons that fit the noisy
ones (``histogram.posterior``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from sfumato.answers import Counted
from sfumato.basics import Array
from sfumato.domain import Domain, EdgesAxis, Lattice
from sfumato.errors import printable
from sfumato.mechanisms import LEAST_ALPHA, Law, chernoff_half_widths, tails
from sfumato.questions.histogram import Histogram
from sfumato.questions.histogram.bins import Bins, Width
from sfumato.questions.histogram.posterior import Prior, drawn_tables

# --- what is measured -----------------------------------------------------------------------------

# What is measured of each person.
Of: TypeAlias = Literal["rows", "cells", "norm", "largest-cell"]
# A limit of ``sf.source``.
LimitName: TypeAlias = Literal[
    "rows_per_person", "cells_per_person", "norm_per_person", "rows_per_cell"
]


class Spread(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is measured of each person's rows in the cells of a table.

    Attributes
    ----------
    of : {"cells", "norm", "largest-cell"}
        The number of cells with a row of the person, the L2 norm of the person's counts in the
        cells, or the largest of these counts.
    axes : tuple of str
        Those of the table.
    most : int or None
        The largest value that is told apart: persons with more are counted as those with this one.
    bins, width : number, list, dict, or None
        The bins of the table's Interval axes, as in ``sf.Histogram``.
    """

    of: Literal["cells", "norm", "largest-cell"]
    axes: tuple[str, ...]
    most: int | None = None
    bins: Bins = None
    width: Width = None

    def cells(self, domain: Domain) -> Lattice:
        """The cells of the table."""
        return cells_of(self.axes, self.bins, self.width, domain)


@dataclass(frozen=True)
class Measured:
    """One of the numbers that persons are counted by, in words.

    In the texts, {who} stands for what the source calls a person.

    Attributes
    ----------
    counted : Counted
        What a scan counts persons by.
    limit : str
        The limit of ``sf.source`` that bounds it.
    of_each : str
        A title, such as "Rows of each {who}".
    noun : str
        Several of it, such as "rows".
    by : str
        What a person is counted by, such as "its number of rows".
    beyond : str
        What is said of those beyond the limit, such as "have more".
    more : str
        What they have, such as "more rows".
    kept_of : str
        What a share that a limit keeps is a share of; empty where no such share follows.
    axis : str
        What pictures write below limits.
    """

    counted: Counted
    limit: LimitName
    of_each: str
    noun: str
    by: str
    beyond: str
    more: str
    kept_of: str
    axis: str


MEASURED: Mapping[Of, Measured] = {
    "rows": Measured(
        "rows of each person",
        "rows_per_person",
        "Rows of each {who}",
        "rows",
        "its number of rows",
        "have more",
        "more rows",
        "the rows",
        "limit on rows per person",
    ),
    "cells": Measured(
        "cells of each person",
        "cells_per_person",
        "Cells of each {who}",
        "cells",
        "the number of cells in which it has rows",
        "are in more",
        "more cells",
        "the pairs of one {who} and a cell",
        "limit on cells per person",
    ),
    "norm": Measured(
        "norm of each person",
        "norm_per_person",
        "Norm of each {who}",
        "the L2 norm",
        "the L2 norm of its counts in the cells, rounded up",
        "have a larger norm and lose rows",
        "a larger norm",
        "",
        "limit on the norm of a person's counts",
    ),
    "largest-cell": Measured(
        "largest cell of each person",
        "rows_per_cell",
        "Largest cell of each {who}",
        "rows in a cell",
        "its number of rows in the cell that has most of them",
        "have more in some cell",
        "more rows in a cell",
        "",
        "limit on rows of a person in a cell",
    ),
}


def title_of(measured: Measured, who: str, axes: tuple[str, ...]) -> str:
    """Return the title of a question or an answer about persons.

    >>> title_of(MEASURED["cells"], "rider", ("hour", "stop"))
    'Cells of each rider by hour x stop'
    """
    title = measured.of_each.format(who=who)
    return f"{title} by {' x '.join(map(printable, axes))}" if axes else title


def cells_of(axes: str | Sequence[str], bins: Bins, width: Width, domain: Domain) -> Lattice:
    """Return the cells of a table: those of a histogram.

    Raises
    ------
    UsageError
        As ``sf.Histogram``.
    """
    return Histogram(axes, bins=bins, width=width).needs(domain).lattice


# --- bins -----------------------------------------------------------------------------------------

ENDS_PER_DECADE = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)  # tenths
# The largest number of rows of a person that can be declared.
LARGEST = 10**9
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
    # Where no largest number is declared, the last bin is above this end.
    last = 10**4 if most_rows is None else most_rows
    ends = {last, LARGEST if most_rows is None else last}
    decade = 1
    while decade <= last:
        whole = (tenths * decade // 10 for tenths in ENDS_PER_DECADE if tenths * decade % 10 == 0)
        ends |= {end for end in whole if end <= last}
        decade *= 10
    return tuple(sorted(ends))


def lower_ends(most_rows: int | None) -> Array:
    """Return the smallest number of rows in each bin: int64 ndarray."""
    ends = upper_ends(most_rows)
    return np.array([1, *(end + 1 for end in ends[:-1])], np.int64)


def rows_axis(most_rows: int | None) -> EdgesAxis:
    """Return the axis on which persons are counted: a person with more rows is in the last bin."""
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


# --- shares of the rows ---------------------------------------------------------------------------

AT_ONCE = 12  # cells that are tested together, from each end inwards


def share_bounds(
    counts: Array, lowest: Array, highest: Array, law: Law, limit: int, alpha: float
) -> tuple[float, float]:
    """Return bounds of the share of rows that a limit keeps.

    Parameters
    ----------
    counts : int64 ndarray of shape (bins,)
        Noisy numbers of persons.
    lowest, highest : int64 ndarrays of shape (bins,)
        The smallest and largest number of rows in each bin.
    law : DiscreteLaplace or DiscreteGaussian
        The noise on each count.
    limit : int
        The largest number of rows of a person that is kept.
    alpha : float
        The probability that the share lies outside.

    Returns
    -------
    low, high : float
        0 and 1 at worst; never below ``limit`` as a share of the largest number of rows.
    """
    shares = _grid(limit, int(highest[-1]))
    if len(shares) == 1:
        return 1.0, 1.0
    # min(x, r) - s x increases in x up to the limit r and decreases from there. So it is largest at
    # the limit, or at the end of the bin nearest to it, and smallest at one of the two ends.
    column = shares[:, None]
    nearest = np.clip(limit, lowest, highest)
    largest = np.minimum(nearest, limit) - column * nearest
    at_lowest = np.minimum(lowest, limit) - column * lowest
    at_highest = np.minimum(highest, limit) - column * highest
    smallest = np.minimum(at_lowest, at_highest)
    # The two sums that may not be negative: cell i lies between shares[i + 1] and shares[i], which
    # decrease. Each is tested at a one-sided alpha / 2.
    sums = [(weights, -(weights @ counts)) for weights in (largest[1:], -smallest[:-1])]
    # Chernoff's bound is fast and too wide, so it excludes most cells.
    is_near = [below_zero <= chernoff_half_widths(law, of, alpha) for of, below_zero in sums]
    cells = np.flatnonzero(np.all(is_near, axis=0))
    first = _first_kept(cells, sums, law, alpha)
    if first is None:
        # Noise beyond the bounds of both tests: nothing is claimed.
        return float(shares[-1]), 1.0
    last = _first_kept(cells[::-1], sums, law, alpha)
    # The search from the front kept a cell, so the search from the back keeps one, too.
    assert last is not None
    return float(shares[last + 1]), float(shares[first])


def _first_kept(
    cells: Array, sums: Sequence[tuple[Array, Array]], law: Law, alpha: float
) -> int | None:
    """The first of these cells that no test excludes; None if there is none.

    Parameters
    ----------
    cells : int64 ndarray
    sums : sequence of pairs
        Of each test, the weights of the bins in each cell, and how far below 0 the sum is there.
    law : DiscreteLaplace or DiscreteGaussian
    alpha : float
    """
    # For so small an alpha Chernoff's bound stands alone: it is too wide and never too narrow.
    if alpha / 2 < LEAST_ALPHA:
        return int(cells[0]) if len(cells) else None
    for start in range(0, len(cells), AT_ONCE):
        some = cells[start : start + AT_ONCE]
        by_test = [tails(law, of[some], below_zero[some]) > alpha / 2 for of, below_zero in sums]
        is_kept = np.all(by_test, axis=0)
        if is_kept.any():
            return int(some[np.argmax(is_kept)])
    return None


def _grid(limit: int, most_rows: int) -> Array:
    """Shares from 1 down to the least that is possible, closest to each other near 0 and near 1."""
    least = min(limit / most_rows, 1.0)
    if least >= 1:
        return np.ones(1)
    largest = 1 - min(1e-4, (1 - least) / 2)
    odds = np.geomspace(largest / (1 - largest), least / (1 - least), 256)
    shares = odds / (1 + odds)
    shares[-1] = least  # exactly: rounding may not put it above the true share
    return np.concatenate([[1.0], shares])


# --- the distribution -----------------------------------------------------------------------------

# Chosen on other laws than those that docs/evidence/gains/chosen_clips.md reports.
PRIOR = Prior(begins=0.15, ends=0.1, resumes=0.003, scale=0.4, drift=-0.2, spread=0.05, draws=200)
LIMITS_PER_BIN = 4


@dataclass(frozen=True)
class Distribution:
    """Numbers of rows of all persons that fit the noisy counts: of many draws.

    Attributes
    ----------
    limits : int64 ndarray of shape (limits,)
        Limits of rows per person, from 1 up to the largest number of rows: the ends of all bins,
        and up to three limits within each.
    lost : float64 ndarray of shape (draws, limits)
        How many rows each limit leaves out.
    rows : float64 ndarray of shape (draws,)
        How many rows there are.
    """

    limits: Array
    lost: Array
    rows: Array

    @property
    def shares_lost(self) -> Array:
        """The share of the rows that each limit leaves out, like ``lost``; 0 if there are none."""
        return np.asarray(self.lost / np.maximum(self.rows, 1.0)[:, None])

    @property
    def number_of_rows(self) -> float:
        """How many rows there are: the median of the draws."""
        return float(np.median(self.rows))

    def kept(self, limit: int) -> float:
        """The share of rows that a limit keeps: the median of the draws."""
        medians = np.median(self.shares_lost, axis=0)
        return 1 - float(np.interp(limit, self.limits, medians))


def estimated(counts: Array, lowest: Array, highest: Array, law: Law) -> Distribution:
    """Draw numbers of rows that fit noisy numbers of persons in each bin.

    Persons of a bin are taken to lie evenly on the numbers of rows in it.
    """
    ((_, drawn),) = drawn_tables(counts[None], law, 1, PRIOR)
    parts = np.arange(1, LIMITS_PER_BIN + 1)
    sizes = (highest - lowest + 1)[:, None]
    limits = np.unique(lowest[:, None] - 1 + -(-sizes * parts // LIMITS_PER_BIN))
    # Of the persons of a bin: how many rows beyond a limit each has in the mean.
    first = np.maximum(lowest[:, None], limits + 1)
    n_beyond = np.maximum(highest[:, None] - first + 1, 0)
    rows_beyond = n_beyond * ((first + highest[:, None]) / 2 - limits)
    lost = drawn[0] @ (rows_beyond / sizes)
    return Distribution(limits, lost, drawn[0] @ ((lowest + highest) / 2))
