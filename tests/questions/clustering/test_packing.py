"""Public first centres."""

import numpy as np
import pytest

from sfumato.basics.kmeans import squared_distances
from sfumato.questions.clustering.error import packing


@pytest.mark.parametrize(("k", "d"), [(1, 1), (2, 1), (5, 2), (9, 3), (15, 2), (4, 20), (100, 2)])
def test_first_centres_are_apart_and_off_the_faces(k, d):
    placed = packing(k, d)
    apart = squared_distances(placed, placed) + np.diag(np.full(k, np.inf))
    radius = float(1 - np.abs(placed).max())
    assert placed.shape == (k, d)
    assert radius > 0
    if k > 1:
        assert np.sqrt(apart.min()) > 0.5 / k
