"""k-means on public points: it finds them, repeats itself, and stands too few of them."""

import numpy as np
import pytest

from sfumato.basics.kmeans import assign, kmeans, squared_distances, sse

CENTERS = np.array([[0.2, 0.25], [0.8, 0.3], [0.5, 0.85]])


def test_separate_points_are_found():
    points = np.repeat(CENTERS, 50, axis=0)
    found = kmeans(points, 3, seed=np.random.default_rng(0), tries=4)
    assert sse(points, found) == pytest.approx(0, abs=1e-12)
    assert np.array_equal(kmeans(np.zeros((5, 2)), 3), np.zeros((3, 2)))


@pytest.mark.parametrize("n", [40, 3_000])
def test_the_same_numbers_and_seed_give_the_same_bits(n):
    rng = np.random.default_rng(1)
    points, weights = rng.random((n, 3)), rng.random(n)
    assert np.array_equal(*(kmeans(points, 7, weights=weights, seed=5, tries=2) for _ in range(2)))
    assert np.array_equal(*(kmeans(points, 7, seed=np.random.default_rng(5)) for _ in range(2)))


def test_a_start_that_is_given_is_where_it_starts():
    points = np.array([[0.0], [0.1], [1.0], [1.1]])
    assert kmeans(points, np.array([[1.2], [-1.0]])).round(6).tolist() == [[1.05], [0.05]]


def test_fewer_points_than_centres():
    points = np.array([[0.1, 0.2], [0.7, 0.9]])
    found = kmeans(points, 5, weights=np.array([1.0, 3.0]), tries=2)
    assert found.shape == (5, 2)
    assert sse(points, found) == pytest.approx(0, abs=1e-12)


def test_nearest_is_nearest_over_blocks():
    points = np.random.default_rng(2).random((2**16 + 50, 2))
    assert np.array_equal(
        assign(points, CENTERS), squared_distances(points, CENTERS).argmin(axis=1)
    )
