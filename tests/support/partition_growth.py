"""Cubes and random trees for the tests of partitions."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from sfumato.audit.runs import Scripted, count
from sfumato.domain.cube import Cube
from sfumato.domain.lattice import GridAxis, Lattice
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.privacy.guarantee import Proof
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.partition.geometry import Tree
from sfumato.questions.partition.growth import Draft

PROOF = Proof("a", "b", "c", "d")


def lattice(*sizes):
    return Lattice(tuple(GridAxis(f"x{i}", 0.0, float(size), size) for i, size in enumerate(sizes)))


def cube_of(rows, on):
    return count(tuple(map(tuple, rows)), on)


def empty(on):
    return Cube.of_cells(on, np.zeros((0, len(on.axes)), np.int64))


@st.composite
def trees(draw, most_axes=6, most_splits=12):
    """A random tree over a random lattice of few cells, and its draft."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=most_axes))
    on = lattice(*sizes)
    draft = Draft(empty(on), Unit(), PureDP(1), Scripted())
    growth = draft.growth
    for _ in range(draw(st.integers(0, most_splits))):
        can = [
            i
            for i in range(len(growth.axis))
            if growth.axis[i] < 0 and growth.widths(np.array([i])).max() > 1
        ]
        if not can:
            break
        node = draw(st.sampled_from(can))
        axis = draw(
            st.sampled_from(np.flatnonzero(growth.widths(np.array([node]))[0] > 1).tolist())
        )
        cut = draw(
            st.integers(int(growth.lower[node, axis]) + 1, int(growth.upper[node, axis]) - 1)
        )
        growth.split(np.array([node]), np.array([axis]), np.array([cut]))
    order = np.concatenate(growth.levels())
    return draft, Tree(on, growth.axis[order], growth.cut[order])


def spent_on_paths(release, unit):
    """What the counts on every path from the root to a cell cost, as Fractions.

    It is the cost to a person who adds all rows in that cell.
    """
    tree = release.geometry
    own = [Fraction(0)] * len(tree.axis)
    which = np.zeros(len(tree.leaves), int) if release.which is None else release.which
    counted = list(zip(tree.leaves.tolist(), which.tolist(), strict=True))
    if release.inner is not None:
        counted += list(zip(release.inner.node.tolist(), release.inner.which.tolist(), strict=True))
    for node, law in counted:
        noise = release.laws[law]
        own[node] += (
            unit.counts_l1 / noise.scale
            if isinstance(noise, DiscreteLaplace)
            else Fraction(unit.counts_l2_squared) / (2 * noise.sigma_squared)
        )
    for node, parent in enumerate(tree.parent.tolist()):  # parents come first
        if node:
            own[node] += own[parent]
    return [own[leaf] for leaf in tree.leaves.tolist()]
