"""Copies keep their numbers where a person's rows do not fit into memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.answers.counts import Needs
from sfumato.data import count, source
from sfumato.data.person_records import RowRecords
from sfumato.data.row_order import CopyNumbers, ordered_rows
from sfumato.domain.domain import Domain, Interval, grid_axis
from sfumato.domain.lattice import Lattice

KEY = bytes(range(32))
DOMAIN = Domain(x=Interval(0, 1000, step=1), y=Interval(0, 8, step=1))
CELLS = Lattice((grid_axis("x", DOMAIN["x"], 100), grid_axis("y", DOMAIN["y"], 8)))
COARSE = Lattice((grid_axis("y", DOMAIN["y"], 8),))


def heavy_persons(n_rows: int = 40_000, seed: int = 0) -> pa.Table:
    """Two persons have half of the rows; a quarter of these are alike."""
    draw = np.random.default_rng(seed)
    p = np.where(draw.random(n_rows) < 0.5, draw.integers(0, 2, n_rows), np.arange(n_rows) // 7)
    x = np.where(draw.random(n_rows) < 0.25, 7, draw.integers(0, 1000, n_rows))
    return pa.table({"x": x, "y": np.where(x == 7, 3, draw.integers(0, 8, n_rows)), "p": p})


TABLE = heavy_persons()


@pytest.mark.parametrize(
    "limits",
    [
        {"rows_per_person": 3},
        {"rows_per_person": 5000},
        {"norm_per_person": 9},
        {"rows_per_cell": 4, "rows_per_person": 60},
        {"rows_per_cell": 2, "cells_per_person": 5},
    ],
    ids=str,
)
def test_any_memory_keeps_the_same_rows(
    limits: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    src = source(TABLE, DOMAIN, person="p", **limits)
    needs = [Needs(CELLS, 800), Needs(COARSE, 8)]
    expected = [cube.counts.tolist() for cube in count(src, needs, key=KEY)]
    split = []
    plain = RowRecords._numbered
    monkeypatch.setattr(RowRecords, "_numbered", lambda *rest: (split.append(1), plain(*rest))[1])
    monkeypatch.setenv("SFUMATO_MEMORY", "1")
    assert [cube.counts.tolist() for cube in count(src, needs, key=KEY)] == expected
    assert split


def test_every_row_is_as_likely_beyond_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    n_copies, n_rare = 9000, 1000
    x = np.concatenate([np.full(n_copies, 7), np.arange(n_rare) % 900 + 50])
    table = pa.table({"x": x, "y": [3] * len(x), "p": [1] * len(x)})
    src = source(table, DOMAIN, person="p", rows_per_person=500)
    monkeypatch.setenv("SFUMATO_MEMORY", "1")

    def copies_kept() -> int:
        return int(count(src, [CELLS], key=KEY)[0].counts.reshape(100, 8)[0, 3])

    # By Hoeffding's inequality, 500 draws without replacement hold 73 copies more or fewer than 450
    # with probability 1e-9. The key is fixed.
    assert abs(copies_kept() - 450) < 73
    # A broken twin: how often a row is there is forgotten when its copies are joined.
    plain = RowRecords._copies_of
    monkeypatch.setattr(
        RowRecords,
        "_copies_of",
        lambda self, rows, counts: plain(self, rows, np.ones_like(counts)),
    )
    assert abs(copies_kept() - 450) > 73


def test_rows_of_persons_within_the_limit_are_not_numbered() -> None:
    tokens = [np.zeros(4, np.uint64)]
    priorities = np.array([5, 1, 5, 3], np.uint64)
    rows = ordered_rows(tokens, priorities)
    before = rows.order.tolist()
    CopyNumbers(KEY).number(rows, priorities, 4)
    assert rows.order.tolist() == before
