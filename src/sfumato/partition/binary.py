"""The binary partition: nodes are halved in the middle, and the axes take turns.

In two dimensions two levels make one step of a quad-tree.
"""

from __future__ import annotations

from typing import ClassVar

from sfumato.basics.numbers import Array
from sfumato.partition.draft import Draft
from sfumato.partition.fixed_depth import FixedDepthTree
from sfumato.privacy.guarantee import Proof


class BinaryPartitioner(
    FixedDepthTree, frozen=True, tag="binary", omit_defaults=True, forbid_unknown_fields=True
):
    """Where are the rows, in cells that are halved again and again?

    The axes take turns, and boxes are halved at their public middles. Nodes above the cells are
    counted too: their counts may stop the splitting, and they make sums over many cells more
    accurate.

    Parameters
    ----------
    axes : str, list of str, or None
        Interval axes; None: all of them.
    depth : int
        How many times a box is halved at most, 0 to 22. A box of one lattice cell along an axis is
        not halved along it.
    stop_below : number or None
        A node whose noisy count is below this becomes a cell. None: every node is split to the full
        depth.
    shares : Shares
        How the cost is divided between counting cells (``release``) and counting nodes
        (``threshold``). Choosing splits costs nothing here: its share goes to the cells.
    allocation : "uniform", "geometric", "linear", or a list of depth + 1 weights
        How the nodes' share is divided over the levels, root first.
    heading, measured_in, label_names
        Words for people, by name: see ``Question``.

    Raises
    ------
    UsageError
        If an axis is not an Interval, a parameter is out of range, or nodes are to be tested but
        tests have no share of the cost.

    Guarantee
    ---------
    {proof}

    >>> from sfumato.domain.domain import (Domain, Interval)
    >>> from sfumato.privacy.measures import PureDP
    >>> from sfumato.privacy.unit import Unit
    >>> plane = Domain(x=Interval(0, 1), y=Interval(0, 1))
    >>> BinaryPartitioner(depth=6).preview(plane, Unit(), PureDP(1)).cells
    64
    """

    name: ClassVar[str] = "Binary partition"
    mechanism: ClassVar[str] = "noise on the counts of nodes, level by level, and of cells"
    proof: ClassVar[Proof] = Proof(
        sensitivity=(
            "at each level L1 = rows_per_person (twice that under replace); a row is in one node "
            "of each level."
        ),
        because=(
            "middles are public, whether a node is split follows from noisy counts that are paid "
            "for, and on every path from the root to a cell the levels' costs and the cell's add "
            "up to the whole, since a cell takes what its path left over."
        ),
        not_covered="the choice of columns, bounds and depth; the time the query takes.",
        source=(
            "Cormode, Procopiuc, Srivastava, Shen, Yu, ICDE 2012; Hay, Rastogi, Miklau, Suciu, "
            "VLDB 2010 (inference)."
        ),
    )

    def split(self, draft: Draft, nodes: Array, axis: Array, units: int) -> Array:
        """Halve nodes at the middle of their lattice cells. Nothing is spent."""
        return draft.growth.split(nodes, axis, draft.growth.middles(nodes, axis))


BinaryPartitioner.examples = (
    BinaryPartitioner("x", depth=2),
    BinaryPartitioner("x", depth=2, stop_below=1),
)
