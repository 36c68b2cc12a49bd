"""The axes of a family of tables, as chains of nested levels, and which table is a margin of which.

*One axis* (``Levels``): the sums, spreads and contrasts between its levels.

Level 0 is the total. The cells of a level are the children of those of the level before, which lie
beside one another. A flat axis has one level below the total: its cells. A geography may have
regions, districts and municipalities.

The *contrasts* of a level are the differences between siblings: what a table at the level says
beyond the table at the level before. In a vector of numbers of the cells they are what is left when
the mean of the siblings is taken from each cell. That is an orthogonal projection, whose matrix
holds 1 - 1/f on its diagonal, -1/f between siblings, and 0 elsewhere, if f siblings share a parent.

*Margins* (``Nesting``).

A table is named by a level for each axis of the family. One table is a margin of another if none of
its levels is higher, and the common margin of two tables has the lower level of each axis.

Arrays have one dimension for each axis of the family. Its length is 1 where the table sums over the
axis. Everything here is public: it depends on the domain and on the question alone.

*Chains* (``Chains``).

Axes of labels that are levels of one tree, such as regions and municipalities, are read from one
column: they make one chain. Any other axis is a chain by itself. Which axes are nested follows from
the cells that they list, which are public.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from itertools import pairwise
from operator import le
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np

from sfumato.basics import Array
from sfumato.domain import Cube, LabelAxis, Lattice, LatticeAxis
from sfumato.errors import UsageError, shown
from sfumato.questions.histogram.strategies import laid_along

# --- one axis -------------------------------------------------------------------------------------


class Path(NamedTuple):
    """The way from the total to a cell of an axis.

    Attributes
    ----------
    fanouts : tuple of int
        How many siblings there are at each level, with the cell's own part.
    within : tuple of tuple of int
        Of the total and of each cell on the way, how many cells of its own level, the next, and so
        on to the last are in it. Empty where it is not needed: if all cells of a level have equally
        many children, or only residuals are measured.
    """

    fanouts: tuple[int, ...]
    within: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Levels:
    """How the cells of an axis are nested.

    Parameters
    ----------
    fanouts : tuple of tuple of int
        For each level from 1 on, how many children each cell of the level before has; at least 1.

    >>> geography = Levels(((2,), (3, 1)))
    >>> [geography.cells(level) for level in (0, 1, 2)]
    [1, 2, 4]
    """

    fanouts: tuple[tuple[int, ...], ...]

    @classmethod
    def flat(cls, cells: int) -> Levels:
        """Return an axis without levels between its cells and the total."""
        return cls(((cells,),))

    @property
    def depth(self) -> int:
        """The last level."""
        return len(self.fanouts)

    @cached_property
    def is_even(self) -> bool:
        """Whether all cells of a level have equally many children."""
        return all(len(set(level)) == 1 for level in self.fanouts)

    def cells(self, level: int) -> int:
        """Return how many cells a level has."""
        return sum(self.fanouts[level - 1]) if level else 1

    def contrasts(self, level: int) -> int:
        """Return how many contrasts of a level are independent; of the total, one number."""
        return self.cells(level) - self.cells(level - 1) if level else 1

    def paths(self, level: int, *, within: bool = False) -> list[Path]:
        """Return the path to each cell of a level; ``within`` as for ``kinds``."""
        fanouts_on_way: list[tuple[int, ...]] = [()]
        for fanouts in self.fanouts[:level]:
            pairs = zip(fanouts_on_way, fanouts, strict=True)
            fanouts_on_way = [(*path, fanout) for path, fanout in pairs for _ in range(fanout)]
        sizes = self._within(level) if within else [()] * len(fanouts_on_way)
        return [Path(*pair) for pair in zip(fanouts_on_way, sizes, strict=True)]

    def kinds(self, level: int, *, within: bool = False) -> tuple[list[Path], Array]:
        """Return the different paths to the cells of a level, and which of them each cell has.

        Parameters
        ----------
        level : int
        within : bool
            Whether paths say what is within, where cells of a level have different numbers of
            children.
        """
        if self.is_even:
            path = Path(tuple(fanouts[0] for fanouts in self.fanouts[:level]))
            return [path], np.zeros(self.cells(level), np.int64)
        paths = self.paths(level, within=within)
        different = sorted(set(paths))
        index = {path: at for at, path in enumerate(different)}
        return different, np.array([index[path] for path in paths], np.int64)

    def _within(self, level: int) -> list[tuple[tuple[int, ...], ...]]:
        """For each cell of a level, and each cell on the way to it, how many cells are in that."""
        columns = []
        for above in range(level + 1):
            sizes = [
                self.summed(np.ones(self.cells(below), np.int64), 0, below, above)
                for below in range(above, self.depth + 1)
            ]
            rows = np.stack(sizes, axis=1)[self.ancestors(above, level)].tolist()
            columns.append(list(map(tuple, rows)))
        return list(zip(*columns, strict=True))

    def ancestors(self, level: int, of: int | None = None) -> Array:
        """The cell of a level in which each cell of another lies; None stands for the last one."""
        cells = np.arange(self.cells(level))
        for fanouts in self.fanouts[level:of]:
            cells = np.repeat(cells, fanouts)
        return cells

    # --- arrays, along one of their axes ----------------------------------------------------------

    def summed(self, numbers: Array, along: int, level: int, onto: int) -> Array:
        """Return numbers of the cells of a level, added up to those of a level before."""
        for below in range(level, onto, -1):
            fanouts = np.array(self.fanouts[below - 1])
            first_children = np.cumsum(fanouts) - fanouts
            numbers = np.add.reduceat(numbers, first_children, axis=along)
        return numbers

    def repeated(self, numbers: Array, along: int, level: int) -> Array:
        """Return a number of each cell of the level before, given to each of its children."""
        return np.repeat(numbers, self.fanouts[level - 1], axis=along)

    def spread(self, numbers: Array, along: int, level: int, onto: int) -> Array:
        """Numbers of the cells of a level, each divided evenly among its cells of a later level."""
        for below in range(level + 1, onto + 1):
            fanouts = np.array(self.fanouts[below - 1])
            parts = numbers / laid_along(fanouts, along, numbers.ndim)
            numbers = self.repeated(parts, along, below)
        return numbers

    def centred(self, numbers: Array, along: int, level: int) -> Array:
        """Return the contrasts of a level: each number less the mean of its siblings."""
        sums = self.summed(numbers, along, level, level - 1)
        return np.asarray(numbers - self.spread(sums, along, level - 1, level))

    def differences(self, whole: Array, along: int, level: int) -> Array:
        """Each number less that of its last sibling, which is left out: in integers."""
        last = np.take(whole, self._last(level), axis=along)
        less = whole - self.repeated(last, along, level)
        return np.delete(less, self._last(level), axis=along)

    def padded(self, differences: Array, along: int, level: int) -> Array:
        """Return numbers that have these differences: zeros take the places that were left out."""
        shape = list(differences.shape)
        shape[along] = self.cells(level)
        padded = np.zeros(shape, differences.dtype)
        kept = np.delete(np.arange(self.cells(level)), self._last(level))
        padded[(slice(None),) * along + (kept,)] = differences
        return padded

    def _last(self, level: int) -> Array:
        """Return the places of the last children."""
        return np.cumsum(self.fanouts[level - 1]) - 1


def contrast(path: Path, level: int, parted: int) -> Fraction:
    """Return an entry of the projection on the contrasts of a level, between two cells.

    Parameters
    ----------
    path : Path
        The way to one of them.
    level : int
        0: that of the total, which keeps what it is given.
    parted : int
        The first level at which the cells, or what they are part of, differ; a later one than
        ``level`` if they are in the same cell of it.
    """
    if level == 0:
        return Fraction(1)
    fanout = path.fanouts[level - 1]
    if level < parted:
        return Fraction(fanout - 1, fanout)
    return Fraction(-1, fanout) if level == parted else Fraction(0)


# --- margins --------------------------------------------------------------------------------------

# A table, by the level of each axis of the family.
Margin: TypeAlias = tuple[int, ...]


def is_margin(margin: Margin, table: Margin) -> bool:
    """Whether one table is the other one, or a sum of its cells.

    >>> is_margin((1, 0), (1, 1)), is_margin((1, 0), (0, 1))
    (True, False)
    """
    return all(map(le, margin, table))


def common(first: Margin, second: Margin) -> Margin:
    """Return the largest common margin of two tables.

    >>> common((1, 1, 0), (0, 1, 1))
    (0, 1, 0)
    """
    return tuple(map(min, first, second))


def joined(first: Margin, second: Margin) -> Margin:
    """Return the smallest table that has both as margins.

    >>> joined((1, 1, 0), (0, 1, 1))
    (1, 1, 1)
    """
    return tuple(map(max, first, second))


def follows(margin: Margin, tables: Iterable[Margin]) -> bool:
    """Whether a table is one of some tables, or a margin of one of them."""
    return any(is_margin(margin, table) for table in tables)


def unknown(margins: Iterable[Margin], known: Sequence[Margin]) -> list[Margin]:
    """Return the margins that do not follow from what is known."""
    return [margin for margin in margins if not follows(margin, known)]


def maximal(tables: Iterable[Margin]) -> list[Margin]:
    """Return the tables that are margins of no other one, each once.

    >>> maximal([(1, 0), (1, 1), (0, 1), (1, 1)])
    [(1, 1)]
    """
    distinct = list(dict.fromkeys(tables))
    return [
        table
        for table in distinct
        if not follows(table, [other for other in distinct if other != table])
    ]


@dataclass(frozen=True)
class Nesting:
    """The axes of a family, and how the cells of their levels are nested.

    Parameters
    ----------
    axes : tuple of Levels

    >>> nesting = Nesting((Levels(((2,), (3, 1))), Levels.flat(4)))
    >>> nesting.shape((1, 0)), nesting.cells((2, 1))
    ((2, 1), 16)
    """

    axes: tuple[Levels, ...]

    @classmethod
    def plain(cls, sizes: Iterable[int]) -> Nesting:
        """Lay axes without nested levels, each of so many cells.

        >>> Nesting.plain([3, 4]).shape((1, 0))
        (3, 1)
        """
        return cls(tuple(map(Levels.flat, sizes)))

    def shape(self, table: Margin) -> tuple[int, ...]:
        """Return the shape of a table's array: 1 where it is summed over an axis."""
        return tuple(map(Levels.cells, self.axes, table))

    def cells(self, table: Margin) -> int:
        """Return how many cells a table has."""
        return math.prod(self.shape(table))

    def residual_shape(self, table: Margin) -> tuple[int, ...]:
        """Return how many independent contrasts a table has along each axis."""
        return tuple(map(Levels.contrasts, self.axes, table))

    def has_residual(self, table: Margin) -> bool:
        """Whether a table says anything beyond its margins; not where an axis has one label."""
        return all(self.residual_shape(table))

    def first_descendants(self, axis: int, lower: int, level: int) -> Array:
        """Return the first cell of a level in each cell of a lower level: int64 ndarray."""
        ancestors = self.axes[axis].ancestors(lower, level)
        return np.flatnonzero(np.diff(ancestors, prepend=-1))

    def places(self, table: Margin, margin: Margin) -> Array:
        """Return the flat index in the margin to which each cell of a table is added.

        Returns
        -------
        int32 ndarray of shape (cells,)
        """
        places: Array = np.zeros((), dtype=np.int32)
        stride = self.cells(margin)
        for axis, level, lower in zip(self.axes, table, margin, strict=True):
            stride //= axis.cells(lower)
            along = (axis.ancestors(lower, level) * stride).astype(np.int32)
            places = np.add.outer(places, along)
        return places.ravel()

    def margin(self, values: Array, table: Margin, margin: Margin) -> Array:
        """Sum a table's array to the array of one of its margins."""
        levels = list(zip(table, margin, strict=True))
        whole = [axis for axis, (level, lower) in enumerate(levels) if lower == 0 and level]
        # The longest runs first: least is then held between two sums. Narrow counts stay narrow,
        # since those of a large cube do not overflow.
        for run in sorted(_runs(whole), key=len, reverse=True):
            values = values.sum(axis=run, dtype=values.dtype, keepdims=True)
        for axis, (level, lower) in enumerate(levels):
            if 0 < lower < level:
                starts = self.first_descendants(axis, lower, level)
                values = np.add.reduceat(values, starts, axis=axis)
        return values

    def covering(self, margins: Iterable[Margin], most_cells: int) -> list[Margin]:
        """Return a few tables of which all margins are margins.

        Parameters
        ----------
        margins : iterable of tuple of int
        most_cells : int
            How many cells a table may have, unless it is one of the margins.

        >>> pairs = [(1, 1, 0, 0), (0, 1, 1, 0), (0, 0, 1, 1)]
        >>> Nesting.plain([4, 4, 4, 4]).covering(pairs, 64)
        [(1, 1, 1, 0), (0, 0, 1, 1)]
        """
        left = maximal(margins)
        tables: list[Margin] = []
        while left:
            wide = self._widened(left[0], np.array(left), most_cells)
            # Not wider than what it is for.
            within = [margin for margin in left if is_margin(margin, wide)]
            tables.append(reduce(joined, within))
            left = unknown(left, [wide])
        return tables

    def _widened(self, table: Margin, left: Array, most_cells: int) -> Margin:
        """Raise levels of a table while it may have more cells: those that most margins need."""
        deepest = [axis.depth for axis in self.axes]
        while True:
            raised = [
                (*table[:axis], level + 1, *table[axis + 1 :])
                for axis, level in enumerate(table)
                if level < deepest[axis]
            ]
            wider = [larger for larger in raised if self.cells(larger) <= most_cells]
            if not wider:
                return table
            n_within = [int((left <= larger).all(axis=1).sum()) for larger in wider]
            table = wider[n_within.index(max(n_within))]

    def cell_with(
        self, table: Margin, margins: tuple[Margin, Margin], at: Sequence[Array]
    ) -> Array:
        """Return the first cell of a table that lies in given cells of two of its margins.

        Parameters
        ----------
        table : tuple of int
        margins : two tuples of int
        at : two int arrays of shape (n,)
            Flat indices of cells of the margins that agree in their common margin.

        Returns
        -------
        int64 ndarray of shape (n,)
        """
        coordinates = list(map(np.unravel_index, at, map(self.shape, margins)))
        first_cells = []
        for axis, level in enumerate(table):
            levels = [margin[axis] for margin in margins]
            finer = levels.index(max(levels))
            descendants = self.first_descendants(axis, levels[finer], level)
            first_cells.append(descendants[coordinates[finer][axis]])
        return np.ravel_multi_index(tuple(first_cells), self.shape(table))


