"""The median partition: nodes are cut at a private median, and the axes take turns (a kd-tree)."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.mechanisms.selection import RankLaw, Ranks, nested
from sfumato.partition.draft import Draft
from sfumato.partition.fixed_depth import FixedDepthTree
from sfumato.privacy.allocation import Shares, of_units
from sfumato.privacy.guarantee import Proof
from sfumato.privacy.measures import selection_epsilon


class MedianPartitioner(
    FixedDepthTree, frozen=True, tag="median", omit_defaults=True, forbid_unknown_fields=True
):
    """Where are the rows, in boxes that hold about equally many? (A kd-tree.)

    Nodes are cut at a private median, and the axes take turns.

    Parameters
    ----------
    axes : str, list of str, or None
        Interval axes; None: all of them.
    depth : int
        How many times a box is cut at most, 0 to 22.
    stop_below : number or None
        A node whose noisy count is below this becomes a cell. None: every node is split to the full
        depth.
    shares : Shares
        How the cost is divided between counting cells, choosing medians and counting nodes.
    allocation : "uniform", "geometric", "linear", or a list of depth + 1 weights
        How the shares of medians and nodes are divided over the levels, root first.
    heading, measured_in, label_names
        Words for people, by name: see ``Question``.

    Raises
    ------
    UsageError
        If an axis is not an Interval, a parameter is out of range, or medians or tests have no
        share of the cost.

    Guarantee
    ---------
    {proof}

    >>> MedianPartitioner(["lon", "lat"], depth=6).title
    'Median partition of lon x lat'
    """

    shares: Shares = Shares(release=Fraction(2), partition=Fraction(1), threshold=Fraction(1))

    chooses: ClassVar[bool] = True
    name: ClassVar[str] = "Median partition"
    mechanism: ClassVar[str] = (
        "the exponential mechanism at each cut, noise on the counts of nodes and of cells"
    )
    proof: ClassVar[Proof] = Proof(
        sensitivity=(
            "of a rank's distance from the middle, rows_per_person / 2; of counts, L1 = "
            "rows_per_person (twice that under replace)."
        ),
        because=(
            "a cut is chosen among the public lattice points within its node by the exponential "
            "mechanism, exactly; a row is in one node of each level; and on every path the costs "
            "of cuts, of counts and of the cell add up to the whole. Under replace each selection "
            "runs as add-remove at half its share, since a person may leave one node and enter "
            "another."
        ),
        not_covered="the choice of columns, bounds and depth; the time the query takes.",
        source=(
            "McSherry, Talwar, FOCS 2007; Cormode, Procopiuc, Srivastava, Shen, Yu, ICDE 2012 "
            "(private kd-trees)."
        ),
    )

    def split(self, draft: Draft, nodes: Array, axis: Array, units: int) -> Array:
        """Cut nodes at private medians."""
        unit, epsilon = nested(draft.unit, selection_epsilon(of_units(draft.cost, units)))
        cuts = []
        for lower, counts in draft.growth.counts_along(nodes, axis):
            # The candidates are the lattice points strictly inside the node.
            ranks = Ranks.of_counts(counts, 1, len(counts))
            law = RankLaw(ranks, Fraction(1, 2), epsilon, unit)
            cuts.append(lower + law.draw(draft.noise))
        # The nodes are disjoint, so their selections together cost as much as one.
        draft.pay(nodes, units)
        return draft.growth.split(nodes, axis, np.array(cuts, np.int64))


MedianPartitioner.examples = (MedianPartitioner("x", depth=1),)
