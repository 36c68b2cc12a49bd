"""Counted cells: dense and sparse are the same cube."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.domain import cube as module
from sfumato.domain.cube import Cube
from sfumato.domain.lattice import GridAxis, Lattice
from sfumato.errors import InternalError, UsageError
from support.canary import overheard, sightings


def lattice(*sizes):
    return Lattice(tuple(GridAxis(f"x{i}", 0.0, 1.0, size) for i, size in enumerate(sizes)))


@st.composite
def rows(draw, sizes=None):
    sizes = sizes or tuple(draw(st.lists(st.sampled_from([2, 4, 8]), min_size=1, max_size=3)))
    row = st.tuples(*(st.integers(-1, size - 1) for size in sizes))
    return sizes, np.array(draw(st.lists(row, max_size=30)), dtype=np.int64).reshape(-1, len(sizes))


def brute(sizes, cells):
    table = np.zeros(sizes, np.int64)
    for cell in cells.tolist():
        if -1 not in cell:
            table[tuple(cell)] += 1
    return table.reshape(-1)


def sparse(build):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "DENSE_LIMIT", 1)
        return build()


def spread(cube):
    """The dense counts of any cube."""
    if cube.coordinates is None:
        return cube.counts
    dense = np.zeros(cube.lattice.shape, np.int64)
    dense[tuple(cube.coordinates.T)] = cube.counts
    return dense.reshape(-1)


@given(rows())
def test_dense_and_sparse_count_the_same(case):
    sizes, cells = case
    dense = Cube.of_cells(lattice(*sizes), cells)
    thin = sparse(lambda: Cube.of_cells(lattice(*sizes), cells))
    assert dense.coordinates is None
    assert thin.coordinates is not None
    assert dense.counts.tolist() == spread(thin).tolist() == brute(sizes, cells).tolist()
    assert dense.total == thin.total
    occupied = [tuple(cell) for cell in thin.coordinates.tolist()]
    assert occupied == sorted(set(occupied))
    assert (thin.counts > 0).all()


@given(rows((4, 8)), rows((4, 8)))
def test_parts_add_up(one, other):
    grid = lattice(4, 8)
    whole = brute((4, 8), np.concatenate([one[1], other[1]])).tolist()
    assert (Cube.of_cells(grid, one[1]) + Cube.of_cells(grid, other[1])).counts.tolist() == whole
    thin = sparse(lambda: Cube.of_cells(grid, one[1]) + Cube.of_cells(grid, other[1]))
    assert spread(thin).tolist() == whole


@given(rows((4, 8)))
def test_a_coarser_lattice_adds_up_cells(case):
    _, cells = case
    fine, coarse = lattice(4, 8), lattice(2, 2)
    expected = brute(
        (2, 2), np.where((cells < 0).any(axis=1, keepdims=True), -1, cells // [2, 4])
    ).tolist()
    assert Cube.of_cells(fine, cells).on(coarse).counts.tolist() == expected
    assert spread(sparse(lambda: Cube.of_cells(fine, cells).on(coarse))).tolist() == expected


@given(rows((4, 8)), st.sets(st.integers(1, 3)), st.sets(st.integers(1, 7)))
def test_boxes_of_a_grid(case, inner, others):
    _, cells = case
    edges = [np.array([0, *sorted(inner), 4]), np.array([0, *sorted(others), 8])]
    table = brute((4, 8), cells).reshape(4, 8)
    expected = [
        [int(table[a:b, c:d].sum()) for c, d in zip(edges[1], edges[1][1:], strict=False)]
        for a, b in zip(edges[0], edges[0][1:], strict=False)
    ]
    assert Cube.of_cells(lattice(4, 8), cells).binned(edges).tolist() == expected
    thin = sparse(lambda: Cube.of_cells(lattice(4, 8), cells))
    assert thin.binned(edges).tolist() == expected


def test_another_lattice_asks_for_a_second_scan():
    cells = np.array([[0], [3]])
    again = Cube.of_cells(lattice(5), np.array([[4]]))
    cube = Cube.of_cells(lattice(4), cells)
    with pytest.raises(InternalError):
        cube.on(lattice(5))
    assert not cube.serves(lattice(5))
    assert cube.serves(lattice(2))
    assert cube.on(lattice(4)) is cube
    with pytest.raises(InternalError):
        cube + again


def test_a_cube_does_not_show_its_counts():
    cube = Cube.of_cells(lattice(2), np.repeat([[0], [1]], [8675, 5309], axis=0))
    for canary in (8675, 5309, 8675 + 5309):
        assert not sightings(canary, cube)
        assert not overheard(canary, lambda: copy.deepcopy(cube))
    with pytest.raises(UsageError):
        pickle.dumps(cube)


def test_empty_data():
    cube = Cube.of_cells(lattice(3, 2), np.zeros((0, 2), np.int64))
    assert cube.counts.tolist() == [0] * 6
    assert sparse(lambda: Cube.of_cells(lattice(3, 2), np.zeros((0, 2), np.int64))).total == 0


def with_sums(cube):
    """The same cells, each with its number of rows times 3 and times 10^15 as sums."""
    factors = np.array([3, 10**15])
    return replace(cube, sums=cube.counts[:, None] * factors)


@given(rows((4, 8)), rows((4, 8)))
def test_sums_follow_the_counts(one, other):
    sizes = one[0]
    coarse = lattice(2, 4)
    for build in (lambda found: found(), sparse):
        cubes = [
            build(lambda cells=cells: with_sums(Cube.of_cells(lattice(*sizes), cells)))
            for cells in (one[1], other[1])
        ]
        together = build(lambda cubes=cubes: cubes[0] + cubes[1])
        for cube in (together, build(lambda cube=together: cube.on(coarse))):
            assert cube.sums.dtype == np.int64
            assert cube.sums.tolist() == with_sums(cube).sums.tolist()
        assert together.total == sum(cube.total for cube in cubes)


def test_a_sparse_cube_keeps_its_sums_on_a_dense_lattice():
    cells = np.array([[0, 0], [1, 7], [1, 6], [1, 6]])
    thin = sparse(lambda: with_sums(Cube.of_cells(lattice(4, 8), cells)))
    dense = thin.on(lattice(2, 4))
    assert dense.coordinates is None
    assert dense.sums.tolist() == with_sums(dense).sums.tolist()


def test_cubes_with_sums_of_other_values_do_not_add_up():
    plain = Cube.of_cells(lattice(4), np.array([[1]]))
    with pytest.raises(InternalError, match="sums of different values"):
        plain + with_sums(plain)
