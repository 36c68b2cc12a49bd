"""Trees of splits: they cover the domain once, send points to their cells, answer ranges, and refuse false files."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import UsageError
from sfumato.partition.tree.geometry import Tree
from sfumato.partition.tree.inference import infer, whole_counts
from sfumato.partition.tree.summed_area import SummedAreaTables
from sfumato.partition.tree.walker import RangeWalker
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


def known(draw, tree):
    nodes = len(tree.axis)
    counts = np.array(draw(st.lists(st.integers(-20, 50), min_size=nodes, max_size=nodes)), float)
    variances = np.array(
        draw(st.lists(st.sampled_from([0.5, 1.0, 4.0, 100.0]), min_size=nodes, max_size=nodes))
    )
    silent = np.array(draw(st.lists(st.booleans(), min_size=nodes, max_size=nodes)))
    variances[silent & (tree.axis >= 0)] = np.inf
    return counts, variances


def least_squares(tree, counts, variances):
    """The same estimate from a dense system: cells, and the covariance of their estimates."""
    below = np.zeros((len(tree.axis), tree.cells))
    below[tree.leaves, np.arange(tree.cells)] = 1
    for node in tree.inner[::-1]:
        below[node] = below[tree.child[node]] + below[tree.child[node] + 1]
    seen = np.isfinite(variances)
    design, weight = below[seen], 1 / variances[seen]
    covariance = np.linalg.inv(design.T @ (weight[:, None] * design))
    return covariance @ design.T @ (weight * counts[seen]), covariance, below


@given(trees(most_axes=3, most_splits=8), st.data())
def test_inference_is_generalised_least_squares(made, data):
    _, tree = made
    counts, variances = known(data.draw, tree)
    found = infer(tree, counts, variances)
    cells, covariance, below = least_squares(tree, counts, variances)
    assert found.estimate == pytest.approx(below @ cells, abs=1e-6)
    assert found.variance == pytest.approx(
        np.einsum("ij,jk,ik->i", below, covariance, below), rel=1e-6
    )
    seen = np.isfinite(variances)
    weights = np.array(
        data.draw(st.lists(st.floats(0, 1), min_size=tree.cells, max_size=tree.cells))
    )
    enters = (weights @ covariance @ below[seen].T) / variances[seen]
    assert (np.abs(enters) <= found.variance[seen] / variances[seen] * (1 + 1e-9) + 1e-12).all()


@given(trees(most_axes=3, most_splits=8), st.data())
@settings(max_examples=40)
def test_whole_counts_add_up(made, data):
    _, tree = made
    counts, variances = known(data.draw, tree)
    found = infer(tree, counts, variances)
    whole = whole_counts(tree, found.estimate, found.own)
    assert (whole >= 0).all()
    assert (
        whole[tree.inner] == whole[tree.child[tree.inner]] + whole[tree.child[tree.inner] + 1]
    ).all()
    assert whole[0] == max(0, round(found.estimate[0]))


@given(trees(most_axes=3, most_splits=10), st.data())
def test_ranges_and_their_variances(made, data):
    _, tree = made
    counts, variances = known(data.draw, tree)
    found = infer(tree, counts, variances)
    cells, covariance, _ = least_squares(tree, counts, variances)
    ranges, share = {}, np.ones((5, tree.cells))
    lower, upper = tree.corners()
    for axis in range(len(tree.axes)):
        if data.draw(st.booleans()):
            ends = np.sort(
                np.array(
                    data.draw(st.lists(st.integers(-2, 14), min_size=10, max_size=10))
                ).reshape(2, 5)
                / 2,
                axis=0,
            )
            ranges[axis] = (ends[0], ends[1])
            overlap = np.minimum(ends[1][:, None], upper[:, axis]) - np.maximum(
                ends[0][:, None], lower[:, axis]
            )
            share *= np.clip(overlap / (upper - lower)[:, axis], 0, 1)
    values, spread = RangeWalker(tree, found).sums(ranges, 5)
    assert values == pytest.approx(share @ cells, abs=1e-6)
    assert spread == pytest.approx(
        np.einsum("ij,jk,ik->i", share, covariance, share), rel=1e-6, abs=1e-7
    )
    tables = SummedAreaTables(tree, found)
    assert tables.fits == (len(tree.axes) == 2)
    if tables.fits:
        quick, bound = tables.sums(ranges, 5)
        assert quick == pytest.approx(values, abs=1e-6)
        assert (bound >= spread * (1 - 1e-9) - 1e-7).all()


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
