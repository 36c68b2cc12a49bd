"""A partition in the making: noisy counts of nodes, and the account of what each path has spent.

``Growth`` knows the true counts. ``Draft`` adds noise to them, notes what that cost, and is the
only way to a release. What a path has not spent goes to its cell, so every path from the root to a
cell spends the cost exactly.
"""

from __future__ import annotations

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.domain.cube import Cube
from sfumato.errors import InternalError
from sfumato.mechanisms.noise import Law, add_noise, count_law
from sfumato.partition.partition import Partition
from sfumato.partition.tree.cover import Counted, Splits
from sfumato.partition.tree.growth import Growth
from sfumato.privacy.allocation import of_units, units_of
from sfumato.privacy.guarantee import EXACT, Guarantee, Proof, assumptions_of
from sfumato.privacy.measures import CentralMeasure, without_delta
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits


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
        """The noise on counts of disjoint boxes, if whole units pay for it."""
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
        noisy, laws, which = self._count_cells(cells)
        inner, laws = self._inner(order, laws)
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

    def _count_cells(self, cells: Array) -> tuple[Array, list[Law], Array | None]:
        """Count the cells with noise: the counts, the laws of the noise, and which law each has.

        Cells with equal budgets share a law. They are drawn law by law, in rising order of budget.
        """
        units = self.left()[cells]
        if (units <= 0).any():
            raise InternalError("A cell was left without a budget.")
        distinct, which = np.unique(units, return_inverse=True)
        laws = [self.law(int(each)) for each in distinct]
        noisy = np.empty(len(cells), np.int64)
        for i, law in enumerate(laws):
            mine = which == i
            noisy[mine] = add_noise(self.growth.true[cells[mine]], law, self.noise)
        return noisy, laws, which.astype(np.int64) if len(distinct) > 1 else None

    def _inner(self, order: Array, laws: list[Law]) -> tuple[Counted | None, list[Law]]:
        """The noisy counts above the cells, in the order in which they were drawn.

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
        all_laws = list(dict.fromkeys([*laws, *(law for _, _, law in self._counted)]))
        index = np.empty(len(order), np.int64)
        index[order] = np.arange(len(order))
        nodes = index[np.concatenate([nodes for nodes, _, _ in self._counted])]
        counts = np.concatenate([counts for _, counts, _ in self._counted])
        which = [np.full(len(nodes), all_laws.index(law)) for nodes, _, law in self._counted]
        return Counted(nodes, counts, np.concatenate(which).astype(np.int64)), all_laws
