"""Three methods to choose m quantiles of one axis: jointly, by halving, or from noisy counts.

*To choose by halving* (``choose_by_halving``): the middle quantile first, then those on either side
of it.

*The methods* (``AxisMethod``).

*joint*: one selection. For m = 1 it is the exponential mechanism. For more it is given a noisy
number of rows (``mechanisms.joint_total``), which a part of the cost pays for. Under replace
without labels, and in releases whose ranks are not paid for, it is JointExp
(``mechanisms.jointexp``).
*recursive*: the middle quantile is selected first, then those below it among the rows below it, and
so on. The nodes of a level hold disjoint rows, so a level costs one selection. Each of the
floor(log2 m) + 1 levels gets an equal share of the cost.
*tree*: the counts of a 16-ary tree over the cells. Each level gets an equal share. Everything after
the noise is post-processing.

Under replace a person may leave one node (or label) and enter another. So selections in nodes use
half their share and the sensitivity of add-remove (``selection.nested``). An answer with rho uses
the exponential mechanism at epsilon = sqrt(8 rho).

After a selection, a part of the cost pays for counts of the rows between the chosen values
(``ranks.PaidRanks``).

Selections are made on sub-cells (``cells.deal``), so that a cell with many rows is chosen where a
quantile lies inside it. The tree answers with the cell in which its noisy ranks pass the target.

Source: Gillenwater, Joseph, Kulesza, ICML 2021; Kaplan, Schnapp, Stemmer, ICML 2022 (halving); Hay,
Rastogi, Miklau, Suciu, VLDB 2010 (trees); McKenna, Sheldon, NeurIPS 2020 (permute-and-flip); Cesar,
Rogers, ALT 2021 (zCDP of selections).

*How far the rank of a chosen edge may be from the rank asked for* (``half_width``): bounds for any
data.

Let the best of N outcomes have utility M, and let a be the weight of one unit of utility. An
outcome that is worse by t has at most e^(-a t) of the best one's weight. So a selection falls short
of M by more than t with probability at most N e^(-a t). With confidence 1 - alpha it falls short by
at most (ln N + ln 1/alpha) / a.

*One edge*: the rank error is |n(o) - q n|, a = epsilon / (2 D), and N is the number of edges of
sub-cells. Permute-and-flip is never worse.
*Jointly*: u <= -2 |d_j| for each j, so all ranks together are within half of that bound. N is the
number of tuples.
*Jointly, given a noisy number of rows*: d_j is (1 - q) times the errors of the gaps below less q
times those above. So |d_j| <= max(q, 1 - q) |u|, where u adds up the errors of the gaps. The best
pair of a tuple and a number t falls short by the distance from n to the nearest t, which the noise
on the number of rows bounds. N is the number of tuples times that of numbers t.
*By halving*: the error of a node is added to those of the two edges that bound it, in shares that
sum to one. So each level adds at most the bound of one selection.
*Tree*: if S bounds the error of all noisy ranks at once, the chosen edge is within 2 S.

A cell with #{< cell} rows below it and #{<= cell} rows in or below it has every rank between the
two. The bounds are on the distance of that interval from the rank asked for, for the cell in which
the chosen edge lies. They exclude the additional error from sub-cell width (``cells``): half the
rows of a sub-cell near the target, w / 2T for a cell of w rows. Where the axis has no step, values
between cells are rounded to the nearer end of their cell. The bounds hold for the worst data. Where
values lie evenly around the quantiles, the ln N is not paid, and the error is typically
ln(1/alpha) / a.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Literal, TypeAlias

import msgspec
import numpy as np

from sfumato.basics import Array, decimal
from sfumato.errors import UsageError, shown
from sfumato.mechanisms import (
    DiscreteLaplace,
    JointLaw,
    JointTotalLaw,
    Law,
    RankLaw,
    Ranks,
    add_noise,
    contrast_half_width,
    count_law,
    joint_sensitivity,
    joint_slack,
    nested,
    rank_sensitivity,
    step_of_totals,
    total_slack,
    totals_around,
    tuples,
)
from sfumato.privacy import ZCDP, CentralMeasure, Unit, selection_epsilon, share
from sfumato.questions.quantiles.cells import (
    MOST_SUBCELLS,
    Cells,
    can_select,
    points_of,
    subcells_for,
)
from sfumato.questions.quantiles.ranks import (
    FANOUT,
    GapNoise,
    RankNoise,
    TreeNoise,
    counted_gaps,
    gaps_at,
    noisy_counts,
    noisy_gaps,
    points_at,
    ranks_of,
    rows_between,
)
from sfumato.random.bits import Bits

# --- halving --------------------------------------------------------------------------------------

# A function that chooses an edge.
#
# Its arguments are the edges, the share of their rows that shall lie below the chosen one, the
# index of the quantile, and the level of halving.
Choose: TypeAlias = Callable[[Ranks, Fraction, int, int], int]


def choose_by_halving(cells: Cells, at: Sequence[Fraction], choose: Choose) -> list[int]:
    """Choose the middle quantile, then those below it among the rows and edges below, and so on.

    Each level's selections see disjoint rows: a selection sees the rows between the two edges that
    were chosen next to it on earlier levels.

    Returns
    -------
    list of int
        An edge for each quantile, not decreasing.
    """
    chosen = [0] * len(at)

    def visit(first: int, stop: int, lower: int, upper: int, level: int) -> None:
        if first >= stop:
            return
        middle = (first + stop) // 2
        rank = rank_within(at, first, stop)
        edge = choose(cells.edges(lower, upper), rank, middle, level)
        chosen[middle] = edge
        visit(first, middle, lower, edge, level + 1)
        visit(middle + 1, stop, edge, upper, level + 1)

    visit(0, len(at), 0, cells.size, 0)
    return chosen


def rank_within(at: Sequence[Fraction], first: int, stop: int) -> Fraction:
    """Return the rank of the middle quantile of ``at[first:stop]``, among the rows of its node.

    The node holds the rows between the quantiles ``at[first - 1]`` and ``at[stop]``.
    """
    below = at[first - 1] if first else Fraction(0)
    above = at[stop] if stop < len(at) else Fraction(1)
    return (at[(first + stop) // 2] - below) / (above - below)


def worst_ranks(at: Sequence[Fraction], levels: int) -> list[Fraction]:
    """For each level of halving, the rank that is farthest from the middle, from 1/2 up."""
    worst = [Fraction(1, 2)] * levels

    def visit(first: int, stop: int, level: int) -> None:
        if first >= stop:
            return
        rank = rank_within(at, first, stop)
        worst[level] = max(worst[level], rank, 1 - rank)
        middle = (first + stop) // 2
        visit(first, middle, level + 1)
        visit(middle + 1, stop, level + 1)

    visit(0, len(at), 0)
    return worst


# --- the methods ----------------------------------------------------------------------------------

Method: TypeAlias = Literal["joint", "recursive", "tree"]

# Measured: the mean rank errors of two methods cross between 9 and 16 quantiles.
MOST_JOINT = 9
# A joint selection that knows about how many rows there are is nearer than halving, as far as
# doubles can tell its tuples apart.
MOST_JOINT_WITH_ROWS = 40


# Previews are written as JSON, whose keys are older than these names.
class AxisMethod(
    msgspec.Struct, frozen=True, rename={"by_label": "divided", "most_subcells": "finest"}
):
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
    rank_cost : PureDP, ApproxDP, ZCDP or None
        What the axis may spend on counts of the rows between the chosen values
        (``quantiles.paid_ranks``). None: nothing, as trees and releases of before.
    """

    method: Method
    at: tuple[Fraction, ...]
    cells: int
    unit: Unit
    cost: CentralMeasure
    by_label: bool
    snap: bool = False
    most_subcells: int = MOST_SUBCELLS
    rank_cost: CentralMeasure | None = None

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
                # An exact power of 16 must not get one level too many because the logarithm is
                # rounded up.
                return max(1, math.ceil(math.log(self.cells, FANOUT) - 1e-9))

    @property
    def with_total(self) -> bool:
        """Whether a joint selection is given a noisy number of rows.

        It makes the selection nearer, by more than it costs, and is not published. Selections under
        replace, and those of releases whose ranks are not paid for, have JointExp's law.
        """
        return (
            self.joint and self.rank_cost is not None and rows_come_or_go(self.unit, self.by_label)
        )

    @property
    def _parts(self) -> tuple[CentralMeasure | None, CentralMeasure]:
        """What the noisy number of rows costs, if there is one, and what is left for selections."""
        if not self.with_total:
            return None, self.cost
        # Measured on one row a cell, as are the numbers tried beside the noisy one.
        of_choice = Fraction(19 if len(self.at) <= MOST_JOINT else 9)
        total, left = share(self.cost, [Fraction(1), of_choice])
        return total, left

    @property
    def total_law(self) -> Law | None:
        """The noise on the number of rows that a joint selection is given."""
        cost, _ = self._parts
        return None if cost is None else count_law(cost, self.unit)

    @property
    def total_step(self) -> int:
        """The step between the numbers of rows from which a joint selection chooses."""
        unit, epsilon = self.shares[0]
        return step_of_totals(len(self.at), epsilon, unit)

    @property
    def totals_beside(self) -> int:
        """How many numbers of rows it may choose on either side of the noisy one."""
        # Up to 9 quantiles several numbers are nearer; for more, each of them takes long.
        return 7 if len(self.at) <= MOST_JOINT else 0

    @property
    def shares(self) -> list[tuple[Unit, Fraction]]:
        """Unit and epsilon of the selections of each level."""
        parts = share(self._parts[1], [Fraction(1)] * self.levels)
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
    def rank_noise(self) -> RankNoise:
        """The noise of the ranks that come with the values.

        Raises
        ------
        UsageError
            If nothing pays for them.
        """
        if self.method == "tree":
            return TreeNoise(tuple(self.laws), self.cells + 1)
        if self.rank_cost is None:
            raise UsageError(
                "ranks of quantiles", "nothing paid for them", "Release the quantiles again"
            )
        return GapNoise(count_law(self.rank_cost, self.unit))

    @property
    def permute_and_flip(self) -> bool:
        """Whether permute-and-flip chooses single edges: for pure epsilon on few cells."""
        # It looks at every edge.
        return self.cells <= 2**12 and not isinstance(self.cost, ZCDP)

    @property
    def slack(self) -> Fraction:
        """What floating point may add to the loss. The weights are made for that much less."""
        if not self.joint:
            return Fraction(0)
        slack = total_slack if self.with_total else joint_slack
        return slack(len(self.at), self.edges, self.unit)

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
            if self.total_law is not None:
                self.total_law.half_width(0.5)
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
        elif self.rank_cost is not None:
            count_law(self.rank_cost, self.unit).half_width(0.5)

    def draw_with_ranks(self, cells: Cells, bits: Bits) -> tuple[Array, Array]:
        """Choose lattice points, then count the rows between them.

        Returns
        -------
        points : int64 ndarray of shape (m,)
            In order.
        gaps : int64 ndarray of shape (m + 1,)
            Noisy numbers of rows between the ends of the axis and the points; 0 where points are
            equal and the axis has no step.
        """
        if self.method == "tree":
            ranks = ranks_of(noisy_counts(cells, self.laws, bits), cells.size)
            points = points_at(ranks, self.at, self.snap)
            return points, gaps_at(ranks, points, self.at, self.snap)
        fine = cells.divided(self.subcells)
        edges = self.select(fine, bits)
        points = points_of(edges, self.subcells, self.cells, self.snap)
        return points, self.count_gaps(fine, edges, bits)

    def count_gaps(self, fine: Cells, edges: Array, bits: Bits) -> Array:
        """Count the rows between chosen edges of sub-cells with noise: int64 ndarray (m + 1,)."""
        noise = self.rank_noise
        assert isinstance(noise, GapNoise)
        points = points_of(edges, self.subcells, self.cells, self.snap)
        counted = counted_gaps(points, self.cells, self.snap)
        # The edges are paid for, so the gaps between them are public and hold disjoint rows.
        return noisy_gaps(rows_between(fine, self.rank_edges(edges)), counted, noise.law, bits)

    def rank_edges(self, edges: Array) -> Array:
        """The edges of sub-cells whose ranks are released: int64 ndarray like ``edges``.

        Without a step they are the published values themselves. With one they are the chosen edges,
        which may lie among the tied rows of a value.
        """
        if self.snap:
            return edges
        return points_of(edges, self.subcells, self.cells, self.snap) * self.subcells

    def select(self, fine: Cells, bits: Bits) -> Array:
        """Choose edges of sub-cells: int64 ndarray of shape (m,), in order."""
        if self.joint:
            # The number of rows is drawn first: the law of the selection is the one that is given
            # it.
            total = None
            if self.total_law is not None:
                rows = np.array([fine.counts.sum()], np.int64)
                total = int(add_noise(rows, self.total_law, bits)[0])
            return self._joint_law(fine, total).draw(bits)

        def choose(ranks: Ranks, q: Fraction, _: int, level: int) -> int:
            law = self._law(ranks, q, level)
            return law.flip(bits) if self.permute_and_flip else law.draw(bits)

        return np.array(choose_by_halving(fine, self.at, choose), dtype=np.int64)

    def log_probabilities(self, cells: Cells, chosen: Array, total: int | None = None) -> Array:
        """ln P of tuples of edges of sub-cells. For audits: the answer depends on true counts.

        The lattice points of an answer are a function of these edges.

        Parameters
        ----------
        cells : Cells
        chosen : int64 ndarray of shape (k, m)
        total : int or None
            The noisy number of rows, if ``with_total``: the law is the one that is given it.

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
            return self._joint_law(fine, total).log_probabilities(chosen)
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
            total += float(logs[chosen[which] - int(ranks.first[0])])
            return chosen[which]

        choose_by_halving(fine, self.at, follow)
        return total

    def _joint_law(self, fine: Cells, total: int | None) -> JointLaw | JointTotalLaw:
        """Return the law of a joint selection.

        Parameters
        ----------
        fine : Cells
        total : int or None
            The noisy number of rows; None: the selection is given none.
        """
        unit, epsilon = self.shares[0]
        ranks = fine.edges(0, fine.size)
        if total is None:
            return JointLaw(ranks, self.at, epsilon, unit)
        totals = totals_around(total, self.totals_beside, self.total_step)
        return JointTotalLaw(ranks, self.at, totals, epsilon, unit)

    def _law(self, ranks: Ranks, q: Fraction, level: int) -> RankLaw:
        unit, epsilon = self.shares[level]
        return RankLaw(ranks, q, epsilon, unit)


def rows_come_or_go(unit: Unit, by_label: bool) -> bool:
    """Tell whether a selection sees a person's rows come or go, and not replaced by others.

    Under replace a person may leave one label and enter another: see ``selection.nested``.
    """
    return by_label or unit.neighbours == "add-remove"


def method_for(
    method: str,
    quantiles: int,
    cells: int,
    *,
    pure: bool = True,
    most_joint: int = MOST_JOINT,
) -> Method:
    """Choose a method from public parameters.

    Parameters
    ----------
    method : str
        A method, or "auto": joint where that is possible and best, then recursive, then tree.
    quantiles, cells : int
        How many quantiles are asked for, and how many cells the axis has.
    pure : bool
        Whether the cost is a pure epsilon.
    most_joint : int
        Up to how many quantiles a joint selection is the best.
    """
    # A frame, or an array, compares to words by an array.
    match method if isinstance(method, str) else "":
        case "joint" | "recursive" | "tree" as named:
            return named
        case "auto":
            # With pure epsilon, a tree of three levels or fewer is nearer from about 150 quantiles
            # on. Others are near 2000, where halving takes a second.
            if quantiles > (100 if pure and cells <= FANOUT**3 else 1000):
                return "tree"
            is_joint = quantiles <= most_joint and can_select(quantiles, cells + 1)
            return "joint" if is_joint else "recursive"
        case _:
            raise UsageError(
                f"method {shown(method)}",
                "it is unknown",
                'Choose "auto", "joint", "recursive" or "tree"',
            )


# --- errors of ranks ------------------------------------------------------------------------------


def half_width(method: AxisMethod, alpha: float, together: int = 0) -> int:
    """Return rows by which the rank of a quantile may be off.

    Parameters
    ----------
    method : AxisMethod
    alpha : float
        With probability 1 - alpha the rank is off by no more.
    together : int
        0: for each quantile by itself. Else: for all quantiles of so many axes and labels at once.
    """
    answers = max(together, 1)
    match method.method:
        case "joint":
            # One selection bounds all ranks of an axis, so only axes and labels divide alpha.
            return math.ceil(_joint(method, alpha / answers))
        case "recursive":
            selections = len(method.at) * answers if together else method.levels
            ranks = worst_ranks(method.at, method.levels)
            return math.ceil(sum(_single(method, q, alpha / selections) for q in ranks))
        case "tree":
            # It is 2 S, where S holds at every edge at once. A noisy rank adds up at most 15 counts
            # a level. Its target adds up the 16 of the total, each with a weight of at most 1.
            ranks_together = len(method.at) * answers if together else 1
            alpha_of_edge = alpha / ranks_together / (method.cells + 1)
            terms = np.array([FANOUT + (FANOUT - 1) * method.levels], dtype=float)
            widest = max(method.laws, key=lambda law: law.variance)
            return math.ceil(2 * float(widest.sum_half_width(terms, alpha_of_edge)[0]))


def typical(method: AxisMethod, alpha: float) -> float:
    """Rows by which one rank is typically off, where values lie evenly around the quantile."""
    if method.method == "tree":
        # A rank adds up from 0 to 15 nodes of a level, half of 15 on average.
        variance = math.fsum(15 * law.variance / 2 for law in method.laws)
        return 2 * math.sqrt(variance)
    unit, epsilon = method.shares[0]
    if method.with_total:
        # The errors of the gaps are nearly independent Laplace draws.
        law = DiscreteLaplace(2 * unit.rows_per_person / (epsilon - method.slack))
        gaps = len(method.at) + 1
        within = (
            contrast_half_width(law, j, gaps - j, q, alpha) for j, q in enumerate(method.at, 1)
        )
        return float(max(within))
    if method.method == "joint" and len(method.at) > 1:
        per_unit = float(joint_sensitivity(method.at, unit) / epsilon)
        return math.log(1 / alpha) * per_unit
    each_level = (
        math.log(1 / alpha) * float(2 * rank_sensitivity(q, unit) / epsilon)
        for q in worst_ranks(method.at, method.levels)
    )
    return sum(each_level) / 2


def _joint(method: AxisMethod, alpha: float) -> float:
    if len(method.at) == 1:
        return _single(method, method.at[0], alpha)
    if method.total_law is not None:
        return _joint_with_total(method, method.total_law, alpha)
    unit, epsilon = method.shares[0]
    left = epsilon - method.slack
    choices = math.log(tuples(len(method.at), method.edges))
    per_unit = float(joint_sensitivity(method.at, unit) / left)
    return (choices - math.log(alpha)) * per_unit


def _joint_with_total(method: AxisMethod, law: Law, alpha: float) -> float:
    unit, epsilon = method.shares[0]
    per_unit = float(2 * unit.rows_per_person / (epsilon - method.slack))
    totals = 2 * method.totals_beside + 1
    choices = math.log(tuples(len(method.at), method.edges) * totals)
    # Half of alpha goes to the number of rows, and half to the selection.
    reach = method.totals_beside * method.total_step
    nearest = max(method.total_step / 2 if reach else 0, law.half_width(alpha / 2) - reach)
    short = (choices - math.log(alpha / 2)) * per_unit
    farthest = max(max(q, 1 - q) for q in method.at)
    return float(farthest) * (short + nearest)


def _single(method: AxisMethod, q: Fraction, alpha: float) -> float:
    unit, epsilon = method.shares[0]
    choices = math.log(method.edges)
    per_unit = float(2 * rank_sensitivity(q, unit) / epsilon)
    return (choices - math.log(alpha)) * per_unit
