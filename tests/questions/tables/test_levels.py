"""Sums, spreads and contrasts along an axis with levels."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.questions.tables.levels import Levels, Path, contrast

GEOGRAPHY = Levels(((2,), (3, 1), (2, 1, 1, 4)))
AXES = (Levels.flat(1), Levels.flat(5), Levels(((2,), (3, 3))), GEOGRAPHY)


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_contrasts_are_the_projection_and_follow_from_differences(axis: Levels) -> None:
    rng = np.random.default_rng(1)
    for level in range(1, axis.depth + 1):
        cells = axis.cells(level)
        matrix = axis.centred(np.eye(cells), 0, level)
        assert np.allclose(matrix @ matrix, matrix)
        assert np.allclose(matrix, matrix.T)
        assert round(np.trace(matrix)) == axis.contrasts(level)
        numbers = rng.integers(-50, 50, (2, cells, 3))
        differences = axis.differences(numbers, 1, level)
        assert differences.shape == (2, axis.contrasts(level), 3)
        padded = axis.padded(differences, 1, level)
        same = axis.centred(numbers, 1, level)
        assert np.allclose(axis.centred(padded, 1, level), same, rtol=0, atol=1e-12)


@pytest.mark.parametrize("axis", AXES, ids=str)
def test_entries_of_the_projection_depend_on_where_cells_part(axis: Levels) -> None:
    for level in range(1, axis.depth + 1):
        matrix = axis.centred(np.eye(axis.cells(level)), 0, level)
        paths = axis.paths(level)
        ways = [places(axis, level, cell) for cell in range(axis.cells(level))]
        for one, other in np.ndindex(matrix.shape):
            steps = zip(ways[one], ways[other], strict=True)
            parted = next((at for at, (a, b) in enumerate(steps, 1) if a != b), level + 1)
            assert np.isclose(matrix[one, other], float(contrast(paths[one], level, parted)))


def places(axis: Levels, level: int, cell: int) -> list[int]:
    """The cells of levels 1, 2, ... that a cell is in."""
    found = np.arange(axis.cells(1))
    way = [found]
    for each in range(2, level + 1):
        way = [axis.repeated(numbers, 0, each) for numbers in way]
        way.append(np.arange(axis.cells(each)))
    return [int(numbers[cell]) for numbers in way]


def test_what_is_spread_adds_up_again() -> None:
    numbers = np.array([[3.0], [8.0]])
    spread = GEOGRAPHY.spread(numbers, 0, 1, 3)
    assert spread.shape == (8, 1)
    assert np.allclose(GEOGRAPHY.summed(spread, 0, 3, 1), numbers)
    assert spread[:, 0].tolist() == [0.5, 0.5, 1, 1, 2, 2, 2, 2]
    assert GEOGRAPHY.summed(spread, 0, 3, 0).tolist() == [[11.0]]


def test_kinds_of_cells() -> None:
    kinds, index = GEOGRAPHY.kinds(3)
    assert [kinds[at] for at in index.tolist()] == GEOGRAPHY.paths(3)
    assert Levels.flat(4).kinds(1)[0] == [Path((4,))]
    assert Levels.flat(4).kinds(0) == ([Path(())], [0])
    assert GEOGRAPHY.contrasts(0) == 1
