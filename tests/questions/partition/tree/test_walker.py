"""Counts of ranges on a tree: exact by walking, and bounded by tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.questions.partition.ranges import RangeWalker, SummedAreaTables, infer
from support.partition_growth import trees
from support.tree_inference import known, least_squares


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
