"""What is audited: the closed list of mechanisms and questions. A new room appends its own."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

from sfumato.audit.runs import Mechanism, Pair, Published, Rows, count, of_question, published
from sfumato.audit.selections import LawOf, law_of, run_of
from sfumato.audit.streams import of_machine
from sfumato.domain import MOST_KEYS, Domain, Interval, Keys
from sfumato.histogram import Histogram
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.mechanisms.thresholds import RULES, Rule, key_law
from sfumato.partition import (
    AdaptiveGridPartitioner,
    AutoPartitioner,
    BinaryPartitioner,
    MedianPartitioner,
    MultiQuantilePartitioner,
    PrivTreePartitioner,
    UniformPartitioner,
)
from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure, PureDP
from sfumato.privacy.unit import Neighbours, Unit
from sfumato.publisher import Publisher
from sfumato.quantiles import Quantiles
from sfumato.random.bits import Bits, override
from sfumato.releases import AnyQuestion
from sfumato.streaming.exact_tree import ElderTree
from sfumato.streaming.methods import Reach, toeplitz

LINE = Domain(x=Interval(0, 3, step=1))
ON_LINE: Rows = ((0.5,), (1.0,), (3.0,))
"""A value inside a cell, one on an edge between two cells, and the closed upper end."""
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
    law : callable or None
        For selections: from rows to ln P of every outcome, in place of scripts.
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
    law: LawOf | None = None
    least: float = 0.98


def _of(name: str, question: AnyQuestion, unit: Unit, cost: CentralMeasure, first_draws: tuple[int, ...] = (0,)) -> Subject:
    return Subject(name, unit, cost, of_question(question, LINE, unit, cost), ON_LINE, first_draws)


WIDE = Domain(x=Interval(0, 2**13, step=1))
LOW, NEXT, LATE, LAST = (5.0,), (12.0,), (2.0**13 - 20,), (2.0**13 - 9,)
"""Nearly all edges lie between the second value and the third: the losses of selections are largest where one group is wide."""
BETWEEN = (5, 12, 2**13 - 20, 2**13 - 9, 2**13)
FEW, ON_FEW = Domain(x=Interval(0, 12, step=1)), ((0.0,), (1.0,), (11.0,))


def _selected(name: str, question: Quantiles, unit: Unit, cost: CentralMeasure, background: Rows = ()) -> Subject:
    """A selection, beside rows of other persons with which it was found to lose much; few cells for what looks at each of them."""
    few = question.method == "tree" or "flip" in name
    domain, universe, edges = (FEW, ON_FEW, tuple(range(13))) if few else (WIDE, (LOW, NEXT, LAST), BETWEEN)
    others = background * unit.rows_per_person
    exact = isinstance(cost, PureDP) and question.method != "tree"
    law = law_of(question, domain, unit, cost, edges, others) if exact else None
    r, rest = unit.rows_per_person, universe[2:]
    pair = r * universe[:1] + rest, (r * universe[1:2] if unit.neighbours == "replace" else ()) + rest
    mechanism = run_of(question, domain, unit, cost, others)
    return Subject(name, unit, cost, mechanism, universe if law else (), pair=None if law else pair, runs=100, law=law)


def _selections() -> Iterator[Subject]:
    for unit in UNITS:
        beside = (NEXT, NEXT, NEXT) if unit.neighbours == "replace" else (LOW, LATE, LAST)
        end, few = (NEXT, ON_FEW[1:2]) if unit.neighbours == "replace" else (LAST, ON_FEW[2:])
        yield _selected("Median, exponential mechanism", Quantiles("x", at=[0.5]), unit, PURE, (end,))
        yield _selected("Median, permute-and-flip", Quantiles("x", at=[0.5]), unit, PURE, few)
        yield _selected("Quartiles, JointExp", Quantiles("x"), unit, PURE, beside)
        yield _selected("Quartiles, by halving", Quantiles("x", method="recursive"), unit, PURE, (LAST,))
        yield _selected("Quartiles, tree of counts", Quantiles("x", method="tree"), unit, PURE)
    for question in (Quantiles("x"), Quantiles("x", method="recursive")):
        yield _selected(f"Quartiles, {question.method}", question, Unit(), CONCENTRATED)


def _tree(name: str, question: AnyQuestion, unit: Unit, cost: CentralMeasure) -> Subject:
    """A tree of counts: on small data its exact loss is looked at where few rows are, and where there seem to be many."""
    subject = replace(_of(name, question, unit, cost, (0, 40)), universe=ON_LINE[::2], runs=1000)
    return replace(subject, least=0.2) if unit.neighbours == "replace" else subject


def _chosen(name: str, question: AnyQuestion, unit: Unit) -> Subject:
    """A tree whose splits are chosen by the data: where they are is seen, too. Its exact audits are among the tests."""
    mechanism, r = of_question(question, LINE, unit, PURE), unit.rows_per_person

    def run(rows: Rows, noise: Bits) -> Published:
        seen = mechanism(rows, noise)
        return Published((*seen.public.cover.cut.tolist(), *seen.numbers), seen.public)

    pair = ((0.5,), (1.5,)) + r * ((2.5,),), ((0.5,), (1.5,)) + (r * ((0.5,),) if unit.neighbours == "replace" else ())
    return Subject(name, unit, PURE, run, pair=pair, runs=1000)


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


KEYED = Domain(k=Keys(), x=Interval(0, 2, step=1))
NAMES = range(4)
SELECTED = ApproxDP("1", "0.01")


def _keys(axes: tuple[str, ...], selection: Rule, rows_per_person: int, relation: Neighbours) -> Subject:
    """One person's rows lie in a key near its threshold; under replace they move to a key that nobody else has."""
    unit = Unit(rows_per_person=rows_per_person, neighbours=relation)
    question = Histogram(axes, selection=selection)
    lattice = question.needs(KEYED)
    place = [list(KEYED).index(name) for name in axes]

    counted = cache(lambda rows: count(tuple(tuple(row[i] for i in place) for row in rows), lattice))

    def run(rows: Rows, noise: Bits) -> Published:
        release = question.answer(counted(rows), unit, SELECTED, noise)
        beside = question.needs(KEYED).size // MOST_KEYS
        counts = release.counts.reshape(len(release.counts) // beside, beside).tolist()
        shown = dict(zip(map(int, release.cell_names("k")), counts, strict=True))
        numbers = tuple(x for name in NAMES for x in (int(name in shown), *shown.get(name, [0] * beside)))
        return Published(numbers, release)

    near = key_law(SELECTED, unit, selection).threshold - 1
    rest: Rows = ((0.0, 0.5), (0.0, 1.5), *(near * ((1.0, 0.5),)))
    moved = rest + rows_per_person * ((2.0, 1.5),) if relation == "replace" else rest
    pair = rest + rows_per_person * ((1.0, 0.5),), moved
    return Subject(f"Histogram of keys, {selection}", unit, SELECTED, run, pair=pair, runs=2000)


STEPS: Rows = ((0.0,), (3.0,), (7.0,))


def _counter(unit: Unit, cost: CentralMeasure) -> Subject:
    """A running total over ten steps: a tree of two levels, or a Toeplitz matrix in units of 1/32."""
    reach = Reach(unit, (0, 1))
    if isinstance(cost, ZCDP):
        return Subject("Counter, Toeplitz", unit, cost, of_machine(toeplitz(10, 1, reach, cost, 5), 10), STEPS, runs=1000)
    tree = ElderTree(10, (3,), DiscreteLaplace(2 * reach.l1 / PURE.epsilon))
    return Subject("Counter, tree", unit, cost, of_machine(tree, 10), STEPS, runs=1000)


RELATIONS: tuple[Neighbours, ...] = ("add-remove", "replace")
UNITS = [Unit(rows_per_person=r, neighbours=relation) for r, relation in product((1, 2), RELATIONS)]
COSTS: tuple[CentralMeasure, ...] = (PURE, CONCENTRATED)

SUBJECTS: tuple[Subject, ...] = (
    *(_of("Histogram", Histogram("x", bins=3), *promise) for promise in product(UNITS, COSTS)),
    *(_of("Uniform grid, given", UniformPartitioner(partitions=3), *promise) for promise in product(UNITS, COSTS)),
    *(_of("Uniform grid, noisy rows", UniformPartitioner(theta=1), *promise, FIRST_DRAWS) for promise in product(UNITS, COSTS)),
    *_selections(),
    *(_keys(("k",), rule, r, relation) for rule, r, relation in zip(RULES, (2, 1, 1), (*RELATIONS, "add-remove"), strict=True)),
    _keys(("k", "x"), "truncated-geometric", 1, "add-remove"),
    *(_counter(unit, PURE) for unit in UNITS),
    *(_counter(unit, CONCENTRATED) for unit in UNITS if unit.neighbours == "add-remove"),
    _tree("Binary partition", BinaryPartitioner(depth=2, stop_below=1), UNITS[0], PURE),
    _tree("Binary partition", BinaryPartitioner(depth=2, stop_below=1), UNITS[3], CONCENTRATED),
    _tree("Adaptive grid", AdaptiveGridPartitioner(), UNITS[2], PURE),
    _tree("Automatic partition", AutoPartitioner(), UNITS[0], PURE),
    _tree("Automatic partition", AutoPartitioner(), UNITS[1], CONCENTRATED),
    _chosen("Median partition", MedianPartitioner(depth=1), UNITS[3]),
    _chosen("Multi-quantile partition", MultiQuantilePartitioner(depth=1, fanout=3), UNITS[0]),
    _chosen("PrivTree", PrivTreePartitioner(), UNITS[1]),
    _end_to_end(1, "add-remove"),
    _end_to_end(2, "replace"),
)
"""Every subject, in the order in which they are shown."""
