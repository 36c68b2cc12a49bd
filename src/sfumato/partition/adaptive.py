"""The adaptive grid: a coarse grid of noisy counts, and in each of its cells a grid as fine as its count deserves."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.answers.counts import Counts
from sfumato.answers.preview import CountsPreview, Preview
from sfumato.arrays import Array
from sfumato.domain import Domain
from sfumato.mechanisms.noise import count_law
from sfumato.numbers import split
from sfumato.partition.axes import OverAxes
from sfumato.partition.growing import MOST_CELLS, Draft
from sfumato.partition.partition import Partition
from sfumato.partition.steps import split_evenly
from sfumato.partition.uniform import cells_per_axis, eugkm_cells, root_down
from sfumato.privacy.allocation import of_units, units_of
from sfumato.privacy.guarantee import Proof
from sfumato.privacy.measures import CentralMeasure, without_delta
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

SHARES = [
    Fraction(1, 50),
    Fraction(49, 100),
    Fraction(49, 100),
]  # of the number of rows, the coarse cells, the fine cells
FEWEST, COARSER, FINE_THETA = (
    100,
    4,
    5,
)  # coarse cells at least; how much coarser per axis than EUGkM's rule; rows per fine cell


class AdaptiveGridPartitioner(
    OverAxes, frozen=True, tag="adaptive-grid", omit_defaults=True, forbid_unknown_fields=True
):
    """Where are they, on a grid that is fine where there are many? Two levels of grids, from three noisy counts on every path.

    A noisy number of rows N lays a coarse grid of m1 cells per axis, max(10, ceil(sqrt(N eps / 10) / 4)) in two dimensions. Each
    coarse cell with a noisy count N' is divided again into m2 = ceil(sqrt(N' eps' / 5)) per axis, eps' being what the fine cells
    spend. In d dimensions both follow EUGkM's rule, (N eps / theta)^(2d / (2 + d)) cells, which for d = 2 is the paper's. Coarse
    and fine counts are made consistent in ``count`` and by ``consistent()``.

    Parameters
    ----------
    axes : str, list of str, or None
        Interval axes; None: all of them.

    Raises
    ------
    UsageError
        If an axis is not an Interval.

    Guarantee
    ---------
    {proof}

    >>> coarse_cells(1_000_000, 1.0, 2), fine_cells(1000, 0.5, 2)
    ([80, 80], [10, 10])
    """

    name: ClassVar[str] = "Adaptive grid"
    proof: ClassVar[Proof] = Proof(
        sensitivity="of the number of rows, rows_per_person; of each level's cells, L1 = rows_per_person; twice those under replace.",
        because="each grid depends on the data only through noisy counts that are paid for, its cells are disjoint, and the "
        "costs of the three counts on every path add up to the whole.",
        not_covered="the choice of columns and bounds; the time the query takes.",
        source="Qardaji, Yang, Li, ICDE 2013 (AG); Su, Cao, Li, Bertino, Jin, CODASPY 2016 (more than two dimensions).",
    )

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> Preview:
        """Say how accurate the fine cells would be; how many there are depends on noisy counts."""
        notes = ("noisy counts decide how many cells there are, and where",)
        self.needs(domain)
        *_, fine = [
            count_law(of_units(cost, units), unit) for units in split(units_of(cost), SHARES)
        ]  # each of them must exist
        return CountsPreview(self.title, without_delta(cost), unit, None, fine, rows, notes)

    def answer(self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits) -> Partition:
        """Count all, lay the coarse grid, count it, lay the fine grids, count them."""
        draft = Draft(counts.on(counts.lattice), unit, cost, noise)
        look, coarse, fine = split(draft.total, SHARES)
        growth, shape = draft.growth, np.array(counts.lattice.shape)
        rows = int(draft.look(np.zeros(1, np.int64), look)[0])
        m1 = coarse_cells(max(rows, 0), draft.law(coarse + fine).effective_epsilon, len(shape))
        cells = split_evenly(growth, np.zeros(1, np.int64), np.minimum(m1, shape)[None])
        depth = np.zeros(len(growth.axis), np.int64)
        depth[cells] = 1
        # On a lattice of one cell the coarse grid is the root, which has been counted.
        noisy = draft.look(cells, coarse) if len(cells) > 1 else np.array([rows])
        epsilon = draft.law(fine).effective_epsilon
        m2 = np.array(
            [fine_cells(max(n, 0), epsilon, len(shape)) for n in noisy.tolist()], np.int64
        )
        parts = np.minimum(_fitting(m2), growth.widths(cells))
        split_evenly(growth, cells, parts)
        depth = np.concatenate([depth, np.full(len(growth.axis) - len(depth), 2)])
        return draft.release(
            self.name,
            depth,
            self.proof,
            "noise on the number of rows, on coarse cells and on fine cells",
        )


AdaptiveGridPartitioner.examples = (AdaptiveGridPartitioner("x"),)


def coarse_cells(n: float, epsilon: float, d: int) -> list[int]:
    """Cells of the coarse grid along each axis, m1."""
    aim = max(FEWEST, min(eugkm_cells(n, epsilon, d=d)[0], 1e60) / COARSER**d)
    return cells_per_axis(_side(aim, d), d, aim)


def fine_cells(n: float, epsilon: float, d: int) -> list[int]:
    """Cells along each axis of the fine grid in a coarse cell of n rows, m2."""
    aim = min(eugkm_cells(n, epsilon, d=d, theta=FINE_THETA)[0], 1e60)
    return cells_per_axis(_side(aim, d), d, aim)


def _side(aim: float, d: int) -> int:
    """The least m with m^d >= aim, from 1 up to the public limit on cells."""
    return int(max(1, min(math.ceil(aim ** (1 / d) * (1 - 1e-12)), root_down(MOST_CELLS // 2, d))))


def _fitting(parts: Array) -> Array:
    """The same, coarser where there would be more fine cells in all than the public limit: a function of noisy counts."""
    while parts.prod(axis=1, dtype=float).sum() > MOST_CELLS // 2 and parts.max() > 1:
        parts = np.maximum(1, parts * 3 // 4)
    return parts
