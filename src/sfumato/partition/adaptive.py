"""The adaptive grid: a coarse grid, and in each of its cells a grid as fine as its count allows."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import numpy as np

from sfumato.answers.counts import Counts
from sfumato.answers.preview import CountsPreview, Preview
from sfumato.basics.numbers import Array, split
from sfumato.domain.domain import Domain
from sfumato.mechanisms.noise import count_law
from sfumato.partition.draft import Draft
from sfumato.partition.partition import Partition
from sfumato.partition.partitioner import OverAxes
from sfumato.partition.tree.growth import MOST_CELLS
from sfumato.partition.tree.splitting import split_evenly
from sfumato.partition.uniform import cells_per_axis, eugkm_cells, root_down
from sfumato.privacy.allocation import of_units, units_of
from sfumato.privacy.guarantee import Proof
from sfumato.privacy.measures import CentralMeasure, without_delta
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

SHARES = [Fraction(1, 50), Fraction(49, 100), Fraction(49, 100)]
"""Shares of the number of rows, of the coarse cells and of the fine cells."""
FEWEST_COARSE_CELLS = 100
COARSER = 4
"""The coarse grid has this many times fewer cells per axis than EUGkM's rule."""
FINE_THETA = 5
"""Rows times epsilon that a fine cell should hold."""


class AdaptiveGridPartitioner(
    OverAxes, frozen=True, tag="adaptive-grid", omit_defaults=True, forbid_unknown_fields=True
):
    """Where are the rows, on a grid that is fine where there are many?

    Every path has three noisy counts. A noisy number of rows N lays a coarse grid of m1 cells per
    axis: max(10, ceil(sqrt(N eps / 10) / 4)) in two dimensions. Each coarse cell with a noisy count
    N' is divided again into m2 = ceil(sqrt(N' eps' / 5)) cells per axis, where eps' is what the
    fine cells spend. In d dimensions both numbers follow EUGkM's rule, (N eps / theta)^(2d / (2 +
    d)) cells, which for d = 2 is the rule of the paper. ``count`` and ``consistent()`` combine
    coarse and fine counts.

    Parameters
    ----------
    axes : str, list of str, or None
        Interval axes; None: all of them.
    heading, measured_in, label_names
        Words for people, by name: see ``Question``.

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
        sensitivity=(
            "of the number of rows, rows_per_person; of each level's cells, L1 = rows_per_person; "
            "twice those under replace."
        ),
        because=(
            "each grid depends on the data only through noisy counts that are paid for, its cells "
            "are disjoint, and the costs of the three counts on every path add up to the whole."
        ),
        not_covered="the choice of columns and bounds; the time the query takes.",
        source=(
            "Qardaji, Yang, Li, ICDE 2013 (AG); Su, Cao, Li, Bertino, Jin, CODASPY 2016 (more than"
            " two dimensions)."
        ),
    )

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> Preview:
        """Say how accurate the fine cells would be; how many there are depends on noisy counts."""
        self.needs(domain)
        # The laws of all three counts must exist: one that is too wide raises here.
        laws = [count_law(of_units(cost, units), unit) for units in split(units_of(cost), SHARES)]
        notes = ("noisy counts decide how many cells there are, and where",)
        return CountsPreview(self.title, without_delta(cost), unit, None, laws[-1], rows, notes)

    def answer(self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits) -> Partition:
        """Count all rows, lay and count the coarse grid, then lay and count the fine grids."""
        draft = Draft(counts.on(counts.lattice), unit, cost, noise)
        growth = draft.growth
        shape = np.array(counts.lattice.shape)
        for_rows, for_coarse, for_fine = split(draft.total, SHARES)
        root = np.zeros(1, np.int64)
        rows = int(draft.noisy_counts(root, for_rows)[0])
        coarse_epsilon = draft.law(for_coarse + for_fine).effective_epsilon
        per_axis = coarse_cells(max(rows, 0), coarse_epsilon, len(shape))
        cells = split_evenly(growth, root, np.minimum(per_axis, shape)[None])
        depth = np.zeros(growth.size, np.int64)
        depth[cells] = 1
        # On a lattice of one cell the coarse grid is the root, which has been counted.
        noisy = draft.noisy_counts(cells, for_coarse) if len(cells) > 1 else np.array([rows])
        fine_epsilon = draft.law(for_fine).effective_epsilon
        wanted = [fine_cells(max(n, 0), fine_epsilon, len(shape)) for n in noisy.tolist()]
        parts = _within_limit(np.array(wanted, np.int64))
        split_evenly(growth, cells, np.minimum(parts, growth.widths(cells)))
        return draft.release(
            self.name,
            draft.with_new_nodes(depth, 2),
            self.proof,
            "noise on the number of rows, on coarse cells and on fine cells",
        )


AdaptiveGridPartitioner.examples = (AdaptiveGridPartitioner("x"),)


def coarse_cells(n: float, epsilon: float, d: int) -> list[int]:
    """Cells of the coarse grid along each axis, m1, for n rows."""
    aim, _ = eugkm_cells(n, epsilon, d=d)
    aim = max(FEWEST_COARSE_CELLS, min(aim, 1e60) / COARSER**d)
    return cells_per_axis(_side(aim, d), d, aim)


def fine_cells(n: float, epsilon: float, d: int) -> list[int]:
    """Cells along each axis of the fine grid in a coarse cell of n rows, m2."""
    aim, _ = eugkm_cells(n, epsilon, d=d, theta=FINE_THETA)
    aim = min(aim, 1e60)
    return cells_per_axis(_side(aim, d), d, aim)


def _side(aim: float, d: int) -> int:
    """The least m with m^d >= aim, from 1 up to half of the public limit on cells."""
    # A root that is rounded up by floating point must not add a cell.
    side = math.ceil(aim ** (1 / d) * (1 - 1e-12))
    return int(max(1, min(side, root_down(MOST_CELLS // 2, d))))


def _within_limit(parts: Array) -> Array:
    """The same grids, all of them coarser while together they exceed half of the public limit.

    They are a function of noisy counts, so this costs nothing.
    """
    while parts.prod(axis=1, dtype=float).sum() > MOST_CELLS // 2 and parts.max() > 1:
        parts = np.maximum(1, parts * 3 // 4)
    return parts
