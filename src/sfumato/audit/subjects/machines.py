"""Devices, counters and publishers as subjects of an audit.

They are the reports of one device, with no trusted curator; running totals, and trees of counts for
ranges; and the whole way from a table to a release, as users run it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from functools import cache

import msgspec
import numpy as np

from sfumato.answers import AnyQuestion
from sfumato.audit.runs import (
    Mechanism,
    Pair,
    Published,
    Rows,
    of_machine,
    published,
    published_counts,
)
from sfumato.audit.subjects.subject import (
    CONCENTRATED,
    LINE,
    ON_LINE,
    PURE,
    UNITS,
    Subject,
    less_noise,
)
from sfumato.basics import Array
from sfumato.domain import Domain
from sfumato.local import BPM, MultivariateLaplace
from sfumato.mechanisms import DiscreteLaplace, Drawn, Script, Selection
from sfumato.privacy import ZCDP, CentralMeasure, Neighbours, PureDP, Unit
from sfumato.publishing.publisher import Publisher
from sfumato.questions.counters.methods import Contribution, toeplitz
from sfumato.questions.counters.tree import ElderTree
from sfumato.questions.histogram import Histogram
from sfumato.random.bits import Bits, Words, override
from sfumato.streaming import TreeRangeSumQuery

APART: Pair = (((0.25, 0.5),), ((0.75, 0.5),))


def _device(name: str, made: Callable[[int], BPM | MultivariateLaplace]) -> Subject:
    """Two points half a side of the unit cube apart.

    An epsilon of 2 per unit of distance is 1 for these two, so that the claim is epsilon = 1.
    """

    def spending(times: int) -> Mechanism:
        mechanism = made(2 * times)

        def run(rows: Rows, noise: Bits) -> Published:
            report = mechanism.place(mechanism.draw_cells(rows, noise))[0]
            # Coarse outputs, so that few runs fill each of them.
            return Published(tuple(int(axis) for axis in (report * 4) // 1), None)

        return run

    unit = Unit(neighbours="replace")
    return Subject(name, unit, PURE, spending(1), pairs=(APART,), exact=None, weaker=spending)


def device_subjects() -> Iterator[Subject]:
    """Yield the reports of one device."""
    yield _device("BPM report, half a side apart", lambda epsilon: BPM(epsilon, 3, 2))
    yield _device(
        "Laplace report, half a side apart", lambda epsilon: MultivariateLaplace(epsilon, 2)
    )


STEPS: Rows = ((0.0,), (3.0,), (7.0,))


def _counter(unit: Unit, cost: CentralMeasure) -> Subject:
    """Return a running total over ten steps: a tree of two levels, or a Toeplitz matrix."""
    contribution = Contribution(unit, (0, 1))

    def spending(times: int) -> Mechanism:
        spent = less_noise(cost, times)
        if isinstance(spent, ZCDP):
            return of_machine(toeplitz(10, 1, contribution, spent, 5), 10)
        scale = 2 * contribution.l1 / spent.epsilon
        return of_machine(ElderTree(10, (3,), DiscreteLaplace(scale)), 10)

    name = "Counter, Toeplitz" if isinstance(cost, ZCDP) else "Counter, tree"
    return Subject(name, unit, cost, spending(1), STEPS, runs=3000, weaker=spending)


def _ranges(unit: Unit, cost: CentralMeasure) -> Subject:
    """Return all nodes of a tree of counts over three cells and an empty one."""

    def spending(times: int) -> Mechanism:
        spent = less_noise(cost, times)

        def run(rows: Rows, noise: Bits) -> Published:
            cells = np.array([int(row[0]) for row in rows], dtype=np.int64)
            counts = np.bincount(cells, minlength=4)
            tree = TreeRangeSumQuery(2, unit).noisy_tree(counts, spent, noise)
            return published_counts(np.concatenate(tree.layers))

        return run

    # The root counts all rows, which under replace tells nothing.
    least = 0.98 if unit.neighbours == "add-remove" else 0.6
    return Subject("Range tree", unit, cost, spending(1), ON_LINE, least=least, weaker=spending)


class _WithKey(Script):
    """A script that also hands out the key by which each person's rows are chosen.

    Here all rows of a person are alike, so that the key decides nothing. Noise that is drawn from
    raw bits does not pass for noise: there would be fewer draws than published numbers.
    """

    def __init__(self, script: Script) -> None:
        self.script = script

    def words(self, count: int) -> Words:
        """Return a constant key."""
        return np.zeros(count, np.uint64)

    def draw(self, law: Drawn, size: int) -> Array:
        """Return what the script hands out."""
        return self.script.draw(law, size)

    def choose(self, selection: Selection) -> Array:
        """Return what the script hands out."""
        return self.script.choose(selection)


def of_publisher(question: AnyQuestion, domain: Domain, unit: Unit, cost: PureDP) -> Mechanism:
    """From a table to a release as users run it.

    Rows are bounded for each person, charged, counted, stored and read back. The first column of a
    row is the number of a person; the others are the axes of the domain. The receipt is left out:
    its random identifier and its date differ from run to run.
    """

    @cache
    def publisher(rows: Rows) -> Publisher:
        import pyarrow as pa

        from sfumato.data import source

        names = (str(unit.person), *domain)
        values = [list(column) for column in zip(*rows, strict=True)]
        columns = dict(zip(names, values, strict=True))
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
        with override(_WithKey(noise) if isinstance(noise, Script) else noise):
            # Fresh: otherwise the publisher gives the stored answer, and asks for no noise.
            release = publisher(rows).release(question, epsilon=cost.epsilon, fresh=True)
        # A receipt states a time and random names, in which equal answers differ.
        return published(msgspec.structs.replace(release, receipt=None))

    return run


def _end_to_end(rows_per_person: int, neighbours: Neighbours) -> Subject:
    """One person has five rows, more than the limit; under replace they lie elsewhere."""
    unit = Unit(rows_per_person=rows_per_person, neighbours=neighbours, person="who")
    rest: Rows = ((2.0, 1.5),)
    swapped = rest + 5 * ((1.0, 2.5),) if neighbours == "replace" else rest
    pair: Pair = rest + 5 * ((1.0, 0.5),), swapped

    def spending(times: int) -> Mechanism:
        return of_publisher(Histogram("x", bins=3), LINE, unit, PureDP(times * PURE.epsilon))

    return Subject(
        "Publisher, table to release",
        unit,
        PURE,
        spending(1),
        universe=rest,
        pairs=(pair, pair[::-1]),
        runs=250,
        weaker=spending,
    )


def subjects() -> Iterator[Subject]:
    """Yield every subject that is no question's example."""
    for unit in UNITS:
        yield _counter(unit, PURE)
        if unit.neighbours == "add-remove":
            yield _counter(unit, CONCENTRATED)
    yield _ranges(UNITS[2], PURE)
    yield _ranges(UNITS[1], CONCENTRATED)
    yield from device_subjects()
    yield _end_to_end(1, "add-remove")
    yield _end_to_end(2, "replace")
