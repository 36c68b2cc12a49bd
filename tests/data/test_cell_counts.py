"""Counters of cells: memory grows with the cells, and no counter overflows."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.data.cell_counts import PENDING_ROWS, DenseCounts, SparseCounts
from sfumato.data.packing import Packing
from sfumato.lattice import GridAxis, Lattice


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
        held = max(held, tally._rows + len(tally._counts))
    assert held <= PENDING_ROWS + 2**15 + 1000
    assert tally.cube().total == rows


def test_counters_are_widened_before_they_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = DenseCounts(Packing(Lattice((GridAxis("a", 0.0, 1.0, 4),))))
    monkeypatch.setattr("sfumato.data.cell_counts.MOST_IN_32_BITS", 1000)
    tally._counts[1] = 2**32 - 1 - 1000  # as full as it can be, with a thousand rows to come
    for _ in range(4):
        tally.add([np.array([1, 3, -1])])
        tally.add([np.full(299, 1)])
    assert tally.cube().counts.tolist() == [0, 2**32 - 1 - 1000 + 4 * 300, 0, 4]
    assert (
        DenseCounts(Packing(Lattice((GridAxis("a", 0.0, 1.0, 4),)))).cube().counts.dtype == np.int64
    )
