"""What a selection spends: its law on small data, outcome by outcome, as production would draw it.

A selection has no additive noise that a script could replace. Its law is asked for instead:
``AxisMethod.log_probabilities`` reads it from the very weights that are drawn from, and the loss is the largest difference of two logarithms over all outcomes and neighbours.
That drawing follows those weights is tested apart, and sampled audits look at outputs alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import combinations, combinations_with_replacement, product
from typing import TypeAlias

import msgspec
import numpy as np

from sfumato.arrays import Array
from sfumato.audit.laws import log_mass
from sfumato.audit.likelihoods import Loss
from sfumato.audit.runs import Draws, Mechanism, Pair, Published, Rows, count
from sfumato.domain import Domain
from sfumato.histogram import Histogram
from sfumato.histogram.records import RecordBins, record_bins
from sfumato.lattice import EdgesAxis, Lattice
from sfumato.privacy.measures import CentralMeasure
from sfumato.privacy.unit import Unit
from sfumato.quantiles import Quantiles
from sfumato.quantiles.cells import cells_by_axis
from sfumato.random.bits import Bits

FAR = 1000  # a noisy number so far from the truth that a ratio of Laplace masses is at its largest
LawOf: TypeAlias = Callable[[Rows], Array]
"""From rows to ln P of every outcome, in one order for all rows."""


PARTS = 4
"""Sub-cells of a cell: few, so that edges within a cell can be looked at. The proof holds for any number."""


def law_of(
    question: Quantiles,
    domain: Domain,
    unit: Unit,
    cost: CentralMeasure,
    cells: tuple[int, ...],
    background: Rows = (),
) -> LawOf:
    """The law of quantiles of one axis, at edges of the given cells; ``background`` is always in the data, beside the rows.

    One quantile: all edges in each cell. Several: all tuples of the edges that open the cells. Where many edges share a group of equal
    rank whatever the rows are, those of one cell stand for all: the others are as likely.
    """
    lattice = question.needs(domain).lattice
    (method,) = question.axis_methods(lattice, unit, cost).values()
    method = msgspec.structs.replace(method, most_subcells=PARTS)
    inside = range(1 if len(question.at) > 1 else method.subcells)
    edges = [
        edge
        for cell in cells
        for edge in (cell * method.subcells + i for i in inside)
        if edge < method.edges
    ]
    chosen = np.array(list(combinations_with_replacement(edges, len(question.at))), dtype=np.int64)

    @lru_cache(maxsize=4096)
    def law(rows: Rows) -> Array:
        (counted,) = cells_by_axis(count(background + rows, lattice), None)
        return method.log_probabilities(counted, chosen)

    return law


def law_loss(law: LawOf, pairs: Iterable[Pair]) -> Loss:
    """The largest ln P(outcome | one) / P(outcome | other)."""
    found = [(float((law(one) - law(other)).max()), (one, other)) for one, other in pairs]
    loss, pair = max(found, key=lambda entry: entry[0])
    return Loss(max(loss, 0.0), pair)


def run_of(
    question: Quantiles, domain: Domain, unit: Unit, cost: CentralMeasure, background: Rows = ()
) -> Mechanism:
    """The production code from rows to the chosen edges."""
    lattice = question.needs(domain).lattice
    counted = lru_cache(maxsize=1024)(lambda rows: count(background + rows, lattice))

    def run(rows: Rows, noise: Bits) -> Published:
        edges = question.answer(counted(rows), unit, cost, noise).edges
        return Published(tuple(edges.tolist()), edges)

    return run


def bins_of(question: Histogram, domain: Domain, unit: Unit, cost: CentralMeasure) -> RecordBins:
    """How a histogram with ``records`` lays and pays for its bins."""
    assert question.records is not None
    return record_bins(question.needs(domain).lattice, question.records, question.rows, unit, cost)


def law_of_bins(bins: RecordBins, edges: tuple[int, ...], seen: Draws = ()) -> LawOf:
    """The law of bins by records: noisy rows, cuts among the given edges, and noisy counts, together.

    Of the noisy number of rows ``seen`` are looked at; of noisy counts the far ends, where ratios of Laplace masses are largest.
    """
    lattice, cells = Lattice((bins.axis,)), bins.axis.cells

    def outcomes(rows: Rows) -> Iterable[float]:
        cube = count(rows, lattice)
        held = np.flatnonzero(cube.counts)
        for noisy in seen or (bins.stated or 0,):
            first = 0.0 if bins.rows_law is None else log_mass(bins.rows_law, noisy - cube.total)
            for inner in combinations(edges, bins.bins(noisy) - 1):
                cut = first + bins.log_probability((held, cube.counts[held]), [0, *inner, cells])
                true = cube.binned([np.array([0, *inner, cells])])
                ends = [
                    [log_mass(bins.law, far - int(rows_in)) for far in (-FAR, FAR)]
                    for rows_in in true
                ]
                yield from (cut + sum(corner) for corner in product(*ends))

    return lru_cache(maxsize=4096)(lambda rows: np.array(list(outcomes(rows))))


def run_of_bins(
    question: Histogram, domain: Domain, unit: Unit, cost: CentralMeasure, most: int
) -> Mechanism:
    """The production code from rows to noisy rows, edges and counts, filled up to ``most`` bins."""
    lattice = question.needs(domain).lattice
    counted = lru_cache(maxsize=1024)(lambda rows: count(rows, lattice))

    def run(rows: Rows, noise: Bits) -> Published:
        release = question.answer(counted(rows), unit, cost, noise)
        (axis,) = release.lattice.axes
        assert isinstance(axis, EdgesAxis)
        filled = [
            [*found, *[0] * (most - len(found))]
            for found in (axis.bounds[1:-1], release.counts.tolist())
        ]
        return Published((release.rows or 0, *map(int, filled[0]), *filled[1]), release)

    return run
