"""k-means as a question: which way, at what price, and what is then known of the answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Literal, TypeAlias, get_args

import msgspec
import numpy as np

from sfumato.answers.counts import Counts, Needs
from sfumato.answers.preview import CountsPreview, Preview
from sfumato.answers.question import Question
from sfumato.clustering import methods
from sfumato.clustering.refine import MOST_STEPS
from sfumato.clustering.release import KMeansRelease
from sfumato.clustering.space import MOST_AXES, Space
from sfumato.domain import Domain, Lattice, fine_lattice, named_axes
from sfumato.errors import UsageError, printable, shown
from sfumato.mechanisms.noise import Law, add_noise, count_law
from sfumato.numbers import settle
from sfumato.partition.uniform import UniformPartitioner, cells_per_axis, eugkm_cells
from sfumato.privacy.allocation import share
from sfumato.privacy.guarantee import Proof
from sfumato.privacy.measures import CentralMeasure, without_delta
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

Method: TypeAlias = Literal["auto", "eugkm", "dplloyd", "privtree"]
MOST_CLUSTERS = 1000
LOOK, REST = (
    Fraction(1, 50),
    Fraction(49, 50),
)  # shares of the noisy number of rows, and of what it decides


class KMeans(
    Question[KMeansRelease],
    frozen=True,
    tag="kmeans",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """Which kinds of rows are there? Centres of clusters, and how many rows each stands for.

    Distances are measured with every axis scaled to -1 .. 1 by its public bounds: the bounds say how much an axis counts.

    Parameters
    ----------
    n_clusters : int
        From 1 to 1000.
    axes : str, list of str, or None
        Interval axes; None: all of them.
    method : {"auto", "eugkm", "dplloyd", "privtree"}
        "eugkm" clusters the cells of a uniform grid. "dplloyd" adds noise to Lloyd's steps. "privtree" clusters the cells of a tree
        that is deep where rows are many, and refines the centres by steps of a short reach. "auto" takes a grid where rows are
        few for their epsilon and axes are few, else a tree; it pays a fiftieth for a noisy number of rows.

    Raises
    ------
    UsageError
        If an axis is not an Interval, the method is unknown, or ``n_clusters`` is out of range.

    Guarantee
    ---------
    {proof}

    >>> KMeans(3, axes=["lon", "lat"]).title
    '3 clusters of lon x lat'
    """

    n_clusters: int = 5
    axes: str | Sequence[str] | None = None
    method: Method = "auto"

    proof: ClassVar[Proof] = Proof(
        sensitivity="of counts of groups, L1 = rows_per_person; of their sums, that times the reach of a row (twice both under replace).",
        because="grids, groups and reaches follow from the public domain and from noisy numbers that are paid for, and a row's "
        "group from its own cell alone; costs of steps add up. Centres are computed from noisy numbers, which costs nothing.",
        not_covered="the choice of columns, bounds and n_clusters; the time the query takes.",
        source="Su, Cao, Li, Bertino, Jin, CODASPY 2016; Dwork, McSherry, Nissim, Smith 2006, Thm 1; Canonne, Kamath, Steinke 2020, Thm 4.",
    )

    def __post_init__(self) -> None:
        if self.axes is not None:
            msgspec.structs.force_setattr(self, "axes", named_axes(self.axes))
        k: object = self.n_clusters
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MOST_CLUSTERS:
            asked = (
                f"n_clusters = {shown(k)}"
                if isinstance(k, int | float | str)
                else f"n_clusters of type {type(k).__name__}"
            )
            raise UsageError(
                asked,
                f"the number of clusters is a whole number from 1 to {MOST_CLUSTERS:,}",
                "Write n_clusters=5",
            )
        if self.method not in get_args(Method):
            raise UsageError(
                f"method = {shown(self.method)}",
                "it is unknown",
                f"Choose one of {', '.join(map(repr, get_args(Method)))}",
            )
        settle(self)

    def needs(self, domain: Domain) -> Needs:
        """A fine lattice, or the axis' own steps where they are coarser: the one that partitions and quantiles ask for."""
        intervals = domain.intervals(self.axes)
        if len(intervals) > MOST_AXES:
            raise UsageError(
                f"{self.title} on {len(intervals)} axes",
                f"the limit is {MOST_AXES:,}",
                "Name fewer axes",
            )
        lattice = fine_lattice(intervals)
        # The answer holds coordinates and weights of the centres.
        return Needs(lattice, self.n_clusters * (len(lattice.axes) + 1))

    @property
    def title(self) -> str:
        return f"{self.n_clusters} clusters" + (
            "" if self.axes is None else f" of {' x '.join(map(printable, self.axes))}"
        )

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> Preview:
        """Say how accurate the weights would be; rows decide how many steps or cells there are, and the method where it is free."""
        pure, lattice = without_delta(cost), self.needs(domain).lattice
        look, rest = self._looks(pure, unit)
        method = self._method(MANY if rows is None else rows, lattice, unit, rest)
        terms, law, notes = self._expected(method, lattice, unit, rest, rows)
        if look is not None:
            notes = (
                *notes,
                f"a noisy number of rows ({look}) decides how many steps or cells there are",
            )
        if self.method == "auto":
            notes = (
                *notes,
                f"with {'many' if rows is None else f'{rows:,}'} rows the method is {method}",
            )
        return CountsPreview(self.title, pure, unit, self.n_clusters, law, rows, notes, terms=terms)

    def _expected(
        self, method: Method, lattice: Lattice, unit: Unit, cost: CentralMeasure, rows: int | None
    ) -> tuple[int | None, Law, tuple[str, ...]]:
        """How many counts a weight may be the sum of, the most noise on each count, and what else is known beforehand."""
        space, k = Space(lattice), self.n_clusters
        if method == "eugkm":
            law = UniformPartitioner(
                lattice.names, partitions=None if self.method == "eugkm" else 1
            ).laws(cost, unit)[1]
            if rows is None:
                return None, law, GROUPS
            aim, m = eugkm_cells(rows, count_law(cost, unit).effective_epsilon, d=space.d)
            return math.prod(cells_per_axis(m, space.d, aim)), law, GROUPS
        if method == "dplloyd":
            parts, _, (_, law) = methods.lloyd_laws(
                space, k, MANY if rows is None else rows, unit, cost
            )
            return 1, law, (f"the counts of the last of {len(parts)} steps",)
        law = methods.most_noise(space, unit, cost)
        return (
            1,
            law,
            (
                f"the counts of the last of up to {MOST_STEPS} steps; with fewer steps there is less noise",
            ),
        )

    def answer(
        self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits
    ) -> KMeansRelease:
        """Find the centres, spending exactly ``cost``."""
        pure, k = without_delta(cost), self.n_clusters
        look, rest = self._looks(pure, unit)
        cube = counts.on(counts.lattice)
        rows = None if look is None else int(add_noise(np.array([cube.total]), look, noise)[0])
        method = self._method(rows or 0, cube.lattice, unit, rest)
        match method:
            case "eugkm":
                found = methods.eugkm(counts, k, unit, rest, noise, rows)
            case "dplloyd":
                found = methods.dplloyd(cube, k, rows or 0, unit, rest, noise)
            case _:
                found = methods.privtree(cube, k, unit, rest, noise)
        mechanism = (
            found.mechanism if look is None else f"{found.mechanism}; {look} on the number of rows"
        )
        return KMeansRelease(
            method=method,
            lattice=cube.lattice,
            whole_centres=found.centres.reshape(-1),
            weights=found.weights,
            terms=found.terms,
            law=found.law,
            rows=rows,
            partition=found.partition,
            steps=found.steps,
            guarantee=self.promise(pure, unit, mechanism, noise),
        )

    def _looks(self, cost: CentralMeasure, unit: Unit) -> tuple[Law | None, CentralMeasure]:
        """The noise on the number of rows, where it is needed, and what is left for the rest."""
        match self.method:
            case "dplloyd":
                return looks(cost, unit)
            case "auto":
                look, rest = share(cost, [LOOK, REST])
                return count_law(look, unit), rest
            case _:
                return None, cost

    def _method(self, rows: int, lattice: Lattice, unit: Unit, cost: CentralMeasure) -> Method:
        """Where rows are few for their epsilon, a coarse grid finds more than a tree; in many dimensions no grid does."""
        if self.method != "auto":
            return self.method
        return (
            "eugkm"
            if rows * count_law(cost, unit).effective_epsilon < FEW and len(lattice.axes) <= GRIDS
            else "privtree"
        )


