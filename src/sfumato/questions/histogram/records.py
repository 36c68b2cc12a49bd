"""Histograms with ``records``: bins that hold about equally many rows.

How many bins there are follows from a noisy number of rows. Private selections choose where they
end. Noisy counts then say how many rows each bin holds.

With ``records=K`` and a noisy number of rows N (or a public one) there are k = N / K bins, and at
least 2. The axis is cut at the edge whose rank among the rows is nearest to floor(k / 2) / k. Each
side is then cut in the same way, until every part is one bin: a tree of ceil(log2 k) levels. The
exponential mechanism chooses each cut among the public lattice points strictly inside its node. So
every bin has at least one lattice cell, and a node with fewer cells than bins gets as many bins as
it has cells.

Guarantee: the three parts together spend exactly the cost.
Holds because
    *Shares.* Rows 1/20 (nothing where they are stated), cuts 9/20, counts the rest: whole units
    that add up to the cost. The cuts' units are shared equally by the levels. How many levels there
    are follows from the noisy number of rows, which is paid for.
    *A level costs one selection.* Its nodes hold disjoint rows and follow from cuts that are paid
    for. A person with r_i rows in node i moves the utilities there by r_i / r of the sensitivity;
    the r_i add up to r at most (under rho the squares of r_i / r add up to 1 at most). Under
    replace a person may leave one node and enter another, so selections run as add-remove at half
    their share (``selection.nested``): what leaves and what enters are r rows each at most.
    *Counts.* Given the edges, the bins are disjoint and public; the counts run at their own share
    and the unit's own sensitivity, 2r in L1 under replace.
    *Adaptive composition.* Each part is private whatever the earlier ones showed, so costs add up:
    basic composition for epsilon, Bun and Steinke 2016, Lemma 2.3, for rho.
Not covered: the time a selection takes depends on the data.
Source: McSherry, Talwar, FOCS 2007; Kaplan, Schnapp, Stemmer, ICML 2022 (quantiles by halving);
Cesar, Rogers, ALT 2021 (rho).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import msgspec
import numpy as np

from sfumato.answers import CountsPreview
from sfumato.basics import Array, split
from sfumato.domain import Cube, Domain, EdgesAxis, GridAxis, Lattice, fine_lattice
from sfumato.errors import UsageError
from sfumato.mechanisms import (
    DiscreteLaplace,
    Law,
    RankLaw,
    Ranks,
    add_noise,
    count_law,
    nested,
    rank_sensitivity,
)
from sfumato.privacy import (
    CentralMeasure,
    Event,
    Proof,
    Unit,
    laplace_event,
    of_units,
    selection_epsilon,
    sum_of,
    units_of,
    without_delta,
    worst_event,
)
from sfumato.random.bits import Bits

MOST_BINS = 2**12
# Shares of the cost: of the number of rows, the cuts, the counts.
WEIGHTS = [Fraction(1, 20), Fraction(9, 20), Fraction(1, 2)]
ALPHA = 0.05

PROOF = Proof(
    sensitivity="of the number of rows and of the bins' counts, L1 = rows_per_person (twice that "
    "under replace); of rows below a cut "
    "minus q times its node's rows, rows_per_person max(q, 1 - q).",
    because="cuts are chosen among public lattice points by exact selections, a level's nodes "
    "hold disjoint rows, bins follow from cuts "
    "that are paid for, and the costs of rows, cuts and counts add up to the whole. Under replace "
    "selections run as add-remove at half "
    "their share.",
    not_covered="the choice of columns, bounds and records per bin; the time the query takes.",
    source="McSherry, Talwar, FOCS 2007; Kaplan, Schnapp, Stemmer, ICML 2022; Cesar, Rogers, ALT "
    "2021.",
)

# Choose the cut of a node.
#
# Its arguments are the lower and the upper edge of the node, the number of its bins below the cut,
# the number of all its bins, and its level.
Cut = Callable[[int, int, int, int, int], int]
# The cells that hold rows, ascending, and their numbers of rows: true data.
Occupied = tuple[Array, Array]


class RecordBins(msgspec.Struct, frozen=True):
    """How an axis is divided into bins of about equally many rows, and what each part may spend.

    All of it is public.

    Attributes
    ----------
    axis : GridAxis
    records : int
        The number of rows that a bin should hold.
    stated : int or None
        The number of all rows, if it is public.
    unit : Unit
    cost : PureDP or ZCDP
    """

    axis: GridAxis
    records: int
    stated: int | None
    unit: Unit
    cost: CentralMeasure

    @property
    def units(self) -> tuple[int, int, int]:
        """The shares of the number of rows, the cuts and the counts, in whole units of the cost.

        Together they are exactly the cost.
        """
        weights = WEIGHTS if self.stated is None else [Fraction(0), *WEIGHTS[1:]]
        rows, cuts, counts = split(units_of(self.cost), weights)
        # Every level of cuts needs a unit, and so does a number of rows that was not stated. The
        # largest number of bins has twelve levels.
        if cuts < 12 or (self.stated is None and not rows):
            raise UsageError(
                f"bins by records at {self.cost}",
                "the levels of cuts would have no share of it",
                "Choose a larger cost",
            )
        return rows, cuts, counts

    @property
    def rows_law(self) -> Law | None:
        """The noise on the number of rows. None: the number was stated."""
        if self.stated is not None:
            return None
        return count_law(of_units(self.cost, self.units[0]), self.unit)

    @property
    def law(self) -> Law:
        """The noise on each count."""
        return count_law(of_units(self.cost, self.units[2]), self.unit)

    @property
    def mechanism(self) -> str:
        """What adds the randomness, in words. Releases store this sentence."""
        rows = "" if self.rows_law is None else f"{self.rows_law} on the number of rows; "
        return f"{rows}the exponential mechanism at each cut; {self.law} on each count"

    @property
    def event(self) -> Event:
        """What the number of rows, all cuts and the counts draw."""
        cuts = worst_event(of_units(self.cost, self.units[1]))
        laws = [law for law in (self.rows_law, self.law) if isinstance(law, DiscreteLaplace)]
        if not laws:
            return worst_event(self.cost)
        return sum_of([cuts, *(laplace_event(law.scale, self.unit) for law in laws)])

    def bins(self, rows: int) -> int:
        """The number of bins for this many rows, as a whole number.

        It is between 2 and 4096, and at most the number of lattice cells.
        """
        rounded = (2 * rows + self.records) // (2 * self.records)
        return min(max(2, rounded), self.axis.cells, MOST_BINS)

    def shares(self, bins: int) -> list[tuple[Unit, Fraction]]:
        """The unit and the epsilon of the selections of each level."""
        n_levels = (bins - 1).bit_length()
        return [
            nested(self.unit, selection_epsilon(of_units(self.cost, units)))
            for units in split(self.units[1], [Fraction(1)] * n_levels)
        ]

    def cut(self, occupied: Occupied, bins: int, noise: Bits) -> Array:
        """Choose the edges of the bins, including both ends of the axis: int64 ndarray."""
        shares = self.shares(bins)

        def draw(lower: int, upper: int, below: int, parts: int, level: int) -> int:
            unit, epsilon = shares[level]
            ranks = _inside(occupied, lower, upper)
            return RankLaw(ranks, Fraction(below, parts), epsilon, unit).draw(noise)

        return np.array(divided(self.axis.cells, bins, draw), np.int64)

    def log_probability(self, occupied: Occupied, edges: list[int]) -> float:
        """ln P that ``cut`` returns these edges. It reads true counts: only audits may call it.

        Each two neighbouring edges enclose one bin.
        """
        n_bins = len(edges) - 1
        shares = self.shares(n_bins)
        total = 0.0

        def follow(lower: int, upper: int, below: int, parts: int, level: int) -> int:
            nonlocal total
            unit, epsilon = shares[level]
            chosen = edges[edges.index(lower) + below]
            ranks = _inside(occupied, lower, upper)
            law = RankLaw(ranks, Fraction(below, parts), epsilon, unit)
            # The choices are the lattice points strictly inside the node.
            total += float(law.log_probabilities()[chosen - lower - 1])
            return chosen

        divided(self.axis.cells, n_bins, follow)
        return total

    def answer(self, cube: Cube, noise: Bits) -> tuple[int | None, Lattice, Array]:
        """Draw the number of rows (None if it was stated), the bins, and their noisy counts."""
        rows = self.stated
        if self.rows_law is not None:
            rows = int(add_noise(np.array([cube.total]), self.rows_law, noise)[0])
        assert rows is not None
        cells = np.flatnonzero(cube.counts)
        edges = self.cut((cells, cube.counts[cells]), self.bins(rows), noise)
        # Counted after the cuts were chosen and paid for: the bins are then disjoint and public.
        counts = add_noise(cube.binned([edges]), self.law, noise)
        axis = self.axis
        bins = EdgesAxis(
            axis.name,
            tuple(axis.points(edges).tolist()),
            axis.time,
            axis.missing,
            axis.step,
            axis.lower,
            axis.column,
        )
        return rows if self.stated is None else None, Lattice((bins,)), counts

    def share_errors(self, bins: int) -> tuple[int, int]:
        """By how many rows a bin may differ from its share of them.

        A cut's own rank is off by at most ln(edges / alpha) / a (``quantiles/methods.py``). A
        part inherits its node's error in proportion to its bins. If rows lie evenly around a cut,
        the variance of its error is 2 / a^2. Neither number includes ties.

        Returns
        -------
        most : int
            A bound that holds with 95% confidence, whatever the data are.
        typically : int
            A bound that holds with 95% confidence if rows lie evenly around the cuts.
        """
        shares = self.shares(bins)
        log_choices = math.log(self.axis.cells * len(shares) / ALPHA)
        # By the number of bins of a node: the bound on its error, and the variance.
        errors = {bins: (0.0, 0.0)}
        for unit, epsilon in shares:
            # Nodes of one bin are not cut any more, and keep their error.
            next_level: dict[int, tuple[float, float]] = {1: errors.get(1, (0.0, 0.0))}
            for parts, (most, variance) in errors.items():
                share_below = Fraction(max(parts // 2, 1), max(parts, 2))
                scale = float(2 * rank_sensitivity(share_below, unit) / epsilon)
                for part in {parts // 2, parts - parts // 2} - {0, parts}:
                    own_most = most * part / parts + scale * log_choices
                    own_variance = variance * (part / parts) ** 2 + 2 * scale**2
                    other_most, other_variance = next_level.get(part, (0.0, 0.0))
                    next_level[part] = max(own_most, other_most), max(own_variance, other_variance)
            errors = next_level
        most, variance = errors[1]
        # The two-sided quantile of a normal law at ALPHA is 1.96.
        return math.ceil(most), math.ceil(1.96 * math.sqrt(variance))

    def preview(self, title: str, guess: int | None) -> CountsPreview:
        """What these bins would cost, and how accurate and how even their counts would be.

        Parameters
        ----------
        guess : int or None
            The number of rows as the custodian states it for the preview. Nothing depends on it but
            the preview.
        """
        rows = self.stated if self.stated is not None else guess
        bins = None if rows is None else self.bins(rows)
        rows_units, cuts_units, counts_units = self.units
        cuts_cost = of_units(self.cost, cuts_units)
        counts_cost = of_units(self.cost, counts_units)
        notes = [
            f"bins of about {self.records:,} rows: "
            f"their edges cost {cuts_cost}, their counts {counts_cost}"
        ]
        if self.stated is None:
            rows_cost = of_units(self.cost, rows_units)
            notes.append(f"how many there are follows from a noisy number of rows, at {rows_cost}")
        if bins is not None:
            most, typically = self.share_errors(bins)
            notes.append(
                f"a bin holds its share of the rows to within {typically:,} typically, "
                f"and {most:,} whatever the data"
            )
            notes.append("equal values lie in one bin, however many they are")
        return CountsPreview(title, self.cost, self.unit, bins, self.law, rows, tuple(notes))


def divided(cells: int, bins: int, cut: Cut) -> list[int]:
    """Halve an axis until it has so many bins, or every node is one cell.

    Returns
    -------
    list of int
        The edges, ascending, including both ends of the axis.

    >>> def evenly(lower, upper, below, parts, level):
    ...     return lower + (upper - lower) * below // parts
    >>> divided(100, 4, evenly)
    [0, 25, 50, 75, 100]
    """
    edges = [0]

    def halve(lower: int, upper: int, parts: int, level: int) -> None:
        parts = min(parts, upper - lower)
        if parts == 1:
            edges.append(upper)
            return
        below = parts // 2
        middle = cut(lower, upper, below, parts, level)
        halve(lower, middle, below, level + 1)
        halve(middle, upper, parts - below, level + 1)

    halve(0, cells, bins, 0)
    return edges


def record_lattice(title: str, domain: Domain, names: tuple[str, ...]) -> Lattice:
    """Return the lattice on which edges are chosen: the default one of the only axis.

    Raises
    ------
    UsageError
        If there is another axis, or fewer than two lattice cells.
    """
    if len(names) > 1:
        raise UsageError(
            f"{title} by records",
            "bins by records are for one axis",
            "Give bins or width for several axes",
        )
    lattice = fine_lattice(domain.intervals(names))
    if lattice.size < 2:
        raise UsageError(
            f"{title} by records",
            "a histogram has at least 2 bins, and the axis has one step",
            "Take a finer step",
        )
    return lattice


def record_bins(
    lattice: Lattice, records: int, stated: int | None, unit: Unit, cost: CentralMeasure
) -> RecordBins:
    """Return how the only axis of a lattice is divided into bins of about so many rows."""
    (axis,) = lattice.grids
    return RecordBins(axis, records, stated, unit, without_delta(cost))


def _inside(occupied: Occupied, lower: int, upper: int) -> Ranks:
    """Return the edges strictly inside a node, ranked among the rows of the node alone."""
    cells, counts = occupied
    inside = slice(*np.searchsorted(cells, (lower, upper)))
    return Ranks.of_cells(cells[inside], counts[inside], lower + 1, upper)
