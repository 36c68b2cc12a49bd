"""Whole numbers that rows are clustered in: exact, symmetric, and independent of memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit.runs import count
from sfumato.domain.domain import Domain, Interval
from sfumato.domain.lattice import GridAxis, Lattice
from sfumato.errors import InternalError
from sfumato.questions.clustering.lloyd import HALF, MOST_AXES, Space, nearest

PLANE = Lattice((GridAxis("x", 0.0, 10.0, 4), GridAxis("y", -1.0, 1.0, 3)))


def brute(rows, centres):
    """Exact squared distances in Python's own integers, the first of equals."""
    return [
        min(
            range(len(centres)),
            key=lambda j: sum((int(a) - int(b)) ** 2 for a, b in zip(row, centres[j], strict=True)),
        )
        for row in rows
    ]


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 2**32))
def test_nearest_is_exact_and_takes_the_first_of_equals(d, k, seed):
    rng = np.random.default_rng(seed)
    size = int(rng.choice([2, 5, HALF]))  # small numbers make ties
    rows, centres = rng.integers(-size, size + 1, (40, d)), rng.integers(-size, size + 1, (k, d))
    assert nearest(rows, centres).tolist() == brute(rows, centres)


def test_a_rows_group_does_not_depend_on_where_it_stands():
    """Ties at the largest coordinates: a rounding anywhere would break some of them differently."""
    rng = np.random.default_rng(1)
    centres = np.array([[HALF, HALF - 1, -HALF], [HALF - 1, HALF, -HALF], [-HALF, HALF, HALF - 1]])
    row = np.array([[HALF - 3, HALF - 3, 5]])
    for n in (1, 2, 3, 7, 8, 64, 1001):
        rows = np.concatenate([rng.integers(-HALF, HALF, (n, 3)), row])
        for ordered in (rows, np.asfortranarray(rows)):
            assert nearest(ordered, centres)[-1] == 0


def test_too_many_axes_are_refused_before_a_double_could_round():
    with pytest.raises(InternalError):
        nearest(np.zeros((1, MOST_AXES + 1), np.int64), np.zeros((1, MOST_AXES + 1), np.int64))
    worst = np.full((1, MOST_AXES), HALF)
    assert 2 * (worst**2).sum() + (worst**2).sum() < 2**53


def test_cells_stand_at_their_middles_the_same_on_both_sides():
    space = Space(PLANE)
    assert space.extent.tolist() == [3 * HALF // 4, 2 * HALF // 3]
    where, number = space.rows(count(((0.0, -1.0), (9.9, 0.9), (9.9, 0.9)), PLANE))
    assert where.tolist() == [
        [-space.extent[0], -space.extent[1]],
        [space.extent[0], space.extent[1]],
    ]
    assert number.tolist() == [1, 2]
    assert space.unscale(where).tolist() == [
        [1.25, pytest.approx(-2 / 3, abs=1e-5)],
        [8.75, pytest.approx(2 / 3, abs=1e-5)],
    ]


def test_dense_and_sparse_cubes_stand_alike():
    axes = tuple(GridAxis(name, 0.0, 1.0, 2**12) for name in "abc")
    rows = tuple(map(tuple, np.random.default_rng(3).random((50, 3)).tolist()))
    sparse = Space(Lattice(axes)).rows(count(rows, Lattice(axes)))
    dense = Space(Lattice(axes[:2])).rows(count(tuple(row[:2] for row in rows), Lattice(axes[:2])))
    assert sparse[1].sum() == dense[1].sum() == 50
    assert set(map(tuple, sparse[0][:, :2].tolist())) == set(map(tuple, dense[0].tolist()))


def test_scaling_clamps_and_comes_back():
    space = Space(PLANE)
    points = np.array([[-5.0, 0.0], [5.0, 0.25], [1e300, np.nan]])
    scaled = space.scale(points)
    assert scaled[:2].tolist() == [[-1, 0], [0, 0.25]]
    assert scaled[2, 0] == 1
    assert np.isnan(scaled[2, 1])
    assert np.allclose(space.unscale(scaled[1] * HALF), points[1])


def test_one_cell_on_an_axis():
    space = Space(Lattice((GridAxis("x", 0.0, 1.0, 1), GridAxis("y", 0.0, 1.0, 8))))
    assert space.extent.tolist() == [0, 7 * HALF // 8]
    assert space.whole(np.array([[0.9, 0.9]])).tolist() == [[0, 7 * HALF // 8]]


def test_values_with_steps_stand_where_they_are():
    """Ages are whole numbers at the lower edge of their step: no centre is half a year off."""
    from sfumato.questions.clustering import KMeans

    domain = Domain(age=Interval(0, 128, step=1), hour=Interval(0, 24, step=1))
    lattice = KMeans(1).needs(domain).lattice
    space = Space(lattice)
    where, _ = space.rows(count(((37.0, 5.0),), lattice))
    assert space.unscale(where)[0] == pytest.approx([37, 5], abs=1e-4)
    assert lattice.shape == (128, 24)
    assert nearest(space.whole(space.scale(np.array([[37.0, 5.0]]))), where).tolist() == [0]


@pytest.mark.parametrize(
    "axis",
    [Interval(0, 100, step=1), Interval("2026-01-01", "2026-04-11"), Interval(0, 100)],
    ids=["step", "date", "none"],
)
@pytest.mark.parametrize("method", ["eugkm", "dplloyd", "privtree"])
def test_centres_are_not_half_a_step_off(axis, method):
    """All rows at 37 steps and at 80: with hardly any noise the centres are these values."""
    from sfumato.privacy.measures import PureDP
    from sfumato.privacy.unit import Unit
    from sfumato.questions.clustering import KMeans
    from sfumato.random import PublicSeed

    lattice = KMeans(1).needs(Domain(x=axis)).lattice
    low = lattice.axes[0].lower
    rows = ((low + 37.0,),) * 4000 + ((low + 80.0,),) * 2000
    found = KMeans(2, method=method).answer(count(rows, lattice), Unit(), PureDP(50), PublicSeed(3))
    width = (
        100 / len(found.partition.counts) if method == "eugkm" else 0.1
    )  # a grid knows no more than its cells
    assert np.sort(found.centers[:, 0]) - low == pytest.approx([37, 80], abs=width)
    assert sorted(found.predict(np.array([[low + 37.0], [low + 80.0]]))) == [0, 1]
