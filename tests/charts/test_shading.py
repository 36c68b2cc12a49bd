"""Maps shade the smallest places that can be told from 0."""

from types import SimpleNamespace

import numpy as np
import pytest

from sfumato.charts import maps as shading
from sfumato.mechanisms.noise import DiscreteLaplace


def _grid(counts, half=10.0):
    counts = np.asarray(counts, float)
    level = shading.Level(
        counts, np.ones(counts.shape), np.ones(counts.shape), np.full(counts.shape, half)
    )
    noise = DiscreteLaplace(half / 3)
    return shading._of_grid(SimpleNamespace(noise=noise), level)


def test_cells_above_the_noise_keep_their_own_density():
    counts = np.full((4, 4), 100.0)
    counts[0, 0] = 150
    assert np.array_equal(_grid(counts), counts)


def test_where_noise_wins_neighbours_are_added_up():
    """Sixteen cells of 8, none of which can be told from 0, are shaded as one."""
    shown = _grid(np.full((4, 4), 8.0))
    assert np.allclose(shown, 8)
    uneven = np.full((4, 4), 8.0)
    uneven[::2, ::2] = 4
    assert np.unique(_grid(uneven)).tolist() == [7.0]


def test_empty_places_are_left_out_beside_full_ones():
    counts = np.zeros((4, 4))
    counts[:, :2] = 100
    shown = _grid(counts)
    assert np.array_equal(np.isnan(shown), counts == 0)


def test_nothing_is_shown_of_noise_alone():
    shown = _grid(np.array([[3.0, -4], [5, -2]]))
    assert np.isnan(shown).all()


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (5, 3), (9, 16)])
def test_grids_of_any_shape_are_shaded(shape):
    assert np.allclose(_grid(np.full(shape, 50.0)), 50)
    assert np.allclose(_grid(np.full(shape, 9.99)), 9.99, equal_nan=True) or shape == (1, 1)


def test_empty_places_are_shaded_seldom():
    """Beside full cells, fewer than 1 in 40 of the empty ones is shaded, over 200 grids.

    A fixed seed makes the figure repeat. With half the half-width it is over 1 in 40.
    """
    law = DiscreteLaplace(10)
    rng = np.random.default_rng(5)
    half = float(law.half_width(shading.OF_CELLS * 0.05))
    shares = {half: [], half / 2: []}
    for _ in range(200):
        noise = rng.geometric(1 - np.exp(-0.1), (2, 16, 16))
        counts = (noise[0] - noise[1]).astype(float)
        counts[::2, ::2] += 100_000
        for each, found in shares.items():
            shown = ~np.isnan(_grid_of(counts, each, law))
            assert shown[::2, ::2].all()
            found.append((shown.sum() - 64) / 192)
    assert 0.005 < np.mean(shares[half]) < 0.025 < np.mean(shares[half / 2])


def _grid_of(counts, half, law):
    one = np.ones(counts.shape)
    level = shading.Level(counts, one, one, np.full(counts.shape, half))
    return shading._of_grid(SimpleNamespace(noise=law), level)


def _tree():
    """A root of 100, a full half, and an empty one that is divided once more."""
    return SimpleNamespace(
        counts=np.array([100.0, 98.0, 2.0, 1.0, 1.0]),
        half=np.full(5, 20.0),
        parent=np.array([0, 0, 0, 2, 2]),
        levels=((0, 1), (1, 3), (3, 5)),
    )


def test_a_tree_is_divided_where_its_parts_are_clear():
    area = np.array([4.0, 2, 2, 1, 1])
    density, shown = shading._of_tree(_tree(), area)
    assert np.flatnonzero(shown).tolist() == [1]
    assert density[1] == 49


def test_a_tree_is_shown_as_one_where_a_part_is_not_clear():
    tree = _tree()
    tree.counts = np.array([100.0, 82.0, 18.0, 9.0, 9.0])
    _, shown = shading._of_tree(tree, np.array([4.0, 3, 1, 0.5, 0.5]))
    assert np.flatnonzero(shown).tolist() == [0]
