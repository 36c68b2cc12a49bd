"""The automatic partition: coarse noisy counts first, and then, place by place, what they say is best.

A node is counted; what is published so far says how many rows it holds, and so how many halvings lie between it and cells that
are worth a count of their own. Where there are many, the node is cut in four by halving its widest sides, and the parts are
counted with a share of what the path has left that grows towards the cells. Where few, the node is cut into its cells
at once. And where a block of neighbours looks even, judged by a chi-square of their noisy counts against what noise and
chance alone would do, nothing is to be learnt on the way: it is cut into fewer, larger cells at once. So even ground gets a
uniform grid, crowds get a deep tree, and every count that was paid for serves inference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfumato.answers.counts import Counts
from sfumato.answers.preview import CountsPreview, Preview
from sfumato.arrays import Array
from sfumato.domain import Domain
from sfumato.mechanisms.noise import count_law
from sfumato.mechanisms.sums import LEAST_SPREAD, spread
from sfumato.partition.axes import OverAxes
from sfumato.partition.growing import Draft
from sfumato.partition.partition import Partition
from sfumato.partition.steps import SLICES, halve_widest, look_at, room_for
from sfumato.privacy.allocation import of_units, units_of
from sfumato.privacy.guarantee import Proof
from sfumato.privacy.measures import CentralMeasure, without_delta
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

ROWS, EVEN_ROWS = (
    7.0,
    16.0,
)  # rows times epsilon that a cell should hold, and where the ground is even
STRIDE = 2  # halvings between counts
NEAR = 2.6  # so many halvings before the cells, nothing is counted any more
EVEN = 1.3  # chi-square per degree of freedom up to which neighbours look even
FREEDOM = 6  # degrees of freedom that such a judgement needs


class AutoPartitioner(
    OverAxes, frozen=True, tag="auto", omit_defaults=True, forbid_unknown_fields=True
):
    """Where are they? Looks coarsely first, then decides place by place how fine the cells are. A good first choice.

    Parameters
    ----------
    axes : str, list of str, or None
        Interval axes; None: all of them.

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
        sensitivity="of the nodes that are counted together, which are disjoint, L1 = rows_per_person (twice that under replace).",
        because="every decision follows from noisy counts that are paid for, and on every path from the root to a cell the "
        "costs of the counts add up to the whole, since a cell takes what its path left over.",
        not_covered="the choice of columns and bounds; the time the query takes.",
        source="after Qardaji, Yang, Li, ICDE 2013, and Cormode et al., ICDE 2012; costs chosen along a path: Rogers, Roth, Ullman, "
        "Vadhan 2016; Feldman, Zrnic 2021.",
    )

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> Preview:
        """Say how accurate cells would be on even ground, and at worst: deeper ones have less left, and at least one slice."""
        pure = without_delta(cost)
        self.needs(domain)
        slice_ = units_of(pure) // SLICES
        worst, best = (
            count_law(of_units(pure, slice_), unit),
            count_law(of_units(pure, units_of(pure) - slice_), unit),
        )
        notes = (
            "noisy counts decide how many cells there are, and where; cells in crowds get less of the cost",
        )
        return CountsPreview(self.title, pure, unit, None, best, rows, notes, worst)

    def answer(self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits) -> Partition:
        """Count, judge, cut; then count the cells."""
        draft = Draft(counts.on(counts.lattice), unit, cost, noise)
        depth = _explore(draft)
        return draft.release(
            self.name, depth, self.proof, "noise on counts from coarse to fine, and on cells"
        )


AutoPartitioner.examples = (AutoPartitioner("x"),)


@dataclass
class _Front:
    """The nodes that were counted last: arrays of equal length.

    ``rows`` is what was counted, never below 0; ``left`` what their paths have left, in slices; ``even`` whether they lie in a
    block that looks even; ``block`` the place of the parent among the nodes before them.
    """

    nodes: Array
    rows: Array
    left: Array
    even: Array
    block: Array

    def only(self, which: Array) -> _Front:
        return _Front(
            self.nodes[which],
            self.rows[which],
            self.left[which],
            self.even[which],
            self.block[which],
        )


def _explore(draft: Draft) -> Array:
    """Grow the tree; the depth of every node, in counted levels: int64 ndarray."""
    growth, epsilon = draft.growth, draft.law(draft.total).effective_epsilon
    root = np.zeros(1, np.int64)
    rows = np.maximum(draft.look(root, draft.total // SLICES), 0)
    front = _Front(root, rows, np.array([SLICES - 1]), np.zeros(1, bool), root)
    depths, depth = np.zeros(1, np.int64), 0
    while len(front.nodes):
        depth += 1
        aim = np.where(front.even, EVEN_ROWS, ROWS)
        to_go = np.log2(np.maximum(front.rows * epsilon / aim, 0.5))
        last = front.even | (to_go < NEAR) | (front.left < 3)
        times = np.rint(to_go[last]).astype(np.int64)
        if not room_for(
            growth, int((2.0 ** (times + 1)).sum()) + 2 ** (STRIDE + 1) * int((~last).sum())
        ):
            break
        halve_widest(growth, front.nodes[last], times)
        front, to_go = front.only(~last), to_go[~last]
        front = _look(draft, front, to_go)
        depths = np.concatenate([depths, np.full(len(growth.axis) - len(depths), depth)])
    return depths


def _look(draft: Draft, front: _Front, to_go: Array) -> _Front:
    """Cut nodes in four, count the parts, and judge whether blocks of them look even."""
    nodes, whose = halve_widest(draft.growth, front.nodes, np.full(len(front.nodes), STRIDE))
    cut = draft.growth.parent[nodes] >= 0
    cut &= nodes != front.nodes[whose]  # a node of one lattice cell stays what it is
    nodes, whose = nodes[cut], whose[cut]
    levels = np.maximum(1, np.rint((to_go[whose] - STRIDE) / STRIDE).astype(np.int64))
    counts, slices = look_at(draft, nodes, front.left[whose], levels, STRIDE)
    even = _looks_even(draft, counts, slices, whose, front.block)
    return _Front(nodes, np.maximum(counts, 0), front.left[whose] - slices, even, whose)


def _looks_even(draft: Draft, counts: Array, slices: Array, whose: Array, block: Array) -> Array:
    """Whether counts of neighbours differ no more than noise and chance would have them, block by block.

    A block is what has one grandparent; each count is compared with the mean of those that share its parent.
    """
    if not len(counts):
        return np.zeros(0, bool)
    parts = np.bincount(whose, minlength=len(block))
    mean = (np.bincount(whose, counts, minlength=len(block)) / np.maximum(parts, 1))[whose]
    spreads = [
        max(spread(draft.law(int(each) * (draft.total // SLICES))), LEAST_SPREAD)
        for each in range(1, SLICES)
    ]
    noise = np.array(spreads)[slices - 1]
    blocks = int(block.max()) + 1
    chi_square = np.bincount(
        block[whose], (counts - mean) ** 2 / (noise + np.maximum(mean, 0)), minlength=blocks
    )
    freedom = np.bincount(block, np.maximum(parts - 1, 0), minlength=blocks)
    even = (freedom >= FREEDOM) & (chi_square < EVEN * freedom)
    return np.asarray(even[block[whose]])