KMeans.examples = (KMeans(2, axes="x", method="dplloyd"), KMeans(2, axes="x", method="privtree"))


GROUPS = (
    "each count is a cell of a grid; the weight of a cluster adds up the cells of its group, at most all there are",
)
MANY = 10**15  # rows, where nobody says how many
FEW = 1500  # rows times epsilon, below which a grid is taken
GRIDS = 6  # axes up to which it is


def looks(cost: CentralMeasure, unit: Unit) -> tuple[Law, CentralMeasure]:
    """The noise on the number of rows that decides what comes next, and what is left for that.

    Under add-remove it takes a fiftieth. Under replace it is free. Let one person's a <= r rows become b <= r others, m of
    them paired and u = |a - b| over. *Pure:* each row that comes or goes costs the steps eps / (2r), the number of rows moves
    by u, at scale 2r / eps: in all (a + b + u) eps / (2r) = max(a, b) eps / r. *zCDP:* in units of sqrt(rho / (2 r^2)) a pair moves
    the steps by at most 2, a row over by sqrt 2, and the number of rows, at sigma^2 = r^2 / rho, moves by sqrt 2 u: so
    rho / (4 r^2) ((2m + sqrt 2 u)^2 + 2 u^2) <= rho / r^2 (m + u)^2 is spent.
    """
    if unit.neighbours == "replace":
        return count_law(cost, unit), cost
    look, rest = share(cost, [LOOK, REST])
    return count_law(look, unit), rest
