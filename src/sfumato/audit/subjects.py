"""What is audited: the closed list of mechanisms and questions. A new room appends its own."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

from sfumato.audit.runs import Mechanism, Pair, Published, Rows, of_cubes, of_question, published
from sfumato.clustering import KMeans
from sfumato.clustering.kmeans import Method
from sfumato.domain import Domain, GridAxis, Interval, Lattice
from sfumato.histogram import Histogram
from sfumato.partition import (
    AdaptiveGridPartitioner,
    AutoPartitioner,
    BinaryPartitioner,
    MedianPartitioner,
    MultiQuantilePartitioner,
    PrivTreePartitioner,
    UniformPartitioner,
)
from sfumato.privacy.measures import ZCDP, CentralMeasure, PureDP
from sfumato.privacy.unit import Neighbours, Unit
from sfumato.publisher import Publisher
from sfumato.random.bits import Bits, override
from sfumato.releases import AnyQuestion

LINE = Domain(x=Interval(0, 3, step=1))
ON_LINE: Rows = ((0.5,), (1.0,), (3.0,))
"""A value inside a cell, one on an edge between two cells, and the closed upper end."""
ENDS: Rows = ((0.5,), (3.0,))
FIRST_DRAWS = (-100, -3, 0, 1, 4, 10, 100)
PURE, CONCENTRATED = PureDP("1"), ZCDP("0.5")


@dataclass(frozen=True)
class Subject:
    """A mechanism and its promise, and the small data on which the promise is put to the test.

    Attributes
    ----------
    name : str
    unit : Unit
    claim : PureDP, ApproxDP or ZCDP
    mechanism : callable
        From rows and bits to ``Published``.
    universe : tuple of rows
        The exact audit takes all neighbouring data sets of a few such rows. Empty: it does not apply, and ``pair`` is given.
    first_draws : tuple of int
        Values of the first draw to enumerate, where it decides what comes next.
    pair : pair of data sets, or None
        For the sampled audit; None: the worst that the exact audit found.
    runs : int
        How often the quick sampled audit runs the mechanism on each data set.
    least : float
        Which part of the claim the exact audit finds spent, at least. Under replace a count of all rows costs nothing where one row
        becomes another, so trees, which pay for it as if a row came or went, spend less than they claim.
    """

    name: str
    unit: Unit
    claim: CentralMeasure
    mechanism: Mechanism
    universe: Rows = ()
    first_draws: tuple[int, ...] = (0,)
    pair: Pair | None = None
    runs: int = 4000
    least: float = 0.98


def _of(name: str, question: AnyQuestion, unit: Unit, cost: CentralMeasure, first_draws: tuple[int, ...] = (0,)) -> Subject:
    return Subject(name, unit, cost, of_question(question, LINE, unit, cost), ON_LINE, first_draws)


def _tree(name: str, question: AnyQuestion, unit: Unit, cost: CentralMeasure) -> Subject:
    """A tree of counts: on small data its exact loss is looked at where few rows are, and where there seem to be many."""
    subject = _of(name, question, unit, cost, (0, 40))
    return replace(subject, least=0.2) if unit.neighbours == "replace" else subject


def _chosen(name: str, question: AnyQuestion, unit: Unit) -> Subject:
    """A tree whose splits are chosen by the data: where they are is seen, too. Its exact audits are among the tests."""
    mechanism, r = of_question(question, LINE, unit, PURE), unit.rows_per_person

    def run(rows: Rows, noise: Bits) -> Published:
        seen = mechanism(rows, noise)
        return Published((*seen.public.cover.cut.tolist(), *seen.numbers), seen.public)

    pair = ((0.5,), (1.5,)) + r * ((2.5,),), ((0.5,), (1.5,)) + (r * ((0.5,),) if unit.neighbours == "replace" else ())
    return Subject(name, unit, PURE, run, pair=pair, runs=1500)


def of_publisher(question: AnyQuestion, domain: Domain, unit: Unit, cost: PureDP) -> Mechanism:
    """From a table to a release as users run it: rows bounded for each person, charged, counted, stored, read back.

    A row is a person's number, then the domain's values.
    """

    @cache
    def publisher(rows: Rows) -> Publisher:
        import pyarrow as pa

        from sfumato.data import source

        columns = dict(zip((str(unit.person), *domain), map(list, zip(*rows, strict=True)), strict=True))
        bounded = source(
            pa.table(columns),
            domain,
            person=unit.person,
            rows_per_person=unit.rows_per_person,
            neighbours=unit.neighbours,
            name="audit",
        )
        opened = Publisher(bounded, budget=10**9)
        weakref.finalize(run, opened.close)
        return opened

    def run(rows: Rows, noise: Bits) -> Published:
        with override(noise):
            return published(publisher(rows).release(question, epsilon=cost.epsilon, fresh=True))

    return run


def _end_to_end(rows_per_person: int, neighbours: Neighbours) -> Subject:
    """One person brings five rows; under replace another one brings five elsewhere."""
    unit = Unit(rows_per_person=rows_per_person, neighbours=neighbours, person="who")
    rest: Rows = ((2.0, 1.5),)
    swapped = rest + 5 * ((1.0, 2.5),) if neighbours == "replace" else rest
    pair = rest + 5 * ((1.0, 0.5),), swapped
    mechanism = of_publisher(Histogram("x", bins=3), LINE, unit, PURE)
    return Subject("Publisher, table to release", unit, PURE, mechanism, pair=pair, runs=2000)


RELATIONS: tuple[Neighbours, ...] = ("add-remove", "replace")
UNITS = [Unit(rows_per_person=r, neighbours=relation) for r, relation in product((1, 2), RELATIONS)]
COSTS: tuple[CentralMeasure, ...] = (PURE, CONCENTRATED)

CLUSTER_METHODS: tuple[Method, ...] = ("eugkm", "dplloyd")
CLUSTER_PROMISES: tuple[tuple[Unit, CentralMeasure], ...] = ((UNITS[0], PURE), (UNITS[3], PURE), (UNITS[1], ZCDP(8)))


def _clusters(method: Method, unit: Unit, cost: CentralMeasure) -> Subject:
    """Rows at the two ends move sums by their most; the number of rows, drawn first, decides how many steps or cells there are."""
    question, lattice = KMeans(2, method=method), UniformPartitioner().needs(LINE)  # three cells, rather than 2^20
    mechanism = of_cubes(lattice, lambda cube, noise: question.answer(cube, unit, cost, noise))
    return Subject(f"k-means, {method}", unit, cost, mechanism, ENDS, (-3, 40), runs=500)


def _tree_clusters(unit: Unit) -> Subject:
    """One person's rows leave a corner of a small square, for another one under replace; the tests of a tree add to no number."""
    question = KMeans(2, axes=["x", "y"], method="privtree")
    lattice = Lattice((GridAxis("x", 0.0, 4.0, 4), GridAxis("y", 0.0, 4.0, 4)))
    rest: Rows = ((0.5, 0.5),)
    other: Rows = unit.rows_per_person * ((3.5, 3.5),) if unit.neighbours == "replace" else ()
    pair = rest + unit.rows_per_person * ((0.5, 0.5),), rest + other
    mechanism = of_cubes(lattice, lambda cube, noise: question.answer(cube, unit, PURE, noise))
    return Subject("k-means, privtree", unit, PURE, mechanism, pair=pair, runs=1500)


