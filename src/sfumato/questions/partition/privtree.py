"""PrivTree: a tree without a limit on its height, at a cost that does not grow with the height.

Everything is computed in integers, without numerical slack.

*The test.* A node at depth t with c rows has the biased count max(theta - delta, c - t delta). It
is split if its biased count plus Z exceeds theta, strictly. Z is discrete Laplace noise of scale
lambda, theta is an integer, and delta = ceil(lambda ln b) with the fan-out b. The tests pay for the
answers "split" or "not" only: noisy biased counts are never shown.

*The blocks.* First the space is halved evenly into blocks of about a thousand rows each, and the
blocks are counted. Then every block grows a tree of its own, in which depth t begins at 0. Theta
differs from block to block. Where a noisy count says that there are many rows, theta is low, and
boxes are split without a handicap down to the size that suits even ground. Where there are few,
nothing is split in vain.

*Why it is private.* The counts of blocks are paid for, so each theta is public when the tests
begin. What follows holds for every integer theta.

Blocks are disjoint, so the path of a row lies in one of them. One row changes the biased counts on
its path by 0 or 1. For a biased count theta + y, let

    loss(y) = ln P(theta + y + Z > theta) - ln P(theta + y - 1 + Z > theta).

With q = exp(-1 / lambda), loss(y) is 1 / lambda for y <= 1. For y = 1 + j with j >= 1 it is

    ln[(1 + q - q^(j + 1)) / (1 + q - q^j)] <= q^j / lambda.

Biased counts fall by at least delta from a node to its child, unless they are at the floor
theta - delta, where the row changes nothing. So along a path the deepest node that the row changes
costs at most 1 / lambda, its parent at most 1 / lambda, and the i-th node above that at most
q^(i delta) / lambda <= b^-i / lambda. Together they cost at most (2b - 1) / ((b - 1) lambda).

In the other direction only the final "not" costs anything, at most 1 / lambda. Under replace one
row leaves a path and another enters one, in the same block or in another one: (3b - 2) / ((b - 1)
lambda). A person's r rows cost r times as much, by group privacy of pure epsilon. The number of
children of a node does not enter, so nodes that run out of lattice cells may have fewer than b.

Delta must be an integer. With a real delta the differences between counts are no integers, and the
bound on loss(y) fails: the loss was 10.9 at epsilon 8.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.answers import Counts, CountsPreview, Preview
from sfumato.basics import Array
from sfumato.domain import Domain
from sfumato.errors import UsageError, shown
from sfumato.mechanisms import DiscreteLaplace, count_law, exceeds
from sfumato.privacy import (
    CentralMeasure,
    Proof,
    Unit,
    of_units,
    pure_epsilon,
    units_of,
    without_delta,
)
from sfumato.questions.partition.growth import (
    SLICES,
    Draft,
    count_with_shares,
    halve_widest,
)
from sfumato.questions.partition.release import OverAxes, Partition
from sfumato.random.bits import Bits

# Slices of the cost. One more pays for the number of rows, and the rest goes down the tree.
TEST_SLICES = 16
BLOCK_SLICES = 4

# Halvings between counted levels.
STRIDE = 4


class PrivTreePartitioner(
    OverAxes, frozen=True, tag="privtree", omit_defaults=True, forbid_unknown_fields=True
):
    """Where are the rows, in boxes that are small exactly where there are many?

    Splitting costs the same however deep it goes. The cost is divided as follows:

    * A 64th pays for a noisy number of rows. It says into how many even blocks the space is divided
      first, of about 1000 rows times epsilon each.
    * A 16th counts the blocks. The count of a block says how deep it is split without a handicap
      (theta).
    * A quarter decides which boxes are split.
    * The rest counts nodes on the way down the finished tree, and its cells.

    Parameters
    ----------
    axes : str, list of str, or None
        Interval axes; None: all of them.
    fanout : int
        Into how many boxes a node is split, a power of two. Its widest side is halved, then that of
        the halves, and so on.
    heading, measured_in, label_names
        Words for people, by name: see ``Question``.

    Raises
    ------
    UsageError
        If an axis is not an Interval, or ``fanout`` is not a power of two from 2 on.

    Guarantee
    ---------
    {proof}

    >>> from sfumato.privacy.measures import PureDP
    >>> PrivTreePartitioner().test_law(PureDP(1), Unit())
    (DiscreteLaplace(scale=Fraction(12, 1)), 9)
    """

    fanout: int = 2

    name: ClassVar[str] = "PrivTree"
    proof: ClassVar[Proof] = Proof(
        sensitivity=(
            "of each biased count, rows_per_person; of the counts at each level, L1 = "
            "rows_per_person (twice that under replace)."
        ),
        because=(
            'the answers "split" or "not" on a path lose at most (2b - 1) / ((b - 1) lambda) per '
            "row, (3b - 2) / ((b - 1) lambda) under replace, however deep it is (proof above the "
            "code), and the counts on every path spend the rest exactly."
        ),
        not_covered="the choice of columns and bounds; the time the query takes.",
        source="Zhang, Xiao, Xie, SIGMOD 2016, here on the integers.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self.fanout) is not int or self.fanout not in (2**i for i in range(1, 11)):
            raise UsageError(
                f"fanout = {shown(self.fanout)}",
                "nodes are halved, so the fan-out is a power of two",
                "Choose 2, or 4",
            )

    @property
    def halvings(self) -> int:
        """How often a node is halved to make its children."""
        return self.fanout.bit_length() - 1

    def test_law(self, cost: CentralMeasure, unit: Unit) -> tuple[DiscreteLaplace, int]:
        """The noise of the tests, whose scale is lambda, and delta.

        The tests take 16 of 64 slices of the cost.
        """
        return self.law_at(of_units(cost, TEST_SLICES * (units_of(cost) // SLICES)), unit)

    def law_at(self, paid: CentralMeasure, unit: Unit) -> tuple[DiscreteLaplace, int]:
        """The noise of the tests and delta, if the tests alone are paid with so much."""
        b = self.fanout
        per_row = 3 * b - 2 if unit.neighbours == "replace" else 2 * b - 1
        scale = Fraction(unit.rows_per_person * per_row, b - 1) / pure_epsilon(paid)
        # The factor covers the rounding of the logarithm: delta must not be too small.
        delta = math.ceil(float(scale) * math.log(b) * (1 + 1e-12))
        return DiscreteLaplace(scale), delta

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> Preview:
        """Say how accurate cells without counts above them would be, and cells at worst.

        Deeper cells have less of the cost left, and at least one slice.
        """
        pure = without_delta(cost)
        law, delta = self.test_law(pure, unit)
        self.needs(domain)
        slice_ = units_of(pure) // SLICES
        worst = count_law(of_units(pure, slice_), unit)
        decisions = (TEST_SLICES + BLOCK_SLICES + 1) * slice_
        best = count_law(of_units(pure, units_of(pure) - decisions), unit)
        notes = (
            f"{law} in each test whether a box is split; each level asks for {delta} rows more",
        )
        return CountsPreview(self.title, pure, unit, None, best, rows, notes, worst)

    def answer(self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits) -> Partition:
        """Lay and count the blocks, grow their trees by tests, then count down the trees."""
        draft = Draft(counts.on(counts.lattice), unit, cost, noise)
        epsilon = draft.law(draft.total).effective_epsilon
        slice_ = draft.total // SLICES
        blocks = np.zeros(1, np.int64)
        depths = np.zeros(1, np.int64)
        rows = draft.noisy_counts(blocks, slice_)
        # A block should hold 1000 rows times epsilon.
        levels = int(self._levels_between(rows, epsilon, 1000)[0])
        # The space is halved into blocks 16 times at most.
        for depth in range(1, min(levels, 16 // self.halvings) + 1):
            times = np.full(len(blocks), self.halvings)
            blocks, _ = halve_widest(draft.growth, blocks, times)
            depths = draft.with_new_nodes(depths, depth)
        if len(blocks) > 1:
            rows = draft.noisy_counts(blocks, BLOCK_SLICES * slice_)
        # Thetas follow from counts of blocks that are paid for, so they are public from here on.
        law, delta = self.test_law(draft.cost, unit)
        # A path passes through one block, so the tests of all blocks cost as much as those of one.
        draft.pay(blocks, TEST_SLICES * slice_)
        # Boxes are split without a handicap down to 40 rows times epsilon.
        head_starts = self._levels_between(rows, epsilon, 40)
        depths = self.grow(draft, blocks, head_starts, depths, law, delta)
        _count_down(draft, blocks)
        return draft.release(
            self.name,
            depths,
            self.proof,
            f"{law} in each test whether a box is split, "
            "noise on counts of blocks and down the tree",
        )

    def _levels_between(self, rows: Array, epsilon: float, aim: float) -> Array:
        """How many levels lie between boxes of ``rows`` and boxes of ``aim`` rows times epsilon.

        Parameters
        ----------
        rows : int64 ndarray
            Noisy counts.

        Returns
        -------
        int64 ndarray like ``rows``.
        """
        ratio = np.maximum(rows * epsilon / aim, 1)
        return np.rint(np.log(ratio) / math.log(self.fanout)).astype(np.int64)

    def grow(
        self,
        draft: Draft,
        nodes: Array,
        head_starts: Array,
        depths: Array,
        law: DiscreteLaplace,
        delta: int,
    ) -> Array:
        """Split nodes where the tests say so.

        Parameters
        ----------
        draft : Draft
        nodes, head_starts : int64 ndarrays of shape (blocks,)
            Where trees begin, and how many levels of each are split without a handicap: its theta
            is minus so many deltas.
        depths : int64 ndarray of shape (nodes,)
            The depth of every node so far.
        law, delta
            As ``test_law`` says.

        Returns
        -------
        int64 ndarray: the depth of every node.
        """
        growth = draft.growth
        depth_of_blocks = int(depths[-1])
        level = 0
        theta = -head_starts * delta
        while True:
            # Whether a node has more than one lattice cell is public.
            can_split = growth.widths(nodes).max(axis=1) > 1
            nodes = nodes[can_split]
            theta = theta[can_split]
            # The floor at theta - delta is what keeps the loss along a path bounded.
            biased = np.maximum(theta - delta, growth.true[nodes] - level * delta)
            split = exceeds(biased, law, theta, draft.noise)
            nodes = nodes[split]
            theta = theta[split]
            if not len(nodes) or not growth.has_room_for(2 * self.fanout * len(nodes)):
                return depths
            nodes, owner = halve_widest(growth, nodes, np.full(len(nodes), self.halvings))
            theta = theta[owner]
            level += 1
            depths = draft.with_new_nodes(depths, depth_of_blocks + level)


PrivTreePartitioner.examples = (PrivTreePartitioner("x"),)


def _count_down(draft: Draft, blocks: Array) -> None:
    """Count nodes between the blocks and the cells of finished trees, on every fourth level.

    The trees are public by now, and so is everything that follows from them: the number of cells
    below a node sets its share. Where a path is so long that one slice is left, that slice goes to
    the cell.
    """
    growth = draft.growth
    levels = growth.levels()
    cells_below = (growth.axis < 0).astype(np.int64)
    for level in levels[:0:-1]:
        np.add.at(cells_below, growth.parent[level], cells_below[level])
    left = np.zeros(growth.size, np.int64)
    left[blocks] = SLICES - TEST_SLICES - 1
    if len(blocks) > 1:
        left[blocks] -= BLOCK_SLICES
    halvings_since = np.zeros(growth.size, np.int64)
    for level in levels:
        is_due = halvings_since[level] == STRIDE
        is_large = cells_below[level] >= 2**STRIDE
        counted = level[is_due & is_large & (left[level] > 1)]
        levels_below = np.rint(np.log2(cells_below[counted]) / STRIDE).astype(np.int64)
        _, slices = count_with_shares(
            draft, counted, left[counted], np.maximum(1, levels_below), STRIDE
        )
        left[counted] -= slices
        inner = level[(growth.axis[level] >= 0) & (left[level] > 0)]
        for child in (growth.child[inner], growth.child[inner] + 1):
            left[child] = left[inner]
            # A node that was due starts the next stride, whether it was counted or not.
            halvings_since[child] = halvings_since[inner] % STRIDE + 1
