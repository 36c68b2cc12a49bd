"""An even grid that is laid in two steps: blocks of cells first, then the cells of each block.

The cells are those of the uniform grid. A block of them whose noisy count is small stays one cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sfumato.basics.numbers import MOST_PARTITION_CELLS, Array, split
from sfumato.errors import UsageError
from sfumato.partition.draft import Draft
from sfumato.partition.tree.splitting import split_at_edges
from sfumato.privacy.allocation import Shares

ROWS_SHARE = Fraction(1, 50)
"""The share of the number of rows, where no shares are stated."""

CellsPerAxis = Callable[[int], list[int]]
"""From what a cell's count may spend, in whole units, to the number of cells along each axis."""


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

    def layout(self, cells_per_axis: CellsPerAxis) -> Layout:
        """Choose the grid, and what its blocks may spend.

        Without shares the fan-out f decides: blocks and cells share what the rows left as 1 to
        f^(1/3), which is the geometric allocation over two levels (Cormode et al. 2012).
        """
        for_blocks = self.blocks
        if for_blocks is None:
            first = cells_per_axis(self.after_rows)
            blocks = blocks_per_axis(first)
            for_blocks = _geometric(self.after_rows, math.prod(first) / math.prod(blocks))
        cells = cells_per_axis(self.after_rows - for_blocks)
        blocks = blocks_per_axis(cells)
        if self.rows and math.prod(blocks) == 1:
            # The only block is the root, and its rows are counted already.
            for_blocks = 0
        return Layout(cells, blocks, for_blocks)


def blocks_per_axis(cells: Sequence[int]) -> list[int]:
    """How many blocks lie along each axis: about the square root of the number of cells.

    >>> blocks_per_axis([23, 3, 1])
    [5, 2, 1]
    """
    return [max(1, round(math.sqrt(each))) for each in cells]


def check_stop(stop_below: float | None, shares: Shares | None) -> None:
    """Refuse a test of blocks that nothing pays for."""
    if stop_below is not None and shares is not None and not shares.threshold:
        raise UsageError(
            f"stop_below = {stop_below:g}",
            "blocks have no share of the cost to be counted with",
            "Give threshold a share, or leave stop_below or shares out",
        )


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
    whole = np.array([layout.blocks], np.int64)
    blocks, first, last = split_at_edges(draft.growth, root, none, whole, blocks_at)
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
    """The part of the upper of two levels, in a geometric allocation."""
    return split(units, [Fraction(1), Fraction(fanout ** (1 / 3))])[0]
