"""k-means with a trusted curator."""

from __future__ import annotations

from collections.abc import Iterator

from sfumato.audit.runs import Mechanism, Rows, of_counts
from sfumato.audit.subjects.subject import LINE, PURE, UNITS, Subject, less_noise
from sfumato.clustering import KMeans
from sfumato.clustering.kmeans import Method
from sfumato.lattice import GridAxis, Lattice
from sfumato.partition.uniform import UniformPartitioner
from sfumato.privacy.measures import ZCDP, CentralMeasure
from sfumato.privacy.unit import Unit

QUESTIONS = (KMeans,)
ENDS: Rows = ((0.5,), (3.0,))
PROMISES: tuple[tuple[Unit, CentralMeasure], ...] = (
    (UNITS[0], PURE),
    (UNITS[3], PURE),
    (UNITS[1], ZCDP(8)),
)


def _clusters(method: Method, unit: Unit, cost: CentralMeasure) -> Subject:
    """Rows at the two ends change sums by the most.

    The noisy number of rows is drawn first and decides how many steps or cells there are.
    """
    question = KMeans(2, method=method)
    # Three cells are enough, and 2^20 would be slow.
    lattice = UniformPartitioner().needs(LINE).lattice
    mechanism = of_counts(lattice, lambda cube, noise: question.answer(cube, unit, cost, noise))
    return Subject(f"k-means, {method}", unit, cost, mechanism, ENDS, (-3, 40), runs=500)


def _tree_clusters(unit: Unit) -> Subject:
    """One person's rows leave a corner of a small square; under replace they go to another one.

    There is no exact audit: the tests of a tree do not add to any published number.
    """
    question = KMeans(2, axes=["x", "y"], method="privtree")
    lattice = Lattice((GridAxis("x", 0.0, 4.0, 4), GridAxis("y", 0.0, 4.0, 4)))
    rest: Rows = ((0.5, 0.5),)
    own: Rows = unit.rows_per_person * ((0.5, 0.5),)
    replaced: Rows = unit.rows_per_person * ((3.5, 3.5),) if unit.neighbours == "replace" else ()
    pair = rest + own, rest + replaced

    def spending(times: int) -> Mechanism:
        cost = less_noise(PURE, times)
        return of_counts(lattice, lambda cube, noise: question.answer(cube, unit, cost, noise))

    return Subject(
        "k-means, privtree", unit, PURE, spending(1), pair=pair, runs=300, weaker=spending
    )


def subjects() -> Iterator[Subject]:
    """Every subject of this module."""
    # One promise is enough: this is a grid, and grids are audited at every promise.
    yield _clusters("eugkm", *PROMISES[0])
    for promise in PROMISES:
        yield _clusters("dplloyd", *promise)
    yield _tree_clusters(UNITS[3])
