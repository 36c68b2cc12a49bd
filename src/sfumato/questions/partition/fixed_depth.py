"""Trees of a fixed depth: the binary, the median and the multi-quantile partition.

``FixedDepthTree`` is what they have in common. Each of them says how it splits a node:

* binary: in the middle, and the axes take turns. In two dimensions two levels make one step of a
  quad-tree;
* median: at a private median, and the axes take turns (a kd-tree);
* multi-quantile: at several private quantiles at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import msgspec
import numpy as np

from sfumato.answers import Counts, CountsPreview, Preview
from sfumato.basics import Array, Exactly, GivenNumbers, decimal, fraction, positive, settle
from sfumato.domain import Domain, Lattice
from sfumato.errors import UsageError, shown
from sfumato.mechanisms import (
    JointLaw,
    RankLaw,
    Ranks,
    count_law,
    joint_slack,
    nested,
    read_quantiles,
)
from sfumato.privacy import (
    EXACT,
    Allocation,
    CentralMeasure,
    Levels,
    Proof,
    Shares,
    Unit,
    allocation,
    of_units,
    selection_epsilon,
    tree_levels,
    without_delta,
)
from sfumato.questions.partition.growth import MOST_CELLS, Draft, split_at
from sfumato.questions.partition.release import OverAxes, Partition
from sfumato.random.bits import Bits

if TYPE_CHECKING:
    Weights: TypeAlias = Sequence[Exactly]
else:
    # The forms that weights have in files.
    Weights = Sequence[str | int | float]


# --- what they have in common ---------------------------------------------------------------------


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
    if fewest > 10**18:
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


def plain_allocation(stated: object, depth: int) -> Allocation:
    """Check an allocation, and bring it into the one form that files give back."""
    if not isinstance(stated, str | Sequence | np.ndarray):
        raise UsageError(
            f"allocation of type {type(stated).__name__}",
            "it is neither a name nor a list",
            'Choose "uniform", "geometric", "linear" or a list of weights',
        )
    plain: Allocation
    if isinstance(stated, str):
        plain = stated
    else:
        plain = tuple(str(fraction(weight, "a weight")) for weight in stated)
    # Weights that cannot be used raise here. The number of units does not matter.
    allocation.levels(10**9, depth, allocation=plain)
    return plain


def grow(
    draft: Draft,
    levels: Levels,
    stop_below: float | None,
    split: Callable[[Draft, Array, Array, int], Array],
) -> Array:
    """Count, test and split the nodes, level by level.

    A node is split if its noisy count is at least ``stop_below`` and it holds more than one lattice
    cell. On the deepest level nothing is tested or counted here: its nodes are cells. ``split`` is
    ``FixedDepthTree.split``.

    Returns
    -------
    int64 ndarray of shape (nodes,): the depth of every node.
    """
    depths = np.zeros(1, np.int64)
    nodes = np.zeros(1, np.int64)
    for level, units in enumerate(levels.partition):
        # The axes take turns: axis level mod d, or the next one along which a node can still be
        # split. A node of a single lattice cell cannot be.
        widths = draft.growth.widths(nodes)
        turn = np.roll(np.arange(widths.shape[1]), -level)
        is_wide = widths[:, turn] > 1
        can_split = is_wide.any(axis=1)
        nodes = nodes[can_split]
        axis = turn[is_wide[can_split].argmax(axis=1)]
        # The count is paid for whether or not it stops anything: it serves inference.
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
        check_shares(self.shares)
        settle(self, stop_below=stop_below, allocation=allocation)

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
        for_tests = levels.threshold[: len(levels.partition)]
        if self.stop_below is not None and not all(for_tests):
            raise UsageError(
                f"stop_below = {self.stop_below:g}",
                "a level has no share of the cost to count its nodes with",
                "Give threshold a share, a larger epsilon, or leave stop_below out",
            )
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


# --- binary ---------------------------------------------------------------------------------------


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


# --- median ---------------------------------------------------------------------------------------


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


# --- several quantiles ----------------------------------------------------------------------------

MOST_FANOUT = 16

# The fan-out where none is stated.
EVEN_FANOUT = 4


def _even(parts: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(i, parts) for i in range(1, parts))


class MultiQuantilePartitioner(
    FixedDepthTree,
    frozen=True,
    tag="multi-quantile",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """Where are the rows, in boxes that hold about equally many?

    Nodes are cut at several private quantiles at once, and the axes take turns.

    Parameters
    ----------
    axes : str, list of str, or None
        Interval axes; None: all of them.
    depth : int
        How many times a box is cut at most. ``fanout ** depth`` is at most 2^22.
    stop_below : number or None
        A node whose noisy count is below this becomes a cell. None: every node is split to the full
        depth.
    shares : Shares
        How the cost is divided between counting cells, choosing quantiles and counting nodes.
    allocation : "uniform", "geometric", "linear", or a list of depth + 1 weights
        How the shares of quantiles and nodes are divided over the levels, root first.
    fanout : int
        Into how many boxes a node is cut, 2 to 16, or fewer if it has fewer lattice cells. With
        ``at`` leave it out.
    at : list of numbers, or None
        The quantiles at which a node is cut, increasing, each above 0 and below 1: one box more
        than there are quantiles. None: even ones, i / fanout.
    heading, measured_in, label_names
        Words for people, by name: see ``Question``.

    Raises
    ------
    UsageError
        If an axis is not an Interval, a parameter is out of range, or quantiles or tests have no
        share of the cost.

    Guarantee
    ---------
    {proof}

    With ``at`` the utility's sensitivity is 2 rows_per_person (1 - the least gap between 0, the
    quantiles and 1).

    >>> MultiQuantilePartitioner("age", depth=1, fanout=5).parts
    5
    >>> MultiQuantilePartitioner("wage", depth=1, at=[0.5, 0.9, 0.99]).parts
    4
    """

    depth: int = 3
    shares: Shares = Shares(release=Fraction(2), partition=Fraction(1), threshold=Fraction(1))
    fanout: int = EVEN_FANOUT
    at: GivenNumbers | None = None

    chooses: ClassVar[bool] = True
    name: ClassVar[str] = "Multi-quantile partition"
    mechanism: ClassVar[str] = "JointExp at each split, noise on the counts of nodes and of cells"
    proof: ClassVar[Proof] = Proof(
        sensitivity=(
            "of the utility of a tuple of cuts, 2 rows_per_person (1 - 1/fanout); of counts, L1 = "
            "rows_per_person (twice that under replace)."
        ),
        because=(
            "the cuts of a node are chosen at once among public lattice points by JointExp, whose "
            "numerical slack is charged; a row is in one node of each level; and on every path the"
            " costs of cuts, of counts and of the cell add up to the whole. Under replace each "
            "selection runs as add-remove at half its share, since a person may leave one node and"
            " enter another."
        ),
        not_covered="the choice of columns, bounds and depth; the time the query takes.",
        source="Gillenwater, Joseph, Kulesza, ICML 2021 (JointExp).",
    )

    def __post_init__(self) -> None:
        if self.at is not None:
            at = read_quantiles(self.at)
            if len(at) >= MOST_FANOUT:
                raise UsageError(
                    f"cuts at {len(at)} quantiles",
                    f"the limit is {MOST_FANOUT - 1}",
                    "Take fewer, and more levels",
                )
            parts = len(at) + 1
            if self.fanout not in (parts, EVEN_FANOUT):
                raise UsageError(
                    f"fanout = {shown(self.fanout)} with {len(at)} quantiles",
                    f"they cut a node into {parts}",
                    "Leave fanout out",
                )
            # Even quantiles are stored as a fan-out.
            settle(self, fanout=parts, at=None if at == _even(parts) else at)
        super().__post_init__()
        if self.fanout > MOST_FANOUT:
            raise UsageError(
                f"fanout = {shown(self.fanout)}",
                f"the limit is {MOST_FANOUT}",
                "Take a smaller one, and more levels",
            )
        settle(self)

    @property
    def parts(self) -> int:
        """Into how many parts a node is split: the fan-out."""
        return self.fanout

    @property
    def stated_proof(self) -> Proof:
        """Why it is private; the sensitivity depends on how close the quantiles lie."""
        if self.at is None:
            return self.proof
        return msgspec.structs.replace(
            self.proof,
            sensitivity="of the utility of a tuple of cuts, 2 rows_per_person (1 - the least gap "
            "between 0, the quantiles and 1); of counts, L1 = rows_per_person (twice that under "
            "replace).",
        )

    def quantiles(self, parts: int) -> tuple[Fraction, ...]:
        """Where a node is cut that has at least so many lattice cells, up to the fan-out."""
        # A node with fewer cells than parts is cut at all of its lattice points.
        if self.at is None or parts < self.fanout:
            return _even(parts)
        return tuple(fraction(q, "a quantile") for q in self.at)

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> Preview:
        """Say how accurate the deepest cells would be."""
        edges = max(self.needs(domain).lattice.shape)
        for units in self.levels(cost).partition:
            inner, epsilon = nested(unit, selection_epsilon(of_units(cost, units)))
            if epsilon <= joint_slack(self.fanout - 1, edges, inner):
                raise UsageError(
                    f"{self.title}: cuts at epsilon {decimal(epsilon)}",
                    "that is less than the numerical slack",
                    "Choose a larger epsilon, or fewer levels",
                )
        return super().preview(domain, unit, cost, rows)

    def slack(self, lattice: Lattice, unit: Unit) -> str:
        """What finite arithmetic may add to the loss of each selection. It is charged."""
        if not self.depth:
            return EXACT
        slack = joint_slack(self.fanout - 1, max(lattice.shape), unit)
        return f"at most {float(slack):.1g} a selection, charged: each runs at that much less"

    def split(self, draft: Draft, nodes: Array, axis: Array, units: int) -> Array:
        """Cut nodes at private quantiles."""
        unit, epsilon = nested(draft.unit, selection_epsilon(of_units(draft.cost, units)))
        cuts = []
        for lower, counts in draft.growth.counts_along(nodes, axis):
            at = self.quantiles(min(self.fanout, len(counts)))
            # The candidates are the lattice points strictly inside the node.
            ranks = Ranks.of_counts(counts, 1, len(counts))
            law = JointLaw(ranks, at, epsilon, unit, distinct=True)
            cuts.append(lower + law.draw(draft.noise))
        # The nodes are disjoint, so their selections together cost as much as one.
        draft.pay(nodes, units)
        return split_at(draft.growth, nodes, axis, cuts)


MultiQuantilePartitioner.examples = (
    MultiQuantilePartitioner("x", depth=1, fanout=3),
    MultiQuantilePartitioner("x", depth=1, at=["1/4", "1/2"]),
)
