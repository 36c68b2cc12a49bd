"""Counters of cells: memory grows with the cells, no counter overflows, and sums are exact."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.answers.counts import Summed
from sfumato.data import packed_counts as cell_counts
from sfumato.data.packed_counts import (
    PENDING_ROWS,
    DenseCounts,
    Packing,
    SparseCounts,
    empty_counts,
)
from sfumato.domain.lattice import GridAxis, KeyAxis, Lattice, LatticeAxis
from sfumato.errors import UsageError

Rows = list[list[tuple[int, int, int]]]  # cell, and two values; batch by batch


def test_a_sparse_cube_grows_with_its_cells_not_with_the_rows() -> None:
    lattice = Lattice((GridAxis("a", 0.0, 1.0, 2**20), GridAxis("b", 0.0, 1.0, 2**20)))
    tally = SparseCounts(Packing(lattice))
    draw = np.random.default_rng(0)
    cells = draw.integers(0, 2**40, 1000)
    held = 0
    rows = 0
    for _ in range(80):
        tally.add([draw.choice(cells, 2**15)])
        rows += 2**15
        held = max(held, tally._rows + len(tally._totals))
    assert held <= PENDING_ROWS + 2**15 + 1000
    assert tally.cube().total == rows


def test_counters_are_widened_before_they_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = DenseCounts(Packing(Lattice((GridAxis("a", 0.0, 1.0, 4),))))
    monkeypatch.setattr("sfumato.data.packed_counts.MOST_IN_32_BITS", 1000)
    tally._counts[1] = 2**32 - 1 - 1000  # as full as it can be, with a thousand rows to come
    for _ in range(4):
        tally.add([np.array([1, 3, -1])])
        tally.add([np.full(299, 1)])
    assert tally.cube().counts.tolist() == [0, 2**32 - 1 - 1000 + 4 * 300, 0, 4]
    assert (
        DenseCounts(Packing(Lattice((GridAxis("a", 0.0, 1.0, 4),)))).cube().counts.dtype == np.int64
    )


def test_counts_of_many_cells_stay_as_narrow_as_they_were_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cube of 2^26 cells then takes the memory once, and not three times."""
    monkeypatch.setattr("sfumato.data.packed_counts.WIDE_CELLS", 3)
    tally = DenseCounts(Packing(LINE))
    tally.add([np.array([1, 3, 3])])
    cube = tally.cube()
    assert cube.counts.dtype == np.int32
    assert np.shares_memory(cube.counts, tally._counts)
    coarse = Lattice((GridAxis("a", 0.0, 1.0, 2),))
    assert cube.on(coarse).counts.tolist() == [1, 2]
    # With so many rows, the sum of two parts would not fit.
    tally._rows = 2**31 - 1
    tally._counts[0] = 2**31 - 1
    (twice,) = {int((cube + cube).counts[0]) for cube in [tally.cube()]}
    assert twice == 2**32 - 2
    tally._rows = 2**31
    assert tally.cube().counts.dtype == np.int64


# --- sums -----------------------------------------------------------------------------------------

LINE = Lattice((GridAxis("a", 0.0, 1.0, 4),))
WIDE = Lattice((GridAxis("a", 0.0, 1.0, 2**20), GridAxis("b", 0.0, 1.0, 2**20)))
LARGEST = 2**31
SQUARED = 2**16
PAIR = (
    Summed(GridAxis("u", 0.0, 1.0, LARGEST + 1)),
    Summed(GridAxis("v", 0.0, 1.0, SQUARED + 1), squares=True),
)


def added_up(lattice: Lattice, batches: Rows) -> dict[int, tuple[int, ...]]:
    """Count, sum, sum and sum of squares of each cell, by the code that counts."""
    tally = empty_counts(Packing(lattice), PAIR)
    for batch in batches:
        columns = np.array(batch, np.int64).reshape(-1, 3).T
        tally.add([np.ascontiguousarray(column) for column in columns])
    cube = tally.cube()
    assert cube.sums is not None
    assert cube.sums.dtype == np.int64
    cells = np.arange(lattice.size) if cube.coordinates is None else None
    if cells is None:
        assert cube.coordinates is not None
        cells = np.ravel_multi_index(tuple(cube.coordinates.T), lattice.shape)
    return {
        cell: (count, *sums)
        for cell, count, sums in zip(
            cells.tolist(), cube.counts.tolist(), cube.sums.tolist(), strict=True
        )
        if count
    }


