"""k-means with a trusted curator."""

from __future__ import annotations

from collections.abc import Iterator

from sfumato.audit.decisions import Decisions
from sfumato.audit.runs import Mechanism, Pair, Rows, of_counts
from sfumato.audit.subjects.subject import CONCENTRATED, LINE, PURE, UNITS, Subject, less_noise
from sfumato.domain.lattice import GridAxis, Lattice
from sfumato.privacy.measures import ZCDP, CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.questions.clustering import KMeans
from sfumato.questions.clustering.kmeans import Method
from sfumato.questions.partition.uniform import UniformPartitioner

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

    def spending(times: int) -> Mechanism:
        spent = less_noise(cost, times)
        return of_counts(lattice, lambda cube, noise: question.answer(cube, unit, spent, noise))

    name = f"k-means, {method}"
    return Subject(name, unit, cost, spending(1), ENDS, runs=500, weaker=spending)


def _tree_clusters(unit: Unit, cost: CentralMeasure) -> Subject:
    """One person's rows leave one end; under replace they go to the other one.

    All decisions of the tree are enumerated, and the sums and counts of the steps follow. A part of
    the cost of the tests pays for deeper trees than this one.
    """
    question = KMeans(2, method="privtree")
    lattice = Lattice((GridAxis("x", 0.0, 4.0, 4),))
    own: Rows = unit.rows_per_person * ((0.5,),)
    replaced: Rows = unit.rows_per_person * ((3.5,),) if unit.neighbours == "replace" else ()
    pair: Pair = own, replaced

    def spending(times: int) -> Mechanism:
        spent = less_noise(cost, times)
        return of_counts(lattice, lambda cube, noise: question.answer(cube, unit, spent, noise))

    return Subject(
        "k-means, privtree",
        unit,
        cost,
        spending(1),
        pairs=(pair, pair[::-1]),
        runs=60,
        exact=Decisions(),
        weaker=spending,
        least=0.45,
    )


def subjects() -> Iterator[Subject]:
    """Every subject of this module."""
    # One promise is enough: this is a grid, and grids are audited at every promise.
    yield _clusters("eugkm", *PROMISES[0])
    for promise in PROMISES:
        yield _clusters("dplloyd", *promise)
    for unit, cost in ((UNITS[0], PURE), (UNITS[3], PURE), (UNITS[0], CONCENTRATED)):
        yield _tree_clusters(unit, cost)
