"""Partitions that are as fine as the rows found so far allow: the adaptive and the automatic one.

*The adaptive grid* (``AdaptiveGridPartitioner``): a coarse grid, and in each of its cells a grid as
fine as its count allows.

*The automatic partition* (``AutoPartitioner``): coarse noisy counts first, then finer cells where
these say it is best.

A node is counted. What is known so far says how many rows it holds, and so how many halvings lie
between it and cells that are worth a count of their own.

* If there are many halvings to go, the node is cut in four by halving its widest sides. The parts
  are counted with a share of what the path has left, and the shares grow towards the cells. Rows
  that lie in few places stay together when a node is cut: more levels then follow below it, and
  each of them gets a smaller share.
* If there are few, the node is cut into its cells at once.
* If a block of neighbours looks even, counts on the way would show nothing new: it is cut into
  fewer, larger cells at once. A chi-square statistic decides: it compares how much the noisy counts
  of the block differ with what noise and chance alone would do.

So even ground gets a uniform grid, and crowded places get a deep tree. Every count that was paid
for serves inference.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.answers import Counts, CountsPreview, Preview
from sfumato.basics import Array, split
from sfumato.domain import Domain
from sfumato.mechanisms import LEAST_SPREAD, count_law, spread
from sfumato.privacy import CentralMeasure, Proof, Unit, of_units, units_of, without_delta
from sfumato.questions.partition.growth import (
    MOST_CELLS,
    SLICES,
    Draft,
    count_with_shares,
    halve_widest,
    split_evenly,
)
from sfumato.questions.partition.release import OverAxes, Partition
from sfumato.questions.partition.uniform import cells_of_side, cells_per_axis, eugkm_cells
from sfumato.random.bits import Bits

# --- the adaptive grid ----------------------------------------------------------------------------

# Shares of the number of rows, of the coarse cells and of the fine cells.
SHARES = [Fraction(1, 50), Fraction(49, 100), Fraction(49, 100)]


class AdaptiveGridPartitioner(
    OverAxes, frozen=True, tag="adaptive-grid", omit_defaults=True, forbid_unknown_fields=True
):
    """Where are the rows, on a grid that is fine where there are many?

    Every path has three noisy counts. A noisy number of rows N lays a coarse grid of m1 cells per
    axis: max(10, ceil(sqrt(N eps / 10) / 4)) in two dimensions. Each coarse cell with a noisy count
    N' is divided again into m2 = ceil(sqrt(N' eps' / 5)) cells per axis, where eps' is what the
    fine cells spend. In d dimensions both numbers follow EUGkM's rule, (N eps / theta)^(2d / (2 +
    d)) cells, which for d = 2 is the rule of the paper. ``count`` and ``consistent()`` combine
    coarse and fine counts.

    Parameters
    ----------
    axes : str, list of str, or None
        Interval axes; None: all of them.
    heading, measured_in, label_names
        Words for people, by name: see ``Question``.

    Raises
    ------
    UsageError
        If an axis is not an Interval.

    Guarantee
    ---------
    {proof}

    >>> coarse_cells(1_000_000, 1.0, 2), fine_cells(1000, 0.5, 2)
    ([80, 80], [10, 10])
    """

    name: ClassVar[str] = "Adaptive grid"
    proof: ClassVar[Proof] = Proof(
        sensitivity=(
            "of the number of rows, rows_per_person; of each level's cells, L1 = rows_per_person; "
            "twice those under replace."
        ),
        because=(
            "each grid depends on the data only through noisy counts that are paid for, its cells "
            "are disjoint, and the costs of the three counts on every path add up to the whole."
        ),
        not_covered="the choice of columns and bounds; the time the query takes.",
        source=(
            "Qardaji, Yang, Li, ICDE 2013 (AG); Su, Cao, Li, Bertino, Jin, CODASPY 2016 (more than"
            " two dimensions)."
        ),
    )

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> Preview:
        """Say how accurate the fine cells would be; how many there are depends on noisy counts."""
        self.needs(domain)
        # The laws of all three counts must exist: one that is too wide raises here.
        laws = [count_law(of_units(cost, units), unit) for units in split(units_of(cost), SHARES)]
        notes = ("noisy counts decide how many cells there are, and where",)
        return CountsPreview(self.title, without_delta(cost), unit, None, laws[-1], rows, notes)

    def answer(self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits) -> Partition:
        """Count all rows, lay and count the coarse grid, then lay and count the fine grids."""
        draft = Draft(counts.on(counts.lattice), unit, cost, noise)
        growth = draft.growth
        shape = np.array(counts.lattice.shape)
        for_rows, for_coarse, for_fine = split(draft.total, SHARES)
        root = np.zeros(1, np.int64)
        rows = int(draft.noisy_counts(root, for_rows)[0])
        coarse_epsilon = draft.law(for_coarse + for_fine).effective_epsilon
        # Noisy counts were paid for, so the grids that follow from them cost nothing.
        per_axis = coarse_cells(max(rows, 0), coarse_epsilon, len(shape))
        cells = split_evenly(growth, root, np.minimum(per_axis, shape)[None])
        depth = np.zeros(growth.size, np.int64)
        depth[cells] = 1
        # On a lattice of one cell the coarse grid is the root, which has been counted.
        noisy = draft.noisy_counts(cells, for_coarse) if len(cells) > 1 else np.array([rows])
        fine_epsilon = draft.law(for_fine).effective_epsilon
        wanted = [fine_cells(max(n, 0), fine_epsilon, len(shape)) for n in noisy.tolist()]
        parts = np.array(wanted, np.int64)
        # All grids are coarser while together they exceed half of the public limit.
        while parts.prod(axis=1, dtype=float).sum() > MOST_CELLS // 2 and parts.max() > 1:
            parts = np.maximum(1, parts * 3 // 4)
        split_evenly(growth, cells, np.minimum(parts, growth.widths(cells)))
        return draft.release(
            self.name,
            draft.with_new_nodes(depth, 2),
            self.proof,
            "noise on the number of rows, on coarse cells and on fine cells",
        )


AdaptiveGridPartitioner.examples = (AdaptiveGridPartitioner("x"),)


def coarse_cells(n: float, epsilon: float, d: int) -> list[int]:
    """Return cells of the coarse grid along each axis, m1, for n rows."""
    aim, _ = eugkm_cells(n, epsilon, d=d)
    # At least 100 cells, and a fourth of the cells per axis of EUGkM's rule.
    aim = max(100, min(aim, 1e60) / 4**d)
    return cells_per_axis(cells_of_side(aim, d, MOST_CELLS // 2), d, aim)


def fine_cells(n: float, epsilon: float, d: int) -> list[int]:
    """Return cells along each axis of the fine grid in a coarse cell of n rows, m2."""
    # A fine cell should hold 5 rows times epsilon.
    aim, _ = eugkm_cells(n, epsilon, d=d, theta=5)
    return cells_per_axis(cells_of_side(aim, d, MOST_CELLS // 2), d, aim)


# --- the automatic partition ----------------------------------------------------------------------

# Halvings between counts.
STRIDE = 2


class AutoPartitioner(
    OverAxes, frozen=True, tag="auto", omit_defaults=True, forbid_unknown_fields=True
):
    """Where are the rows? A good first choice among the partitioners.

    It counts coarsely first, then decides place by place how fine the cells are.

    Parameters
    ----------
    axes : str, list of str, or None
        Interval axes; None: all of them.
    heading, measured_in, label_names
        Words for people, by name: see ``Question``.

    Raises
    ------
    UsageError
        If an axis is not an Interval.

    Guarantee
    ---------
    {proof}

    >>> AutoPartitioner(["lon", "lat"]).title
    'Automatic partition of lon x lat'
    """

    name: ClassVar[str] = "Automatic partition"
    proof: ClassVar[Proof] = Proof(
        sensitivity=(
            "of the nodes that are counted together, which are disjoint, L1 = rows_per_person "
            "(twice that under replace)."
        ),
        because=(
            "every decision follows from noisy counts that are paid for, and on every path from "
            "the root to a cell the costs of the counts add up to the whole, since a cell takes "
            "what its path left over."
        ),
        not_covered="the choice of columns and bounds; the time the query takes.",
        source=(
            "after Qardaji, Yang, Li, ICDE 2013, and Cormode et al., ICDE 2012; costs chosen along"
            " a path: Rogers, Roth, Ullman, Vadhan 2016; Feldman, Zrnic 2021."
        ),
    )

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> Preview:
        """Say how accurate cells would be on even ground, and at worst.

        Deeper cells have less of the cost left, and at least one slice.
        """
        pure = without_delta(cost)
        self.needs(domain)
        slice_ = units_of(pure) // SLICES
        worst = count_law(of_units(pure, slice_), unit)
        best = count_law(of_units(pure, units_of(pure) - slice_), unit)
        notes = (
            "noisy counts decide how many cells there are, and where; "
            "cells where rows are dense get less of the cost",
        )
        return CountsPreview(self.title, pure, unit, None, best, rows, notes, worst)

    def answer(self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits) -> Partition:
        """Count, judge and cut nodes, then count the cells."""
        draft = Draft(counts.on(counts.lattice), unit, cost, noise)
        growth = draft.growth
        epsilon = draft.law(draft.total).effective_epsilon
        root = np.zeros(1, np.int64)
        rows = np.maximum(draft.noisy_counts(root, draft.total // SLICES), 0)
        fall = np.array([float(STRIDE)])
        front = _Front(root, rows, np.array([SLICES - 1]), np.zeros(1, bool), root, fall)
        depths = np.zeros(1, np.int64)
        depth = 0
        while len(front.nodes):
            depth += 1
            # A cell should hold so many rows times epsilon, the more where the ground looks even.
            aim = np.where(front.even, 16.0, 7.0)
            parts = np.maximum(front.rows * epsilon / aim, 0.5)
            to_go = np.log2(parts)
            # Two slices pay for a count now and one for the cells.
            # Near the cells nothing is counted before them.
            is_last = front.even | (to_go < 2.6) | (front.left < 3)
            times = np.rint(to_go[is_last]).astype(np.int64)
            most_from_last = int((2.0 ** (times + 1)).sum())
            most_from_rest = 2 ** (STRIDE + 1) * int((~is_last).sum())
            # Room is public: it follows from noisy counts alone.
            if not growth.has_room_for(most_from_last + most_from_rest):
                break
            halve_widest(growth, front.nodes[is_last], times)
            front = _next_front(draft, front.only(~is_last), to_go[~is_last])
            depths = draft.with_new_nodes(depths, depth)
        return draft.release(
            self.name,
            depths,
            self.proof,
            "noise on counts from coarse to fine, and on cells",
        )


AutoPartitioner.examples = (AutoPartitioner("x"),)


@dataclass
class _Front:
    """The nodes that were counted last: arrays of shape (nodes,).

    Attributes
    ----------
    nodes : int64
    rows : int64
        Noisy counts, never below 0.
    left : int64
        What their paths have left, in slices.
    even : bool
        Whether they lie in a block that looks even.
    block : int64
        Index of the parent among the nodes of the front before.
    fall : float64
        How often the last level halved the rows: as often as the box, where they lie evenly.
    """

    nodes: Array
    rows: Array
    left: Array
    even: Array
    block: Array
    fall: Array

    def only(self, which: Array) -> _Front:
        """Return the same for some of the nodes."""
        return _Front(
            self.nodes[which],
            self.rows[which],
            self.left[which],
            self.even[which],
            self.block[which],
            self.fall[which],
        )


def _next_front(draft: Draft, front: _Front, to_go: Array) -> _Front:
    """Cut nodes in four, count the parts, and judge whether blocks of them look even."""
    times = np.full(len(front.nodes), STRIDE)
    nodes, owner = halve_widest(draft.growth, front.nodes, times)
    # A node of one lattice cell cannot be cut, so it is a cell already.
    was_cut = (nodes != front.nodes[owner]) & (draft.growth.parent[nodes] >= 0)
    nodes = nodes[was_cut]
    owner = owner[was_cut]
    left = front.left[owner]
    levels_below = np.maximum(1, np.rint((to_go - STRIDE) / front.fall).astype(np.int64))
    counts, slices = count_with_shares(draft, nodes, left, levels_below[owner], STRIDE)
    even = _looks_even(draft, counts, slices, owner, front.block)
    rows = np.maximum(counts, 0)
    rows_before = np.maximum(front.rows[owner], 1)
    halvings = np.log2(rows_before / np.maximum(rows, 1))
    # A level is taken to halve the rows of a node once at least.
    return _Front(nodes, rows, left - slices, even, owner, np.clip(halvings, 1.0, STRIDE))


def _looks_even(draft: Draft, counts: Array, slices: Array, parent: Array, block: Array) -> Array:
    """Whether counts of neighbours differ no more than by noise and chance, block by block.

    A block is everything with one grandparent. Each count is compared with the mean of those that
    share its parent. Only noisy counts enter, so the judgement costs nothing.

    Parameters
    ----------
    counts, slices, parent : int64 ndarrays of shape (nodes,)
        Noisy counts, what each cost, and the index of each node's parent in ``block``.
    block : int64 ndarray of shape (parents,)

    Returns
    -------
    bool ndarray of shape (nodes,).
    """
    if not len(counts):
        return np.zeros(0, bool)
    n_parts = np.bincount(parent, minlength=len(block))
    sums = np.bincount(parent, counts, minlength=len(block))
    mean = (sums / np.maximum(n_parts, 1))[parent]
    # The variance of a count is that of its noise, and that of a Poisson number of rows.
    # The variance of the noise that 1, 2, ... slices pay for.
    laws = [draft.law(price * (draft.total // SLICES)) for price in range(1, SLICES)]
    noise_variances = np.array([max(spread(law), LEAST_SPREAD) for law in laws])
    variance = noise_variances[slices - 1] + np.maximum(mean, 0)
    n_blocks = int(block.max()) + 1
    deviations = (counts - mean) ** 2 / variance
    chi_square = np.bincount(block[parent], deviations, minlength=n_blocks)
    freedom = np.bincount(block, np.maximum(n_parts - 1, 0), minlength=n_blocks)
    # Neighbours look even up to this chi-square per degree of freedom, of which there must be
    # some.
    return ((freedom >= 6) & (chi_square < 1.3 * freedom))[block[parent]]