def in_plain_python(batches: Rows) -> dict[int, tuple[int, ...]]:
    found: dict[int, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for cell, u, v in (row for batch in batches for row in batch):
        if cell >= 0:
            for i, added in enumerate((1, u, v, v * v)):
                found[cell][i] += added
    return {cell: tuple(numbers) for cell, numbers in found.items()}


ROW = st.tuples(
    st.integers(-1, 3),
    st.integers(0, LARGEST) | st.just(LARGEST),
    st.integers(0, SQUARED) | st.just(SQUARED),
)


@given(st.lists(st.lists(ROW, max_size=12), max_size=4))
@pytest.mark.parametrize("lattice", [LINE, WIDE], ids=["dense", "sparse"])
def test_values_and_squares_are_added_exactly(lattice: Lattice, batches: Rows) -> None:
    assert added_up(lattice, batches) == in_plain_python(batches)


@pytest.mark.parametrize("n_rows", [2**22 - 1, 2**22 + 3])
def test_sums_stay_exact_where_doubles_no_longer_are(n_rows: int) -> None:
    """An odd sum beside 2^53: a double would lose its last bit."""
    tally = DenseCounts(Packing(LINE), PAIR[:1])
    tally.add([np.zeros(n_rows, np.int64), np.full(n_rows, LARGEST - 1, np.int64)])
    tally.add([np.zeros(1, np.int64), np.ones(1, np.int64)])
    sums = tally.cube().sums
    assert sums is not None
    assert sums[0].tolist() == [n_rows * (LARGEST - 1) + 1]


def test_the_largest_sums_of_a_billion_rows_are_below_2_to_the_62() -> None:
    assert 10**9 * LARGEST < 2**62
    assert 10**9 * SQUARED**2 < 2**62
    for axis, squares in ((PAIR[0].axis, False), (PAIR[1].axis, True)):
        finer = GridAxis("w", 0.0, 1.0, axis.size + 1)
        with pytest.raises(UsageError, match="so that sums are exact"):
            Summed(finer, squares)


def test_an_overflow_does_not_raise() -> None:
    """An error that depends on the rows would tell of them."""
    tally = DenseCounts(Packing(LINE), PAIR[:1])
    tally._sums[0, 0] = 2**63 - 1
    tally.add([np.zeros(1, np.int64), np.ones(1, np.int64)])
    sums = tally.cube().sums
    assert sums is not None
    assert sums[0, 0] == -(2**63)


@pytest.mark.parametrize("axes", [LINE.axes, (KeyAxis("key"),)], ids=["dense", "sparse"])
def test_sums_beyond_64_bits_are_exact(
    axes: tuple[LatticeAxis, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_counts, "MOST_IN_64_BITS", 2**33)
    last = 2**31
    tally = empty_counts(Packing(Lattice(axes)), [Summed(GridAxis("x", 0.0, 1.0, last + 1))])
    for _ in range(3):
        tally.add([np.zeros(2, np.int64), np.full(2, last)])
    cube = tally.cube()
    assert cube.sums is not None
    assert cube.sums.dtype == object
    assert cube.sums[0, 0] == 6 * last
    doubled = cube + cube
    assert doubled.sums is not None
    assert doubled.sums[0, 0] == 12 * last
    assert cube.counts.dtype == doubled.counts.dtype == np.int64


def test_without_axes_all_rows_lie_in_one_cell() -> None:
    packing = Packing(Lattice(()))
    tally = empty_counts(packing)
    tally.add(packing.pack([], n_rows=5))
    assert tally.cube().counts.tolist() == [5]