# --- chains ---------------------------------------------------------------------------------------


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
        # A file may hold any numbers, so nothing is computed with them before they fit.
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
        """Give the chains of a release: each tree is one, and every other axis is one by itself."""
        of_tree = {name: tree for tree in trees for name in tree.names}
        chains = [of_tree.get(axis.name, axis) for axis in lattice.axes]
        names = []
        levels = []
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
        trees = tuple(TreeLevels(names, axis.fanouts) for names, axis in pairs if len(names) > 1)
        return trees or msgspec.UNSET

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
        return cls(lattice, names, tuple(map(Levels, map(_fanouts, chains))))

    @cached_property
    def nesting(self) -> Nesting:
        """How the cells of the chains are nested."""
        return Nesting(self.levels)

    @cached_property
    def finest(self) -> Lattice:
        """The last level of each chain: on its cells rows are counted."""
        axes = dict(zip(self.lattice.names, self.lattice.axes, strict=True))
        finest = [axes[chain[-1]] for chain in self.names]
        return Lattice(tuple(finest))

    def margin(self, table: Sequence[str]) -> Margin:
        """Return a table by the level of each chain; 0 where it is summed over all of it.

        Raises
        ------
        UsageError
            If it names two levels of one tree.
        """
        return tuple(self._level(chain, table) for chain in self.names)

    def order(self, table: Sequence[str]) -> list[int]:
        """Return the chain of each axis of a table, in the order of its axes."""
        return [next(at for at, chain in enumerate(self.names) if name in chain) for name in table]

    def table(self, margin: Margin) -> tuple[str, ...]:
        """Return the axes of a table."""
        pairs = zip(self.names, margin, strict=True)
        return tuple(chain[level - 1] for chain, level in pairs if level)

    def counts(self, cube: Cube, margins: Sequence[Margin]) -> dict[Margin, Array]:
        """Return the true counts of margins: int64 ndarrays with one dimension for each chain.

        The cube is added up to a few tables that fit in the processor's cache, and these to the
        margins: each margin from the smallest table at hand that has it.

        Parameters
        ----------
        cube : Cube
            On the lattice ``finest``.
        margins : sequence of tuple of int
        """
        shared = self.nesting.covering(margins, 2**16)
        counts = {table: self._counted(cube, table) for table in shared}
        # Large tables first: small ones are then summed from them.
        for margin in sorted(set(margins), key=sum, reverse=True):
            above = [table for table in counts if is_margin(margin, table)]
            table = min(above, key=self.nesting.cells)
            counts[margin] = self.nesting.margin(counts[table], table, margin)
        return {margin: counts[margin] for margin in margins}

    def _counted(self, cube: Cube, margin: Margin) -> Array:
        if cube.coordinates is None:
            finest = tuple(axis.depth for axis in self.levels)
            table = cube.counts.reshape(cube.lattice.shape)
            return self.nesting.margin(table, finest, margin).astype(np.int64)
        counts = np.zeros(self.nesting.shape(margin), np.int64)
        columns = zip(self.levels, margin, cube.coordinates.T, strict=True)
        places = tuple(axis.ancestors(level)[column] for axis, level, column in columns)
        np.add.at(counts, places, cube.counts)
        return counts

    def _level(self, chain: Sequence[str], table: Sequence[str]) -> int:
        levels = [name for name in chain if name in table]
        if len(levels) > 1:
            raise UsageError(
                f"a table of {' x '.join(map(shown, table))}",
                f"{levels[0]} and {levels[1]} are levels of one tree",
                f"Name one of them: every {levels[1]} lies in one {levels[0]}",
            )
        return chain.index(levels[0]) + 1 if levels else 0


