"""A tree of splits that grows over counted cells, and the book of what each path has spent.

Two books are kept apart. ``Growth`` knows the true counts; ``Draft`` adds noise, notes what it cost, and is the only way to a
release. What a path has not spent goes to its cell, so that every path from the root to a cell spends the cost exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Array
from sfumato.cube import Cube
from sfumato.errors import InternalError, UsageError
from sfumato.limits import MOST_PARTITION_CELLS
from sfumato.mechanisms.noise import Law, add_noise, count_law
from sfumato.partition.partition import Partition
from sfumato.partition.tree.cover import Counted, Splits
from sfumato.privacy.allocation import of_units, units_of
from sfumato.privacy.guarantee import EXACT, Guarantee, Proof, assumptions_of
from sfumato.privacy.measures import CentralMeasure, without_delta
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

MOST_CELLS = MOST_PARTITION_CELLS
MOST_DEPTH = 22


@dataclass(repr=False, eq=False)
class _Young:
    """The rows in the nodes that the last split made, which are those that the next one may move.

    ``at`` runs ahead of ``Growth``'s own book of where each row is, which is written when it is asked for.
    """

    index: Array
    at: Array
    weights: Array


class Growth:
    """Boxes of lattice cells and their true counts, as they are split.

    Attributes
    ----------
    lower, upper : int64 ndarrays of shape (nodes, d)
    true : int64 ndarray of shape (nodes,)
        Never to be shown.
    axis, cut, child, parent : int64 ndarrays of shape (nodes,)
        In the order in which nodes were made; -1 where there is none.
    """

    def __init__(self, cube: Cube) -> None:
        shape = cube.lattice.shape
        self.cells, self.weights = _occupied(cube)
        self._where = np.zeros(len(self.weights), np.int64)
        self._first = 0  # the first node that the last split made
        self._young: _Young | None = None  # None: any row may move
        self.lower, self.upper = np.zeros((1, len(shape)), np.int64), np.array([shape], np.int64)
        self.true = np.array([cube.total], np.int64)
        self.axis, self.cut, self.child, self.parent = (
            np.array([start], np.int64) for start in (-1, 0, -1, -1)
        )

    def split(self, nodes: Array, axis: Array, cut: Array) -> Array:
        """Split nodes in two, and return their children: int64 ndarray of shape (2 len(nodes),), lower and upper in turn."""
        new, number = len(self.axis), len(nodes)
        if number and nodes.min() < self._first:  # an older node is split, too: any row may move
            self._where, self._young = self._at, None
        self._first = new
        if new + 2 * number > 2 * MOST_CELLS:
            raise UsageError(
                "a partition",
                f"it would have more than {MOST_CELLS:,} cells",
                "Choose a smaller epsilon, or fewer levels",
            )
        self.axis[nodes], self.cut[nodes] = axis, cut
        self.child[nodes] = new + 2 * np.arange(number)
        lower, upper = (
            np.repeat(self.lower[nodes], 2, axis=0),
            np.repeat(self.upper[nodes], 2, axis=0),
        )
        upper[2 * np.arange(number), axis] = lower[2 * np.arange(number) + 1, axis] = cut
        self.lower, self.upper = (
            np.concatenate([self.lower, lower]),
            np.concatenate([self.upper, upper]),
        )
        self.axis = np.concatenate([self.axis, np.full(2 * number, -1)])
        self.cut = np.concatenate([self.cut, np.zeros(2 * number, np.int64)])
        self.child = np.concatenate([self.child, np.full(2 * number, -1)])
        self.parent = np.concatenate([self.parent, np.repeat(nodes, 2)])
        self.true = np.concatenate([self.true, self._move(new, 2 * number, np.unique(axis))])
        return np.arange(new, new + 2 * number)

    def _move(self, new: int, number: int, axes: Array) -> Array:
        """Send the rows of nodes that were split, along these axes, to the children, and count them there."""
        young = self._young or _Young(
            np.arange(len(self._where)), self._where, self.weights.astype(float)
        )
        first = self.child[young.at]
        on = first >= 0
        if not on.all():
            self._where[young.index[~on]] = young.at[~on]
            young, first = _Young(young.index[on], young.at[on], young.weights[on]), first[on]
        if len(axes) == 1:
            place = self.cells[:, axes[0]]
            place = place if len(place) == len(first) else place[young.index]
        else:
            place = self.cells[young.index, self.axis[young.at]]
        first += place >= self.cut[young.at]
        self._young = _Young(young.index, first, young.weights)
        return np.rint(np.bincount(first - new, young.weights, minlength=number)).astype(np.int64)

    @property
    def _at(self) -> Array:
        """In which node each row is."""
        if self._young is not None:
            self._where[self._young.index] = self._young.at
        return self._where

    def rows_of(self, nodes: Array) -> Iterator[tuple[Array, Array]]:
        """Occupied cells within each node, and their counts: int64 ndarrays of shape (occupied, d) and (occupied,)."""
        order = np.argsort(self._at, kind="stable")
        sorted_at = self._at[order]
        for start, stop in zip(
            np.searchsorted(sorted_at, nodes),
            np.searchsorted(sorted_at, nodes, side="right"),
            strict=True,
        ):
            here = order[start:stop]
            yield self.cells[here], self.weights[here]

    def widths(self, nodes: Array) -> Array:
        """Lattice cells along each axis: int64 ndarray of shape (nodes, d)."""
        return np.asarray(self.upper[nodes] - self.lower[nodes])

    def levels(self) -> list[Array]:
        """The nodes of each level of two-way splits, in breadth-first order."""
        found, level = [], np.zeros(1, np.int64)
        while len(level):
            found.append(level)
            first = self.child[level[self.axis[level] >= 0]]
            level = np.stack([first, first + 1], axis=1).reshape(-1)
        return found


class Draft:
    """A partition in the making: noisy counts, what they cost, and nothing else that could be seen.

    Parameters
    ----------
    cube : Cube
    unit : Unit
    cost : PureDP, ApproxDP or ZCDP
        Of the whole; delta is not used.
    noise : Bits
    """

    def __init__(self, cube: Cube, unit: Unit, cost: CentralMeasure, noise: Bits) -> None:
        self.growth, self.lattice = Growth(cube), cube.lattice
        self.unit, self.cost, self.noise = unit, without_delta(cost), noise
        self.total = units_of(self.cost)
        self._paid: list[tuple[Array, int]] = []
        self._counted: list[tuple[Array, Array, Law]] = []

    def law(self, units: int) -> Law:
        """The noise on counts of disjoint boxes that whole units pay for."""
        return count_law(of_units(self.cost, units), self.unit)

    def pay(self, nodes: Array, units: int) -> None:
        """Note that every path through these nodes, which are disjoint boxes, has spent so much on them."""
        self._paid.append((nodes, units))

    def look(self, nodes: Array, units: int) -> Array:
        """Count disjoint nodes, publish and pay: noisy counts, int64 ndarray like ``nodes``."""
        law = self.law(units)
        found = add_noise(self.growth.true[nodes], law, self.noise)
        self.pay(nodes, units)
        self._counted.append((nodes, found, law))
        return found

    def left(self) -> Array:
        """What the path to each node has not spent yet, in whole units: int64 ndarray of shape (nodes,)."""
        own = np.zeros(len(self.growth.axis), np.int64)
        for nodes, units in self._paid:
            own[nodes] += units
        spent = own.copy()
        for level in self.growth.levels()[1:]:
            spent[level] += spent[self.growth.parent[level]]
        return self.total - spent

    def release(
        self, made_by: str, depth: Array, proof: Proof, mechanism: str, slack: str = EXACT
    ) -> Partition:
        """Count the cells with all that their paths have left, and publish.

        Parameters
        ----------
        depth : int64 ndarray of shape (nodes,)
            Of each node in the partitioner's own tree.
        slack : str
            What finite arithmetic adds, in words.
        """
        growth, order = self.growth, np.concatenate(self.growth.levels())
        cells = order[growth.axis[order] < 0]
        units = self.left()[cells]
        if (units <= 0).any():
            raise InternalError("A cell was left without a budget.")
        distinct, which = np.unique(units, return_inverse=True)
        laws = [self.law(int(each)) for each in distinct]
        noisy = np.empty(len(cells), np.int64)
        for i, law in enumerate(laws):
            noisy[which == i] = add_noise(growth.true[cells[which == i]], law, self.noise)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        inner, laws = self._inner(place, laws)
        return Partition(
            made_by=made_by,
            lattice=self.lattice,
            cover=Splits(growth.axis[order], growth.cut[order]),
            noisy=noisy,
            laws=tuple(laws),
            which=which.astype(np.int64) if len(distinct) > 1 else None,
            depths=depth[cells],
            inner=inner,
            guarantee=Guarantee(
                self.cost,
                self.unit,
                mechanism,
                proof,
                assumptions_of(self.unit),
                slack,
                private=self.noise.private,
            ),
        )

    def _inner(self, place: Array, laws: list[Law]) -> tuple[Counted | None, list[Law]]:
        """The noisy counts above the cells, in the order in which they were drawn."""
        if not self._counted:
            return None, laws
        known = list(dict.fromkeys([*laws, *(law for _, _, law in self._counted)]))
        nodes = place[np.concatenate([nodes for nodes, _, _ in self._counted])]
        counts = np.concatenate([counts for _, counts, _ in self._counted])
        which = np.concatenate(
            [np.full(len(nodes), known.index(law)) for nodes, _, law in self._counted]
        )
        return Counted(nodes, counts, which.astype(np.int64)), known


def _occupied(cube: Cube) -> tuple[Array, Array]:
    """The occupied cells of a cube one axis after another in memory, and their counts, of a type that rows can be added up in."""
    if cube.coordinates is not None:
        return np.asfortranarray(cube.coordinates), cube.counts.astype(np.int64)
    flat = np.flatnonzero(cube.counts)
    return np.stack(np.unravel_index(flat, cube.lattice.shape)).T, cube.counts[flat].astype(
        np.int64
    )
