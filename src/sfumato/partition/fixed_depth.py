"""Trees of a fixed depth: the common part of the binary, median and multi-quantile partitions.

Each of these partitioners says how it splits a node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import msgspec
import numpy as np

from sfumato.answers.counts import Counts
from sfumato.answers.preview import CountsPreview, Preview
from sfumato.basics.numbers import Array, Exactly, fraction, positive, settle
from sfumato.domain.domain import Domain
from sfumato.domain.lattice import Lattice
from sfumato.errors import UsageError, shown
from sfumato.mechanisms.noise import count_law
from sfumato.partition.draft import Draft
from sfumato.partition.partition import Partition
from sfumato.partition.partitioner import OverAxes
from sfumato.partition.tree.growth import MOST_CELLS
from sfumato.privacy import allocation as sharing
from sfumato.privacy.allocation import Allocation, Levels, Shares, of_units, tree_levels
from sfumato.privacy.guarantee import EXACT, Proof
from sfumato.privacy.measures import CentralMeasure, without_delta
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

if TYPE_CHECKING:
    Weights: TypeAlias = Sequence[Exactly]
else:
    # The forms that weights have in files.
    Weights = Sequence[str | int | float]

MOST_ROWS = 10**18

Splitter: TypeAlias = Callable[[Draft, Array, Array, int], Array]
"""A function that splits nodes and returns the children of all of them.

