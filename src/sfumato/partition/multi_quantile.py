"""The multi-quantile partition: nodes are cut at several private quantiles at once."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import msgspec

from sfumato.answers.preview import Preview
from sfumato.basics.numbers import Array, Exactly, GivenNumbers, decimal, fraction, settle
from sfumato.domain.domain import Domain
from sfumato.domain.lattice import Lattice
from sfumato.errors import UsageError, shown
from sfumato.mechanisms.jointexp import JointLaw, joint_slack
from sfumato.mechanisms.selection import Ranks, nested, read_quantiles
from sfumato.partition.draft import Draft
from sfumato.partition.fixed_depth import FixedDepthTree
from sfumato.partition.tree.splitting import split_at
from sfumato.privacy.allocation import Shares, of_units
from sfumato.privacy.guarantee import EXACT, Proof
from sfumato.privacy.measures import CentralMeasure, selection_epsilon
from sfumato.privacy.unit import Unit

MOST_FANOUT = 16
EVEN_FANOUT = 4
"""The fan-out where none is stated."""


def _even(parts: int) -> tuple[Fraction, ...]:
    """The quantiles that cut a node into equally many rows."""
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
            self._read_at(self.at)
        super().__post_init__()
        if self.fanout > MOST_FANOUT:
            raise UsageError(
                f"fanout = {shown(self.fanout)}",
                f"the limit is {MOST_FANOUT}",
                "Take a smaller one, and more levels",
            )
        settle(self)

    def _read_at(self, given: Sequence[Exactly]) -> None:
        """Check the quantiles and store them exactly; even ones are stored as a fan-out."""
        at = read_quantiles(given)
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
        msgspec.structs.force_setattr(self, "fanout", parts)
        msgspec.structs.force_setattr(self, "at", None if at == _even(parts) else at)

    @property
    def parts(self) -> int:
        """Into how many parts a node is split: the fan-out."""
        return self.fanout

    @property
    def stated_proof(self) -> Proof:
        """Why it is private; the sensitivity depends on how close the quantiles lie."""
        if self.at is None:
            return self.proof
        uneven = (
            "of the utility of a tuple of cuts, 2 rows_per_person (1 - the least gap between 0, the"
            " quantiles and 1); of counts, L1 = rows_per_person (twice that under replace)."
        )
        return msgspec.structs.replace(self.proof, sensitivity=uneven)

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
        each = joint_slack(self.fanout - 1, max(lattice.shape), unit)
        return f"at most {float(each):.1g} a selection, charged: each runs at that much less"

    def split(self, draft: Draft, nodes: Array, axis: Array, units: int) -> Array:
        """Cut nodes at private quantiles."""
        unit, epsilon = nested(draft.unit, selection_epsilon(of_units(draft.cost, units)))
        cuts = []
        for lower, counts in draft.growth.counts_along(nodes, axis):
            parts = min(self.fanout, len(counts))
            at = self.quantiles(parts)
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
