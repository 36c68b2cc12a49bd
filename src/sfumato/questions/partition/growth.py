"""A partition in the making: noisy counts of nodes, and the account of what each path has spent.

``Growth`` knows the true counts. ``Draft`` adds noise to them, notes what that cost, and is the
only way to a release. What a path has not spent goes to its cell, so every path from the root to a
cell spends the cost exactly.

In the order of the code: a tree of splits that grows over counted cells, with the true count of
every node; the draft of a release; nodes that are counted on the way down, each with a share of
what its path has left (``count_with_shares``); and splits as several partitioners make them, in
halves, into even grids, at given points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.basics import MOST_PARTITION_CELLS, Array
from sfumato.domain import Cube
from sfumato.errors import InternalError, UsageError
from sfumato.mechanisms import Law, add_noise, count_law
from sfumato.privacy import (
    EXACT,
    CentralMeasure,
    Guarantee,
    Proof,
    Unit,
    assumptions_of,
    of_units,
    units_of,
    without_delta,
)
from sfumato.questions.partition.estimates import Counted, Splits
from sfumato.questions.partition.release import Partition
from sfumato.random.bits import Bits

# --- growth ---------------------------------------------------------------------------------------

MOST_CELLS = MOST_PARTITION_CELLS


@dataclass(repr=False, eq=False)
class _Young:
    """The occupied cells in the nodes that the last split made. The next split usually moves these.

    Attributes
    ----------
    entries : int64 ndarray of shape (young,)
        Which occupied cells these are.
    node : int64 ndarray of shape (young,)
        The node of each. It runs ahead of ``Growth._node``, which is written only when it is
        needed.
    weights : float64 ndarray of shape (young,)
        Their rows.
    """

    entries: Array
    node: Array
    weights: Array


class Growth:
    """Boxes of lattice cells and their true counts, while they are split.

    Attributes
    ----------
    lower, upper : int64 ndarrays of shape (nodes, d)
        Lattice points between which each node lies.
    true : int64 ndarray of shape (nodes,)
        True counts, which must never be shown.
    axis, cut, child, parent : int64 ndarrays of shape (nodes,)
        Along which axis and at which lattice point a node is split, the first of its two children,
        and its parent; -1 where there is none. Nodes stand in the order in which they were made.
    """

    def __init__(self, cube: Cube) -> None:
        shape = cube.lattice.shape
        # Each axis of the cells is contiguous in memory: splits compare one axis at a time.
        if cube.coordinates is None:
            flat = np.flatnonzero(cube.counts)
            self.cells = np.stack(np.unravel_index(flat, shape)).T
            rows = cube.counts[flat]
        else:
            self.cells = np.asfortranarray(cube.coordinates)
            rows = cube.counts
        # Sums of int64 do not overflow.
        self.weights = rows.astype(np.int64)
        self._node = np.zeros(len(self.weights), np.int64)
        self._first_young = 0
        # None: any occupied cell may move with the next split.
        self._young: _Young | None = None
        self.lower = np.zeros((1, len(shape)), np.int64)
        self.upper = np.array([shape], np.int64)
        self.true = np.array([cube.total], np.int64)
        self.axis = np.array([-1], np.int64)
        self.cut = np.array([0], np.int64)
        self.child = np.array([-1], np.int64)
        self.parent = np.array([-1], np.int64)

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return len(self.axis)

    def split(self, nodes: Array, axis: Array, cut: Array) -> Array:
        """Split nodes in two.

        Parameters
        ----------
        nodes, axis, cut : int64 ndarrays of shape (k,)
            Leaves, and along which axis and at which lattice point each is split.

        Returns
        -------
        int64 ndarray of shape (2k,): the children, lower and upper in turn.

        Raises
        ------
        UsageError
            If there would be more nodes than the public limit allows.
        """
        number = len(nodes)
        first_new = self.size
        if number and nodes.min() < self._first_young:
            # An older node is split too, so any occupied cell may move.
            self._node = self._current_node
            self._young = None
        # Only children of this split are young from now on.
        self._first_young = first_new
        if first_new + 2 * number > 2 * MOST_CELLS:
            raise UsageError(
                "a partition",
                f"it would have more than {MOST_CELLS:,} cells",
                "Choose a smaller epsilon, or fewer levels",
            )
        self.axis[nodes] = axis
        self.cut[nodes] = cut
        self.child[nodes] = first_new + 2 * np.arange(number)
        lower = np.repeat(self.lower[nodes], 2, axis=0)
        upper = np.repeat(self.upper[nodes], 2, axis=0)
        left = 2 * np.arange(number)
        upper[left, axis] = cut
        lower[left + 1, axis] = cut
        self.lower = np.concatenate([self.lower, lower])
        self.upper = np.concatenate([self.upper, upper])
        none = np.full(2 * number, -1)
        self.axis = np.concatenate([self.axis, none])
        self.cut = np.concatenate([self.cut, np.zeros_like(none)])
        self.child = np.concatenate([self.child, none])
        self.parent = np.concatenate([self.parent, np.repeat(nodes, 2)])
        counts = self._move(first_new, 2 * number, np.unique(axis))
        self.true = np.concatenate([self.true, counts])
        return np.arange(first_new, first_new + 2 * number)

    def _move(self, first_new: int, number: int, axes: Array) -> Array:
        """Move the rows of nodes that were split to the children, and count them there.

        Parameters
        ----------
        first_new, number : int
            The first child that was made, and how many there are.
        axes : int64 ndarray
            The distinct axes along which nodes were split.

        Returns
        -------
        int64 ndarray of shape (number,): true counts of the children.
        """
        young = self._young
        if young is None:
            every = np.arange(len(self._node))
            young = _Young(every, self._node, self.weights.astype(float))
        child = self.child[young.node]
        moves = child >= 0
        if not moves.all():
            # What stays is written back, and leaves the young for good.
            self._node[young.entries[~moves]] = young.node[~moves]
            young = _Young(young.entries[moves], young.node[moves], young.weights[moves])
            child = child[moves]
        if len(axes) == 1:
            position = self.cells[:, axes[0]]
            # While all entries are young, the column itself is read, without a copy.
            if len(position) != len(child):
                position = position[young.entries]
        else:
            position = self.cells[young.entries, self.axis[young.node]]
        child += position >= self.cut[young.node]
        self._young = _Young(young.entries, child, young.weights)
        counts = np.bincount(child - first_new, young.weights, minlength=number)
        return np.rint(counts).astype(np.int64)

    @property
    def _current_node(self) -> Array:
        """The node of each occupied cell, brought up to date."""
        if self._young is not None:
            self._node[self._young.entries] = self._young.node
        return self._node

    def counts_along(self, nodes: Array, axis: Array) -> Iterator[tuple[int, Array]]:
        """Yield the rows of each node along its axis, one node at a time.

        Yields
        ------
        lower : int
            The lattice point at which the node begins.
        counts : int64 ndarray
            True counts of its lattice cells along the axis, which must never be shown.
        """
        order = np.argsort(self._current_node, kind="stable")
        sorted_nodes = self._current_node[order]
        starts = np.searchsorted(sorted_nodes, nodes)
        stops = np.searchsorted(sorted_nodes, nodes, side="right")
        for node, along, start, stop in zip(nodes, axis, starts, stops, strict=True):
            inside = order[start:stop]
            lower = int(self.lower[node, along])
            width = int(self.widths(node)[along])
            places = self.cells[inside, along] - lower
            counts = np.bincount(places, self.weights[inside], minlength=width)
            yield lower, np.rint(counts).astype(np.int64)

    def middles(self, nodes: Array, axis: Array) -> Array:
        """Return the lattice point in the middle of each node along its axis: int64 ndarray."""
        return (self.lower[nodes, axis] + self.upper[nodes, axis]) // 2

    def widths(self, nodes: Array) -> Array:
        """Lattice cells along each axis: int64 ndarray of shape (nodes, d)."""
        return self.upper[nodes] - self.lower[nodes]

    def has_room_for(self, more: int) -> bool:
        """Whether so many more nodes fit below the public limit on cells."""
        return self.size + more <= 2 * MOST_CELLS - 2

    def levels(self) -> list[Array]:
        """Return the nodes of each level of two-way splits, in breadth-first order."""
        levels = []
        level = np.zeros(1, np.int64)
        while len(level):
            levels.append(level)
            first = self.child[level[self.axis[level] >= 0]]
            level = np.stack([first, first + 1], axis=1).reshape(-1)
        return levels


# --- drafts ---------------------------------------------------------------------------------------


class Draft:
    """Noisy counts of nodes, what they cost, and nothing else that could be seen.

    Parameters
    ----------
    cube : Cube
    unit : Unit
    cost : PureDP, ApproxDP or ZCDP
        The cost of the whole partition. Its delta is not used.
    noise : Bits

    Attributes
    ----------
    growth : Growth
    total : int
        The cost in whole units of the ledger.
    """

    def __init__(self, cube: Cube, unit: Unit, cost: CentralMeasure, noise: Bits) -> None:
        self.growth = Growth(cube)
        self.lattice = cube.lattice
        self.unit = unit
        self.cost = without_delta(cost)
        self.noise = noise
        self.total = units_of(self.cost)
        self._paid: list[tuple[Array, int]] = []
        self._counted: list[tuple[Array, Array, Law]] = []

    def law(self, units: int) -> Law:
        """Return the noise on counts of disjoint boxes, if whole units pay for it."""
        return count_law(of_units(self.cost, units), self.unit)

    def pay(self, nodes: Array, units: int) -> None:
        """Note that every path through these nodes has spent so much on them.

        The nodes must be disjoint boxes: a row is then in one of them at most, so all of them
        together cost as much as one.
        """
        self._paid.append((nodes, units))

    def noisy_counts(self, nodes: Array, units: int) -> Array:
        """Count disjoint nodes with noise, and pay for it: int64 ndarray like ``nodes``.

        The counts are published with the partition.
        """
        # What is drawn is noted with what it costs: no count is published that nobody paid for.
        law = self.law(units)
        counts = add_noise(self.growth.true[nodes], law, self.noise)
        self.pay(nodes, units)
        self._counted.append((nodes, counts, law))
        return counts

    def with_new_nodes(self, depths: Array, depth: int) -> Array:
        """The depths of all nodes, if those made since ``depths`` have this one: int64 ndarray."""
        n_new = self.growth.size - len(depths)
        return np.concatenate([depths, np.full(n_new, depth)])

    def left(self) -> Array:
        """What the path to each node has not spent yet, in whole units: int64 ndarray (nodes,)."""
        spent = np.zeros(self.growth.size, np.int64)
        for nodes, units in self._paid:
            spent[nodes] += units
        # From the root down: a path has spent what its parent's path has spent, and its own.
        for level in self.growth.levels()[1:]:
            spent[level] += spent[self.growth.parent[level]]
        return self.total - spent

    def release(
        self, made_by: str, depth: Array, proof: Proof, mechanism: str, slack: str = EXACT
    ) -> Partition:
        """Count the cells with everything that their paths have left, and publish.

        Parameters
        ----------
        made_by : str
            The name of the partitioner.
        depth : int64 ndarray of shape (nodes,)
            Depth of each node in the partitioner's own tree.
        proof : Proof
        mechanism : str
            Which mechanisms were used, as the guarantee states it.
        slack : str
            What finite arithmetic adds to the loss, as the guarantee states it.
        """
        growth = self.growth
        order = np.concatenate(growth.levels())
        cells = order[growth.axis[order] < 0]
        # The cell takes all that its path left, so every path spends the cost exactly.
        units = self.left()[cells]
        # A count that nothing pays for must not be published, whatever a partitioner did before.
        if (units <= 0).any():
            raise InternalError("A cell was left without a budget.")
        # Cells with equal budgets share a law. They are drawn law by law, by rising budget.
        distinct, law_places = np.unique(units, return_inverse=True)
        laws = [self.law(int(budget)) for budget in distinct]
        noisy = np.empty(len(cells), np.int64)
        for i, law in enumerate(laws):
            mine = law_places == i
            noisy[mine] = add_noise(self.growth.true[cells[mine]], law, self.noise)
        which = law_places.astype(np.int64) if len(distinct) > 1 else None
        inner, laws = self._inner_counts(order, laws)
        guarantee = Guarantee(
            self.cost,
            self.unit,
            mechanism,
            proof,
            assumptions_of(self.unit),
            slack,
            private=self.noise.private,
        )
        return Partition(
            made_by=made_by,
            lattice=self.lattice,
            cover=Splits(growth.axis[order], growth.cut[order]),
            noisy=noisy,
            laws=tuple(laws),
            which=which,
            depths=depth[cells],
            inner=inner,
            guarantee=guarantee,
        )

    def _inner_counts(self, order: Array, laws: list[Law]) -> tuple[Counted | None, list[Law]]:
        """Return the noisy counts above the cells, in the order in which they were drawn.

        Parameters
        ----------
        order : int64 ndarray of shape (nodes,)
            The nodes in breadth-first order, which is the order of the release.
        laws : list
            The laws of the cells' noise.

        Returns
        -------
        inner : Counted or None
        laws : list
            The laws given, and those of these counts.
        """
        if not self._counted:
            return None, laws
        # Cells' laws keep their places, since counts of cells refer to them by index.
        all_laws = list(dict.fromkeys([*laws, *(law for _, _, law in self._counted)]))
        place_in_release = np.empty(len(order), np.int64)
        place_in_release[order] = np.arange(len(order))
        nodes = place_in_release[np.concatenate([nodes for nodes, _, _ in self._counted])]
        counts = np.concatenate([counts for _, counts, _ in self._counted])
        law_places = [np.full(len(nodes), all_laws.index(law)) for nodes, _, law in self._counted]
        return Counted(nodes, counts, np.concatenate(law_places).astype(np.int64)), all_laws


# --- shares of a path -----------------------------------------------------------------------------

# A share is a multiple of this part of the cost, so that few different laws of noise occur.
SLICES = 64


def count_with_shares(
    draft: Draft, nodes: Array, left: Array, levels_below: Array, stride: int
) -> tuple[Array, Array]:
    """Count disjoint nodes, each with a share of what its path has left.

    Parameters
    ----------
    draft : Draft
    nodes, left, levels_below : int64 ndarrays of shape (k,)
        ``left`` is in slices, at least 2; ``levels_below`` is at least 1.
    stride : int
        Halvings between counted levels.

    Returns
    -------
    counts, slices : int64 ndarrays of shape (k,)
        Noisy counts, and what each cost: at least one slice. At least one slice is left.
    """
    # One slice is always left, with which the cell at the end of the path is counted.
    # A node gets 1 / (1 + g + ... + g^levels_below) of what its path has left, g = 2^(stride / 3):
    # the shares grow towards the cells, as in a geometric allocation.
    growth = 2 ** (stride / 3)
    exponent = np.asarray(levels_below, dtype=float) + 1
    fraction = (growth - 1) / (growth**exponent - 1)
    slices = np.clip(np.rint(left * fraction).astype(np.int64), 1, left - 1)
    counts = np.empty(len(nodes), np.int64)
    for price in np.unique(slices):
        mine = slices == price
        units = int(price) * (draft.total // SLICES)
        counts[mine] = draft.noisy_counts(nodes[mine], units)
    return counts, slices


# --- splits ---------------------------------------------------------------------------------------


def halve_widest(growth: Growth, nodes: Array, times: Array) -> tuple[Array, Array]:
    """Halve each node along its widest side, then its halves, and so on.

    Parameters
    ----------
    growth : Growth
    nodes, times : int64 ndarrays of shape (k,)
        Boxes, and how many times over each is halved. A box of one lattice cell is not halved.

    Returns
    -------
    parts, owners : int64 ndarrays
        The boxes that result, and for each the index in ``nodes`` of the box that it is a part of.
    """
    owner = np.arange(len(nodes))
    parts = [nodes[:0]]
    owners = [owner[:0]]
    step = 0
    while len(nodes):
        widths = growth.widths(nodes)
        is_wide = widths.max(axis=1) > 1
        halved = is_wide & (times[owner] > step)
        parts.append(nodes[~halved])
        owners.append(owner[~halved])
        nodes = nodes[halved]
        widths = widths[halved]
        owner = np.repeat(owner[halved], 2)
        if len(nodes):
            axis = widths.argmax(axis=1)
            nodes = growth.split(nodes, axis, growth.middles(nodes, axis))
        step += 1
    return np.concatenate(parts), np.concatenate(owners)


def split_evenly(growth: Growth, nodes: Array, parts: Array) -> Array:
    """Lay a grid of equal cells into each node, by two-way splits.

    On W lattice cells the edges of m parts are floor(i W / m).

    Parameters
    ----------
    growth : Growth
    nodes : int64 ndarray of shape (k,)
    parts : int64 ndarray of shape (k, d)
        Cells of the grid along each axis, at most the node's lattice cells.

    Returns
    -------
    int64 ndarray: the grid cells of all nodes.
    """
    base = growth.lower[nodes]
    width = growth.widths(nodes)

    def points(owner: Array, axis: Array, edge: Array) -> Array:
        steps = edge * width[owner, axis] // parts[owner, axis]
        return np.asarray(base[owner, axis] + steps)

    cells, _, _ = _split_grids(growth, nodes, np.zeros_like(parts), parts, points)
    return cells


def split_at_edges(
    growth: Growth, nodes: Array, first: Array, last: Array, edges: list[Array]
) -> tuple[Array, Array, Array]:
    """Split nodes along a grid of given edges, by two-way splits.

    Parameters
    ----------
    growth : Growth
    nodes : int64 ndarray of shape (k,)
    first, last : int64 ndarrays of shape (k, d)
        Each node reaches from edge ``first`` to edge ``last`` along each axis.
    edges : list of int64 ndarray, one per axis
        Lattice points, increasing.

    Returns
    -------
    cells, first, last : int64 ndarrays
        The cells of the grid within the nodes, and the edges between which each lies.
    """

    def points(owner: Array, axis: Array, edge: Array) -> Array:
        along = zip(axis.tolist(), edge.tolist(), strict=True)
        return np.array([edges[axis][edge] for axis, edge in along], np.int64)

    return _split_grids(growth, nodes, first, last, points)


def _split_grids(
    growth: Growth,
    nodes: Array,
    first: Array,
    last: Array,
    points: Callable[[Array, Array, Array], Array],
    *,
    upper_middle: bool = False,
) -> tuple[Array, Array, Array]:
    """Split each node along its grid, in the middle of its longest side in cells of the grid.

    Parameters and what is returned are those of ``split_at_edges``. From the owners of boxes, axes
    and indices of edges ``points`` gives the lattice points of edges; ``upper_middle`` says which
    of two middle edges is taken.
    """
    owner = np.arange(len(nodes))
    cells = [nodes[:0]]
    firsts = [first[:0]]
    lasts = [last[:0]]
    while len(nodes):
        span = last - first
        goes_on = span.max(axis=1) > 1
        cells.append(nodes[~goes_on])
        firsts.append(first[~goes_on])
        lasts.append(last[~goes_on])
        nodes = nodes[goes_on]
        if not len(nodes):
            break
        boxes = np.arange(len(nodes))
        axis = span[goes_on].argmax(axis=1)
        first = first[goes_on]
        last = last[goes_on]
        owner = owner[goes_on]
        middle = (first[boxes, axis] + last[boxes, axis] + upper_middle) // 2
        nodes = growth.split(nodes, axis, points(owner, axis, middle))
        owner = np.repeat(owner, 2)
        first = np.repeat(first, 2, axis=0)
        last = np.repeat(last, 2, axis=0)
        # Children stand in pairs: the lower one ends where the upper one begins.
        last[2 * boxes, axis] = middle
        first[2 * boxes + 1, axis] = middle
    return np.concatenate(cells), np.concatenate(firsts), np.concatenate(lasts)


def split_at(growth: Growth, nodes: Array, axis: Array, cuts: list[Array]) -> Array:
    """Split each node along its axis at several lattice points, by two-way splits.

    Parameters
    ----------
    growth : Growth
    nodes, axis : int64 ndarrays of shape (k,)
    cuts : list of int64 ndarray
        The points of each node, increasing.

    Returns
    -------
    int64 ndarray: all parts.
    """
    first = np.zeros_like(growth.lower[nodes])
    last = np.zeros_like(first)
    last[np.arange(len(nodes)), axis] = [len(points) + 1 for points in cuts]

    def points(owner: Array, _: Array, edge: Array) -> Array:
        # The first and the last edge are the ends of the node.
        pairs = zip(owner.tolist(), edge.tolist(), strict=True)
        return np.array([cuts[node][edge - 1] for node, edge in pairs], np.int64)

    return _split_grids(growth, nodes, first, last, points, upper_middle=True)[0]
