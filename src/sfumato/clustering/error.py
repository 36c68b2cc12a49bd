"""How far a released centre is from the mean of the rows that are nearest to it: a root mean square error.

The truth that it is about: the mean of the rows, as they were counted (clamped, on the lattice), whose nearest released centre
this is, which is what ``predict`` says. The centre differs from it by five parts.

*Noise.* The noise of the last step's sums and counts, or of the grid's counts; its variance is known exactly, to first order in
the ratio of sum and count. 1.96 standard deviations of Laplace noise hold it with 93.75 % only, so that its standard deviation is
taken 1.08 times as large: then they hold 95 % of one Laplace variable, and more of a sum of several.

*Region.* A step averages the rows nearest to the centre *before* it, each shortened to the step's reach. The released centre has
moved on, so that rows near the borders have changed sides, and shortened rows lie farther out. A grid's region is made of whole
cells. Where a partition was paid for, both means are computed from its counts, the rows of a cell being spread evenly over it:
their difference is the estimate. The noise of those counts gives the variance of the estimate, by its derivative in each
count. Without a partition ("dplloyd") the next move is taken to be as long as the last one, and to go along any axis.

*Counts that are not negative.* k-means on the cells of a grid takes noisy counts cut at 0, and what is left of the noise of empty
cells draws a centre towards them. The mean by the counts as they were released has no such bias: the centre's distance from it is
the estimate.

*Grid.* A row lies anywhere in its cell. On the lattice of a step the worst is taken: half a cell, for all rows at once. The cells of
a grid that is clustered are wide, and there the mean of the rows of each is taken to lie evenly within it, independent of the
others: half a cell over sqrt 3, for a centre of one cell, and less for one of many. Values that were rounded before they came lie at
one side of all cells alike. No count shows that, so its bound, half a cell, is stated apart
(``rounding``).

Parts that are not noise have an unknown sign, so their squares are added to the variance. For a normal error of standard
deviation s about an offset b, P(|error| <= 1.96 sqrt(s^2 + b^2)) is at least 0.95 for every b. So +-1.96 is a 95 % interval.
It says nothing of how good the clusters are: k-means finds a local optimum, and noise decides which.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.arrays import Array
from sfumato.clustering.lloyd import Step, shortened
from sfumato.clustering.space import HALF, Space, nearest
from sfumato.clustering.weighted import non_negative
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law
from sfumato.partition.partition import Partition

POINTS = 2**17
HEAVIER = math.log(20) / (math.sqrt(2) * 1.96)
"""The 95 % half-width of a Laplace variable, in 1.96 of its standard deviations."""
FEWEST, MOST = 4, 64  # points by which a cell is represented


def root_mean_square(
    space: Space, centres: Array, partition: Partition | None, steps: tuple[Step, ...]
) -> Array:
    """The error of each coordinate of each centre, in whole numbers: float64 ndarray of shape (k, d).

    Parameters
    ----------
    space : Space
    centres : int64 ndarray of shape (k, d)
        As released.
    partition : Partition or None
    steps : tuple of Step
        At least one of the two was paid for.
    """
    cells = None if partition is None else Cells.of(space, partition)
    if steps:
        noise = steps[-1].standard_error(space.d) ** 2 * _tails(
            (steps[-1].sum_law, steps[-1].count_law)
        )
        grid = np.broadcast_to(_half_cells(space), centres.shape) ** 2
    elif partition is not None and cells is not None:
        noise = cells.noise(centres) * _tails(partition.laws) + cells.cut(centres)
        grid = cells.grid(centres)
    if cells is not None:
        region = cells.region(centres, steps)
    else:
        moved = centres - steps[-1].centres.reshape(centres.shape)
        region = (moved**2).sum(axis=1, keepdims=True)
    return np.asarray(np.sqrt(noise + region + grid))


def _tails(laws: tuple[Law, ...]) -> float:
    """By how much noise of these laws counts for more than its variance, because of its tails."""
    return HEAVIER**2 if any(isinstance(law, DiscreteLaplace) for law in laws) else 1.0


def rounding(space: Space, partition: Partition | None, steps: tuple[Step, ...]) -> Array:
    """How far a mean of cells is off, at most, if rows lie at one side of every cell: float64 (d,).

    In whole numbers. It is 0 where steps were paid for: they see rows on the lattice, and half a cell
    of that is in ``root_mean_square``.
    """
    if partition is None or steps:
        return np.zeros(space.d)
    return np.asarray(Cells.of(space, partition).room.max(axis=0))


def _half_cells(space: Space) -> Array:
    """Half of the range of values in a cell of the lattice, in whole numbers: float64 ndarray of shape (d,)."""
    widest = np.array(
        [float((high - low).max()) for low, high in (a.extremes() for a in space.axes)]
    )
    return np.asarray(widest / 2 / space.widths)


@dataclass(frozen=True)
class Cells:
    """A partition with its counts, each cell as a few points spread evenly over it, in whole numbers.

    Attributes
    ----------
    middles, halves, room : float64 ndarrays of shape (cells, d)
        ``room`` is how far a row can lie from where its cell stands: 0 where cells are steps.
    counts, weights, variances : ndarrays of shape (cells,)
        Counts as released, as they are when none is negative, and the variance of the noise on each.
    """

    middles: Array
    halves: Array
    room: Array
    counts: Array
    weights: Array
    variances: Array

    @classmethod
    def of(cls, space: Space, partition: Partition) -> Cells:
        lower = space.scale_edges(partition.lower) * HALF
        upper = space.scale_edges(partition.upper) * HALF
        each = np.array([law.variance for law in partition.laws])
        which = np.zeros(len(lower), np.int64) if partition.which is None else partition.which
        weights = non_negative(partition.counts)
        middles, halves = (lower + upper) / 2, (upper - lower) / 2
        # Steps stand in the middles of cells of the lattice. What rounding leaves is no room.
        room = np.maximum(np.round(halves - space.shift / space.widths, 6), 0.0)
        return cls(middles, halves, room, partition.counts, weights, each[which])

    @cached_property
    def points(self) -> tuple[Array, Array]:
        """The points, and the cell of each: int64 ndarrays of shapes (n, d) and (n,)."""
        cells, d = self.middles.shape
        each = max(FEWEST, min(MOST, POINTS // cells))
        where = self.middles[:, None] + self.room[:, None] * _spread_out(each, d)
        return np.rint(where).astype(np.int64).reshape(-1, d), np.repeat(np.arange(cells), each)

    def noise(self, centres: Array) -> Array:
        """The variance of means of cells by the noise of their counts: float64 ndarray of shape (k, d)."""
        groups, rows = self._grouped(centres)
        away = (self._whole - centres[groups]) ** 2 * self.variances[:, None]
        return np.asarray(_sums(groups, away, len(centres)) / rows**2)

    def cut(self, centres: Array) -> Array:
        """The square of how far centres lie from the means by counts that were not cut at 0: shape (k, d)."""
        groups, _ = self._grouped(centres)
        rows = np.maximum(np.bincount(groups, self.counts, len(centres)), 1)[:, None]
        away = (self._whole - centres[groups]) * self.counts[:, None]
        return np.asarray((_sums(groups, away, len(centres)) / rows) ** 2)

    def grid(self, centres: Array) -> Array:
        """The variance of means of cells by where the rows of each may lie in it: shape (k, d)."""
        groups, rows = self._grouped(centres)
        within = self.room**2 / 3 * (self.weights**2)[:, None]
        return np.asarray(_sums(groups, within, len(centres)) / rows**2)

    @cached_property
    def _whole(self) -> Array:
        return np.asarray(np.rint(self.middles).astype(np.int64))

    def _grouped(self, centres: Array) -> tuple[Array, Array]:
        """Which centre each cell belongs to, and the rows of each centre: shapes (cells,) and (k, 1)."""
        groups = nearest(self._whole, centres)
        return groups, np.maximum(np.bincount(groups, self.weights, len(centres)), 1)[:, None]

    def region(self, centres: Array, steps: tuple[Step, ...]) -> Array:
        """The square of how far the mean of the region lies from what was averaged, with the variance of that estimate."""
        k = len(centres)
        where, cell = self.points
        weights = (self.weights / np.bincount(cell))[cell]
        now = nearest(where, centres)
        if steps:
            before = nearest(where, steps[-1].centres.reshape(centres.shape))
            averaged = _averaged(where, before, steps[-1])
        else:
            before = nearest(self._whole, centres)[cell]
            averaged = where
        means, pulls = zip(
            *(_mean(*each, weights, k) for each in ((now, where), (before, averaged))), strict=True
        )
        offset = means[0] - means[1]
        # What one row more in a cell does to the difference, for each cell and group that meet.
        keys = np.concatenate([cell * k + now, cell * k + before])
        per_row = (
            np.concatenate([pulls[0], -pulls[1]]) / np.tile(np.bincount(cell)[cell], 2)[:, None]
        )
        met, at = np.unique(keys, return_inverse=True)
        derivative = _sums(at, per_row, len(met))
        variance = _sums(met % k, derivative**2 * self.variances[met // k][:, None], k)
        return np.asarray(offset**2 + variance)


def _averaged(where: Array, groups: Array, step: Step) -> Array:
    """Where a step sees rows: shortened to its reach."""
    about = step.about.reshape(len(step.counts), -1)[groups]
    return np.asarray(
        about + shortened(where - about, step.reach, isinstance(step.sum_law, DiscreteGaussian))
    )


def _mean(groups: Array, where: Array, weights: Array, k: int) -> tuple[Array, Array]:
    """Means of groups, shape (k, d), and by how much a row more at each point moves the mean of its group, shape (n, d)."""
    rows = np.maximum(np.bincount(groups, weights, k), 1)
    means = _sums(groups, where * weights[:, None], k) / rows[:, None]
    return means, (where - means[groups]) / rows[groups][:, None]


def _sums(groups: Array, values: Array, k: int) -> Array:
    """Sums of the rows of each group: float64 ndarray of shape (k, d)."""
    return np.stack([np.bincount(groups, column, k) for column in values.T], axis=1)


def _spread_out(count: int, d: int) -> Array:
    """Public points in [-1, 1]^d that fill it evenly (Roberts' additive recurrence): float64 ndarray of shape (count, d)."""
    ratio = 2.0
    for _ in range(64):
        ratio = (1 + ratio) ** (1 / (d + 1))
    steps = np.array([math.pow(ratio, -i) for i in range(1, d + 1)])
    return np.asarray(2 * ((0.5 + np.arange(count)[:, None] * steps) % 1) - 1)
