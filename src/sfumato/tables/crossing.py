"""The tables of a family across their axes, with the sums that they share on their edges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sfumato.answers.cross_tables import ALL, CrossTable
from sfumato.basics.numbers import Array, Exactly
from sfumato.domain.lattice import Lattice
from sfumato.errors import Infeasible

MOST_AXES = 3
"""A table of more axes is listed, one row for each cell."""

MOST_SLICES = 64
"""How many tables of two axes stand for one of three."""

MOST_ROUNDED = 2**20
"""How many cells a family has at most of which whole numbers are shown beside the estimates."""

COUNT = "count"


class OneTable(Protocol):
    """What is laid out of one table of a family."""

    @property
    def values(self) -> Array: ...
    def accuracy(self, confidence: Exactly = "0.95", simultaneous: bool = False) -> Array: ...
    def published(self) -> Array: ...


class Family(Protocol):
    """Tables that add up, and all their margins."""

    @property
    def lattice(self) -> Lattice: ...
    @property
    def tables(self) -> Sequence[Sequence[str]]: ...
    def published(self) -> Array: ...
    def __getitem__(self, axes: Sequence[str]) -> OneTable: ...


def crossed(family: Family, axes: Sequence[str]) -> tuple[CrossTable, ...]:
    """A table of a family across its axes; of three axes, one for each cell of the shortest.

    Parameters
    ----------
    family : TablesRelease
    axes : sequence of str
        Those of the table.

    Returns
    -------
    tuple of CrossTable
        Of three axes, the first is that of all cells of the shortest. Empty if it has more axes, or
        the shortest has more than ``MOST_SLICES`` cells.
    """
    if len(axes) > MOST_AXES:
        return ()
    layout = _Layout(family, tuple(axes), is_rounded=has_whole_numbers(family))
    # The longest axis goes down, where there is most room.
    longest = sorted(axes, key=lambda name: -layout.size(name))
    if len(axes) < MOST_AXES:
        return (layout.table(longest),)
    *two, split = longest
    if layout.size(split) > MOST_SLICES:
        return ()
    slices = [layout.table(two, split, at) for at in range(layout.size(split))]
    return (layout.table(two, split), *slices)


def has_whole_numbers(family: Family) -> bool:
    """Whether whole numbers that add up are shown beside the estimates of a family.

    It depends on the axes and sizes of the tables alone.
    """
    sizes = {axis.name: axis.size for axis in family.lattice.axes}
    if sum(math.prod(sizes[name] for name in table) for table in family.tables) > MOST_ROUNDED:
        return False
    try:
        family.published()
    except Infeasible:
        return False
    return True


@dataclass(frozen=True)
class _Layout:
    """How the numbers of one table are laid out.

    Attributes
    ----------
    family : Family
    axes : tuple of str
        Of the table, with that of which cells are taken.
    is_rounded : bool
    """

    family: Family
    axes: tuple[str, ...]
    is_rounded: bool

    def size(self, name: str) -> int:
        """How many cells an axis has."""
        return len(self._names(name))

    def _names(self, name: str) -> list[str]:
        lattice = self.family.lattice
        return lattice.axes[lattice.names.index(name)].cell_names()

    def table(self, two: Sequence[str], split: str = "", at: int | None = None) -> CrossTable:
        """Lay out at most two axes, in all cells of another or in one of them."""
        down, across = [*two, "", ""][:2]
        blocks = self._blocks([name for name in two if name], split if at is not None else "", at)
        rounded = [block[2] for block in blocks]
        within = "" if not split else f"every {split}"
        if at is not None:
            within = f"{split} {self._names(split)[at]}"
        return CrossTable(
            axes=self.axes,
            within=within,
            down=down,
            across=across,
            rows=(*self._names(down), ALL) if down else (ALL,),
            columns=(*self._names(across), ALL) if across else (COUNT,),
            estimates=_joined([block[0] for block in blocks], down, across),
            half_widths=_joined([block[1] for block in blocks], down, across),
            rounded=_joined(rounded, down, across) if self.is_rounded else None,
        )

    def _blocks(self, two: Sequence[str], split: str, at: int | None) -> list[list[Array]]:
        """The counts, row sums, column sums and total: estimates, half-widths, whole numbers."""
        tables = [[*two], two[:1], two[1:], []]
        if len(two) < 2:
            tables = [[*two], []] if two else [[]]
        return [self._numbers(names, split, at) for names in tables]

    def _numbers(self, names: Sequence[str], split: str, at: int | None) -> list[Array]:
        one = self.family[(*names, split) if split else tuple(names)]
        found = [one.values, one.accuracy()]
        if self.is_rounded:
            found.append(one.published())
        else:
            found.append(np.zeros(np.shape(one.values), np.int64))
        return found if at is None else [numbers[..., at] for numbers in found]


def _joined(blocks: Sequence[Array], down: str, across: str) -> Array:
    """Counts with their sums at the edges: ndarray of shape (rows, columns)."""
    if not down:
        return np.reshape(blocks[0], (1, 1))
    if not across:
        counts, total = blocks
        return np.append(counts, total).reshape(-1, 1)
    counts, row_sums, column_sums, total = blocks
    upper = np.column_stack([counts, row_sums])
    return np.vstack([upper, np.append(column_sums, total)])