SUBJECTS: tuple[Subject, ...] = (
    *(_of("Histogram", Histogram("x", bins=3), *promise) for promise in product(UNITS, COSTS)),
    *(_of("Uniform grid, given", UniformPartitioner(partitions=3), *promise) for promise in product(UNITS, COSTS)),
    *(_of("Uniform grid, noisy rows", UniformPartitioner(theta=1), *promise, FIRST_DRAWS) for promise in product(UNITS, COSTS)),
    *(_tree("Binary partition", BinaryPartitioner(depth=2, stop_below=1), *promise) for promise in product(UNITS, COSTS)),
    *(_tree("Adaptive grid", AdaptiveGridPartitioner(), *promise) for promise in product(UNITS, COSTS)),
    *(_tree("Automatic partition", AutoPartitioner(), *promise) for promise in product(UNITS, COSTS)),
    *(_chosen("Median partition", MedianPartitioner(depth=1), unit) for unit in UNITS),
    *(_chosen("Multi-quantile partition", MultiQuantilePartitioner(depth=1, fanout=3), unit) for unit in UNITS),
    *(_chosen("PrivTree", PrivTreePartitioner(), unit) for unit in UNITS),
    *(_clusters(method, *promise) for method, promise in product(CLUSTER_METHODS, CLUSTER_PROMISES)),
    *map(_tree_clusters, (UNITS[0], UNITS[3])),
    _end_to_end(1, "add-remove"),
    _end_to_end(2, "replace"),
)
"""Every subject, in the order in which they are shown."""
