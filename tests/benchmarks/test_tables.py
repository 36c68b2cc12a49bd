"""Errors of families of tables, as the benchmark takes them."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import peers, tables
from sfumato.domain.cube import Cube
from sfumato.domain.lattice import LabelAxis, Lattice

COUNTS = np.arange(6)
FAMILY = tables.Family(
    "doc",
    Cube(Lattice((LabelAxis("a", ("x", "y")), LabelAxis("b", ("p", "q", "r")))), COUNTS),
    (("b", "a"), ("a",)),
)


def test_margins_are_laid_out_as_tables_are_asked_for() -> None:
    assert FAMILY.margins(COUNTS).tolist() == [0, 3, 1, 4, 2, 5, 3, 12]
    assert FAMILY.sizes() == [6, 2]


def test_all_are_measured_on_the_same_tables(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(peers.FOLDER, str(tmp_path_factory.mktemp("none")))
    *ours, peer = tables._of_family(FAMILY, 3)
    assert [row["who"] for row in ours] == [
        tables.SEPARATE,
        tables.SUMMED,
        "sfumato",
        "sfumato, published",
    ]
    assert all(row["mean squared error"] > 0 for row in ours)
    assert peer["who"] == peers.absent("mbi")
