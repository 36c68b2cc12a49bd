"""PrivTree: a tree without a limit on its height, at a price that does not grow with it. All in integers, without slack.

A node at depth t with c rows is split if max(theta - delta, c - t delta) + Z > theta, strictly, Z discrete Laplace of scale
lambda, theta an integer, delta = ceil(lambda ln b). The tests pay for these answers alone: noisy biased counts are never shown.

First the space is halved, evenly, into blocks of about a thousand rows each, which are counted; then every block grows a tree of
its own, in which depth t begins at 0. Theta differs from block to block. Where a noisy count says that there are many rows, theta
is low, and boxes are split without a handicap down to what even ground would deserve; where few, nothing is split in vain.

Why it is private. The counts of blocks are paid for, so each theta is public when the tests begin, and what follows holds for
every integer theta. Blocks are disjoint: the path of a row lies in one of them. One row changes the biased counts on its path by
0 or 1. For a biased count theta + y, let loss(y) = ln P(theta + y + Z > theta) - ln P(theta + y - 1 + Z > theta). With
q = exp(-1 / lambda) it is 1 / lambda for y <= 1, and for y = 1 + j, j >= 1, ln[(1 + q - q^(j + 1)) / (1 + q - q^j)] <=
q^j / lambda. Biased counts fall by at least delta from a node to its child, unless they are at the floor, where the row changes
nothing. So along a path the deepest node that the row changes costs at most 1 / lambda, its parent 1 / lambda, and the i-th above
that q^(i delta) / lambda <= b^-i / lambda: together (2b - 1) / ((b - 1) lambda). In the other direction only the final "no" pays,
at most 1 / lambda. Under replace one row leaves a path and another enters one, in the same block or in another: (3b - 2) /
((b - 1) lambda). A person's r rows cost r times as much: group privacy of pure epsilon. How many children a node has does not
enter, so nodes that run out of lattice cells may have fewer than b.
With a real delta the steps between counts are no integers, and the bound on loss(y) fails: the loss was 10.9 at epsilon 8.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.answers.counts import Counts
from sfumato.answers.preview import CountsPreview, Preview
from sfumato.arrays import Array
from sfumato.domain import Domain
from sfumato.errors import UsageError, shown
from sfumato.mechanisms.noise import DiscreteLaplace, count_law, exceeds
from sfumato.partition.axes import OverAxes
from sfumato.partition.growing import Draft, Growth
from sfumato.partition.partition import Partition
from sfumato.partition.steps import SLICES, halve_widest, look_at, room_for
from sfumato.privacy.allocation import of_units, units_of
from sfumato.privacy.composition import pure_epsilon
from sfumato.privacy.guarantee import Proof
from sfumato.privacy.measures import CentralMeasure, without_delta
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

LARGEST_FANOUT = 2**10
TESTS, BLOCKS = (
    16,
    4,
)  # slices that the tests and the counts of blocks spend; one goes to the number of rows, the rest down the tree
STRIDE = 4  # halvings between counted levels
BLOCK_ROWS = 1000  # rows times epsilon in a block, about
COARSE_ROWS = (
    40  # rows times epsilon in a box, about, down to which boxes are split without a handicap
)
MOST_HALVINGS = 16  # of the whole, into blocks


class PrivTreePartitioner(
    OverAxes, frozen=True, tag="privtree", omit_defaults=True, forbid_unknown_fields=True
):
    """Where are they, in boxes that are small exactly where there are many? Splitting costs the same however deep it goes.

    A noisy number of rows, a 64th of the cost, says into how many even blocks the space is divided first, of about 1000 rows times
    epsilon each. A 16th counts the blocks; a block's count says how deep it is split without a handicap (theta). A quarter decides
    which boxes are split; the rest counts, on the way down the finished tree and in its cells.

    Parameters
    ----------
    axes : str, list of str, or None
        Interval axes; None: all of them.
    fanout : int
        Into how many boxes a node is split, a power of two: its widest side is halved, and that of the halves.

    Raises
    ------
    UsageError
        If an axis is not an Interval, or ``fanout`` is no power of two from 2 on.

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
        sensitivity="of each biased count, rows_per_person; of the counts at each level, L1 = rows_per_person (twice that under replace).",
        because='the answers "split" or "not" on a path lose at most (2b - 1) / ((b - 1) lambda) per row, (3b - 2) / ((b - 1) '
        "lambda) under replace, however deep it is (proof above the code), and the counts on every path spend the rest exactly.",
        not_covered="the choice of columns and bounds; the time the query takes.",
        source="Zhang, Xiao, Xie, SIGMOD 2016, here on the integers.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        b: object = self.fanout
        if (
            isinstance(b, bool)
            or not isinstance(b, int)
            or not 2 <= b <= LARGEST_FANOUT
            or b & (b - 1)
        ):
            raise UsageError(
                f"fanout = {shown(b)}",
                "nodes are halved, so the fan-out is a power of two",
                "Choose 2, or 4",
            )

    def test_law(self, cost: CentralMeasure, unit: Unit) -> tuple[DiscreteLaplace, int]:
        """The noise of the tests, lambda exact, and delta. They take 16 of 64 slices of the cost."""
        return self.law_at(of_units(cost, TESTS * (units_of(cost) // SLICES)), unit)

    def law_at(self, paid: CentralMeasure, unit: Unit) -> tuple[DiscreteLaplace, int]:
        """The same for what the tests alone are paid with."""
        b, r = self.fanout, unit.rows_per_person
        per_row = 3 * b - 2 if unit.neighbours == "replace" else 2 * b - 1
        scale = Fraction(r * per_row, b - 1) / pure_epsilon(paid)
        return DiscreteLaplace(scale), math.ceil(float(scale) * math.log(b) * (1 + 1e-12))

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> Preview:
        """Say how accurate cells would be that have no counts above them, and at worst: deeper ones have less, and at least one slice."""
        pure = without_delta(cost)
        law, delta = self.test_law(pure, unit)
        self.needs(domain)
        each = units_of(pure) // SLICES
        worst = count_law(of_units(pure, each), unit)
        left = count_law(of_units(pure, units_of(pure) - (TESTS + BLOCKS + 1) * each), unit)
        notes = (
            f"{law} in each test whether a box is split; each level asks for {delta} rows more",
        )
        return CountsPreview(self.title, pure, unit, None, left, rows, notes, worst)

    def answer(self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits) -> Partition:
        """Lay and count the blocks, grow their trees from tests, then count down those."""
        draft = Draft(counts.on(counts.lattice), unit, cost, noise)
        slice_, epsilon = draft.total // SLICES, draft.law(draft.total).effective_epsilon
        blocks, depths, rows = self._lay_blocks(draft, epsilon)
        law, delta = self.test_law(draft.cost, unit)
        draft.pay(blocks, TESTS * slice_)
        depths = self.grow(
            draft, blocks, self._levels(rows, epsilon, COARSE_ROWS), depths, law, delta
        )
        _count_down(draft, blocks)
        mechanism = f"{law} in each test whether a box is split, noise on counts of blocks and down the tree"
        return draft.release(self.name, depths, self.proof, mechanism)

    def _levels(self, rows: Array, epsilon: float, aim: float) -> Array:
        """How many levels lie between boxes of so many noisy rows and boxes of ``aim`` rows times epsilon: int64 ndarray like ``rows``."""
        return np.rint(np.log(np.maximum(rows * epsilon / aim, 1)) / math.log(self.fanout)).astype(
            np.int64
        )

    def _lay_blocks(self, draft: Draft, epsilon: float) -> tuple[Array, Array, Array]:
        """Count all rows, lay the blocks, count them: the blocks, the depth of every node, the blocks' noisy counts."""
        growth, halvings, slice_ = draft.growth, self.fanout.bit_length() - 1, draft.total // SLICES
        blocks, depths = np.zeros(1, np.int64), np.zeros(1, np.int64)
        rows = draft.look(blocks, slice_)
        for depth in range(
            1, min(int(self._levels(rows, epsilon, BLOCK_ROWS)[0]), MOST_HALVINGS // halvings) + 1
        ):
            blocks, _ = halve_widest(growth, blocks, np.full(len(blocks), halvings))
            depths = _and_new(depths, growth, depth)
        return blocks, depths, draft.look(blocks, BLOCKS * slice_) if len(blocks) > 1 else rows

    def grow(
        self,
        draft: Draft,
        nodes: Array,
        head_starts: Array,
        depths: Array,
        law: DiscreteLaplace,
        delta: int,
    ) -> Array:
        """Split where the tests say so.

        Parameters
        ----------
        nodes, head_starts : int64 ndarrays of shape (blocks,)
            Where trees begin, and how many levels of each are split without a handicap: its theta is minus so many deltas.
        depths : int64 ndarray of shape (nodes,)
            Depth of every node so far.

        Returns
        -------
        int64 ndarray: the depth of every node.
        """
        growth, halvings, first, level = (
            draft.growth,
            self.fanout.bit_length() - 1,
            int(depths[-1]),
            0,
        )
        theta = -head_starts * delta
        while True:
            open_ = growth.widths(nodes).max(axis=1) > 1
            nodes, theta = nodes[open_], theta[open_]
            biased = np.maximum(theta - delta, growth.true[nodes] - level * delta)
            split = exceeds(biased, law, theta, draft.noise)
            nodes, theta = nodes[split], theta[split]
            if not len(nodes) or not room_for(growth, 2 * self.fanout * len(nodes)):
                return depths
            nodes, whose = halve_widest(growth, nodes, np.full(len(nodes), halvings))
            theta, level = theta[whose], level + 1
            depths = _and_new(depths, growth, first + level)


PrivTreePartitioner.examples = (PrivTreePartitioner("x"),)


def _and_new(depths: Array, growth: Growth, depth: int) -> Array:
    """The depths of all nodes, those that are new having this one."""
    return np.concatenate([depths, np.full(len(growth.axis) - len(depths), depth)])


def _count_down(draft: Draft, blocks: Array) -> None:
    """Count nodes between the blocks and the cells of finished trees, every fourth level, with shares that grow towards the cells.

    The trees are public by now, and so is all that follows from them: how many cells lie below a node sets its share. Where a path
    is so long that one slice is left, that one goes to the cell.
    """
    growth, levels = draft.growth, draft.growth.levels()
    below = (growth.axis < 0).astype(np.int64)  # cells below each node
    for level in levels[:0:-1]:
        np.add.at(below, growth.parent[level], below[level])
    left = np.zeros(len(growth.axis), np.int64)
    left[blocks] = SLICES - TESTS - 1 - (BLOCKS if len(blocks) > 1 else 0)
    since = np.zeros(len(growth.axis), np.int64)  # halvings since a count
    for level in levels:
        counted = (since[level] == STRIDE) & (below[level] >= 2**STRIDE) & (left[level] > 1)
        here = level[counted]
        to_come = np.maximum(1, np.rint(np.log2(below[here]) / STRIDE).astype(np.int64))
        left[here] -= look_at(draft, here, left[here], to_come, STRIDE)[1]
        inner = level[(growth.axis[level] >= 0) & (left[level] > 0)]
        for child in (growth.child[inner], growth.child[inner] + 1):
            left[child], since[child] = left[inner], since[inner] % STRIDE + 1
