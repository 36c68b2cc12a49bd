"""Inference on a tree equals the dense solution, and whole numbers add up."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.questions.partition.ranges import infer, whole_counts
from support.partition_growth import trees
from support.tree_inference import known, least_squares


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
