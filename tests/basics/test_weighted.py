"""Weighted k-means after privacy: finds what is there, stands whatever the noise left."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.basics.kmeans import SAMPLE, non_negative, squared_distances, weighted_kmeans
from sfumato.questions.clustering.error import packing


def blobs(k, d, n, seed=0):
    rng = np.random.default_rng(seed)
    centres = packing(k, d) * 0.8
    return centres, centres[rng.integers(0, k, n)] + rng.normal(size=(n, d)) * 0.01


@pytest.mark.parametrize(
    ("k", "d", "n"), [(3, 1, 500), (8, 2, 2_000), (12, 5, 3_000), (6, 2, SAMPLE + 5_000)]
)
def test_finds_clusters(k, d, n):
    centres, points = blobs(k, d, n)
    found = weighted_kmeans(points, np.ones(n), packing(k, d))
    assert squared_distances(centres, found).min(axis=1).max() < 0.01**2
    assert np.array_equal(found, weighted_kmeans(points, np.ones(n), packing(k, d)))


def test_weights_are_as_good_as_copies():
    points = np.array([[0.0], [0.1], [0.9]])
    weights = np.array([5.0, 1.0, 3.0])
    copies = np.repeat(points, weights.astype(int), axis=0)
    assert np.allclose(
        weighted_kmeans(points, weights, packing(2, 1)),
        weighted_kmeans(copies, np.ones(9), packing(2, 1)),
    )


def test_centres_come_by_falling_weight():
    _, points = blobs(5, 2, 1_000)
    weights = np.where(points[:, 0] > 0, 3.0, 1.0)
    found = weighted_kmeans(points, weights, packing(5, 2))
    held = np.bincount(squared_distances(points, found).argmin(axis=1), weights, 5)
    assert (np.diff(held) <= 0).all()


@pytest.mark.parametrize(
    ("points", "weights"),
    [
        (np.zeros((0, 2)), np.zeros(0)),
        (np.zeros((4, 2)), np.ones(4)),
        (np.array([[0.5, 0.5], [0.1, 0.2]]), np.array([1.0, -3.0])),
        (np.array([[0.5, 0.5], [0.1, 0.2]]), np.array([0.0, 0.0])),
        (np.repeat([[0.1, 0.1], [0.3, 0.3]], 10, axis=0), np.ones(20)),
    ],
)
def test_too_few_points_are_filled_up_with_public_ones(points, weights):
    found = weighted_kmeans(points, weights, packing(3, 2))
    distinct = np.unique(points[weights > 0], axis=0)
    assert found.shape == (3, 2)
    assert np.isfinite(found).all()
    public = packing(3, 2)[len(distinct) :].tolist()
    assert sum(row in public for row in found.tolist()) == 3 - len(distinct)


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=30))
def test_non_negative_counts_keep_their_sum_and_order(counts):
    counts = np.array(counts)
    found = non_negative(counts)
    assert (found >= 0).all()
    if counts.sum() > 0:
        assert found.sum() == pytest.approx(counts.sum())
        kept = found > 0
        assert np.allclose(
            counts[kept] - found[kept], (counts[kept] - found[kept])[0]
        )  # one number off all that stay
        assert (found[counts == counts.max()] > 0).all()