Its arguments are the draft, the nodes, the axis of each, and what may be spent in units of the
ledger.
"""


def check_tree(depth: object, fanout: object) -> None:
    """Refuse a depth and a fan-out that make no tree, or one of too many cells."""
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 0:
        raise UsageError(
            f"depth = {shown(depth)}",
            "the depth of a tree is a whole number from 0 on",
            "Choose a depth such as 8",
        )
    if isinstance(fanout, bool) or not isinstance(fanout, int) or fanout < 2:
        raise UsageError(
            f"fanout = {shown(fanout)}",
            "a node is split into at least 2",
            "Choose a fan-out such as 4",
        )
    # Integers of any length are compared first, so that no logarithm is taken of a very long one.
    if max(depth, fanout) > MOST_CELLS or depth * math.log2(fanout) > math.log2(MOST_CELLS):
        raise UsageError(
            f"depth = {shown(depth)} with fan-out {shown(fanout)}",
            f"that makes more than {MOST_CELLS:,} cells",
            "Choose fewer levels",
        )


def read_stop_below(stop_below: Exactly | None) -> float | None:
    """Check ``stop_below``, and return it as a float."""
    if stop_below is None:
        return None
    fewest = positive(stop_below, "stop_below")
    if fewest > MOST_ROWS:
        raise UsageError(
            "stop_below",
            "it is so large that no node would ever be split",
            "Choose a number of rows such as 100",
        )
    return float(fewest)


def check_shares(shares: object) -> None:
    """Refuse what are no shares."""
    if not isinstance(shares, Shares):
        raise UsageError(
            f"shares of type {type(shares).__name__}",
            "they are no Shares",
            "Write shares=sf.Shares(release=2, partition=1, threshold=1)",
        )


def plain_allocation(allocation: object, depth: int) -> Allocation:
    """Check an allocation, and bring it into the one form that files give back."""
    if not isinstance(allocation, str | Sequence | np.ndarray):
        raise UsageError(
            f"allocation of type {type(allocation).__name__}",
            "it is neither a name nor a list",
            'Choose "uniform", "geometric", "linear" or a list of weights',
        )
    plain: Allocation
    if isinstance(allocation, str):
        plain = allocation
    else:
        plain = tuple(str(fraction(weight, "a weight")) for weight in allocation)
    # Weights that cannot be used raise here. The number of units does not matter.
    sharing.levels(10**9, depth, allocation=plain)
    return plain


def next_axis(widths: Array, depth: int) -> Array:
    """The axis along which each node of a level is split: int64 ndarray of shape (nodes,).

    The axes take turns: axis depth mod d, or the next one along which the node can still be split.
    -1 where the node is a single lattice cell.

    Parameters
    ----------
    widths : int64 ndarray of shape (nodes, d)
        Lattice cells of each node along each axis.
    depth : int
        Depth of the level.
    """
    d = widths.shape[1]
    turn = np.roll(np.arange(d), -(depth % d))
    can_split = widths[:, turn] > 1
    return np.where(can_split.any(axis=1), turn[can_split.argmax(axis=1)], -1)


def grow(draft: Draft, levels: Levels, stop_below: float | None, split: Splitter) -> Array:
    """Count, test and split the nodes, level by level.

    A node is split if its noisy count is at least ``stop_below`` and it holds more than one lattice
    cell. On the deepest level nothing is tested or counted here: its nodes are cells.

    Returns
    -------
    int64 ndarray of shape (nodes,): the depth of every node.
    """
    depths = np.zeros(1, np.int64)
    nodes = np.zeros(1, np.int64)
    for level, units in enumerate(levels.partition):
        axis = next_axis(draft.growth.widths(nodes), level)
        can_split = axis >= 0
        nodes = nodes[can_split]
        axis = axis[can_split]
        if levels.threshold[level] and len(nodes):
            counts = draft.noisy_counts(nodes, levels.threshold[level])
            if stop_below is not None:
                goes_on = counts >= stop_below
                nodes = nodes[goes_on]
                axis = axis[goes_on]
        if not len(nodes):
            break
        nodes = split(draft, nodes, axis, units)
        depths = draft.with_new_nodes(depths, level + 1)
    return depths


def check_levels(levels: Levels, stop_below: float | None) -> None:
    """Refuse a test that nothing pays for."""
    if stop_below is not None and not all(levels.threshold[: len(levels.partition)]):
        raise UsageError(
            f"stop_below = {stop_below:g}",
            "a level has no share of the cost to count its nodes with",
            "Give threshold a share, a larger epsilon, or leave stop_below out",
        )


class FixedDepthTree(OverAxes, frozen=True):
    """A tree of fixed depth. A subclass says how it splits nodes, and why that is private.

    Attributes
    ----------
    depth : int
        How many times a box is split at most.
    stop_below : float or None
        A node whose noisy count is below this becomes a cell. None: no node stops early.
    shares : Shares
        How the cost is divided between counting cells, choosing splits and counting nodes.
    allocation : str or sequence of weights
        How a share is divided over the levels.
    """

    depth: int = 8
    stop_below: float | None = None
    shares: Shares = Shares()
    allocation: str | Weights = "geometric"

    # Whether choosing where to split costs anything.
    chooses: ClassVar[bool] = False
    mechanism: ClassVar[str]
    proof: ClassVar[Proof]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_tree(self.depth, self.parts)
        stop_below = read_stop_below(self.stop_below)
        allocation = plain_allocation(self.allocation, self.depth)
        msgspec.structs.force_setattr(self, "stop_below", stop_below)
        msgspec.structs.force_setattr(self, "allocation", allocation)
        check_shares(self.shares)
        settle(self)

    @property
    def parts(self) -> int:
        """Into how many parts a node is split."""
        return 2

    @property
    def stated_proof(self) -> Proof:
        """Why it is private, as the guarantee states it."""
        return self.proof

    def split(self, draft: Draft, nodes: Array, axis: Array, units: int) -> Array:
        """Split nodes, each along its axis.

        Parameters
        ----------
        draft : Draft
        nodes, axis : int64 ndarrays of shape (k,)
        units : int
            What choosing the cuts of this level may cost at most.

        Returns
        -------
        int64 ndarray: the parts of all nodes.
        """
        raise NotImplementedError

    def most_numbers(self, lattice: Lattice) -> int:
        """How many counts the answer may hold at most: of cells, and of fewer nodes above them."""
        return 2 * min(lattice.size, int(self.parts**self.depth))

    def slack(self, lattice: Lattice, unit: Unit) -> str:
        """What finite arithmetic adds to the loss, as the guarantee states it."""
        return EXACT

    def levels(self, cost: CentralMeasure) -> Levels:
        """What each level may spend. Costs that are too small for it are refused."""
        levels = tree_levels(
            without_delta(cost), self.shares, self.allocation, depth=self.depth, fanout=self.parts
        )
        check_levels(levels, self.stop_below)
        if self.chooses and not all(levels.partition):
            raise UsageError(
                self.title,
                "a level has no share of the cost to choose its cuts with",
                "Give partition a share, or a larger epsilon",
            )
        return levels

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> Preview:
        """Say how accurate the deepest cells would be.

        Cells where splitting stops early have more of the cost.
        """
        pure = without_delta(cost)
        levels = self.levels(cost)
        for_nodes = levels.threshold[: self.depth]
        for_choices = sum(levels.partition) if self.chooses else 0
        left = levels.total - sum(for_nodes) - for_choices
        cells: int | None = None
        notes: tuple[str, ...] = ()
        if self.stop_below is None:
            cells = min(self.parts**self.depth, self.needs(domain).lattice.size)
        else:
            notes = (
                f"a node whose noisy count is below {self.stop_below:g} becomes a cell, "
                "with what its path has left",
            )
        # Every law that may be needed must exist: one that is too wide raises here.
        for units in {*for_nodes, left} - {0}:
            count_law(of_units(pure, units), unit)
        law = count_law(of_units(pure, left), unit)
        return CountsPreview(self.title, pure, unit, cells, law, rows, notes)

    def answer(self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits) -> Partition:
        """Count and split nodes, level by level, then count the cells."""
        draft = Draft(counts.on(counts.lattice), unit, cost, noise)
        depth = grow(draft, self.levels(cost), self.stop_below, self.split)
        return draft.release(
            self.name, depth, self.stated_proof, self.mechanism, self.slack(counts.lattice, unit)
        )
