"""Bounds on the rank error: they cover, and one is nearly attained."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.quantiles.cells import Cells, points_of
from sfumato.questions.quantiles.methods import AxisMethod, half_width
from sfumato.random import PublicSeed
from support.quantile_data import METHODS, SELECTIONS, cells_of, drawn_points

QUARTILES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", ["even", "adverse"])
def test_rank_intervals_cover(method, shape):
    """Even data, and data with thousands of edges that are all a few rows worse than the best."""
    size, trials = 2**14, 200
    counts = np.zeros(size, np.int64)
    if shape == "even":
        counts[::8] = 1
    else:
        counts[[10, 11, size - 12, size - 11]] = [1000, 1000, 1000, 1000]
    held = np.flatnonzero(counts)
    cells, below = Cells(held, counts[held], size), np.concatenate([[0], np.cumsum(counts)])
    at = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
    axis_method = AxisMethod(method, at, size, sf.Unit(), sf.PureDP("1"), False)  # type: ignore[arg-type]
    targets = below[-1] * np.array([0.25, 0.5, 0.75])
    best = np.abs(below[:, None] - targets).min(axis=0)
    # Other tests examine the law. Here the noise is fixed, so that luck decides nothing.
    noise = PublicSeed(1)
    errors = np.array(
        [
            np.abs(below[drawn_points(axis_method, cells, noise)] - targets) - best
            for _ in range(trials)
        ]
    )
    each = (errors <= half_width(axis_method, 0.2)).mean(axis=0)
    assert (each >= 0.8).all()  # what is stated holds for the worst data: here it holds with room
    assert (errors.max(axis=1) <= half_width(axis_method, 0.2, 1)).mean() >= 0.8
    assert half_width(axis_method, 0.01) >= half_width(axis_method, 0.2)
    assert half_width(axis_method, 0.2, 5) >= half_width(axis_method, 0.2)


def test_the_bound_on_one_rank_is_not_far_from_the_worst_case():
    """One edge is right, and all others are off by just what the bound says.

    One of the others is then chosen nearly as often as the bound allows.
    """
    size = 2**14
    # rho = 1/8 is epsilon 1 for the exponential mechanism.
    axis_method = AxisMethod(
        "joint", (Fraction(1, 2),), size, sf.Unit(), sf.ZCDP("0.125"), False, most_subcells=1
    )
    off = half_width(axis_method, 0.2)
    cells = Cells(np.array([0, size - 2, size - 1]), np.array([1000 - off, off, 1000]), size)
    right = math.exp(axis_method.log_probabilities(cells, np.array([[size - 1]]))[0])
    assert 0.05 < 1 - right <= 0.2


@pytest.mark.parametrize("snap", [True, False])
@pytest.mark.parametrize("method", SELECTIONS)
def test_rank_intervals_cover_where_rows_tie(method, snap):
    counts = np.random.default_rng(3).geometric(0.002, 300) * (np.arange(300) % 3 == 0)
    counts[60] = 40_000
    cells, below = cells_of(counts), np.concatenate([[0], np.cumsum(counts)])
    axis_method = AxisMethod(method, QUARTILES, 300, Unit(), PureDP("1"), False, snap)
    targets = below[-1] * np.array([0.25, 0.5, 0.75])
    fine = cells.divided(axis_method.subcells)
    through = np.concatenate([[0], np.cumsum(np.bincount(fine.positions, fine.counts, fine.size))])
    forced = np.abs(through[:, None] - targets).min(axis=0)
    errors = []
    noise = PublicSeed(1)
    for _ in range(100):
        edges = axis_method.select(fine, noise)
        low, high = edges // axis_method.subcells, -(-edges // axis_method.subcells)
        error = np.maximum(0, np.maximum(below[low] - targets, targets - below[high]))
        errors.append(error - forced)
        points = points_of(edges, axis_method.subcells, 300, snap)
        assert ((points == low) | (points == high) | (points == 299)).all()
    errors = np.array(errors)
    assert ((errors <= half_width(axis_method, 0.2)).mean(axis=0) >= 0.8).all()
    assert (errors.max(axis=1) <= half_width(axis_method, 0.2, 1)).mean() >= 0.8
