"""Running totals, and trees of counts for ranges."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.audit.runs import Mechanism, Published, Rows, of_machine, published_counts
from sfumato.audit.subjects.subject import CONCENTRATED, ON_LINE, PURE, UNITS, Subject, less_noise
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.privacy.measures import ZCDP, CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.questions.counters.methods import Contribution, toeplitz
from sfumato.questions.counters.tree import ElderTree
from sfumato.random.bits import Bits
from sfumato.streaming import TreeRangeSumQuery

STEPS: Rows = ((0.0,), (3.0,), (7.0,))


def _counter(unit: Unit, cost: CentralMeasure) -> Subject:
    """A running total over ten steps: a tree of two levels, or a Toeplitz matrix."""
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
    """All nodes of a tree of counts over three cells and an empty one."""

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


def subjects() -> Iterator[Subject]:
    """Every subject of this module."""
    for unit in UNITS:
        yield _counter(unit, PURE)
        if unit.neighbours == "add-remove":
            yield _counter(unit, CONCENTRATED)
    yield _ranges(UNITS[2], PURE)
    yield _ranges(UNITS[1], CONCENTRATED)
