"""Three ways to choose m edges of one axis: jointly, by halving, or from a tree of noisy counts.

*joint*: JointExp (``mechanisms.jointexp``), one selection; for m = 1 the exponential mechanism.
*recursive*: the middle quantile is selected first, then those below it among the rows below it, and so on. A level's nodes hold
disjoint rows, so that a level costs one selection: each of the floor(log2 m) + 1 levels gets an equal share.
*tree*: counts of a 16-ary tree over the cells, each level with an equal share; rows below an edge are the sum of at most 15 noisy
counts a level. Everything after the noise is post-processing.

Under replace a person may leave one node (or label) and enter another, so selections in nodes use half their share and the
add-remove sensitivity (``ranks.nested``). An answer with rho uses the exponential mechanism at epsilon = sqrt(8 rho).
Source: Gillenwater, Joseph, Kulesza, ICML 2021; Kaplan, Schnapp, Stemmer, ICML 2022 (halving); Hay, Rastogi, Miklau, Suciu,
VLDB 2010 (trees); McKenna, Sheldon, NeurIPS 2020 (permute-and-flip); Cesar, Rogers, ALT 2021 (zCDP of selections).

Selections are made on sub-cells (``quantiles.parts``), so that a cell with many rows is chosen where a quantile lies inside it; the
tree's answer is the cell in which its noisy ranks pass the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from sfumato.arrays import Array
from sfumato.errors import Infeasible, UsageError, shown
from sfumato.mechanisms.jointexp import JointLaw, joint_slack, tuples
from sfumato.mechanisms.noise import Law, add_noise, count_law
from sfumato.mechanisms.ranks import Ranks, nested
from sfumato.mechanisms.selection import RankLaw
from sfumato.numbers import decimal
from sfumato.privacy.allocation import share
from sfumato.privacy.composition import selection_epsilon
from sfumato.privacy.measures import ZCDP, CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.quantiles.parts import MOST_PARTS, divided, parts_for, points_of
from sfumato.random.bits import Bits

Method: TypeAlias = Literal["joint", "recursive", "tree"]
MOST_JOINT, MOST_RECURSIVE = (
    9,
    1000,
)  # measured: mean rank errors cross between 9 and 16, and near 2000, where halving takes a second
MOST_BESIDE_LOW_TREES = (
    100  # for pure epsilon a tree of three levels is nearer from about 150 quantiles on
)
FANOUT = 16
FLIPPED_EDGES = 2**12 + 1  # permute-and-flip looks at every edge

Pick: TypeAlias = Callable[[Ranks, Fraction, int, int], int]
"""Choose an edge: given the edges, the rank among their rows, which quantile it is, and the level of halving."""


@dataclass(frozen=True, repr=False, eq=False)
class Cells:
    """Occupied cells of one axis: positions and counts, int64 ndarrays of shape (occupied,), and the number of all cells."""

    positions: Array
    counts: Array
    size: int

    def divided(self, parts: int) -> Cells:
        """The same rows on the sub-cells of each cell."""
        return Cells(*divided(self.positions, self.counts, parts), self.size * parts)

    def edges(self, lower: int, upper: int) -> Ranks:
        """The edges from ``lower`` to ``upper``, both included, with the rows between them."""
        inside = slice(*np.searchsorted(self.positions, (lower, upper)))
        return Ranks.of_cells(self.positions[inside], self.counts[inside], lower, upper + 1)


@dataclass(frozen=True)
class Way:
    """How the quantiles of one axis are chosen and paid for: public.

    Attributes
    ----------
    method : {"joint", "recursive", "tree"}
    at : tuple of Fraction
    cells : int
        Of the axis.
    unit : Unit
    cost : PureDP, ApproxDP or ZCDP
        What this axis may spend.
    divided : bool
        Whether the rows are divided by labels, which are answered side by side.
    snap : bool
        Whether the axis has a step of its own: the value of a cell is then its lower edge, else its nearer end.
    finest : int
        The most sub-cells of a cell.
    """

    method: Method
    at: tuple[Fraction, ...]
    cells: int
    unit: Unit
    cost: CentralMeasure
    divided: bool
    snap: bool = False
    finest: int = MOST_PARTS

    @property
    def parts(self) -> int:
        """Sub-cells of each cell."""
        if self.method == "tree":
            return 1
        return parts_for(
            self.cells, self.finest, flips=self.flips, together=len(self.at) if self.joint else 1
        )

    @property
    def edges(self) -> int:
        """From how many edges of sub-cells a selection chooses."""
        return self.cells * self.parts + 1

    @property
    def joint(self) -> bool:
        """Whether several quantiles are chosen in one selection."""
        return self.method == "joint" and len(self.at) > 1

    @property
    def levels(self) -> int:
        """Into how many equal shares the cost is divided."""
        if self.method == "recursive":
            return len(self.at).bit_length()
        return (
            max(1, math.ceil(math.log(self.cells, FANOUT) - 1e-9)) if self.method == "tree" else 1
        )

    @property
    def shares(self) -> list[tuple[Unit, Fraction]]:
        """Unit and epsilon of the selections of each level."""
        alone = not self.divided and self.levels == 1
        found = [selection_epsilon(part) for part in share(self.cost, [Fraction(1)] * self.levels)]
        return [(self.unit, epsilon) if alone else nested(self.unit, epsilon) for epsilon in found]

    @property
    def laws(self) -> list[Law]:
        """The noise on the counts of each level of the tree."""
        return [
            count_law(part, self.unit) for part in share(self.cost, [Fraction(1)] * self.levels)
        ]

    @property
    def flips(self) -> bool:
        """Whether single edges are chosen by permute-and-flip: for pure epsilon on few edges."""
        return self.cells < FLIPPED_EDGES and not isinstance(self.cost, ZCDP)

    @property
    def slack(self) -> Fraction:
        """What finite arithmetic may add to the loss; the weights are made for as much less."""
        return joint_slack(len(self.at), self.edges, self.unit) if self.joint else Fraction(0)

    def check(self) -> None:
        """Refuse what cannot be answered, before anything is spent."""
        if self.cells < len(self.at):
            asked = f"{len(self.at)} quantiles on {self.cells} lattice points"
            raise UsageError(
                asked,
                "there are fewer points than quantiles",
                "Ask for fewer quantiles, or take a finer step",
            )
        if self.joint:
            tuples(len(self.at), self.edges)
            if self.shares[0][1] <= 2 * self.slack:
                asked = f"{len(self.at)} quantiles at epsilon {decimal(self.shares[0][1])}"
                raise UsageError(
                    asked,
                    "the numerical slack would take most of it",
                    'Choose a larger epsilon, or method="recursive"',
                )
        if self.method == "tree":
            for law in self.laws:
                law.half_width(0.5)

    def draw(self, cells: Cells, bits: Bits) -> Array:
        """Choose lattice points: int64 ndarray of shape (m,), in order."""
        if self.method == "tree":
            return _from_tree(self, cells, bits)
        return points_of(
            self.select(cells.divided(self.parts), bits), self.parts, self.cells, self.snap
        )

    def select(self, fine: Cells, bits: Bits) -> Array:
        """Choose edges of sub-cells: int64 ndarray of shape (m,), in order."""
        if self.joint:
            unit, epsilon = self.shares[0]
            return JointLaw(fine.edges(0, fine.size), self.at, epsilon, unit).draw(bits)

        def pick(ranks: Ranks, q: Fraction, _: int, level: int) -> int:
            law = self._law(ranks, q, level)
            return law.flip(bits) if self.flips else law.draw(bits)

        return np.array(halved(fine, self.at, pick), dtype=np.int64)

    def log_probabilities(self, cells: Cells, chosen: Array) -> Array:
        """ln P of tuples of edges of sub-cells, int64 ndarray of shape (k, m). For audits: it holds true counts.

        The lattice points of the answer are a function of these edges.

        Raises
        ------
        UsageError
            For a tree, whose answer is a function of noisy counts.
        """
        if self.method == "tree":
            raise UsageError(
                "the law of a tree's answer", "it has no closed form", "Audit it by its outputs"
            )
        fine = cells.divided(self.parts)
        if self.joint:
            unit, epsilon = self.shares[0]
            return JointLaw(fine.edges(0, fine.size), self.at, epsilon, unit).log_probabilities(
                chosen
            )
        return np.array([self._log_probability(fine, row) for row in chosen.tolist()])

    def _log_probability(self, cells: Cells, chosen: Sequence[int]) -> float:
        total = 0.0

        def follow(ranks: Ranks, q: Fraction, which: int, level: int) -> int:
            nonlocal total
            law = self._law(ranks, q, level)
            logs = law.flip_log_probabilities() if self.flips else law.log_probabilities()
            total += float(logs[chosen[which] - int(ranks.first[0])])
            return chosen[which]

        halved(cells, self.at, follow)
        return total

    def _law(self, ranks: Ranks, q: Fraction, level: int) -> RankLaw:
        unit, epsilon = self.shares[level]
        return RankLaw(ranks, q, epsilon, unit)


def method_for(method: str, quantiles: int, cells: int, *, pure: bool = True) -> Method:
    """Choose a method by public parameters: jointly while that is possible and best, then by halving, then from a tree."""
    match method:
        case "joint" | "recursive" | "tree":
            return method
        case "auto":
            if quantiles > (
                MOST_BESIDE_LOW_TREES if pure and cells <= FANOUT**3 else MOST_RECURSIVE
            ):
                return "tree"
            if quantiles > MOST_JOINT:
                return "recursive"
            try:
                tuples(quantiles, cells + 1)
            except Infeasible:
                return "recursive"
            return "joint"
        case _:
            raise UsageError(
                f"method {shown(method)}",
                "it is unknown",
                'Choose "auto", "joint", "recursive" or "tree"',
            )


def halved(cells: Cells, at: Sequence[Fraction], pick: Pick) -> list[int]:
    """Choose the middle quantile, then those on either side of it, each among the rows and edges on its side."""
    chosen = [0] * len(at)

    def choose(first: int, stop: int, lower: int, upper: int, level: int) -> None:
        if first >= stop:
            return
        middle = (first + stop) // 2
        below = at[first - 1] if first else Fraction(0)
        above = at[stop] if stop < len(at) else Fraction(1)
        chosen[middle] = pick(
            cells.edges(lower, upper), (at[middle] - below) / (above - below), middle, level
        )
        choose(first, middle, lower, chosen[middle], level + 1)
        choose(middle + 1, stop, chosen[middle], upper, level + 1)

    choose(0, len(at), 0, cells.size, 0)
    return chosen


def _from_tree(way: Way, cells: Cells, bits: Bits) -> Array:
    """Add noise to every count of a 16-ary tree, add up the rows below each edge, and take the points nearest to the ranks."""
    laws = way.laws
    size = FANOUT ** len(laws)
    counts = np.zeros(size, np.int64)
    counts[cells.positions] = cells.counts
    below, total = np.zeros(1), 0.0
    for level, law in enumerate(laws, 1):
        true = counts.reshape(FANOUT**level, -1).sum(axis=1)
        noisy = add_noise(true, law, bits).reshape(-1, FANOUT).astype(float)
        total = float(noisy.sum()) if level == 1 else total
        below = (below[:, None] + np.cumsum(noisy, axis=1) - noisy).reshape(-1)
    ranks = np.append(below, total)[: way.cells + 1]
    ranks[-1] = total
    rising = (np.maximum.accumulate(ranks) + np.minimum.accumulate(ranks[::-1])[::-1]) / 2
    targets = np.array([float(q) for q in way.at]) * total
    if way.snap:
        passed = np.clip(np.searchsorted(rising, targets, side="right") - 1, 0, way.cells - 1)
        return np.maximum.accumulate(passed).astype(np.int64)
    right = np.clip(np.searchsorted(rising, targets), 1, way.cells)
    nearer = targets - rising[right - 1] < rising[right] - targets
    return np.maximum.accumulate(np.where(nearer, right - 1, right)).astype(np.int64)
