"""An axis as a chain of nested levels, and the sums, spreads and contrasts between them.

Level 0 is the total. The cells of a level are the children of those of the level before, which lie
beside one another. A flat axis has one level below the total: its cells. A geography may have
regions, districts and municipalities.

The *contrasts* of a level are the differences between siblings: what a table at the level says
beyond the table at the level before. In a vector of numbers of the cells they are what is left when
the mean of the siblings is taken from each cell. That is an orthogonal projection, whose matrix
holds 1 - 1/f on its diagonal, -1/f between siblings, and 0 elsewhere, if f siblings share a parent.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sfumato.basics.numbers import Array


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
        """An axis without levels between its cells and the total."""
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
        """How many cells a level has."""
        return sum(self.fanouts[level - 1]) if level else 1

    def contrasts(self, level: int) -> int:
        """How many contrasts of a level are independent; of the total, one number."""
        return self.cells(level) - self.cells(level - 1) if level else 1

    def paths(self, level: int, *, within: bool = False) -> list[Path]:
        """The path to each cell of a level; ``within`` as for ``kinds``."""
        found: list[tuple[int, ...]] = [()]
        for fanouts in self.fanouts[:level]:
            pairs = zip(found, fanouts, strict=True)
            found = [(*path, fanout) for path, fanout in pairs for _ in range(fanout)]
        sizes = self._within(level) if within else [()] * len(found)
        return [Path(*pair) for pair in zip(found, sizes, strict=True)]

    def kinds(self, level: int, *, within: bool = False) -> tuple[list[Path], Array]:
        """The different paths to the cells of a level, and which of them each cell has.

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
        found = np.arange(self.cells(level))
        for fanouts in self.fanouts[level:of]:
            found = np.repeat(found, fanouts)
        return found

    # --- arrays, along one of their axes ----------------------------------------------------------

    def _starts(self, level: int) -> Array:
        """Where the children of each cell of the level before begin."""
        ends = np.cumsum(self.fanouts[level - 1])
        return np.concatenate([np.zeros(1, np.int64), ends[:-1]])

    def summed(self, numbers: Array, along: int, level: int, onto: int) -> Array:
        """Numbers of the cells of a level, added up to those of a level before."""
        for each in range(level, onto, -1):
            numbers = np.add.reduceat(numbers, self._starts(each), axis=along)
        return numbers

    def repeated(self, numbers: Array, along: int, level: int) -> Array:
        """A number of each cell of the level before, given to each of its children."""
        return np.repeat(numbers, self.fanouts[level - 1], axis=along)

    def spread(self, numbers: Array, along: int, level: int, onto: int) -> Array:
        """Numbers of the cells of a level, each divided evenly among its cells of a later level."""
        for each in range(level + 1, onto + 1):
            shape = [1] * numbers.ndim
            shape[along] = -1
            fanouts = np.array(self.fanouts[each - 1]).reshape(shape)
            numbers = self.repeated(numbers / fanouts, along, each)
        return numbers

    def centred(self, numbers: Array, along: int, level: int) -> Array:
        """The contrasts of a level: each number less the mean of its siblings."""
        sums = self.summed(numbers, along, level, level - 1)
        return np.asarray(numbers - self.spread(sums, along, level - 1, level))

    def differences(self, whole: Array, along: int, level: int) -> Array:
        """Each number less that of its last sibling, which is left out: in integers."""
        last = np.take(whole, self._last(level), axis=along)
        return np.delete(whole - self.repeated(last, along, level), self._last(level), axis=along)

    def padded(self, differences: Array, along: int, level: int) -> Array:
        """Numbers that have these differences: zeros take the places that were left out."""
        shape = list(differences.shape)
        shape[along] = self.cells(level)
        found = np.zeros(shape, differences.dtype)
        kept = np.delete(np.arange(self.cells(level)), self._last(level))
        found[(slice(None),) * along + (kept,)] = differences
        return found

    def _last(self, level: int) -> Array:
        """The places of the last children."""
        return np.cumsum(self.fanouts[level - 1]) - 1


def contrast(path: Path, level: int, parted: int) -> Fraction:
    """An entry of the projection on the contrasts of a level, between two cells.

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
