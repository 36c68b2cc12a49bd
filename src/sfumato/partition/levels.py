"""Trees of a fixed depth: what binary, median and multi-quantile partitions share. How a node is split is theirs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import msgspec
import numpy as np

from sfumato.answers.counts import Counts
from sfumato.answers.preview import CountsPreview, Preview
from sfumato.arrays import Array
from sfumato.domain import Domain, Lattice
from sfumato.errors import UsageError, shown
from sfumato.mechanisms.noise import count_law
from sfumato.numbers import Exactly, fraction, positive, settle
from sfumato.partition.axes import OverAxes
from sfumato.partition.growing import MOST_CELLS, Draft
from sfumato.partition.partition import Partition
from sfumato.privacy import allocation as sharing
from sfumato.privacy.allocation import Allocation, Levels, Shares, of_units, tree_levels
from sfumato.privacy.guarantee import EXACT, Proof
from sfumato.privacy.measures import CentralMeasure, without_delta
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

if TYPE_CHECKING:
    Weights: TypeAlias = Sequence[Exactly]
else:
    Weights = Sequence[str | int | float]  # the forms that files have

MOST_ROWS = 10**18

Splitter: TypeAlias = Callable[[Draft, Array, Array, int], Array]
"""From the draft, nodes, the axis of each and what may be spent to the children of all nodes."""


def check_tree(depth: object, fanout: object, stop_below: Exactly | None) -> float | None:
    """Check the parameters of a tree, and read ``stop_below``."""
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
    # Numbers of any length are compared as integers, and a power is taken of short ones only.
    if max(depth, fanout) > MOST_CELLS or depth * math.log2(fanout) > math.log2(MOST_CELLS):
        asked = f"depth = {shown(depth)} with fan-out {shown(fanout)}"
        raise UsageError(asked, f"that makes more than {MOST_CELLS:,} cells", "Choose fewer levels")
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


def plain_allocation(allocation: object, depth: int) -> Allocation:
    """Bring an allocation into the one form that files give back, and check it."""
    if not isinstance(allocation, str | Sequence | np.ndarray):
        remedy = 'Choose "uniform", "geometric", "linear" or a list of weights'
        raise UsageError(
            f"allocation of type {type(allocation).__name__}",
            "it is neither a name nor a list",
            remedy,
        )
    plain = (
        allocation
        if isinstance(allocation, str)
        else tuple(str(fraction(w, "a weight")) for w in allocation)
    )
    sharing.levels(10**9, depth, allocation=plain)
    return plain


def next_axis(widths: Array, depth: int) -> Array:
    """The axis along which each node of a level is split: depth mod d, or the next one that still can be; -1: none can.

    Parameters
    ----------
    widths : int64 ndarray of shape (nodes, d)
        Lattice cells of each node along each axis.
    """
    d = widths.shape[1]
    turn = np.roll(np.arange(d), -(depth % d))
    can = widths[:, turn] > 1
    return np.where(can.any(axis=1), turn[can.argmax(axis=1)], -1)


def grow(draft: Draft, levels: Levels, stop_below: float | None, split: Splitter) -> Array:
    """Count, test and split, level by level. Returns the depth of every node: int64 ndarray of shape (nodes,).

    A node is split if its noisy count is at least ``stop_below`` and it holds more than one lattice cell. At the deepest level
    nothing is tested or counted.
    """
    depths, nodes = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for level, units in enumerate(levels.partition):
        axis = next_axis(draft.growth.widths(nodes), level)
        nodes, axis = nodes[axis >= 0], axis[axis >= 0]
        if levels.threshold[level] and len(nodes):
            found = draft.look(nodes, levels.threshold[level])
            if stop_below is not None:
                nodes, axis = nodes[found >= stop_below], axis[found >= stop_below]
        if not len(nodes):
            break
        nodes = split(draft, nodes, axis, units)
        depths = np.concatenate([depths, np.full(len(draft.growth.axis) - len(depths), level + 1)])
    return depths


def check_levels(levels: Levels, stop_below: float | None) -> None:
    """Refuse to test where nothing is paid for the test."""
    if stop_below is not None and not all(levels.threshold[: len(levels.partition)]):
        raise UsageError(
            f"stop_below = {stop_below:g}",
            "a level has no share of the cost to count its nodes with",
            "Give threshold a share, a larger epsilon, or leave stop_below out",
        )


class LevelTree(OverAxes, frozen=True):
    """What partitioners of a fixed depth have in common; each says how it splits nodes, and why it keeps its promise."""

    depth: int = 8
    stop_below: float | None = None
    shares: Shares = Shares()
    allocation: str | Weights = "geometric"

    chooses: ClassVar[bool] = False  # whether choosing where to split costs anything
    mechanism: ClassVar[str]
    proof: ClassVar[Proof]

    def __post_init__(self) -> None:
        super().__post_init__()
        msgspec.structs.force_setattr(
            self, "stop_below", check_tree(self.depth, self.parts, self.stop_below)
        )
        msgspec.structs.force_setattr(
            self, "allocation", plain_allocation(self.allocation, self.depth)
        )
        shares: object = self.shares
        if not isinstance(shares, Shares):
            remedy = "Write shares=sf.Shares(release=2, partition=1, threshold=1)"
            raise UsageError(
                f"shares of type {type(shares).__name__}", "they are no Shares", remedy
            )
        settle(self)

    @property
    def parts(self) -> int:
        """Into how many parts a node is split."""
        return 2

    def split(self, draft: Draft, nodes: Array, axis: Array, units: int) -> Array:
        """Split nodes, each along its axis, spending at most ``units`` on choosing where: the parts, int64 ndarray."""
        raise NotImplementedError

    def most_numbers(self, lattice: Lattice) -> int:
        """How many counts the answer may hold at most: of cells, and of as many nodes above them."""
        return 2 * min(lattice.size, int(self.parts**self.depth))

    def slack(self, lattice: Lattice, unit: Unit) -> str:
        """What finite arithmetic adds to the loss, in words."""
        return EXACT

    def levels(self, cost: CentralMeasure) -> Levels:
        """What each level may spend; checked."""
        levels = tree_levels(
            without_delta(cost), self.shares, self.allocation, depth=self.depth, fanout=self.parts
        )
        check_levels(levels, self.stop_below)
        if self.chooses and not all(levels.partition):
            obstacle = "a level has no share of the cost to choose its cuts with"
            raise UsageError(self.title, obstacle, "Give partition a share, or a larger epsilon")
        return levels

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> Preview:
        """Say how accurate the deepest cells would be; cells where splitting stops have more of the cost."""
        pure, levels, stop = without_delta(cost), self.levels(cost), self.stop_below
        left = (
            levels.total
            - sum(levels.threshold[: self.depth])
            - self.chooses * sum(levels.partition)
        )
        cells = (
            None
            if stop is not None
            else min(self.parts**self.depth, self.needs(domain).lattice.size)
        )
        notes = (
            ()
            if stop is None
            else (
                f"a node whose noisy count is below {stop:g} becomes a cell, with what its path has left",
            )
        )
        for units in {*levels.threshold[: self.depth], left} - {0}:
            count_law(of_units(pure, units), unit)
        return CountsPreview(
            self.title, pure, unit, cells, count_law(of_units(pure, left), unit), rows, notes
        )

    def answer(self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits) -> Partition:
        """Count and split, level by level; count the cells."""
        draft = Draft(counts.on(counts.lattice), unit, cost, noise)
        depth = grow(draft, self.levels(cost), self.stop_below, self.split)
        return draft.release(
            self.name, depth, self.proof, self.mechanism, self.slack(counts.lattice, unit)
        )
