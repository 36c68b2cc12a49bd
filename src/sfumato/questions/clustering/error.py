"""How far a released centre is from the mean of the rows nearest to it: a root mean square.

Two helpers stand before it: public first centres (``packing``), and the test of which cells of a
partition hold rows (``NoisyCells``).

*First centres* lie far from one another and from the faces: they depend on k and d alone.

*Which cells of a partition hold rows*, as far as the noise lets anybody see.

Where bounds are far wider than the data, nearly all cells are empty. Noise leaves positive counts
in many of them, far from the rows. k-means measures squared distances, so it would spend its
centres on them. Cutting small counts, cell by cell, would also cut the tails of real clusters.

Here whole groups of cells are tested. Weighted k-means groups the cells. A group is dropped if the
sum of its *signed* counts cannot be told from the noise, and the rest is grouped again. There are
half as many groups again as clusters asked for: a smaller group holds less noise beside its rows. A
cell that can be told from noise on its own is kept in any case.

Rows that are few for the noise look like noise too, so a result is used only under two conditions.
The cells that were dropped hold no rows that can be told from noise, all together. And the centres,
if they need not serve these cells, fit the others clearly better. Otherwise fewer groups are
dropped, or none.

All of this uses noisy counts that are paid for, and public facts. It costs nothing.

*The error.*

The truth that the error is about is the mean of the rows, as they were counted (clamped, on the
lattice), whose nearest released centre this is; ``predict`` says which they are. The centre differs
from that mean by four parts.

*Noise.* The noise of the last step's sums and counts, or of the grid's counts. Its variance is
known exactly, to first order in the ratio of sum and count. 1.96 standard deviations of Laplace
noise hold it with 93.75% only, so its standard deviation is taken 1.08 times as large. Then they
hold 95% of one Laplace variable, and more of a sum of several.

*Region.* A step averages the rows nearest to the centre *before* the step, each clipped to the
step's radius. The released centre has moved on, so rows near the borders have changed sides, and
clipped rows lie farther out. A grid's region is made of whole cells. Where a partition was paid
for, both means are computed from its counts, with the rows of a cell spread evenly over it: their
difference is the estimate. The noise of those counts gives the variance of the estimate, by its
derivative in each count. Without a partition ("dplloyd"), the next move is taken to be as long as
the last one, and to go along any axis.

*Counts that are not negative.* k-means on the cells of a grid takes noisy counts cut at 0. What is
left of the noise of empty cells draws a centre towards them. The mean by the counts as they were
released has no such bias: the centre's distance from it is the estimate.

*Grid.* A row lies anywhere in its cell. For the lattice of a step the worst is taken: half a cell,
for all rows at once. The cells of a grid that is clustered are wide. There the mean of the rows of
each cell is taken to lie evenly within it, independently of the others: half a cell over sqrt 3 for
a centre of one cell, and less for one of many. Values that were rounded before they came lie at one
side of all cells alike. No count shows that, so its bound, half a cell, is stated apart
(``rounding``).

Parts that are not noise have an unknown sign, so their squares are added to the variance. For a
normal error of standard deviation s about an offset b, P(|error| <= 1.96 sqrt(s^2 + b^2)) is at
least 0.95 for every b. So +-1.96 is a 95% interval. It says nothing about how good the clusters
are: k-means finds a local optimum, and noise decides which.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from sfumato.basics import Array, assign, grouping, non_negative, squared_distances, weighted_kmeans
from sfumato.mechanisms import DiscreteGaussian, DiscreteLaplace, Law
from sfumato.questions.clustering.lloyd import HALF, Space, Step, clip, nearest
from sfumato.questions.partition.estimates import values_per_cell
from sfumato.questions.partition.release import Partition

# --- first centres --------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def packing(k: int, d: int) -> Array:
    """Return the centres of k equal balls in [-1, 1]^d, as large as could be found.

    The points are at least a from the faces and 2a from one another. Bisection finds the largest a
    for which random trials succeed. The trials come from a fixed seed.

    Source: Su et al. 2016, section 3.1 (sphere packing).

    Returns
    -------
    float64 ndarray of shape (k, d).
    """
    low = 0.0
    high = 1.0
    best = np.zeros((k, d))
    for _ in range(16):
        radius = (low + high) / 2
        centres = _placed(k, d, radius)
        if centres is None:
            high = radius
        else:
            low = radius
            best = centres
    # The cache hands out this array again and again.
    best.flags.writeable = False
    return best


def _placed(k: int, d: int, radius: float) -> Array | None:
    """Return centres of k balls of this radius; None if the trials find no room for them."""
    rng = np.random.default_rng([k, d])
    placed = np.empty((k, d))
    for i in range(k):
        trials = rng.uniform(radius - 1, 1 - radius, (30, d))
        squared = ((trials[:, None, :] - placed[:i]) ** 2).sum(axis=2)
        is_apart = squared.min(axis=1, initial=np.inf) >= 4 * radius**2
        if not is_apart.any():
            return None
        placed[i] = trials[int(is_apart.argmax())]
    return placed


# --- which cells hold rows ------------------------------------------------------------------------


@dataclass(frozen=True)
class NoisyCells:
    """The cells of a partition with their noise, in units of half a side.

    Attributes
    ----------
    middles, halves : float64 ndarrays of shape (cells, d)
    counts : int64 ndarray of shape (cells,)
        As they were released.
    variances : float64 ndarray of shape (cells,)
        Of the noise on each count.
    """

    middles: Array
    halves: Array
    counts: Array
    variances: Array

    @classmethod
    def of(cls, space: Space, partition: Partition) -> NoisyCells:
        """The cells of a partition."""
        lower = space.scale_edges(partition.lower)
        upper = space.scale_edges(partition.upper)
        by_law = [law.variance for law in partition.laws]
        variances = values_per_cell(by_law, partition.which, len(partition.counts))
        return cls((lower + upper) / 2, (upper - lower) / 2, partition.counts, variances)

    def clustered(self, k: int) -> tuple[Array, Array]:
        """Weighted k-means on the cells that hold rows, as far as can be seen.

        Returns
        -------
        centres : float64 ndarray of shape (k, d)
        weights : float64 ndarray of shape (cells,)
            Counts, made non-negative; 0 for cells that were dropped.
        """
        all_weights = non_negative(self.counts)
        all_centres = self._centres(all_weights, k)
        # Groups below so many standard deviations of their noise are dropped: the first number
        # that holds.
        for least in (3.0, 2.0, 1.0, 0.5):
            is_kept = self._told_from_noise(k, least)
            if is_kept.all():
                break
            # What was dropped must hold no rows, all together, as far as can be seen: its sum lies
            # within three standard deviations of its noise.
            noise = float(np.sqrt(self.variances[~is_kept].sum()))
            if float(self.counts[~is_kept].sum()) > 3.0 * noise:
                continue
            weights = np.zeros(len(self.counts))
            weights[is_kept] = non_negative(self.counts[is_kept])
            centres = self._centres(weights, k)
            # The loss of the other cells must fall by a fifth of what is left of it.
            if self._loss(weights, all_centres) >= 1.2 * self._loss(weights, centres):
                return centres, weights
        return all_centres, all_weights

    def _centres(self, weights: Array, k: int) -> Array:
        return weighted_kmeans(self.middles, weights, packing(k, self.middles.shape[1]))

    def _told_from_noise(self, k: int, least: float) -> Array:
        """Drop groups whose sums lie below ``least`` standard deviations, until none does.

        Returns
        -------
        bool ndarray of shape (cells,)
            The cells that are left.
        """
        groups_wanted = k + (k + 1) // 2
        # Cells whose counts exceed all noise stay. Laplace noise exceeds t standard deviations,
        # upwards, with probability e^(-t sqrt 2) / 2 or little more; the union bound adds this up
        # over the cells. A cell without rows stays in a hundredth of all partitions at most.
        cells = max(len(self.counts), 1)
        most = math.log(cells / (2 * 0.01)) / math.sqrt(2)
        is_seen = self.counts > most * np.sqrt(self.variances)
        kept = np.arange(len(self.counts))
        for _ in range(60):
            weights = non_negative(self.counts[kept])
            if np.count_nonzero(weights) <= groups_wanted:
                break
            centres = grouping(self.middles[kept], weights, groups_wanted)
            groups = assign(self.middles[kept], centres)
            sums = np.bincount(groups, self.counts[kept], groups_wanted)
            noise = np.sqrt(np.bincount(groups, self.variances[kept], groups_wanted))
            is_weak = sums < least * noise
            is_dropped = is_weak[groups] & ~is_seen[kept]
            if not is_dropped.any() or is_weak.all():
                break
            kept = kept[~is_dropped]
        is_kept = np.zeros(len(self.counts), bool)
        is_kept[kept] = True
        return is_kept

    def _loss(self, weights: Array, centres: Array) -> float:
        """The squared distances to the nearest centre, with rows spread evenly in their cells."""
        held = weights > 0
        distances = squared_distances(self.middles[held], centres).min(axis=1)
        distances += (self.halves[held] ** 2).sum(axis=1) / 3
        return float(weights[held] @ distances)


# --- the error ------------------------------------------------------------------------------------

# The 95% half-width of a Laplace variable, in units of 1.96 of its standard deviations.
HEAVIER_TAILS = math.log(20) / (math.sqrt(2) * 1.96)


def root_mean_square(
    space: Space, centres: Array, partition: Partition | None, steps: tuple[Step, ...]
) -> Array:
    """Return the error of each coordinate of each centre, in whole numbers: float64 ndarray (k, d).

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
        last = steps[-1]
        variances = last.standard_error(space.d) ** 2
        noise = variances * _tails((last.sum_law, last.count_law))
        # Half of the range of values in a cell of the lattice, in whole numbers.
        extremes = [axis.extremes() for axis in space.axes]
        widest = [float((high - low).max()) for low, high in extremes]
        half_cells = np.array(widest) / 2 / space.widths
        grid = np.broadcast_to(half_cells, centres.shape) ** 2
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
    """The factor on the variance of noise of these laws that makes up for its heavier tails."""
    return HEAVIER_TAILS**2 if any(isinstance(law, DiscreteLaplace) for law in laws) else 1.0


