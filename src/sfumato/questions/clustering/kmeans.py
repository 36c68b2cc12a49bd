"""The question of k-means: which method answers it, and how accurate the answer would be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Literal, TypeAlias, get_args

import numpy as np

from sfumato.answers import Counts, CountsPreview, Needs, Preview, Question
from sfumato.basics import settle, whole
from sfumato.domain import Domain, Lattice, fine_lattice, named_axes
from sfumato.errors import UsageError, printable, require_word
from sfumato.mechanisms import Law, add_noise, count_law
from sfumato.privacy import CentralMeasure, Proof, Unit, share, without_delta
from sfumato.questions.clustering import methods
from sfumato.questions.clustering.lloyd import MOST_AXES, Space
from sfumato.questions.clustering.methods import MOST_STEPS
from sfumato.questions.clustering.release import KMeansRelease
from sfumato.questions.partition.uniform import UniformPartitioner, cells_per_axis, eugkm_cells
from sfumato.random.bits import Bits

Method: TypeAlias = Literal["auto", "eugkm", "dplloyd", "privtree"]
MOST_CLUSTERS = 1000

# Share of the cost for the noisy number of rows.
ROWS_SHARE = Fraction(1, 50)
REST_SHARE = Fraction(49, 50)

# The number of rows that previews assume if nobody states one.
MANY_ROWS = 10**15

# Rows times epsilon below which "auto" takes a grid.
FEW_ROWS = 1200
SUMS_OF_CELLS = (
    "each count is a cell of a grid; "
    "the weight of a cluster adds up the cells of its group, at most all there are"
)


class KMeans(
    Question[KMeansRelease],
    frozen=True,
    tag="kmeans",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """Which kinds of rows are there? Centres of clusters, and how many rows each stands for.

    Distances are measured with every axis scaled to -1 .. 1 by its public bounds. So the bounds say
    how much an axis counts.

    Parameters
    ----------
    n_clusters : int
        From 1 to 1000.
    axes : str, list of str, or None
        Interval axes; None: all of them.
    method : {"auto", "eugkm", "dplloyd", "privtree"}
        "eugkm" clusters the cells of a uniform grid. "dplloyd" adds noise to Lloyd's steps.
        "privtree" clusters the cells of a tree that is deep where there are many rows, and refines
        the centres by noisy steps that clip rows to a short radius. "auto" takes a grid where rows
        are few for their epsilon and axes are few, otherwise a tree. It pays a fiftieth of the cost
        for a noisy number of rows.
    heading, measured_in, label_names
        Words for people, by name: see ``Question``.

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
        sensitivity=(
            "of counts of groups, L1 = rows_per_person; of their sums, that times the reach of a "
            "row (twice both under replace)."
        ),
        because=(
            "grids, groups and reaches follow from the public domain and from noisy numbers that "
            "are paid for, and a row's group from its own cell alone; costs of steps add up. "
            "Centres are computed from noisy numbers, which costs nothing."
        ),
        not_covered="the choice of columns, bounds and n_clusters; the time the query takes.",
        source=(
            "Su, Cao, Li, Bertino, Jin, CODASPY 2016; Dwork, McSherry, Nissim, Smith 2006, Thm 1; "
            "Canonne, Kamath, Steinke 2020, Thm 4."
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        n_clusters = whole(
            self.n_clusters,
            "n_clusters",
            1,
            MOST_CLUSTERS,
            obstacle=f"the number of clusters is a whole number from 1 to {MOST_CLUSTERS:,}",
            remedy="Write n_clusters=5",
        )
        require_word(self.method, "method", get_args(Method))
        axes = None if self.axes is None else named_axes(self.axes)
        settle(self, n_clusters=n_clusters, axes=axes)

    def needs(self, domain: Domain) -> Needs:
        """The default lattice of the axes: fine, or their own steps where these are coarser."""
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
        axes = "" if self.axes is None else f" of {' x '.join(map(printable, self.axes))}"
        return f"{self.n_clusters} clusters{axes}"

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> Preview:
        """Say how accurate the weights would be.

        The number of rows decides how many steps or cells there are, and the method if it is
        "auto".
        """
        pure = without_delta(cost)
        lattice = self.needs(domain).lattice
        rows_law, rest = self._rows_law(pure, unit)
        method = self._method(MANY_ROWS if rows is None else rows, lattice, unit, rest)
        terms, law, note = self._expected(method, lattice, unit, rest, rows)
        notes = [note]
        if rows_law is not None:
            notes.append(
                f"a noisy number of rows ({rows_law}) decides how many steps or cells there are"
            )
        if self.method == "auto":
            stated = "many" if rows is None else f"{rows:,}"
            notes.append(f"with {stated} rows the method is {method}")
        return CountsPreview(
            self.title, pure, unit, self.n_clusters, law, rows, tuple(notes), terms=terms
        )

    def _expected(
        self, method: Method, lattice: Lattice, unit: Unit, cost: CentralMeasure, rows: int | None
    ) -> tuple[int | None, Law, str]:
        """Return what is known of the answer beforehand.

        Returns
        -------
        terms : int or None
            How many counts a weight may add up; None: unknown.
        law : DiscreteLaplace or DiscreteGaussian
            The most noise on each count.
        note : str
        """
        space = Space(lattice)
        if method == "eugkm":
            partitions = None if self.method == "eugkm" else 1
            _, law = UniformPartitioner(lattice.names, partitions=partitions).laws(cost, unit)
            if rows is None:
                return None, law, SUMS_OF_CELLS
            aim, m = eugkm_cells(rows, count_law(cost, unit).effective_epsilon, d=space.d)
            return math.prod(cells_per_axis(m, space.d, aim)), law, SUMS_OF_CELLS
        if method == "dplloyd":
            known = MANY_ROWS if rows is None else rows
            schedule = methods.lloyd_schedule(space, self.n_clusters, known, unit, cost)
            return 1, schedule.laws[1], f"the counts of the last of {len(schedule.costs)} steps"
        note = (
            f"the counts of the last of up to {MOST_STEPS} steps; "
            "with fewer steps there is less noise"
        )
        return 1, methods.most_noise(space, unit, cost), note

    def answer(
        self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits
    ) -> KMeansRelease:
        """Find the centres, spending exactly ``cost``."""
        pure = without_delta(cost)
        k = self.n_clusters
        rows_law, rest = self._rows_law(pure, unit)
        cube = counts.on(counts.lattice)
        rows = None
        if rows_law is not None:
            rows = int(add_noise(np.array([cube.total]), rows_law, noise)[0])
        # Only the noisy number of rows may decide the method: the true one is not paid for.
        method = self._method(rows or 0, cube.lattice, unit, rest)
        match method:
            case "eugkm":
                clusters = methods.eugkm(counts, k, unit, rest, noise, rows)
            case "dplloyd":
                clusters = methods.dplloyd(cube, k, rows or 0, unit, rest, noise)
            case _:
                clusters = methods.privtree(cube, k, unit, rest, noise)
        mechanism = clusters.mechanism
        if rows_law is not None:
            mechanism += f"; {rows_law} on the number of rows"
        return KMeansRelease(
            method=method,
            lattice=cube.lattice,
            whole_centres=clusters.centres.reshape(-1),
            weights=clusters.weights,
            terms=clusters.terms,
            law=clusters.law,
            rows=rows,
            partition=clusters.partition,
            steps=clusters.steps,
            guarantee=self.promise(pure, unit, mechanism, noise),
        )

    def _rows_law(self, cost: CentralMeasure, unit: Unit) -> tuple[Law | None, CentralMeasure]:
        """The noise on the number of rows, where it is needed, and what is left for the rest."""
        match self.method:
            case "dplloyd":
                return rows_law_of_steps(cost, unit)
            case "auto":
                for_rows, rest = share(cost, [ROWS_SHARE, REST_SHARE])
                return count_law(for_rows, unit), rest
            case _:
                return None, cost

    def _method(self, rows: int, lattice: Lattice, unit: Unit, cost: CentralMeasure) -> Method:
        """Return the method for so many rows.

        Where rows are few for their epsilon, a coarse grid finds more than a tree. In many
        dimensions no grid does.
        """
        if self.method != "auto":
            return self.method
        has_few_rows = rows * count_law(cost, unit).effective_epsilon < FEW_ROWS
        return "eugkm" if has_few_rows and len(lattice.axes) <= 6 else "privtree"


KMeans.examples = tuple(
    KMeans(2, axes="x", method=method) for method in ("eugkm", "dplloyd", "privtree")
)


def rows_law_of_steps(cost: CentralMeasure, unit: Unit) -> tuple[Law, CentralMeasure]:
    """The noise on the number of rows that decides how many steps there are, and what is left.

    Under add-remove the number takes a fiftieth of the cost. Under replace it costs nothing extra,
    for the following reason. Let one person's a <= r rows become b <= r others. Let m of them be
    paired, and u = |a - b| be left over.

    *Pure epsilon.* Each row that comes or goes costs eps / (2r) in the steps. The number of rows
    changes by u, at scale 2r / eps. In all, (a + b + u) eps / (2r) = max(a, b) eps / r.

    *zCDP.* In units of sqrt(rho / (2 r^2)), a pair changes the steps by at most 2, a row left over
    by sqrt 2, and the number of rows, at sigma^2 = r^2 / rho, by sqrt 2 u. So rho / (4 r^2) ((2m +
    sqrt 2 u)^2 + 2 u^2) <= rho / r^2 (m + u)^2 is spent.
    """
    if unit.neighbours == "replace":
        return count_law(cost, unit), cost
    for_rows, rest = share(cost, [ROWS_SHARE, REST_SHARE])
    return count_law(for_rows, unit), rest
