"""The axes of a family of tables, as chains of nested levels.

Axes of labels that are levels of one tree, such as regions and municipalities, are read from one
column: they make one chain. Any other axis is a chain by itself. Which axes are nested follows from
the cells that they list, which are public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import msgspec
import numpy as np

from sfumato.basics.numbers import Array
from sfumato.domain.axes import LabelAxis
from sfumato.domain.cube import Cube
from sfumato.domain.lattice import Lattice, LatticeAxis
from sfumato.errors import UsageError, shown
from sfumato.tables.levels import Levels
from sfumato.tables.nesting import Margin, is_margin


class TreeLevels(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Axes that are levels of one tree, as a release stores them.

    Attributes
    ----------
    names : tuple of str
        The axes, from the top.
    fanouts : tuple of tuple of int
        How their cells are nested; see ``Levels``.
    """

    names: tuple[str, ...]
    fanouts: tuple[tuple[int, ...], ...]

    def fits(self, lattice: Lattice) -> bool:
        """Whether the axes are there, and have as many cells."""
        sizes = dict(zip(lattice.names, lattice.shape, strict=True))
        cells = tuple(map(sum, self.fanouts))
        counted = zip(self.fanouts[1:], cells, strict=False)
        return (
            tuple(sizes.get(name) for name in self.names) == cells
            and len(self.fanouts[0]) == 1
            and all(len(fanouts) == above for fanouts, above in counted)
            and all(fanout >= 1 for fanouts in self.fanouts for fanout in fanouts)
        )


@dataclass(frozen=True)
class Chains:
    """All axes of a family, and which of them are levels of one tree.

    Attributes
    ----------
    lattice : Lattice
        All axes that tables name.
    names : tuple of tuple of str
        The axes of each chain, from the top.
    levels : tuple of Levels
        How the cells of each chain are nested.

    >>> regions, towns = ("North", "South"), ("Bergen", "Oslo", "Rome")
    >>> parts = (("Bergen", "Oslo"), ("Rome",))
    >>> region = LabelAxis("region", regions, column="town", parts=parts)
    >>> axes = region, LabelAxis("town", towns), LabelAxis("sex", ("f", "m"))
    >>> chains = Chains.of(Lattice(axes))
    >>> chains.names, chains.margin(["region", "sex"])
    ((('region', 'town'), ('sex',)), (1, 1))
    """

    lattice: Lattice
    names: tuple[tuple[str, ...], ...]
    levels: tuple[Levels, ...]

    @classmethod
    def stored(cls, lattice: Lattice, trees: Sequence[TreeLevels]) -> Chains:
        """The chains of a release: each tree is one, and every other axis is one by itself."""
        of_tree = {name: tree for tree in trees for name in tree.names}
        chains = [of_tree.get(axis.name, axis) for axis in lattice.axes]
        names, levels = [], []
        for chain in dict.fromkeys(chains):
            if isinstance(chain, TreeLevels):
                names.append(chain.names)
                levels.append(Levels(chain.fanouts))
            else:
                names.append((chain.name,))
                levels.append(Levels.flat(chain.size))
        return cls(lattice, tuple(names), tuple(levels))

    @property
    def trees(self) -> tuple[TreeLevels, ...] | msgspec.UnsetType:
        """What a release has to store to know them; unset where no axes are levels of a tree."""
        pairs = zip(self.names, self.levels, strict=True)
        found = tuple(TreeLevels(names, axis.fanouts) for names, axis in pairs if len(names) > 1)
        return found or msgspec.UNSET

    @classmethod
    def of(cls, lattice: Lattice) -> Chains:
        """Find the levels among the axes of a lattice."""
        chains: list[list[LatticeAxis]] = []
        for axis in lattice.axes:
            chain = next((chain for chain in chains if _joins(axis, chain)), None)
            if chain is None:
                chains.append([axis])
            else:
                chain.append(axis)
        chains = [sorted(chain, key=lambda axis: axis.size) for chain in chains]
        names = tuple(tuple(axis.name for axis in chain) for chain in chains)
        return cls(lattice, names, tuple(Levels(_fanouts(chain)) for chain in chains))

    @cached_property
    def finest(self) -> Lattice:
        """The last level of each chain: on its cells rows are counted."""
        return Lattice(tuple(self._axis(chain[-1]) for chain in self.names))

    def margin(self, table: Sequence[str]) -> Margin:
        """A table by the level of each chain; 0 where it is summed over all of it.

        Raises
        ------
        UsageError
            If it names two levels of one tree.
        """
        return tuple(self._level(chain, table) for chain in self.names)

    def order(self, table: Sequence[str]) -> list[int]:
        """The chain of each axis of a table, in the order of its axes."""
        return [next(at for at, chain in enumerate(self.names) if name in chain) for name in table]

    def table(self, margin: Margin) -> tuple[str, ...]:
        """The axes of a table."""
        pairs = zip(self.names, margin, strict=True)
        return tuple(chain[level - 1] for chain, level in pairs if level)

    def counts(self, cube: Cube, margins: Sequence[Margin]) -> dict[Margin, Array]:
        """The true counts of margins: int64 ndarrays with one dimension for each chain.

        Each is added up from the smallest table at hand that has it.

        Parameters
        ----------
        cube : Cube
            On the lattice ``finest``.
        margins : sequence of tuple of int
        """
        found: dict[Margin, Array] = {}
        for margin in sorted(margins, key=sum, reverse=True):
            above = [table for table in found if is_margin(margin, table)]
            if above:
                table = min(above, key=self.cells)
                found[margin] = self._summed(found[table], table, margin)
            else:
                found[margin] = self._counted(cube, margin)
        return found

    def _summed(self, counts: Array, table: Margin, margin: Margin) -> Array:
        for along, (axis, level, onto) in enumerate(zip(self.levels, table, margin, strict=True)):
            counts = axis.summed(counts, along, level, onto)
        return np.asarray(counts, dtype=np.int64)

    def _counted(self, cube: Cube, margin: Margin) -> Array:
        if cube.coordinates is None:
            finest = tuple(axis.depth for axis in self.levels)
            return self._summed(cube.counts.reshape(cube.lattice.shape), finest, margin)
        pairs = list(zip(self.levels, margin, strict=True))
        found = np.zeros([axis.cells(level) for axis, level in pairs], np.int64)
        columns = zip(pairs, cube.coordinates.T, strict=True)
        places = tuple(axis.ancestors(level)[column] for (axis, level), column in columns)
        np.add.at(found, places, cube.counts)
        return found

    def cells(self, margin: Margin) -> int:
        """How many cells a table has."""
        pairs = zip(self.levels, margin, strict=True)
        return math.prod(axis.cells(level) for axis, level in pairs)

    def _axis(self, name: str) -> LatticeAxis:
        return self.lattice.axes[self.lattice.names.index(name)]

    def _level(self, chain: Sequence[str], table: Sequence[str]) -> int:
        asked = [name for name in chain if name in table]
        if len(asked) > 1:
            raise UsageError(
                f"a table of {' x '.join(map(shown, table))}",
                f"{asked[0]} and {asked[1]} are levels of one tree",
                f"Name one of them: every {asked[1]} lies in one {asked[0]}",
            )
        return chain.index(asked[0]) + 1 if asked else 0