def rounding(space: Space, partition: Partition | None, steps: tuple[Step, ...]) -> Array:
    """How far a mean of cells is off at most, if rows lie at one side of every cell: float64 (d,).

    In whole numbers. It is 0 where steps were paid for: they see rows on the lattice, and half a
    cell of that is in ``root_mean_square``.
    """
    if partition is None or steps:
        return np.zeros(space.d)
    return np.asarray(Cells.of(space, partition).room.max(axis=0))


@dataclass(frozen=True)
class Cells:
    """A partition with its counts, in whole numbers.

    A few points, spread evenly over it, stand for each cell.

    Attributes
    ----------
    middles, halves, room : float64 ndarrays of shape (cells, d)
        Middles of the cells, half of their widths, and how far a row can lie from the middle: 0
        where cells are steps.
    counts, weights, variances : ndarrays of shape (cells,)
        Counts as released, the same made non-negative, and the variance of the noise on each.
    """

    middles: Array
    halves: Array
    room: Array
    counts: Array
    weights: Array
    variances: Array

    @classmethod
    def of(cls, space: Space, partition: Partition) -> Cells:
        """The cells of a partition."""
        scaled = NoisyCells.of(space, partition)
        halves = scaled.halves * HALF
        weights = non_negative(scaled.counts)
        # Steps stand in the middles of cells of the lattice. What rounding leaves is no room.
        room = np.maximum(np.round(halves - space.shift / space.widths, 6), 0.0)
        middles = scaled.middles * HALF
        return cls(middles, halves, room, scaled.counts, weights, scaled.variances)

    @cached_property
    def points(self) -> tuple[Array, Array]:
        """The points, and the cell of each: int64 ndarrays of shapes (n, d) and (n,)."""
        cells, d = self.middles.shape
        # About 2^17 points represent all cells together.
        per_cell = max(4, min(64, 2**17 // cells))
        # Public points fill [-1, 1]^d evenly, by Roberts' additive recurrence.
        ratio = 2.0
        for _ in range(64):
            ratio = (1 + ratio) ** (1 / (d + 1))
        steps = np.array([math.pow(ratio, -i) for i in range(1, d + 1)])
        spread_out = np.asarray(2 * ((0.5 + np.arange(per_cell)[:, None] * steps) % 1) - 1)
        where = self.middles[:, None] + self.room[:, None] * spread_out
        points = np.rint(where).astype(np.int64)
        return points.reshape(-1, d), np.repeat(np.arange(cells), per_cell)

    def covered(self, centres: Array, at: int) -> tuple[Array, Array]:
        """Which cells hold only rows nearest to one centre, and which may hold any of them.

        Returns
        -------
        inside, touched : bool ndarrays of shape (cells,)

        Holds because: that a centre is nearer than another one is a linear condition, so over a box
        its two sides differ by at most so much from their difference in the middle.
        """
        # Rows are rounded to whole numbers, and may lie half of one beyond their cell.
        halves = self.halves + 1
        inside = np.ones(len(halves), bool)
        touched = inside.copy()
        lengths = (centres.astype(float) ** 2).sum(axis=1)
        for other in np.flatnonzero((centres != centres[at]).any(axis=1)).tolist():
            towards = 2.0 * (centres[other] - centres[at])
            farther = self.middles @ towards + lengths[at] - lengths[other]
            room = halves @ np.abs(towards)
            inside &= farther + room < 0
            touched &= farther - room <= 0
        # Of centres at one place the first has all rows.
        is_same = (centres[:at] == centres[at]).all(axis=1)
        is_first = not is_same.any()
        return inside & is_first, touched & is_first

    def shares(self, centres: Array) -> Array:
        """The share of each cell that is nearest to each centre: float64 ndarray (cells, k)."""
        points, cell = self.points
        shares = np.zeros((len(self.counts), len(centres)))
        np.add.at(shares, (cell, nearest(points, centres)), 1.0)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def noise(self, centres: Array) -> Array:
        """The variance of means of cells that the noise of their counts causes: float64 (k, d)."""
        groups, rows = self._grouped(centres)
        away = (self._whole - centres[groups]) ** 2 * self.variances[:, None]
        return np.asarray(group_sums(groups, away, len(centres)) / rows**2)

    def cut(self, centres: Array) -> Array:
        """The squared distance of centres from the means by counts not cut at 0: (k, d)."""
        groups, _ = self._grouped(centres)
        counts = np.bincount(groups, self.counts, len(centres))
        rows = np.maximum(counts, 1)[:, None]
        away = (self._whole - centres[groups]) * self.counts[:, None]
        return (group_sums(groups, away, len(centres)) / rows) ** 2

    def grid(self, centres: Array) -> Array:
        """The variance of means of cells that the unknown places of rows in cells cause: (k, d)."""
        groups, rows = self._grouped(centres)
        within = self.room**2 / 3 * (self.weights**2)[:, None]
        return np.asarray(group_sums(groups, within, len(centres)) / rows**2)

    @cached_property
    def _whole(self) -> Array:
        return np.rint(self.middles).astype(np.int64)

    def _grouped(self, centres: Array) -> tuple[Array, Array]:
        """The centre that each cell belongs to, and the rows of each centre: (cells,), (k, 1)."""
        groups = nearest(self._whole, centres)
        rows = np.bincount(groups, self.weights, len(centres))
        return groups, np.maximum(rows, 1)[:, None]

    def region(self, centres: Array, steps: tuple[Step, ...]) -> Array:
        """The squared distance of the mean of the region from the mean that was paid for: (k, d).

        The variance of this estimate is added.
        """
        k = len(centres)
        points, cell = self.points
        n_points = np.bincount(cell)
        weights = (self.weights / n_points)[cell]
        now = nearest(points, centres)
        if steps:
            before = nearest(points, steps[-1].centres.reshape(centres.shape))
            # A step sees rows clipped to its radius about the origins of their groups.
            step = steps[-1]
            origins = step.origins.reshape(centres.shape)[before]
            euclidean = isinstance(step.sum_law, DiscreteGaussian)
            averaged = origins + clip(points - origins, step.clip_radius, euclidean)
        else:
            before = nearest(self._whole, centres)[cell]
            averaged = points
        mean_now, pull_now = _mean(now, points, weights, k)
        mean_before, pull_before = _mean(before, averaged, weights, k)
        offset = mean_now - mean_before
        # One more row in a cell changes the difference for each group that the cell meets. The
        # change of each point is added up by cell and group.
        keys = np.concatenate([cell * k + now, cell * k + before])
        pulls = np.concatenate([pull_now, -pull_before])
        per_row = pulls / np.tile(n_points[cell], 2)[:, None]
        met, key = np.unique(keys, return_inverse=True)
        derivative = group_sums(key, per_row, len(met))
        variances = derivative**2 * self.variances[met // k][:, None]
        return offset**2 + group_sums(met % k, variances, k)


def _mean(groups: Array, points: Array, weights: Array, k: int) -> tuple[Array, Array]:
    """Means of groups, and by how much one more row at each point moves the mean of its group.

    Returns
    -------
    means, pulls : float64 ndarrays of shapes (k, d) and (n, d)
    """
    rows = np.maximum(np.bincount(groups, weights, k), 1)
    means = group_sums(groups, points * weights[:, None], k) / rows[:, None]
    return means, (points - means[groups]) / rows[groups][:, None]


def group_sums(groups: Array, values: Array, k: int) -> Array:
    """Return sums of the rows of each group: float64 ndarray of shape (k, d)."""
    return np.stack([np.bincount(groups, column, k) for column in values.T], axis=1)
