"""The binary partition: nodes are halved at their middle, the axes in turn. Two levels make a quad-tree's step in two dimensions."""

from __future__ import annotations

from typing import ClassVar

from sfumato.arrays import Array
from sfumato.partition.growing import Draft
from sfumato.partition.levels import LevelTree
from sfumato.privacy.guarantee import Proof


class BinaryPartitioner(
    LevelTree, frozen=True, tag="binary", omit_defaults=True, forbid_unknown_fields=True
):
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
    {proof}

    >>> from sfumato.domain import Domain, Interval
    >>> from sfumato.privacy.measures import PureDP
    >>> from sfumato.privacy.unit import Unit
    >>> plane = Domain(x=Interval(0, 1), y=Interval(0, 1))
    >>> BinaryPartitioner(depth=6).preview(plane, Unit(), PureDP(1)).cells
    64
    """

    name: ClassVar[str] = "Binary partition"
    mechanism: ClassVar[str] = "noise on the counts of nodes, level by level, and of cells"
    proof: ClassVar[Proof] = Proof(
        sensitivity="at each level L1 = rows_per_person (twice that under replace); a row is in one node of each level.",
        because="middles are public, whether a node is split follows from noisy counts that are paid for, and on every path "
        "from the root to a cell the levels' costs and the cell's add up to the whole, since a cell takes what its path left over.",
        not_covered="the choice of columns, bounds and depth; the time the query takes.",
        source="Cormode, Procopiuc, Srivastava, Shen, Yu, ICDE 2012; Hay, Rastogi, Miklau, Suciu, VLDB 2010 (inference).",
    )

    def split(self, draft: Draft, nodes: Array, axis: Array, units: int) -> Array:
        """Halve nodes at the middle of their lattice cells; nothing is spent."""
        lower, upper = draft.growth.lower[nodes, axis], draft.growth.upper[nodes, axis]
        return draft.growth.split(nodes, axis, (lower + upper) // 2)


BinaryPartitioner.examples = (
    BinaryPartitioner("x", depth=2),
    BinaryPartitioner("x", depth=2, stop_below=1),
)