def _fanouts(chain: Sequence[LatticeAxis]) -> tuple[tuple[int, ...], ...]:
    found: list[tuple[int, ...]] = [(chain[0].size,)]
    for above, axis in pairwise(chain):
        assert isinstance(above, LabelAxis)
        assert isinstance(axis, LabelAxis)
        found.append(_children(above, axis))
    return tuple(found)


def _joins(axis: LatticeAxis, chain: Sequence[LatticeAxis]) -> bool:
    """Whether an axis is a level of the tree that a chain has."""
    return all(_nested(axis, each) or _nested(each, axis) for each in chain)


def _nested(above: LatticeAxis, axis: LatticeAxis) -> bool:
    """Whether each cell of an axis lies in one of another, in the same order."""
    if not (isinstance(above, LabelAxis) and isinstance(axis, LabelAxis)):
        return False
    if above.parts is msgspec.UNSET or above.column_name != axis.column_name:
        return False
    if (above.other, above.missing) != (axis.other, axis.missing) or above.size > axis.size:
        return False
    if axis.calendar is not msgspec.UNSET or above.listed != axis.listed:
        return False
    cells = np.array(above.listed_cells), np.array(axis.listed_cells)
    starts = np.flatnonzero(np.diff(cells[0])) + 1
    # The same values in the same order: where one of above begins, one of the axis does.
    return bool(np.all(np.diff(cells[1])[starts - 1] > 0))


def _children(above: LabelAxis, axis: LabelAxis) -> tuple[int, ...]:
    """How many cells of an axis lie in each cell of the level above it."""
    pairs = dict.fromkeys(zip(above.listed_cells, axis.listed_cells, strict=True))
    found = np.bincount([cell for cell, _ in pairs], minlength=above.n_listed).tolist()
    return (*found, *[1] * (above.other + above.missing))
