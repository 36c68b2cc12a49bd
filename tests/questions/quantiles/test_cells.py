"""The occupied cells of an axis: the form of the cube does not matter."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from sfumato.domain.cube import Cube
from sfumato.random.bits import current
from support.quantile_data import DOMAIN, METHODS


@pytest.mark.parametrize("method", METHODS)
def test_sparse_and_dense_cubes_answer_alike(method, monkeypatch):
    """At a large epsilon both find the same lattice points, or neighbours of the same rank."""
    from sfumato.domain import cube as cubes

    question = sf.Quantiles(["y", "x"], at=[0.3, 0.7], by="kind", method=method)
    lattice = question.needs(DOMAIN).lattice
    rng = np.random.default_rng(2)
    cells = np.stack([rng.integers(0, axis.size, 3_000) for axis in lattice.axes], axis=1)
    dense = Cube.of_cells(lattice, cells)
    monkeypatch.setattr(cubes, "DENSE_LIMIT", 1)
    sparse = Cube.of_cells(lattice, cells)
    assert dense.coordinates is None
    assert sparse.coordinates is not None
    answers = [
        question.answer(cube, sf.Unit(), sf.PureDP("10000"), current()).values
        for cube in (dense, sparse)
    ]
    assert np.abs(answers[0] - answers[1]).max() <= 1
