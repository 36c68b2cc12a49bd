"""The uniform grid: a noisy number of rows decides how fine it is, then every cell is counted.

With ``stop_below`` or ``shares`` the grid is laid in two steps: blocks of cells first, then the
cells of each block. A block whose noisy count is small stays one cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import msgspec
import numpy as np

from sfumato.answers import Counts, CountsPreview, Preview
from sfumato.basics import MOST_PARTITION_CELLS, Array, positive, settle, split, whole
from sfumato.domain import Domain, Lattice, LatticeAxis, finest
from sfumato.errors import UsageError
from sfumato.mechanisms import Law, add_noise, count_law
from sfumato.privacy import (
    CentralMeasure,
    Proof,
    Shares,
    Unit,
    of_units,
    share,
    units_of,
    without_delta,
)
from sfumato.questions.partition.estimates import Edges
from sfumato.questions.partition.fixed_depth import check_shares, read_stop_below
from sfumato.questions.partition.growth import Draft, split_at_edges
from sfumato.questions.partition.release import OverAxes, Partition
from sfumato.random.bits import Bits

# The share of the number of rows, where no shares are stated.
ROWS_SHARE = Fraction(1, 50)


# --- in two steps ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """How fine the grid is, and what the counts of its blocks may spend.

    Attributes
    ----------
    cells, blocks : list of int
        Cells and blocks along each axis.
    for_blocks : int
        In whole units; 0: blocks are not counted.
    """

    cells: list[int]
    blocks: list[int]
    for_blocks: int


@dataclass(frozen=True)
class Budget:
    """What each count on a path may spend, in whole units. A cell takes what its path left over.

    Attributes
    ----------
    total : int
        Of every path from the root to a cell.
    rows : int or None
        For the number of rows; None: it is not counted.
    blocks : int or None
        For the count of a block. None: the first noisy count decides.
    """

    total: int
    rows: int | None
    blocks: int | None

    @classmethod
    def of(cls, total: int, shares: Shares | None, *, counts_rows: bool) -> Budget:
        """Divide a cost by the shares stated; without any, rows get a fiftieth.

        Parameters
        ----------
        total : int
        shares : Shares or None
        counts_rows : bool
            Whether a noisy number of rows decides how many cells there are.
        """
        if shares is None:
            return cls(total, math.floor(total * ROWS_SHARE) if counts_rows else None, None)
        _, for_rows, for_blocks = split(total, shares.weights)
        return cls(total, for_rows if counts_rows else None, for_blocks)

    @property
    def after_rows(self) -> int:
        """What a path has left once the rows were counted."""
        return self.total - (self.rows or 0)

    @property
    def least_for_blocks(self) -> int:
        """The least that the count of a block may spend; 0: blocks are not counted."""
        if self.blocks is not None:
            return self.blocks
        return _geometric(self.after_rows, MOST_PARTITION_CELLS)

    @property
    def least_for_cells(self) -> int:
        """The least that the count of a cell may spend."""
        # Where the fan-out decides, cells get at least as much as blocks.
        most = self.after_rows // 2 if self.blocks is None else self.blocks
        return self.after_rows - most

    def layout(self, cells_per_axis: Callable[[int], list[int]]) -> Layout:
        """Choose the grid, and what its blocks may spend.

        Without shares the fan-out f decides: blocks and cells share what the rows left as 1 to
        f^(1/3), which is the geometric allocation over two levels (Cormode et al. 2012).
        """
        for_blocks = self.blocks
        if for_blocks is None:
            first = cells_per_axis(self.after_rows)
            blocks = blocks_per_axis(first)
            for_blocks = _geometric(self.after_rows, math.prod(first) / math.prod(blocks))
        # Finer blocks leave less for the cells, so the grid is chosen after the blocks' share.
        cells = cells_per_axis(self.after_rows - for_blocks)
        blocks = blocks_per_axis(cells)
        if self.rows and math.prod(blocks) == 1:
            # The only block is the root, and its rows are counted already.
            for_blocks = 0
        return Layout(cells, blocks, for_blocks)


def blocks_per_axis(cells: Sequence[int]) -> list[int]:
    """Return how many blocks lie along each axis: about the square root of the number of cells.

    >>> blocks_per_axis([23, 3, 1])
    [5, 2, 1]
    """
    return [max(1, round(math.sqrt(cells_along))) for cells_along in cells]


def grow(draft: Draft, layout: Layout, stop_below: float | None) -> Array:
    """Lay the blocks, count them, and lay the cells of those that are not below the limit.

    Returns
    -------
    int64 ndarray of shape (nodes,): the depth of every node.
    """
    shape = draft.lattice.shape
    cells_at = [np.arange(m + 1) * size // m for m, size in zip(layout.cells, shape, strict=True)]
    # Blocks begin and end where cells do.
    first_cell = [
        np.arange(b + 1) * m // b for b, m in zip(layout.blocks, layout.cells, strict=True)
    ]
    blocks_at = [at[first] for at, first in zip(cells_at, first_cell, strict=True)]
    root = np.zeros(1, np.int64)
    none = np.zeros((1, len(shape)), np.int64)
    all_blocks = np.array([layout.blocks], np.int64)
    blocks, first, last = split_at_edges(draft.growth, root, none, all_blocks, blocks_at)
    depths = draft.with_new_nodes(np.zeros(1, np.int64), 1)
    if layout.for_blocks:
        counts = draft.noisy_counts(blocks, layout.for_blocks)
        if stop_below is not None:
            goes_on = counts >= stop_below
            blocks = blocks[goes_on]
            first = first[goes_on]
            last = last[goes_on]
    begins = np.stack([at[first[:, i]] for i, at in enumerate(first_cell)], axis=1)
    ends = np.stack([at[last[:, i]] for i, at in enumerate(first_cell)], axis=1)
    split_at_edges(draft.growth, blocks, begins, ends, cells_at)
    # The only block may be the root itself; its parts are then the first level.
    return draft.with_new_nodes(depths, 2 if math.prod(layout.blocks) > 1 else 1)


def _geometric(units: int, fanout: float) -> int:
    """Return the part of the upper of two levels, in a geometric allocation."""
    return split(units, [Fraction(1), Fraction(fanout ** (1 / 3))])[0]


# --- the partitioner ------------------------------------------------------------------------------

MOST_CELLS = MOST_PARTITION_CELLS

# A grid has at most this many times the number of cells that is aimed at.
MOST_OVER = 4


class UniformPartitioner(
    OverAxes, frozen=True, tag="uniform", omit_defaults=True, forbid_unknown_fields=True
):
    """Where are the rows, on an even grid?

    EUGkM's rule chooses the number of cells: M = (N eps / theta)^(2d / (2 + d)) cells,
    ceil(M^(1/d)) per axis, at most 2^22 in all. Where that makes more than 4M cells, which can
    happen from three axes on, the last axes have one cell fewer. N is a noisy number of rows that
    takes a fiftieth of the cost (under replace: nothing). eps is the inverse of the noise scale of
    a cell, so several rows per person, and Gaussian noise, get the coarser grid that they need.

    Parameters
    ----------
    axes : str, list of str, or None
        Interval axes; None: all of them.
    partitions : int or None
        The number of cells to aim at. Then nothing is spent on a noisy number of rows.
    theta : float
        The constant of the rule.
    stop_below : number or None
        The grid is laid in two steps. The rows of about sqrt(M) equal blocks of cells are counted
        first. A block whose noisy count is below this stays one cell, and so does the whole domain
        if the noisy number of rows is below this. None: every block is divided.
    shares : Shares or None
        How the cost is divided between the counts of the cells (``release``), the noisy number of
        rows (``partition``; with ``partitions`` its share goes to the cells), and the counts of
        the blocks (``threshold``), which are published, and used by ``count`` and
        ``consistent()``. None: a fiftieth for the number of rows; then, with ``stop_below``, blocks
        and cells share the rest as 1 to f^(1/3), where f is the number of cells of a block, as the
        noisy number of rows decides it.
    heading, measured_in, label_names
        Words for people, by name: see ``Question``.

    Raises
    ------
    UsageError
        If an axis is not an Interval, ``partitions < 1`` or ``theta <= 0``, or if blocks are to be
        tested but have no share of the cost.

    Guarantee
    ---------
    {proof}

    With ``stop_below`` or ``shares``, instead:
    {proof_in_steps}

    >>> eugkm_cells(5000, 0.1, d=2)
    (50.0, 8)
    """

    partitions: int | None = None
    theta: float = 10
    stop_below: float | None = None
    shares: Shares | None = None

    name: ClassVar[str] = "Uniform grid"
    proof: ClassVar[Proof] = Proof(
        sensitivity=(
            "of the number of rows, rows_per_person; of the cells, L1 = rows_per_person (twice "
            "that under replace)."
        ),
        because=(
            "the grid depends on the data only through a noisy count that is paid for; the cells "
            "are then disjoint and public. Under add-remove the two costs add up; under replace "
            "one person cannot change both by the largest amount at once (see ``laws``)."
        ),
        not_covered="the choice of columns and bounds; the time the query takes.",
        source=(
            "Su, Cao, Li, Bertino, Jin, CODASPY 2016 (EUGkM); Dwork, McSherry, Nissim, Smith 2006,"
            " Thm 1."
        ),
    )
    proof_in_steps: ClassVar[Proof] = Proof(
        sensitivity=(
            "of the number of rows, of the counts of all blocks and of the counts of all cells, "
            "each L1 = rows_per_person (twice that under replace)."
        ),
        because=(
            "the grid, the shares and the blocks that are divided depend on the data only through "
            "noisy counts that are paid for; blocks are disjoint, and so are cells; and on every "
            "path from the root to a cell the costs add up to the whole, since a cell takes what "
            "its path left over."
        ),
        not_covered="the choice of columns and bounds; the time the query takes.",
        source=(
            "Su, Cao, Li, Bertino, Jin, CODASPY 2016 (EUGkM); Cormode et al., ICDE 2012 (shares of"
            " levels); costs chosen along a path: Rogers, Roth, Ullman, Vadhan 2016; Feldman, Zrnic"
            " 2021."
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        partitions = self.partitions
        if partitions is not None:
            partitions = whole(
                partitions,
                "partitions",
                1,
                obstacle="the number of cells is at least 1",
                remedy="Give a whole number, or leave it out",
            )
            whole(
                partitions,
                "partitions",
                1,
                MOST_CELLS,
                obstacle=f"the limit is {MOST_CELLS:,} cells",
                remedy="Give a smaller number",
            )
        theta = positive(self.theta, "theta")
        if not Fraction(1, 10**9) <= theta <= MOST_CELLS:
            raise UsageError(
                "theta",
                "it is so far from 10 that the number of cells would not depend on the rows",
                "Leave it at 10",
            )
        stop_below = read_stop_below(self.stop_below)
        if self.shares is not None:
            check_shares(self.shares)
        if stop_below is not None and self.shares is not None and not self.shares.threshold:
            raise UsageError(
                f"stop_below = {stop_below:g}",
                "blocks have no share of the cost to be counted with",
                "Give threshold a share, or leave stop_below or shares out",
            )
        if self.partitions is None and self.shares is not None and not self.shares.partition:
            raise UsageError(
                "shares without a share of partition",
                "a noisy number of rows decides how many cells there are, and nothing pays for it",
                "Give partition a share, or state partitions",
            )
        settle(self, partitions=partitions, theta=float(theta), stop_below=stop_below)

    def laws(self, cost: CentralMeasure, unit: Unit) -> tuple[Law | None, Law]:
        """The noise on the number of rows, if that is needed, and the noise on the cells.

        Together they spend exactly the cost. Under add-remove the number of rows takes a fiftieth.
        Under replace it costs nothing extra: both get the scale that the cells need alone, for the
        following reason. One person's a <= r rows become b <= r others, on the same grid. The
        number of rows changes by |a - b|, and the cells by at most a + b in L1. Now (|a - b| + a +
        b) / scale = 2 max(a, b) / scale <= 2r / scale. In L2 squared, (a - b)^2 + a^2 + b^2 is
        convex, and at most 2r^2 at the corners. If a second scan counts the grid, it may keep other
        rows of a person, but as many: a and b are the numbers of rows that count, at most r.
        """
        pure = without_delta(cost)
        if self.partitions is not None:
            return None, count_law(pure, unit)
        if unit.neighbours == "replace":
            law = count_law(pure, unit)
            return law, law
        for_rows, for_cells = share(pure, [ROWS_SHARE, Fraction(49, 50)])
        return count_law(for_rows, unit), count_law(for_cells, unit)

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> Preview:
        """Say how accurate the cells would be, and how many there would be for so many rows."""
        if self.in_steps:
            return self._preview_in_steps(domain, unit, cost, rows)
        rows_law, law = self.laws(cost, unit)
        lattice = self.needs(domain).lattice
        known = self.partitions if rows is None else rows
        cells = None if known is None else math.prod(self._per_axis(lattice, known, law))
        return CountsPreview(
            self.title, without_delta(cost), unit, cells, law, rows, self._notes(rows_law)
        )

    def answer(self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits) -> Partition:
        """Count all rows with noise, lay the grid, then count every cell with noise."""
        if self.in_steps:
            return self._answer_in_steps(counts, unit, cost, noise)
        rows_law, law = self.laws(cost, unit)
        cube = counts.on(counts.lattice)
        rows = None
        mechanism = f"{law} on each cell"
        if rows_law is not None:
            rows = int(add_noise(np.array([cube.total]), rows_law, noise)[0])
            mechanism += f", {rows_law} on the number of rows"
        # A noisy number of rows may be negative; 0 is a function of it, and costs nothing.
        per_axis = self._per_axis(counts.lattice, max(rows or 0, 0), law)
        axes = cube.lattice.axes
        finer_axes = []
        for axis, m in zip(axes, per_axis, strict=True):
            too_coarse = _is_too_coarse(axis, m, len(axes))
            finer_axes.append(msgspec.structs.replace(axis, cells=m) if too_coarse else axis)
        # Where an axis has too few points, the rows are counted again on the grid itself.
        finer = Lattice(tuple(finer_axes))
        if counts.serves(finer):
            axes = finer.axes
            cube = counts.on(finer)
        # The edges of m cells on R points are floor(i R / m).
        edges = []
        for axis, m in zip(axes, per_axis, strict=True):
            cells = min(m, axis.size)
            numbers = np.arange(cells + 1)
            edges.append(numbers * axis.size // cells)
        noisy = add_noise(cube.binned(edges).reshape(-1), law, noise)
        return Partition(
            made_by=self.name,
            lattice=cube.lattice,
            cover=Edges(tuple(edges)),
            noisy=noisy,
            laws=(law,),
            rows=rows,
            guarantee=self.promise(without_delta(cost), unit, mechanism, noise),
        )

    def counts_again(self, domain: Domain) -> bool:
        """Whether the grid may be so fine that the rows are counted on its own cells."""
        axes = self.needs(domain).lattice.axes
        m = _root_up(self.partitions or MOST_CELLS, len(axes))
        return not self.in_steps and any(_is_too_coarse(axis, m, len(axes)) for axis in axes)

    @property
    def in_steps(self) -> bool:
        """Whether blocks of cells are laid before the cells."""
        return self.stop_below is not None or self.shares is not None

    def budget(self, cost: CentralMeasure) -> Budget:
        """What each count may spend where blocks are laid before the cells."""
        return Budget.of(units_of(cost), self.shares, counts_rows=self.partitions is None)

    def _preview_in_steps(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None
    ) -> Preview:
        pure = without_delta(cost)
        lattice = self.needs(domain).lattice
        budget = self.budget(pure)

        def law(units: int) -> Law:
            return count_law(of_units(pure, units), unit)

        known = self.partitions if rows is None else rows
        least = budget.least_for_cells
        most = budget.after_rows
        cells = None
        if known is not None:
            layout = budget.layout(lambda units: self._in_lattice(lattice, known, law(units)))
            least = most = budget.after_rows - layout.for_blocks
            cells = math.prod(layout.cells) if self.stop_below is None else None
        # Every law that may be needed must exist: one that is too wide, or unpaid, raises here.
        law(budget.least_for_cells)
        if self.shares is None or self.shares.threshold:
            law(budget.least_for_blocks)
        worst = None if least == most else law(least)
        notes = self._notes(None if budget.rows is None else law(budget.rows))
        return CountsPreview(self.title, pure, unit, cells, law(most), rows, notes, worst)

    def _notes(self, rows_law: Law | None) -> tuple[str, ...]:
        notes: tuple[str, ...] = ()
        if rows_law is not None:
            notes = (f"a noisy number of rows ({rows_law}) decides how many cells there are",)
        if self.stop_below is not None:
            notes += (
                f"a block of cells whose noisy count is below {self.stop_below:g} stays one cell",
            )
        return notes

    def _in_lattice(self, lattice: Lattice, n: int, law: Law) -> list[int]:
        """Return cells per axis, at most one per lattice point."""
        per_axis = self._per_axis(lattice, n, law)
        return [min(cells, size) for cells, size in zip(per_axis, lattice.shape, strict=True)]

    def _answer_in_steps(
        self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits
    ) -> Partition:
        draft = Draft(counts.on(counts.lattice), unit, cost, noise)
        budget = self.budget(draft.cost)
        root = np.zeros(1, np.int64)
        n = self.partitions or 0
        goes_on = True
        if budget.rows is not None:
            rows = int(draft.noisy_counts(root, budget.rows)[0])
            goes_on = self.stop_below is None or rows >= self.stop_below
            n = max(rows, 0)
        depths = root
        if goes_on:
            layout = budget.layout(
                lambda units: self._in_lattice(counts.lattice, n, draft.law(units))
            )
            depths = grow(draft, layout, self.stop_below)
        return draft.release(
            self.name,
            depths,
            self.proof_in_steps,
            "noise on the number of rows, on blocks of cells and on cells",
        )

    def most_numbers(self, lattice: Lattice) -> int:
        """How many counts the answer may hold at most: of cells, and of blocks above them."""
        if self.in_steps:
            return super().most_numbers(lattice)
        aimed = MOST_CELLS if self.partitions is None else MOST_OVER * self.partitions
        return min(lattice.size, MOST_CELLS, aimed)

    def _per_axis(self, lattice: Lattice, n: int, law: Law) -> list[int]:
        """Cells per axis, at most one per lattice point of an axis that has steps of its own."""
        d = len(lattice.axes)
        if self.partitions is None:
            aim, m = eugkm_cells(n, law.effective_epsilon, d=d, theta=self.theta)
        else:
            aim = float(self.partitions)
            m = _root_up(self.partitions, d)
        per_axis = cells_per_axis(m, d, aim)
        # An axis of finest(d) points has no steps of its own: more cells mean a second scan.
        return [
            min(cells, axis.size) if axis.size < finest(d) else cells
            for cells, axis in zip(per_axis, lattice.axes, strict=True)
        ]


UniformPartitioner.examples = (
    UniformPartitioner("x", partitions=3),
    UniformPartitioner("x", theta=1),
    UniformPartitioner("x", theta=0.05, stop_below=1),
)


def eugkm_cells(n: float, epsilon: float, *, d: int, theta: float = 10) -> tuple[float, int]:
    """EUGkM's rule for the number of cells.

    Returns
    -------
    aim : float
        The number of cells M to aim at.
    per_axis : int
        m = ceil(M^(1/d)), limited so that m^d is at most 2^22. The product is checked in integers.
    """
    x = n * epsilon / theta
    # Beyond 1e60 the power could overflow; the limit on cells applies long before.
    aim = x ** (2 * d / (2 + d)) if x < 1e60 else math.inf
    return aim, cells_of_side(aim, d, MOST_CELLS)


def cells_of_side(aim: float, d: int, most: int) -> int:
    """Return the least m from 1 on with m^d >= aim, or the largest with m^d <= most."""
    # A root that is rounded up by floating point must not add a cell.
    side: int = math.ceil(min(aim, 1e60) ** (1 / d) * (1 - 1e-12))
    return max(1, min(side, root_down(most, d)))


def cells_per_axis(m: int, d: int, aim: float) -> list[int]:
    """Cells along each axis: m, or m - 1 along the last axes where m^d exceeds 4 times ``aim``.

    With one or two axes it never is. With many axes, m = 2 can mean a million cells for a few rows.

    >>> cells_per_axis(23, 2, 500.0), cells_per_axis(2, 6, 3.0)
    ([23, 23], [2, 2, 2, 1, 1, 1])
    """
    cells = [m] * d
    for axis in range(d - 1, -1, -1):
        if math.prod(cells) <= MOST_OVER * max(aim, 1):
            break
        cells[axis] = m - 1
    return cells


def _is_too_coarse(axis: LatticeAxis, m: int, d: int) -> bool:
    """Whether a default axis, one of d, has too few points for m cells."""
    # Axes with steps of their own are never divided below a step.
    # With fewer than 16 points per cell the rows are counted again, on the grid itself.
    return bool(axis.size == finest(d) and m * 16 > axis.size)


def _root_up(n: int, d: int) -> int:
    """Return the least m with m^d >= n."""
    m = root_down(n, d)
    return m if m**d == n else m + 1


def root_down(n: int, d: int) -> int:
    """Return the largest m with m^d <= n, in integers."""
    m: int = max(1, math.floor(float(n) ** (1 / d)))
    while m**d > n:
        m -= 1
    while (m + 1) ** d <= n:
        m += 1
    return m
