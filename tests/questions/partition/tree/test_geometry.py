"""Trees of splits: they cover the domain once, assign points, and refuse false files."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given

from sfumato.errors import UsageError
from sfumato.questions.partition.geometry import Tree
from support.partition_growth import cube_of, lattice, trees


@given(trees())
def test_cells_cover_the_box_once(made):
    _, tree = made
    lower, upper = (box[tree.leaves] for box in tree.boxes)
    shape = tree.lattice.shape
    volumes = [
        Fraction(int(np.prod(b - a)), int(np.prod(shape)))
        for a, b in zip(lower, upper, strict=True)
    ]
    assert sum(volumes) == 1
    points = np.array(list(product(*(range(size) for size in shape))))
    inside = ((lower[None] <= points[:, None]) & (points[:, None] < upper[None])).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    assert inside.argmax(axis=1).tolist() == tree.assign(points + 0.5).tolist()
    assert tree.assign(np.full((1, len(shape)), np.nan)).tolist() == [-1]
    ends = tree.corners()
    assert (ends[0] == lower).all()
    assert (ends[1] == upper).all()


@pytest.mark.parametrize(
    ("axis", "cut"),
    [
        ([0], [2]),
        ([0, -1], [2, 0]),
        ([0, -1, -1], [0, 0, 0]),
        ([0, -1, -1], [4, 0, 0]),
        ([2, -1, -1], [1, 0, 0]),
        ([-2], [0]),
        ([-1, 0, -1], [0, 1, 0]),
        ([0, 0, -1, -1, -1], [2, 3, 0, 0, 0]),
        ([], []),
    ],
)
def test_false_trees_are_refused(axis, cut):
    with pytest.raises(UsageError):
        Tree(lattice(4, 4), np.array(axis, np.int64), np.array(cut, np.int64))


def test_counts_follow_the_kernel():
    on = lattice(4, 3)
    rows = [(0.5, 0.5), (1.0, 2.9), (3.9, 3.0), (2.0, 1.0)]
    tree = Tree(on, np.array([0, 1, -1, -1, -1]), np.array([2, 1, 0, 0, 0]))
    cells = cube_of(rows, on).counts.reshape(4, 3)
    assert np.bincount(tree.assign(np.array(rows)), minlength=3).tolist() == [
        cells[2:].sum(),
        cells[:2, :1].sum(),
        cells[:2, 1:].sum(),
    ]
