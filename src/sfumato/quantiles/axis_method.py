"""Three methods to choose m quantiles of one axis: jointly, by halving, or from noisy counts.

*joint*: JointExp (``mechanisms.jointexp``), one selection. For m = 1 it is the exponential
mechanism.
*recursive*: the middle quantile is selected first, then those below it among the rows below it, and
so on. The nodes of a level hold disjoint rows, so a level costs one selection. Each of the
floor(log2 m) + 1 levels gets an equal share of the cost.
*tree*: the counts of a 16-ary tree over the cells. Each level gets an equal share. Everything after
the noise is post-processing.

Under replace a person may leave one node (or label) and enter another. So selections in nodes use
half their share and the sensitivity of add-remove (``ranks.nested``). An answer with rho uses the
exponential mechanism at epsilon = sqrt(8 rho).

Selections are made on sub-cells (``quantiles.subcells``), so that a cell with many rows is chosen
where a quantile lies inside it. The tree answers with the cell in which its noisy ranks pass the
target.

Source: Gillenwater, Joseph, Kulesza, ICML 2021; Kaplan, Schnapp, Stemmer, ICML 2022 (halving); Hay,
Rastogi, Miklau, Suciu, VLDB 2010 (trees); McKenna, Sheldon, NeurIPS 2020 (permute-and-flip); Cesar,
Rogers, ALT 2021 (zCDP of selections).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from sfumato.arrays import Array
from sfumato.errors import Infeasible, UsageError, shown
from sfumato.mechanisms.jointexp import JointLaw, joint_slack, tuples
from sfumato.mechanisms.noise import Law, count_law
from sfumato.mechanisms.ranks import Ranks, nested
from sfumato.mechanisms.selection import RankLaw
from sfumato.numbers import decimal
from sfumato.privacy.allocation import share
from sfumato.privacy.composition import selection_epsilon
from sfumato.privacy.measures import ZCDP, CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.quantiles import count_tree
from sfumato.quantiles.cells import Cells
from sfumato.quantiles.halving import choose_by_halving
from sfumato.quantiles.subcells import MOST_SUBCELLS, points_of, subcells_for
from sfumato.random.bits import Bits

Method: TypeAlias = Literal["joint", "recursive", "tree"]

# Measured: the mean rank errors of two methods cross between 9 and 16 quantiles, and near 2000,
# where halving takes a second.
MOST_JOINT = 9
MOST_RECURSIVE = 1000
# With pure epsilon, a tree of three levels or fewer is nearer from about 150 quantiles on.
MOST_BESIDE_LOW_TREES = 100
LOW_TREE_CELLS = count_tree.FANOUT**3
# Permute-and-flip looks at every edge.
MOST_FLIPPED_CELLS = 2**12


# Previews are written as JSON, whose keys are older than these names.
JSON_KEYS = {"by_label": "divided", "most_subcells": "finest"}


class AxisMethod(msgspec.Struct, frozen=True, rename=JSON_KEYS):
    """How the quantiles of one axis are chosen and paid for. All of it is public.

    Attributes
    ----------
    method : {"joint", "recursive", "tree"}
    at : tuple of Fraction
        The quantiles.
    cells : int
        Cells of the axis.
    unit : Unit
    cost : PureDP, ApproxDP or ZCDP
        What this axis may spend.
    by_label : bool
        Whether the rows are divided by labels, which are answered side by side.
    snap : bool
        Whether the axis has a step of its own. If so, the value of a cell is its lower edge;
        otherwise it is the nearer end.
    most_subcells : int
        The most sub-cells of a cell.
    """

    method: Method
    at: tuple[Fraction, ...]
    cells: int
    unit: Unit
    cost: CentralMeasure
    by_label: bool
    snap: bool = False
    most_subcells: int = MOST_SUBCELLS

    @property
    def subcells(self) -> int:
        """Sub-cells of each cell."""
        if self.method == "tree":
            return 1
        together = len(self.at) if self.joint else 1
        return subcells_for(
            self.cells,
            self.most_subcells,
            permute_and_flip=self.permute_and_flip,
            together=together,
        )

    @property
    def parts(self) -> int:
        """``subcells`` under its name in version 0.1."""
        return self.subcells

    @property
    def edges(self) -> int:
        """How many edges of sub-cells a selection chooses from."""
        return self.cells * self.subcells + 1

    @property
    def joint(self) -> bool:
        """Whether one selection chooses several quantiles."""
        return self.method == "joint" and len(self.at) > 1

    @property
    def levels(self) -> int:
        """Into how many equal shares the cost is divided."""
        match self.method:
            case "joint":
                return 1
            case "recursive":
                return len(self.at).bit_length()
            case "tree":
                return count_tree.levels_for(self.cells)

    @property
    def shares(self) -> list[tuple[Unit, Fraction]]:
        """Unit and epsilon of the selections of each level."""
        parts = share(self.cost, [Fraction(1)] * self.levels)
        epsilons = [selection_epsilon(part) for part in parts]
        # A single selection over all rows sees every row of a person. Otherwise a person may move
        # from one node or label to another.
        if not self.by_label and self.levels == 1:
            return [(self.unit, epsilon) for epsilon in epsilons]
        return [nested(self.unit, epsilon) for epsilon in epsilons]

    @property
    def laws(self) -> list[Law]:
        """The noise on the counts of each level of the tree."""
        parts = share(self.cost, [Fraction(1)] * self.levels)
        return [count_law(part, self.unit) for part in parts]

    @property
    def permute_and_flip(self) -> bool:
        """Whether permute-and-flip chooses single edges: for pure epsilon on few cells."""
        return self.cells <= MOST_FLIPPED_CELLS and not isinstance(self.cost, ZCDP)

    @property
    def slack(self) -> Fraction:
        """What floating point may add to the loss. The weights are made for that much less."""
        return joint_slack(len(self.at), self.edges, self.unit) if self.joint else Fraction(0)

    def check(self) -> None:
        """Refuse what cannot be answered, before anything is spent."""
        if self.cells < len(self.at):
            raise UsageError(
                f"{len(self.at)} quantiles on {self.cells} lattice points",
                "there are fewer points than quantiles",
                "Ask for fewer quantiles, or take a finer step",
            )
        if self.joint:
            tuples(len(self.at), self.edges)
            _, epsilon = self.shares[0]
            if epsilon <= 2 * self.slack:
                raise UsageError(
                    f"{len(self.at)} quantiles at epsilon {decimal(epsilon)}",
                    "the numerical slack would take most of it",
                    'Choose a larger epsilon, or method="recursive"',
                )
        if self.method == "tree":
            # A law that is too wide to be drawn from raises here.
            for law in self.laws:
                law.half_width(0.5)

    def draw(self, cells: Cells, bits: Bits) -> Array:
        """Choose lattice points: int64 ndarray of shape (m,), in order."""
        if self.method == "tree":
            ranks = count_tree.noisy_ranks(cells, self.laws, bits)
            return count_tree.points_at(ranks, self.at, self.snap)
        edges = self.select(cells.divided(self.subcells), bits)
        return points_of(edges, self.subcells, self.cells, self.snap)

    def select(self, fine: Cells, bits: Bits) -> Array:
        """Choose edges of sub-cells: int64 ndarray of shape (m,), in order."""
        if self.joint:
            return self._joint_law(fine).draw(bits)

        def choose(ranks: Ranks, q: Fraction, _: int, level: int) -> int:
            law = self._law(ranks, q, level)
            return law.flip(bits) if self.permute_and_flip else law.draw(bits)

        return np.array(choose_by_halving(fine, self.at, choose), dtype=np.int64)

    def log_probabilities(self, cells: Cells, chosen: Array) -> Array:
        """ln P of tuples of edges of sub-cells. For audits: the answer depends on true counts.

        The lattice points of an answer are a function of these edges.

        Parameters
        ----------
        cells : Cells
        chosen : int64 ndarray of shape (k, m)

        Returns
        -------
        float64 ndarray of shape (k,).

        Raises
        ------
        UsageError
            For a tree, whose answer is a function of noisy counts.
        """
        if self.method == "tree":
            raise UsageError(
                "the law of a tree's answer", "it has no closed form", "Audit it by its outputs"
            )
        fine = cells.divided(self.subcells)
        if self.joint:
            return self._joint_law(fine).log_probabilities(chosen)
        return np.array([self._log_probability(fine, edges) for edges in chosen.tolist()])

    def _log_probability(self, fine: Cells, chosen: Sequence[int]) -> float:
        """ln P that halving chooses these edges: the sum over its selections."""
        total = 0.0

        def follow(ranks: Ranks, q: Fraction, which: int, level: int) -> int:
            nonlocal total
            law = self._law(ranks, q, level)
            logs = (
                law.flip_log_probabilities() if self.permute_and_flip else law.log_probabilities()
            )
            first_edge = int(ranks.first[0])
            total += float(logs[chosen[which] - first_edge])
            return chosen[which]

        choose_by_halving(fine, self.at, follow)
        return total

    def _joint_law(self, fine: Cells) -> JointLaw:
        unit, epsilon = self.shares[0]
        return JointLaw(fine.edges(0, fine.size), self.at, epsilon, unit)

    def _law(self, ranks: Ranks, q: Fraction, level: int) -> RankLaw:
        unit, epsilon = self.shares[level]
        return RankLaw(ranks, q, epsilon, unit)


def method_for(method: str, quantiles: int, cells: int, *, pure: bool = True) -> Method:
    """Choose a method from public parameters.

    Parameters
    ----------
    method : str
        A method, or "auto": joint where that is possible and best, then recursive, then tree.
    quantiles, cells : int
        How many quantiles are asked for, and how many cells the axis has.
    pure : bool
        Whether the cost is a pure epsilon.
    """
    # A frame, or an array, compares to words by an array.
    match method if isinstance(method, str) else "":
        case "joint" | "recursive" | "tree" as named:
            return named
        case "auto":
            return _best_method(quantiles, cells, pure=pure)
        case _:
            raise UsageError(
                f"method {shown(method)}",
                "it is unknown",
                'Choose "auto", "joint", "recursive" or "tree"',
            )


def _best_method(quantiles: int, cells: int, *, pure: bool) -> Method:
    low_tree = pure and cells <= LOW_TREE_CELLS
    if quantiles > (MOST_BESIDE_LOW_TREES if low_tree else MOST_RECURSIVE):
        return "tree"
    if quantiles > MOST_JOINT:
        return "recursive"
    try:
        tuples(quantiles, cells + 1)
    except Infeasible:
        return "recursive"
    return "joint"
