"""Bins that hold about equally many rows: how many from a noisy number of rows, where by private selections, then noisy counts.

With ``records=K`` and a noisy number of rows N (or a stated, public one) there are k = N / K bins, at least 2. The axis is cut at
the edge whose rank among the rows is nearest to floor(k / 2) / k, then each side again, until every part is one bin: a tree of
ceil(log2 k) levels. The exponential mechanism chooses each cut among the public lattice points strictly inside its node, so no bin
is empty of lattice cells, and a node with fewer cells than bins gets as many bins as it has cells.

Guarantee: the three parts together spend exactly the cost.
Holds because
    *Shares.* Rows 1/20 (nothing where they are stated), cuts 9/20, counts the rest: whole units that add up to the cost. The cuts'
    units are shared equally by the levels. How many levels there are follows from the noisy number of rows, which is paid for.
    *A level costs one selection.* Its nodes hold disjoint rows and follow from cuts that are paid for. A person with r_i rows in
    node i moves the utilities there by r_i / r of the sensitivity; the r_i add up to r at most (under rho the squares of r_i / r add
    up to 1 at most). Under replace a person may leave one node and enter another, so selections run as add-remove at half their
    share (``ranks.nested``): what leaves and what enters are r rows each at most.
    *Counts.* Given the edges, the bins are disjoint and public; the counts run at their own share and the unit's own sensitivity,
    2r in L1 under replace.
    *Adaptive composition.* Each part is private whatever the earlier ones showed, so costs add up: basic composition for epsilon,
    Bun and Steinke 2016, Lemma 2.3, for rho.
Not covered: the time a selection takes depends on the data.
Source: McSherry, Talwar, FOCS 2007; Kaplan, Schnapp, Stemmer, ICML 2022 (quantiles by halving); Cesar, Rogers, ALT 2021 (rho).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.answers.preview import CountsPreview
from sfumato.arrays import Array
from sfumato.cube import Cube
from sfumato.domain import Domain, EdgesAxis, GridAxis, Lattice, fine_lattice
from sfumato.errors import UsageError, shown
from sfumato.mechanisms.noise import Law, add_noise, count_law
from sfumato.mechanisms.ranks import Ranks, nested, rank_sensitivity
from sfumato.mechanisms.selection import RankLaw
from sfumato.numbers import split
from sfumato.privacy.allocation import of_units, units_of
from sfumato.privacy.composition import selection_epsilon
from sfumato.privacy.guarantee import Proof
from sfumato.privacy.measures import CentralMeasure, without_delta
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

MOST_BINS, MOST_LEVELS = 2**12, 12
MOST_RECORDS = 10**15
WEIGHTS = [
    Fraction(1, 20),
    Fraction(9, 20),
    Fraction(1, 2),
]  # of the number of rows, the cuts, the counts
ALPHA, NORMAL = 0.05, 1.96

PROOF = Proof(
    sensitivity="of the number of rows and of the bins' counts, L1 = rows_per_person (twice that under replace); of rows below a cut "
    "minus q times its node's rows, rows_per_person max(q, 1 - q).",
    because="cuts are chosen among public lattice points by exact selections, a level's nodes hold disjoint rows, bins follow from cuts "
    "that are paid for, and the costs of rows, cuts and counts add up to the whole. Under replace selections run as add-remove at half "
    "their share.",
    not_covered="the choice of columns, bounds and records per bin; the time the query takes.",
    source="McSherry, Talwar, FOCS 2007; Kaplan, Schnapp, Stemmer, ICML 2022; Cesar, Rogers, ALT 2021.",
)

Cut = Callable[[int, int, int, int, int], int]
"""Choose a cut: given the lower and upper edge of a node, its bins below the cut, all its bins, and its level."""


@dataclass(frozen=True)
class RecordBins:
    """How an axis is divided into bins of about so many rows, and what each part may spend: public.

    Attributes
    ----------
    axis : GridAxis
    records : int
        Rows that a bin should hold.
    stated : int or None
        The number of rows, where it is public.
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
        """What the number of rows, the cuts and the counts may spend, in whole units: together exactly the cost."""
        rows, cuts, counts = split(
            units_of(self.cost), [Fraction(0), *WEIGHTS[1:]] if self.stated is not None else WEIGHTS
        )
        if cuts < MOST_LEVELS or not (rows or self.stated is not None):
            raise UsageError(
                f"bins by records at {self.cost}",
                "the levels of cuts would have no share of it",
                "Choose a larger cost",
            )
        return rows, cuts, counts

    @property
    def rows_law(self) -> Law | None:
        """The noise on the number of rows; None where it is stated."""
        return (
            None
            if self.stated is not None
            else count_law(of_units(self.cost, self.units[0]), self.unit)
        )

    @property
    def law(self) -> Law:
        """The noise on each count."""
        return count_law(of_units(self.cost, self.units[2]), self.unit)

    @property
    def mechanism(self) -> str:
        """What adds the randomness, in words."""
        seen = "" if self.rows_law is None else f"{self.rows_law} on the number of rows; "
        return f"{seen}the exponential mechanism at each cut; {self.law} on each count"

    def bins(self, rows: int) -> int:
        """How many bins so many rows make: the nearest whole number, 2 to 4096, and no more than there are lattice cells."""
        return min(
            max(2, (2 * rows + self.records) // (2 * self.records)), self.axis.cells, MOST_BINS
        )

    def shares(self, bins: int) -> list[tuple[Unit, Fraction]]:
        """Unit and epsilon of the selections of each level."""
        levels = (bins - 1).bit_length()
        return [
            nested(self.unit, selection_epsilon(of_units(self.cost, part)))
            for part in split(self.units[1], [Fraction(1)] * levels)
        ]

    def cut(self, held: tuple[Array, Array], bins: int, noise: Bits) -> Array:
        """Choose the edges of the bins, both ends included: int64 ndarray. ``held``: occupied cells and their rows, true data."""
        shares = self.shares(bins)

        def draw(lower: int, upper: int, below: int, parts: int, level: int) -> int:
            unit, epsilon = shares[level]
            return RankLaw(_inside(held, lower, upper), Fraction(below, parts), epsilon, unit).draw(
                noise
            )

        return np.array(divided(self.axis.cells, bins, draw), np.int64)

    def log_probability(self, held: tuple[Array, Array], edges: list[int]) -> float:
        """ln P that ``cut`` returns these edges, one bin between each two. For audits: it reads true counts."""
        shares, total = self.shares(len(edges) - 1), 0.0

        def follow(lower: int, upper: int, below: int, parts: int, level: int) -> int:
            nonlocal total
            unit, epsilon = shares[level]
            chosen = edges[edges.index(lower) + below]
            logs = RankLaw(
                _inside(held, lower, upper), Fraction(below, parts), epsilon, unit
            ).log_probabilities()
            total += float(logs[chosen - lower - 1])
            return chosen

        divided(self.axis.cells, len(edges) - 1, follow)
        return total

    def answer(self, cube: Cube, noise: Bits) -> tuple[int | None, Lattice, Array]:
        """The noisy number of rows (None where it is stated), the bins, and their noisy counts."""
        rows = self.stated
        if self.rows_law is not None:
            rows = int(add_noise(np.array([cube.total]), self.rows_law, noise)[0])
        assert rows is not None
        held = np.flatnonzero(cube.counts)
        edges = self.cut((held, cube.counts[held]), self.bins(rows), noise)
        counts = add_noise(cube.binned([edges]), self.law, noise)
        return (
            rows if self.stated is None else None,
            Lattice((edges_axis(self.axis, edges),)),
            counts,
        )

    def reach(self, bins: int) -> tuple[int, int]:
        """By how many rows a bin may differ from its share of them, whatever the data are, and typically: with 95 % confidence each.

        A cut's own rank is off by at most ln(edges / alpha) / a (``quantiles/reach.py``), and a part inherits its node's error in
        proportion to its bins. Where rows lie evenly around a cut, its error has the variance 2 / a^2. Ties are beyond both.
        """
        shares = self.shares(bins)
        choices = math.log(self.axis.cells * len(shares) / ALPHA)
        found = {bins: (0.0, 0.0)}
        for unit, epsilon in shares:
            deeper: dict[int, tuple[float, float]] = {1: found.get(1, (0.0, 0.0))}
            for parts, (most, variance) in found.items():
                scale = float(
                    2
                    * rank_sensitivity(Fraction(max(parts // 2, 1), max(parts, 2)), unit)
                    / epsilon
                )
                for part in {parts // 2, parts - parts // 2} - {0, parts}:
                    own = (
                        most * part / parts + scale * choices,
                        variance * (part / parts) ** 2 + 2 * scale**2,
                    )
                    before = deeper.get(part, (0.0, 0.0))
                    deeper[part] = max(own[0], before[0]), max(own[1], before[1])
            found = deeper
        most, variance = found[1]
        return math.ceil(most), math.ceil(NORMAL * math.sqrt(variance))

    def preview(self, title: str, guess: int | None) -> CountsPreview:
        """What these bins would cost, how accurate their counts would be, and how even they would be."""
        rows = self.stated if self.stated is not None else guess
        bins = None if rows is None else self.bins(rows)
        cuts, counts = (of_units(self.cost, part) for part in self.units[1:])
        notes = [
            f"bins of about {self.records:,} rows: their edges cost {cuts}, their counts {counts}"
        ]
        if self.stated is None:
            notes.append(
                f"how many there are follows from a noisy number of rows, at {of_units(self.cost, self.units[0])}"
            )
        if bins is not None:
            most, typically = self.reach(bins)
            notes.append(
                f"a bin holds its share of the rows to within {typically:,} typically, and {most:,} whatever the data"
            )
            notes.append("equal values lie in one bin, however many they are")
        return CountsPreview(title, self.cost, self.unit, bins, self.law, rows, tuple(notes))


def divided(cells: int, bins: int, cut: Cut) -> list[int]:
    """Halve an axis until there are so many bins, or every node is one cell: the edges, in order, both ends included.

    >>> divided(100, 4, lambda lower, upper, below, parts, level: lower + (upper - lower) * below // parts)
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
    """The lattice on which bins by records are chosen: the default one of its only axis.

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


def edges_axis(axis: GridAxis, edges: Array) -> EdgesAxis:
    """The bins between chosen lattice points, as an axis."""
    return EdgesAxis(
        axis.name,
        tuple(axis.points(edges).tolist()),
        axis.time,
        axis.missing,
        axis.step,
        axis.lower,
    )


def plain_records(value: object, name: str) -> int | None:
    """Read a number of rows: a whole number from 1 to 10^15, or None."""
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not hasattr(value, "__index__")
        or not 1 <= value.__index__() <= MOST_RECORDS
    ):
        asked = (
            f"{name} = {shown(value)}"
            if isinstance(value, int | float | str)
            else f"{name} of type {type(value).__name__}"
        )
        raise UsageError(asked, "it is a number of rows, from 1 to 10^15", f"Write {name}=1000")
    return int(value.__index__())


def record_bins(
    lattice: Lattice, records: int, stated: int | None, unit: Unit, cost: CentralMeasure
) -> RecordBins:
    """How the one axis of a lattice is divided."""
    (axis,) = lattice.axes
    assert isinstance(axis, GridAxis)
    return RecordBins(axis, records, stated, unit, without_delta(cost))


def _inside(held: tuple[Array, Array], lower: int, upper: int) -> Ranks:
    """The edges strictly inside a node, with the rows of the node."""
    positions, counts = held
    inside = slice(*np.searchsorted(positions, (lower, upper)))
    return Ranks.of_cells(positions[inside], counts[inside], lower + 1, upper)
