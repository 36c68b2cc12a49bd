"""The binary partition: nodes are halved at their middle, the axes in turn. Two levels make a quad-tree's step in two dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np

from sfumato.cube import Cube
from sfumato.domain import Domain, Lattice, fine_lattice
from sfumato.partition.growing import Draft
from sfumato.partition.levels import check_levels, check_tree, grow, plain_allocation, plain_axes, titled, tree_preview
from sfumato.partition.partition import Partition
from sfumato.privacy.allocation import Allocation, Shares, tree_levels
from sfumato.privacy.guarantee import Proof
from sfumato.privacy.measures import CentralMeasure, without_delta
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits
from sfumato.release import Preview

NAME = "Binary partition"


class BinaryPartitioner(msgspec.Struct, frozen=True, tag="binary", omit_defaults=True, forbid_unknown_fields=True):
    """Where are they, in cells that are halved again and again? The axes take turns; the middles are public.

    Nodes above the cells are counted, too: the counts may stop the splitting, and they make sums over many cells sharper.

    Parameters
    ----------
    axes : str, list of str, or None
        Interval axes; None: all of them.
    depth : int
        How many times a box is halved at most, 0 to 22. Along an axis of one lattice cell nothing is halved.
    stop_below : number or None
        A node whose noisy count is below this becomes a cell. None: every node is split to the full depth.
    shares : Shares
        Of the cells' counts, of the nodes' counts; this partitioner spends nothing on choosing splits, and what is given
        for that goes to the cells.
    allocation : "uniform", "geometric", "linear", or a list of depth + 1 weights
        How the nodes' share is divided over the levels, root first.

    Raises
    ------
    UsageError
        If an axis is not an Interval, a parameter is out of range, or nodes are to be tested without a share for it.

    Guarantee
    ---------
    Sensitivity: at each level L1 = rows_per_person (twice that under replace); a row is in one node of each level.
    Holds because: middles are public, whether a node is split follows from noisy counts that are paid for, and on every path
    from the root to a cell the levels' costs and the cell's add up to the whole, since a cell takes what its path left over.
    Not covered: the choice of columns, bounds and depth; the time the query takes.
    Source: Cormode, Procopiuc, Srivastava, Shen, Yu, ICDE 2012; Hay, Rastogi, Miklau, Suciu, VLDB 2010 (inference).

    >>> from sfumato.domain import Domain, Interval
    >>> from sfumato.privacy.measures import PureDP
    >>> plane = Domain(x=Interval(0, 1), y=Interval(0, 1))
    >>> BinaryPartitioner(depth=6).preview(plane, Unit(), PureDP(1)).cells
    64
    """

    axes: str | Sequence[str] | None = None
    depth: int = 8
    stop_below: float | None = None
    shares: Shares = Shares()
    allocation: str | Sequence[Any] = "geometric"

    proof: ClassVar[Proof] = Proof(
        sensitivity="at each level L1 = rows_per_person (twice that under replace); a row is in one node of each level.",
        because="middles are public, whether a node is split follows from noisy counts that are paid for, and on every path "
        "from the root to a cell the levels' costs and the cell's add up to the whole, since a cell takes what its path left over.",
        not_covered="the choice of columns, bounds and depth; the time the query takes.",
        source="Cormode, Procopiuc, Srivastava, Shen, Yu, ICDE 2012; Hay, Rastogi, Miklau, Suciu, VLDB 2010 (inference).",
    )

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "axes", plain_axes(self.axes))
        msgspec.structs.force_setattr(self, "stop_below", check_tree(self.depth, 2, self.stop_below))
        msgspec.structs.force_setattr(self, "allocation", plain_allocation(self.allocation, self.depth))

    def needs(self, domain: Domain) -> Lattice:
        """The default lattice."""
        return fine_lattice(domain.intervals(self.axes))

    @property
    def title(self) -> str:
        return titled(NAME, self.axes)

    def preview(self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None) -> Preview:
        """Say how accurate the deepest cells would be."""
        kind: Allocation = self.allocation
        how = {"shares": self.shares, "allocation": kind, "depth": self.depth, "fanout": 2, "stop_below": self.stop_below}
        return tree_preview(self.title, self.needs(domain), unit, cost, rows, **how)  # type: ignore[arg-type]

    def answer(self, cube: Cube, unit: Unit, cost: CentralMeasure, noise: Bits) -> Partition:
        """Count and halve, level by level; count the cells."""
        levels = tree_levels(without_delta(cost), self.shares, self.allocation, depth=self.depth, fanout=2)
        check_levels(levels, self.stop_below)
        draft = Draft(cube, unit, cost, noise)
        depth = grow(draft, levels, self.stop_below, halve)
        return draft.release(NAME, depth, self.proof, "noise on the counts of nodes, level by level, and of cells")


def halve(draft: Draft, nodes: np.ndarray, axis: np.ndarray, units: int) -> np.ndarray:
    """Split nodes at the middle of their lattice cells; ``units`` are not spent."""
    lower, upper = draft.growth.lower[nodes, axis], draft.growth.upper[nodes, axis]
    return draft.growth.split(nodes, axis, (lower + upper) // 2)
