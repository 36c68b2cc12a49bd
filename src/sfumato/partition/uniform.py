"""The uniform grid: one noisy count decides how fine it is, then every cell is counted once."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import ClassVar

import msgspec
import numpy as np

from sfumato.answers.counts import Counts
from sfumato.answers.preview import CountsPreview, Preview
from sfumato.arrays import Array
from sfumato.cube import Cube
from sfumato.domain import Domain, Lattice, finest
from sfumato.errors import UsageError, shown
from sfumato.limits import MOST_PARTITION_CELLS
from sfumato.mechanisms.noise import Law, add_noise, count_law
from sfumato.numbers import positive, settle
from sfumato.partition.axes import OverAxes
from sfumato.partition.partition import Partition
from sfumato.partition.tree.cover import Edges
from sfumato.privacy.allocation import share
from sfumato.privacy.guarantee import Proof
from sfumato.privacy.measures import CentralMeasure, without_delta
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

MOST_CELLS = MOST_PARTITION_CELLS
MOST_OVER = 4  # times the number of cells that is aimed at
LEAST_THETA = Fraction(1, 10**9)
LOOK, GRID = (
    Fraction(1, 50),
    Fraction(49, 50),
)  # shares of the noisy number of rows, and of the cells
FINE_ENOUGH = (
    16  # lattice points per cell; below that the rows are counted again on the grid itself
)


class UniformPartitioner(
    OverAxes, frozen=True, tag="uniform", omit_defaults=True, forbid_unknown_fields=True
):
    """Where are they, on an even grid? EUGkM's rule picks the number of cells from a noisy number of rows.

    M = (N eps / theta)^(2d / (2 + d)) cells, ceil(M^(1/d)) per axis, at most 2^22 in all; where that is more than 4M, as it can be
    from three axes on, one fewer along the last of them. N is a noisy count that takes a fiftieth of the cost (under replace:
    nothing); eps stands for the inverse of the noise scale of a cell, so that several rows per person, and Gaussian noise, get the
    coarser grid that they need.

    Parameters
    ----------
    axes : str, list of str, or None
        Interval axes; None: all of them.
    partitions : int or None
        The number of cells to aim at; then nothing is spent on a noisy number of rows.
    theta : float
        The rule's constant.

    Raises
    ------
    UsageError
        If an axis is not an Interval, ``partitions < 1`` or ``theta <= 0``.

    Guarantee
    ---------
    {proof}

    >>> eugkm_cells(5000, 0.1, d=2)
    (50.0, 8)
    """

    partitions: int | None = None
    theta: float = 10

    name: ClassVar[str] = "Uniform grid"
    proof: ClassVar[Proof] = Proof(
        sensitivity="of the number of rows, rows_per_person; of the cells, L1 = rows_per_person (twice that under replace).",
        because="the grid depends on the data only through a noisy count that is paid for; the cells are then disjoint and public. "
        "Under add-remove the two costs add up; under replace one person cannot move both by their most (see ``laws``).",
        not_covered="the choice of columns and bounds; the time the query takes.",
        source="Su, Cao, Li, Bertino, Jin, CODASPY 2016 (EUGkM); Dwork, McSherry, Nissim, Smith 2006, Thm 1.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        partitions: object = self.partitions
        if partitions is not None and (
            isinstance(partitions, bool) or not isinstance(partitions, int) or partitions < 1
        ):
            obstacle = "the number of cells is at least 1"
            raise UsageError(
                f"partitions = {shown(partitions)}",
                obstacle,
                "Give a whole number, or leave it out",
            )
        if partitions is not None and partitions > MOST_CELLS:
            raise UsageError(
                f"partitions = {shown(partitions)}",
                f"the limit is {MOST_CELLS:,} cells",
                "Give a smaller number",
            )
        theta = positive(self.theta, "theta")
        if not LEAST_THETA <= theta <= MOST_CELLS:
            raise UsageError(
                "theta",
                "it is so far from 10 that the number of cells would not depend on the rows",
                "Leave it at 10",
            )
        msgspec.structs.force_setattr(self, "theta", float(theta))
        settle(self)

    def laws(self, cost: CentralMeasure, unit: Unit) -> tuple[Law | None, Law]:
        """The noise on the number of rows, if it is needed, and on the cells: together they spend exactly the cost.

        Under add-remove the number of rows takes a fiftieth. Under replace it is free. One person's a <= r rows become
        b <= r others, on one and the same grid: the number of rows moves by |a - b|, the cells by at most a + b in L1, and
        (|a - b| + a + b) / scale = 2 max(a, b) / scale <= 2r / scale. In L2 squared, (a - b)^2 + a^2 + b^2 is convex and at
        most 2r^2 at the corners. So both get the scale that the cells need alone. (If the grid is counted by a second scan,
        other rows of a person may be kept, but as many: a and b are the numbers of rows that count, at most r.)
        """
        pure = without_delta(cost)
        if self.partitions is not None:
            return None, count_law(pure, unit)
        if unit.neighbours == "replace":
            law = count_law(pure, unit)
            return law, law
        look, grid = share(pure, [LOOK, GRID])
        return count_law(look, unit), count_law(grid, unit)

    def preview(
        self, domain: Domain, unit: Unit, cost: CentralMeasure, rows: int | None = None
    ) -> Preview:
        """Say how accurate the cells would be, and how many there would be for a stated number of rows."""
        look, law = self.laws(cost, unit)
        lattice = self.needs(domain).lattice
        known = self.partitions if rows is None else rows
        cells = None if known is None else math.prod(self._per_axis(lattice, known, law))
        notes = (
            ()
            if look is None
            else (f"a noisy number of rows ({look}) decides how many cells there are",)
        )
        return CountsPreview(self.title, without_delta(cost), unit, cells, law, rows, notes)

    def answer(self, counts: Counts, unit: Unit, cost: CentralMeasure, noise: Bits) -> Partition:
        """Look at the noisy number of rows, lay the grid, count every cell with exact noise."""
        look, law = self.laws(cost, unit)
        cube = counts.on(counts.lattice)
        rows = None if look is None else int(add_noise(np.array([cube.total]), look, noise)[0])
        per_axis = self._per_axis(counts.lattice, max(rows or 0, 0), law)
        cube, edges = _lay(counts, cube, per_axis)
        noisy = add_noise(cube.binned(list(edges)).reshape(-1), law, noise)
        mechanism = f"{law} on each cell" + (
            "" if look is None else f", {look} on the number of rows"
        )
        guarantee = self.promise(without_delta(cost), unit, mechanism, noise)
        return Partition(
            made_by=self.name,
            lattice=cube.lattice,
            cover=Edges(edges),
            noisy=noisy,
            laws=(law,),
            rows=rows,
            guarantee=guarantee,
        )

    def most_numbers(self, lattice: Lattice) -> int:
        """How many counts the answer may hold at most: of cells only."""
        aimed = MOST_CELLS if self.partitions is None else MOST_OVER * self.partitions
        return min(lattice.size, MOST_CELLS, aimed)

    def _per_axis(self, lattice: Lattice, n: int, law: Law) -> list[int]:
        """Cells per axis, at most one per lattice point of an axis that has steps of its own."""
        d, given = len(lattice.axes), self.partitions
        aim, m = (
            eugkm_cells(n, law.effective_epsilon, d=d, theta=self.theta)
            if given is None
            else (float(given), _root_up(given, d))
        )
        axes = zip(cells_per_axis(m, d, aim), lattice.axes, strict=True)
        return [min(each, axis.size) if axis.size < finest(d) else each for each, axis in axes]


UniformPartitioner.examples = (
    UniformPartitioner("x", partitions=3),
    UniformPartitioner("x", theta=1),
)


def eugkm_cells(n: float, epsilon: float, *, d: int, theta: float = 10) -> tuple[float, int]:
    """The number of cells M that EUGkM's rule aims at, and the cells per axis m.

    m = ceil(M^(1/d)), capped so that m^d is at most 2^22; the product is checked in integers.
    """
    most = root_down(MOST_CELLS, d)
    x = n * epsilon / theta
    aim = x ** (2 * d / (2 + d)) if x < 1e60 else math.inf
    m = most if aim >= float(most) ** d else max(1, math.ceil(aim ** (1 / d) * (1 - 1e-12)))
    return aim, min(m, most)


def cells_per_axis(m: int, d: int, aim: float) -> list[int]:
    """Cells along each axis: m, and one fewer along the last axes where m^d is more than four times the number to aim at.

    With one or two axes it never is. With many, m = 2 can be a million cells for a handful of rows.

    >>> cells_per_axis(23, 2, 500.0), cells_per_axis(2, 6, 3.0)
    ([23, 23], [2, 2, 2, 1, 1, 1])
    """
    cells = [m] * d
    for axis in range(d - 1, -1, -1):
        if math.prod(cells) <= MOST_OVER * max(aim, 1):
            break
        cells[axis] = m - 1
    return cells


def _lay(counts: Counts, cube: Cube, per_axis: list[int]) -> tuple[Cube, tuple[Array, ...]]:
    """Choose the edges, floor(i R / m) on an axis of R points; where R is too few, count again on the grid itself."""
    axes = cube.lattice.axes
    coarse = [
        axis.size == finest(len(axes)) and m * FINE_ENOUGH > axis.size
        for axis, m in zip(axes, per_axis, strict=True)
    ]
    laid = zip(axes, per_axis, coarse, strict=True)
    finer = Lattice(
        tuple(msgspec.structs.replace(axis, cells=m) if again else axis for axis, m, again in laid)
    )
    if counts.serves(finer):
        axes = finer.axes
        cube = counts.on(finer)
    cells = [min(m, axis.size) for axis, m in zip(axes, per_axis, strict=True)]
    return cube, tuple(
        np.arange(m + 1) * axis.size // m for axis, m in zip(axes, cells, strict=True)
    )


def _root_up(n: int, d: int) -> int:
    """The least m with m^d >= n."""
    m = root_down(n, d)
    return m if m**d == n else m + 1


def root_down(n: int, d: int) -> int:
    """The largest m with m^d <= n, in integers."""
    m: int = max(1, math.floor(float(n) ** (1 / d)))
    while m**d > n:
        m -= 1
    while (m + 1) ** d <= n:
        m += 1
    return m
