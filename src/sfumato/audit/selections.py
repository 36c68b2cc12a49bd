"""The exact audit of selections: the probability of each outcome, on small data.

A selection has no additive noise that a script could replace. So its law is read from the code:
``AxisMethod.log_probabilities`` computes it from the very weights that the selection draws by. The
loss is the largest difference of two log-probabilities, over all outcomes and neighbours; for rho,
the Renyi divergence of all outcomes. Other tests show that the draws follow the weights, and the
sampled audit looks at outputs alone.

The quantiles of a tree of counts follow from its noisy counts. So those are what is audited, and
that the answer follows from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, combinations_with_replacement, product
from typing import TypeAlias

import msgspec
import numpy as np

from sfumato.audit.likelihoods import Loss, largest
from sfumato.audit.runs import (
    Draws,
    Mechanism,
    NotAdditive,
    Pair,
    Published,
    Rows,
    Scripted,
    count,
    log_mass,
    log_sum,
    of_question,
)
from sfumato.basics import Array
from sfumato.domain import Domain, EdgesAxis, Lattice
from sfumato.privacy import ZCDP, CentralMeasure, Unit
from sfumato.questions.histogram import Histogram
from sfumato.questions.histogram.records import RecordBins, record_bins
from sfumato.questions.quantiles import Quantiles, ranks
from sfumato.questions.quantiles.cells import Cells, cells_by_axis, points_of
from sfumato.questions.quantiles.methods import AxisMethod
from sfumato.questions.quantiles.ranks import GapNoise, counted_gaps, rows_between
from sfumato.random.bits import Bits

# A noisy number this far from the truth has the largest ratio of Laplace probabilities.
FAR = 1000
# From rows to ln P of every outcome, in an order that is the same for all rows.
LawOf: TypeAlias = Callable[[Rows], Array]


# How far the probabilities of all outcomes may be from 1.
MISSING = 1e-9


@dataclass(frozen=True)
class Selecting:
    """A mechanism that selects, with the law of what it selects.

    Attributes
    ----------
    run : callable
        The mechanism: from rows and bits to ``Published``.
    law : callable
    """

    run: Mechanism
    law: LawOf

    def __call__(self, rows: Rows, noise: Bits) -> Published:
        """Select."""
        return self.run(rows, noise)


def axis_method(
    question: Quantiles, lattice: Lattice, unit: Unit, cost: CentralMeasure
) -> AxisMethod:
    """Return how the quantiles of the only axis are chosen."""
    (method,) = question.axis_methods(lattice, unit, cost).values()
    return method


def law_of(
    question: Quantiles,
    domain: Domain,
    unit: Unit,
    cost: CentralMeasure,
    cells: tuple[int, ...],
    background: Rows = (),
) -> LawOf:
    """Return the law of the quantiles of one axis, and for epsilon of the noisy rows between them.

    A selection that is given a noisy number of rows is paired with outcomes of that number. For rho
    it is the law of the quantiles alone, given one such number: what else is paid for is audited by
    itself, and the parts add up.

    Parameters
    ----------
    question, domain, unit, cost
        What is asked, and the promise.
    cells : tuple of int
        The outcomes are edges of these cells: for one quantile, all edges within each cell; for
        several, all tuples of the edges that open the cells. Other edges need not be enumerated if
        they have the rank of an enumerated edge whatever the rows are: they are as likely. Empty:
        all edges of all cells.
    background : tuple of rows
        Rows that are in every data set.
    """
    lattice = question.needs(domain).lattice
    method = axis_method(question, lattice, unit, cost)
    # So few that all edges within a cell can be enumerated. The proof holds for any number.
    method = msgspec.structs.replace(method, most_subcells=4)
    if cells:
        within = range(1 if len(question.at) > 1 else method.subcells)
        edges = [cell * method.subcells + i for cell in cells for i in within]
        edges = [edge for edge in edges if edge < method.edges]
    else:
        edges = list(range(method.edges))
    chosen = np.array(list(combinations_with_replacement(edges, len(question.at))), dtype=np.int64)

    @lru_cache(maxsize=4096)
    def law(rows: Rows) -> Array:
        ((counted,),) = cells_by_axis(count(background + rows, lattice))
        if isinstance(cost, ZCDP):
            # A number near the truth lets the selection tell most of the rows.
            total = None if method.total_law is None else len(background)
            return method.log_probabilities(counted, chosen, total)
        of_values = log_probabilities(method, counted, chosen)
        of_gaps = log_masses_of_gaps(method, counted, chosen)
        return (of_values.reshape(-1, len(chosen))[:, :, None] + of_gaps).reshape(-1)

    return law


def log_probabilities(method: AxisMethod, cells: Cells, chosen: Array) -> Array:
    """ln P of noisy numbers of rows, if there is one, and of chosen edges: float64 ndarray."""
    law = method.total_law
    if law is None:
        return method.log_probabilities(cells, chosen)
    true = int(cells.counts.sum())
    # Outcomes for the noisy number of rows: where its own ratio is largest, and about the truth.
    by_total = [
        log_mass(law, total - true) + method.log_probabilities(cells, chosen, total)
        for total in (-FAR, 0, 16, 18, 32, FAR)
    ]
    return np.concatenate(by_total)


def log_masses_of_gaps(method: AxisMethod, cells: Cells, chosen: Array) -> Array:
    """ln P of noisy numbers of rows between chosen edges: float64 ndarray of shape (k, outcomes).

    Of the noisy counts only far values are outcomes: there the ratio of Laplace masses is largest.

    Parameters
    ----------
    method : AxisMethod
        By selection.
    cells : Cells
    chosen : int64 ndarray of shape (k, m)
        Edges of sub-cells.
    """
    noise = method.rank_noise
    assert isinstance(noise, GapNoise)
    fine = cells.divided(method.subcells)
    masses = []
    for edges in chosen:
        points = points_of(edges, method.subcells, method.cells, method.snap)
        gaps = rows_between(fine, method.rank_edges(edges))
        counted = counted_gaps(points, method.cells, method.snap)
        # What has no count is no outcome.
        of_gaps = [
            [log_mass(noise.law, far - int(gap)) if has else 0.0 for far in (-FAR, FAR)]
            for gap, has in zip(gaps, counted, strict=True)
        ]
        masses.append([sum(corner) for corner in product(*of_gaps)])
    return np.array(masses)


def selection_loss(
    mechanism: Mechanism, pairs: Iterable[Pair], claim: CentralMeasure, alphas: Sequence[float]
) -> Loss:
    """Return the largest loss of a ``Selecting`` over pairs of data sets, in the unit of the claim.

    For rho the law must hold all outcomes.

    Raises
    ------
    NotAdditive
        If it does not.
    """
    assert isinstance(mechanism, Selecting)
    if isinstance(claim, ZCDP):
        law = mechanism.law
        orders = product(pairs, alphas)
        return largest(
            (_divergence(law(pair[0]), law(pair[1]), alpha) / alpha, pair) for pair, alpha in orders
        )
    return law_loss(mechanism.law, pairs)


def law_loss(law: LawOf, pairs: Iterable[Pair]) -> Loss:
    """Return the largest ln P(outcome | one) / P(outcome | other), over outcomes and pairs."""
    return largest((float((law(rows) - law(other)).max()), (rows, other)) for rows, other in pairs)


def _divergence(p: Array, q: Array, alpha: float) -> float:
    for law in (p, q):
        mass = math.exp(log_sum(law))
        if abs(mass - 1) > MISSING:
            raise NotAdditive(f"the outcomes of a selection have probability {mass:.6g} together")
    return log_sum(alpha * p + (1 - alpha) * q) / (alpha - 1)


def run_of(
    question: Quantiles, domain: Domain, unit: Unit, cost: CentralMeasure, background: Rows = ()
) -> Mechanism:
    """The code that publishes quantiles, from rows to the chosen edges and the noisy gaps."""
    mechanism = of_question(question, domain, unit, cost)
    return lambda rows, noise: mechanism(background + rows, noise)


def run_of_gaps(method: AxisMethod, lattice: Lattice, edges: Array) -> Mechanism:
    """The code that counts the rows between chosen edges of sub-cells, from rows to noisy counts.

    It is audited by itself, given the edges: those are paid for by the selection.
    """

    @lru_cache(maxsize=1024)
    def counted(rows: Rows) -> Cells:
        ((cells,),) = cells_by_axis(count(rows, lattice))
        return cells.divided(method.subcells)

    def run(rows: Rows, noise: Bits) -> Published:
        gaps = method.count_gaps(counted(rows), edges, noise)
        return Published(tuple(gaps.tolist()), {"gaps": gaps.tolist()})

    return run


def run_of_tree(question: Quantiles, domain: Domain, unit: Unit, cost: CentralMeasure) -> Mechanism:
    """Return the code that publishes the quantiles of a tree: from rows to all its noisy counts.

    The quantiles follow from these. Under a script, the question is answered with the same draws,
    and the release is published with the counts: whatever else it followed from would show.
    """
    lattice = question.needs(domain).lattice
    method = axis_method(question, lattice, unit, cost)
    counted = lru_cache(maxsize=1024)(lambda rows: count(rows, lattice))

    def run(rows: Rows, noise: Bits) -> Published:
        cube = counted(rows)
        ((cells,),) = cells_by_axis(cube)
        levels = ranks.noisy_counts(cells, method.laws, noise)
        numbers = tuple(np.concatenate(levels).tolist())
        if not isinstance(noise, Scripted):
            return Published(numbers, numbers)
        again = Scripted(tuple(noise.values))
        release = question.answer(cube, unit, cost, again)
        if again.laws != noise.laws:
            raise NotAdditive("the answer asks for other noise than its tree of counts")
        return Published(numbers, {"counts": numbers, "release": release})

    return run


def bins_of(question: Histogram, domain: Domain, unit: Unit, cost: CentralMeasure) -> RecordBins:
    """The bins of a histogram with ``records``: how their edges are chosen, and at what cost."""
    assert question.records is not None
    return record_bins(question.needs(domain).lattice, question.records, question.rows, unit, cost)


def law_of_bins(bins: RecordBins, edges: tuple[int, ...], seen: Draws = ()) -> LawOf:
    """Return the law of bins by records: noisy number of rows, cuts and noisy counts together.

    Parameters
    ----------
    bins : RecordBins
    edges : tuple of int
        The outcomes are cuts at these edges.
    seen : tuple of int
        The outcomes for the noisy number of rows. Empty: the number of rows is stated.
    """
    lattice = Lattice((bins.axis,))
    last = bins.axis.cells

    def outcomes(rows: Rows) -> Iterable[float]:
        cube = count(rows, lattice)
        held = np.flatnonzero(cube.counts)
        for noisy in seen or (bins.stated or 0,):
            of_rows = 0.0 if bins.rows_law is None else log_mass(bins.rows_law, noisy - cube.total)
            for inner in combinations(edges, bins.bins(noisy) - 1):
                cuts = [0, *inner, last]
                of_cuts = bins.log_probability((held, cube.counts[held]), cuts)
                # Of the noisy counts only far values: there the ratio of Laplace masses is largest.
                of_counts = [
                    [log_mass(bins.law, far - int(true)) for far in (-FAR, FAR)]
                    for true in cube.binned([np.array(cuts)])
                ]
                yield from (of_rows + of_cuts + sum(corner) for corner in product(*of_counts))

    return lru_cache(maxsize=4096)(lambda rows: np.array(list(outcomes(rows))))


def run_of_bins(
    question: Histogram, domain: Domain, unit: Unit, cost: CentralMeasure, most: int
) -> Mechanism:
    """Return the code that publishes such a histogram, from rows to noisy rows, edges and counts.

    Edges and counts are padded with zeros up to ``most`` bins.
    """
    lattice = question.needs(domain).lattice
    counted = lru_cache(maxsize=1024)(lambda rows: count(rows, lattice))

    def run(rows: Rows, noise: Bits) -> Published:
        release = question.answer(counted(rows), unit, cost, noise)
        (axis,) = release.lattice.axes
        assert isinstance(axis, EdgesAxis)
        edges = _padded([int(edge) for edge in axis.bounds[1:-1]], most)
        counts = _padded(release.counts.tolist(), most)
        return Published((release.rows or 0, *edges, *counts), release)

    return run


def _padded(numbers: list[int], length: int) -> list[int]:
    return numbers + [0] * (length - len(numbers))
