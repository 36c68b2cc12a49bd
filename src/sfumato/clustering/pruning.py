"""Which cells of a partition hold rows, as far as the noise lets anybody see.

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
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.basics.kmeans import assign, grouping, non_negative, squared_distances, weighted_kmeans
from sfumato.basics.numbers import Array
from sfumato.clustering.packing import packing
from sfumato.partition.grid_estimates import values_per_cell
from sfumato.partition.partition import Partition

LEAST_SEEN = (3.0, 2.0, 1.0, 0.5)
"""Groups below so many standard deviations of their noise are dropped: the first that holds."""
MOST_GONE = 3.0
"""The most standard deviations of noise that the sum of all dropped cells may reach."""
LEAST_GAIN = 0.2
"""By how much the loss of the other cells must fall, as a share of what is left of it."""
FALSE_ALARM = 0.01
"""How often a cell without rows is kept because of its own noise, at most, in a partition."""
ROUNDS = 60


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
        for least in LEAST_SEEN:
            is_kept = self._told_from_noise(k, least)
            if is_kept.all():
                break
            if not self._are_empty(~is_kept):
                continue
            weights = np.zeros(len(self.counts))
            weights[is_kept] = non_negative(self.counts[is_kept])
            centres = self._centres(weights, k)
            if self._loss(weights, all_centres) >= (1 + LEAST_GAIN) * self._loss(weights, centres):
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
        is_seen = self._seen_alone()
        kept = np.arange(len(self.counts))
        for _ in range(ROUNDS):
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

    def _seen_alone(self) -> Array:
        """Cells whose counts exceed all noise, however many cells there are: bool ndarray (cells,).

        Laplace noise exceeds t of its standard deviations, upwards, with probability at most
        exp(-sqrt(2) t) / 2 or little more.
        """
        most = math.log(max(len(self.counts), 1) / (2 * FALSE_ALARM)) / math.sqrt(2)
        return np.asarray(self.counts > most * np.sqrt(self.variances))

    def _are_empty(self, cells: Array) -> bool:
        """Whether these cells hold no rows, all together, as far as can be seen."""
        noise = float(np.sqrt(self.variances[cells].sum()))
        return float(self.counts[cells].sum()) <= MOST_GONE * noise

    def _loss(self, weights: Array, centres: Array) -> float:
        """The squared distances to the nearest centre, with rows spread evenly in their cells."""
        held = weights > 0
        middles = self.middles[held]
        distances = squared_distances(middles, centres).min(axis=1)
        distances += (self.halves[held] ** 2).sum(axis=1) / 3
        return float(weights[held] @ distances)


def count_variances(partition: Partition) -> Array:
    """The variance of the noise on each cell's count: float64 ndarray of shape (cells,)."""
    by_law = [law.variance for law in partition.laws]
    return values_per_cell(by_law, partition.which, len(partition.counts))