def _runs(axes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return increasing numbers in runs of neighbours, which numpy sums as if they were one axis.

    >>> _runs([0, 1, 4])
    [(0, 1), (4,)]
    """
    runs: list[tuple[int, ...]] = []
    for axis in axes:
        if runs and runs[-1][-1] == axis - 1:
            runs[-1] = (*runs[-1], axis)
        else:
            runs.append((axis,))
    return runs


def _fanouts(chain: Sequence[LatticeAxis]) -> tuple[tuple[int, ...], ...]:
    fanouts: list[tuple[int, ...]] = [(chain[0].size,)]
    for above, axis in pairwise(chain):
        assert isinstance(above, LabelAxis)
        assert isinstance(axis, LabelAxis)
        # How many cells of the axis lie in each cell of the level above it.
        pairs = dict.fromkeys(zip(above.listed_cells, axis.listed_cells, strict=True))
        children = np.bincount([cell for cell, _ in pairs], minlength=above.n_listed).tolist()
        fanouts.append((*children, *[1] * (above.other + above.missing)))
    return tuple(fanouts)


def _joins(axis: LatticeAxis, chain: Sequence[LatticeAxis]) -> bool:
    """Whether an axis is a level of the tree that a chain has."""
    return all(_nested(axis, level) or _nested(level, axis) for level in chain)


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
