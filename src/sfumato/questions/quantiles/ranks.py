"""Ranks of quantiles: from a 16-ary tree of noisy counts, and from counts that are paid for.

``ranks_of`` and ``points_at`` read quantiles off the tree. The rest says what noisy counts between
the chosen values say of their ranks.

The m chosen edges of an axis divide its rows into m + 1 gaps. Joint selection and halving leave a
part of the cost for counts of the gaps with exact noise. A tree needs none: it has counts already.

*Gap counts.* Each gap has one draw of the same law. So the noise of (rows below - q * all rows) is
a weighted sum of independent draws, and ``mechanisms.noise_sums`` has its exact law.
*Tree.* The chosen edge depends on the noise. So its rank has a bound that holds at every edge at
once. A noisy rank less q times the noisy total adds up 16 counts of the first level, with weights 1
- q below and q above, and at most 15 of each further level with weight 1. There are as many such
sums as edges, and each exceeds its Chernoff bound with a probability of at most alpha / edges.
Ranks are then made to rise, and a rank between the two ends of a cell is between two bounded ones:
neither moves a rank further than the largest error of all.

Equal values are merged. On an axis without a step, the gap between two of them holds no cell, nor
does the gap between a value and the end of the axis at which it lies. These gaps have no count and
no noise. On an axis with a step the edges lie between sub-cells, also inside a tied cell: a value
that many rows share has all ranks of these rows, and each quantile is given one of them.

Guarantee: the counts of gaps cost what ``count_law`` charges for disjoint cells, L1 = r (replace:
2r), L2 = r (replace: r sqrt 2), for one axis and all labels together.
Holds because: given the chosen edges, which are paid for, gaps are unions of sub-cells. Neighbours
move r rows of sub-cells (``cells``), and a row lies in one gap of one label. Selection and
counts together spend exactly the cost: it is shared in whole units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import TypeAlias

import numpy as np

from sfumato.basics import Array
from sfumato.mechanisms import Law, add_noise, contrast_half_width, half_widths, spread
from sfumato.questions.quantiles.cells import Cells
from sfumato.random.bits import Bits


def floats(at: Sequence[Fraction]) -> Array:
    """Return quantiles as a float64 ndarray."""
    return np.array([float(q) for q in at])


# --- trees of counts ------------------------------------------------------------------------------

FANOUT = 16


def noisy_counts(cells: Cells, laws: Sequence[Law], bits: Bits) -> list[Array]:
    """Count every node of the tree with the noise of its level, from the first level on.

    Returns
    -------
    list of int64 ndarrays of shape (16^level,)
        Everything else follows from them, which costs nothing more.
    """
    counts = np.zeros(FANOUT ** len(laws), np.int64)
    counts[cells.positions] = cells.counts
    return [
        add_noise(counts.reshape(FANOUT**level, -1).sum(axis=1), law, bits)
        for level, law in enumerate(laws, 1)
    ]


def ranks_of(levels: Sequence[Array], cells: int) -> Array:
    """How many rows lie below each edge of so many cells, given the noisy counts of all nodes."""
    below = np.zeros(1)
    for noisy in levels:
        siblings = noisy.reshape(-1, FANOUT).astype(float)
        earlier_siblings = np.cumsum(siblings, axis=1) - siblings
        below = (below[:, None] + earlier_siblings).reshape(-1)
    total = float(levels[0].sum())
    ranks = np.append(below, total)[: cells + 1]
    # All rows lie below the last edge, so it has the total by which targets are measured.
    ranks[-1] = total
    return ranks


def points_at(ranks: Array, at: Sequence[Fraction], snap: bool) -> Array:
    """The lattice points whose noisy ranks are nearest to the quantiles: int64 ndarray, in order.

    Parameters
    ----------
    ranks : float64 ndarray of shape (cells + 1,)
    at : sequence of Fraction
    snap : bool
        Whether the axis has a step of its own: the cell in which the ranks pass the target is then
        the answer, else the nearer of its ends.
    """
    cells = len(ranks) - 1
    rising = risen(ranks)
    targets = floats(at) * ranks[-1]
    # Where the noisy total is negative, the targets fall; the points stay in order all the same.
    if snap:
        passed = np.clip(np.searchsorted(rising, targets, side="right") - 1, 0, cells - 1)
        return np.maximum.accumulate(passed).astype(np.int64)
    right = np.clip(np.searchsorted(rising, targets), 1, cells)
    left_is_nearer = targets - rising[right - 1] < rising[right] - targets
    nearest = np.where(left_is_nearer, right - 1, right)
    return np.maximum.accumulate(nearest).astype(np.int64)


def risen(ranks: Array) -> Array:
    """Noisy ranks that do not fall: the mean of the least rising curve above and the largest one
    below them.
    """
    above = np.maximum.accumulate(ranks)
    below = np.minimum.accumulate(ranks[::-1])[::-1]
    return np.asarray((above + below) / 2)


def gaps_at(ranks: Array, points: Array, at: Sequence[Fraction], snap: bool) -> Array:
    """Return noisy numbers of rows between the chosen points: int64 ndarray of shape (m + 1,).

    With a step, a value has all ranks between the two ends of its cell. The one nearest to the
    rank asked for is taken.
    """
    rising = risen(ranks)
    chosen = rising[points]
    if snap:
        targets = floats(at) * ranks[-1]
        chosen = np.clip(targets, chosen, rising[points + 1])
    whole = np.floor(chosen).astype(np.int64)
    return np.diff(whole, prepend=0, append=int(ranks[-1]))


# --- ranks that are paid for ----------------------------------------------------------------------

# The part of alpha that an interval of a share leaves to the noise of the number of rows.
OF_SHARES = Fraction(1, 20)


class Paid(Enum):
    """What a cost pays for beside the values of quantiles."""

    RANKS = "ranks"
    ROWS = "rows"  # the numbers of rows of labels, as in releases whose ranks are not paid for
    VALUES = "values"  # nothing more, as in releases of version 0.1 and in those without labels


def counted_gaps(points: Array, cells: int, snap: bool) -> Array:
    """Return which gaps have a count: bool ndarray of shape (..., m + 1).

    Parameters
    ----------
    points : int64 ndarray of shape (..., m)
        The chosen lattice points of an axis, in order.
    cells : int
    snap : bool
        Whether the axis has a step of its own: then every gap has a count.

    >>> counted_gaps(np.array([0, 3, 3, 7]), 8, False).tolist()
    [False, True, False, True, True]
    """
    shape = (*points.shape[:-1], points.shape[-1] + 1)
    if snap:
        return np.ones(shape, bool)
    return np.diff(points, axis=-1, prepend=0, append=cells) > 0


def rows_between(fine: Cells, edges: Array) -> Array:
    """The true numbers of rows between edges of sub-cells: int64 ndarray of shape (m + 1,)."""
    through = np.concatenate([[0], np.cumsum(fine.counts)]).astype(np.int64)
    ranks = through[np.searchsorted(fine.positions, edges)]
    return np.diff(ranks, prepend=0, append=through[-1])


def noisy_gaps(gaps: Array, counted: Array, law: Law, bits: Bits) -> Array:
    """Add noise to the gaps that have a count: int64 ndarray like ``gaps``, 0 in the others.

    Parameters
    ----------
    gaps : int64 ndarray of shape (m + 1,)
    counted : bool ndarray of shape (m + 1,)
    law : law of noise
    bits : Bits
    """
    noisy = np.zeros(len(gaps), np.int64)
    noisy[counted] = add_noise(gaps[counted], law, bits)
    return noisy


@dataclass(frozen=True)
class GapNoise:
    """How far the noise on counts of gaps may move ranks.

    Attributes
    ----------
    law : law of noise
    """

    law: Law

    def half_width(self, below: int, above: int, q: Fraction, alpha: float) -> int:
        """Return the half-width of (rows below - q * all rows), given the counts on both sides."""
        return contrast_half_width(self.law, below, above, q, alpha)

    def half_width_bounds(self, below: Array, counts: int, q: Fraction, alpha: float) -> Array:
        """Upper bounds on ``half_width``, for several numbers of counts below, of so many."""
        weights = float(1 - q), float(q)
        variances = spread(self.law) * (
            below * weights[0] ** 2 + (counts - below) * weights[1] ** 2
        )
        bounds = half_widths(variances, [(self.law, max(weights))], alpha)
        return np.asarray(np.where(variances > 0, np.ceil(bounds), 0))

    def rows_half_width(self, counts: int, alpha: float) -> int:
        """Return the half-width of the number of all rows, the sum of so many counts."""
        return contrast_half_width(self.law, counts, 0, Fraction(0), alpha)


@dataclass(frozen=True)
class TreeNoise:
    """How far the noise of a tree may move the ranks of all edges.

    Attributes
    ----------
    laws : tuple of law
        Of each level.
    edges : int
        Of the axis.
    """

    laws: tuple[Law, ...]
    edges: int

    def half_width(self, below: int, above: int, q: Fraction, alpha: float) -> int:
        """Return the half-width of (rows below - q * all rows) at every edge, for any counts."""
        return _tree_half_width(self.laws, self.edges, q, alpha)

    def half_width_bounds(self, below: Array, counts: int, q: Fraction, alpha: float) -> Array:
        """``half_width``, for several numbers of counts below."""
        return np.full(len(below), self.half_width(0, counts, q, alpha))

    def rows_half_width(self, counts: int, alpha: float) -> int:
        """Return the half-width of the number of all rows, the sum of the first level."""
        return contrast_half_width(self.laws[0], FANOUT, 0, Fraction(0), alpha)


RankNoise: TypeAlias = GapNoise | TreeNoise


@lru_cache(maxsize=2**12)
def _tree_half_width(laws: tuple[Law, ...], edges: int, q: Fraction, alpha: float) -> int:
    weight = float(max(q, 1 - q))
    variance = FANOUT * weight**2 * spread(laws[0])
    variance += sum((FANOUT - 1) * spread(law) for law in laws[1:])
    bound = half_widths(np.array([variance]), [(law, 1.0) for law in laws], alpha / edges)[0]
    # Ranks that were made to rise are means of two, rounded to whole rows.
    return math.ceil(float(bound)) + 1


def number_short(
    noise: RankNoise, below: Array, spare: Array, *, counts: int, q: Fraction, alpha: float
) -> int:
    """How many values, from the first on, have as many rows to spare as their half-width.

    They surely have fewer rows below them than a quantile asks for, or more.

    Parameters
    ----------
    noise : GapNoise or TreeNoise
    below : int64 ndarray of shape (values,)
        How many counts there are below each value.
    spare : float64 ndarray of shape (values,)
    counts : int
        How many counts there are.
    q : Fraction
    alpha : float
        Each value is judged by a two-sided half-width at alpha.
    """
    bounds = noise.half_width_bounds(below, counts, q, alpha)
    # The exact half-width takes long, and decides only where its bound does not.
    for at in np.flatnonzero(spare < bounds).tolist():
        through = int(below[at])
        if spare[at] < 0 or spare[at] < noise.half_width(through, counts - through, q, alpha):
            return int(at)
    return len(spare)


@dataclass(frozen=True)
class PaidRanks:
    """The ranks of the values of a release, estimated from noisy counts between them.

    Attributes
    ----------
    at : tuple of Fraction
        The quantiles asked for.
    noises : tuple of GapNoise or TreeNoise
        Of each axis.
    counted : bool ndarray of shape (labels, axes, quantiles + 1)
    gaps : int64 ndarray like ``counted``
    """

    at: tuple[Fraction, ...]
    noises: tuple[RankNoise, ...]
    counted: Array
    gaps: Array

    @cached_property
    def below(self) -> Array:
        """The noisy numbers of rows below the values: int64 ndarray (labels, axes, quantiles)."""
        return np.cumsum(self.gaps, axis=2)[:, :, :-1]

    @cached_property
    def totals(self) -> Array:
        """The noisy numbers of all rows: int64 ndarray of shape (labels, axes)."""
        return np.asarray(self.gaps.sum(axis=2))

    @cached_property
    def offsets(self) -> Array:
        """Rows by which each estimated rank exceeds the one asked for: float64 ndarray."""
        at = floats(self.at)
        return np.asarray(self.below - at * self.totals[:, :, None])

    @cached_property
    def shares(self) -> Array:
        """The estimated shares of rows below the values: float64, NaN where no row is estimated."""
        totals = np.maximum(self.totals, 0)[:, :, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(totals > 0, self.below / totals, np.nan)
        return np.clip(shares, 0, 1)

    def half_widths(self, alpha: float) -> Array:
        """How far (rows below - at * all rows) may be off: int64 ndarray like ``below``."""
        return self._each(lambda noise, below, above, q: noise.half_width(below, above, q, alpha))

    def _each(self, half_width: Callable[[RankNoise, int, int, Fraction], int]) -> Array:
        """Return a half-width for each value, from the numbers of counts below and above it."""
        below = np.cumsum(self.counted, axis=2)
        halves = np.empty(self.below.shape, np.int64)
        for label, axis, which in np.ndindex(halves.shape):
            through = int(below[label, axis, which])
            beyond = int(below[label, axis, -1]) - through
            halves[label, axis, which] = half_width(
                self.noises[axis], through, beyond, self.at[which]
            )
        return halves

    def around(self, alpha: float) -> tuple[Array, Array]:
        """Which values surely lie on either side of each true quantile: int64 like ``below``.

        Returns
        -------
        last_below, first_above : int64 ndarrays
            Indices of values of the same label and axis: of the last one that is surely no larger
            than the true quantile, and of the first one that is surely no less. -1, or the number
            of quantiles, where there is none.

        Notes
        -----
        A value is no larger than the quantile at q if at most q n - 1 rows lie below it, and no
        less if q n + 1 rows do. Then all usual definitions of a quantile agree. Both bounds hold
        together with probability 1 - alpha: each uses one side of the intervals of ranks.

        Holds because: the first value is looked at first, and the next one only if that one is
        surely no larger. True ranks rise. So a wrong bound needs a wrong answer for the first value
        of all that is larger than the quantile, and that is one event. Whatever follows it does not
        count. From above it is the same. A tree's bounds hold at all edges at once anyhow.
        """
        last_below = np.empty(self.below.shape, np.int64)
        first_above = np.empty(self.below.shape, np.int64)
        for label, axis in np.ndindex(self.totals.shape):
            through = np.cumsum(self.counted[label, axis])
            for which, q in enumerate(self.at):
                offsets = self.below[label, axis] - float(q) * self.totals[label, axis]
                short = partial(number_short, counts=int(through[-1]), q=q, alpha=alpha)
                noise = self.noises[axis]
                last_below[label, axis, which] = short(noise, through[:-1], -1 - offsets) - 1
                beyond = short(noise, through[:-1][::-1], offsets[::-1] - 1)
                first_above[label, axis, which] = len(self.at) - beyond
        return last_below, first_above

    def known(self, alpha: float) -> Array:
        """Whether each value surely has rows on either side of it: bool ndarray like ``below``.

        The two bounds hold together with probability 1 - alpha: each uses one side of an interval.
        """
        low = self._each(lambda noise, below, _, __: noise.half_width(below, 0, Fraction(0), alpha))
        high = self._each(
            lambda noise, _, above, __: noise.half_width(0, above, Fraction(1), alpha)
        )
        above = self.totals[:, :, None] - self.below
        # A side without a count holds no row, and is known to.
        return np.asarray((self.below > low) & (above > high))

    @cached_property
    def best_axis(self) -> int:
        """The axis whose counts add up to the most precise number of rows."""
        return int(np.argmin(self._rows_half_widths(0.05).max(axis=0)))

    @cached_property
    def rows(self) -> Array:
        """The noisy numbers of rows of the labels: int64 ndarray of shape (labels,)."""
        return np.asarray(self.totals[:, self.best_axis])

    def fewest_rows(self, alpha: float) -> Array:
        """A lower bound on the rows of each label: one side of an interval, so at alpha / 2."""
        return np.asarray((self.totals - self._rows_half_widths(alpha))[:, self.best_axis])

    def _rows_half_widths(self, alpha: float) -> Array:
        """Return how far the totals may be off: int64 ndarray of shape (labels, axes)."""
        counts = self.counted.sum(axis=2)
        halves = np.empty(counts.shape, np.int64)
        for label, axis in np.ndindex(halves.shape):
            number = int(counts[label, axis])
            halves[label, axis] = self.noises[axis].rows_half_width(number, alpha)
        return halves

    def intervals(self, alpha: float, together: int) -> tuple[Array, Array]:
        """Lowest and highest share of rows below each value: float64 ndarrays in [0, 1].

        The share is at + (rows below - at * all rows) / (all rows). The first summand of the noise
        gets most of alpha, and the number of rows, which matters little, the rest.

        Parameters
        ----------
        alpha : float
        together : int
            How many values share alpha; 1 for each value by itself.
        """
        half = self.half_widths(alpha * float(1 - OF_SHARES) / together)
        labels = 1 if together == 1 else self.totals.size
        rows = self._rows_half_widths(alpha * float(OF_SHARES) / labels)
        fewest = (self.totals - rows)[:, :, None]
        most = (self.totals + rows)[:, :, None]
        at = floats(self.at)
        some = np.maximum(fewest, 1)

        def share(offset: Array, outwards: Array) -> Array:
            # An end beyond the quantile lies farthest out with the fewest rows, one before it with
            # the most.
            rows = np.where(outwards, some, np.maximum(most, 1))
            return np.where(fewest > 0, np.clip(at + offset / rows, 0, 1), np.nan)

        low = self.offsets - half
        high = self.offsets + half
        lowest = np.nan_to_num(share(low, low < 0), nan=0.0)
        highest = np.nan_to_num(share(high, high > 0), nan=1.0)
        return lowest, highest
