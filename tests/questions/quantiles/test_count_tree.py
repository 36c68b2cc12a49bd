"""Quantiles from a tree of noisy counts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.questions.quantiles.cells import Cells
from sfumato.questions.quantiles.methods import AxisMethod
from support.laws import Recorder, loss
from support.quantile_data import drawn_points


@pytest.mark.parametrize("cost", [sf.PureDP("1.000000007"), sf.ZCDP("0.5")], ids=str)
@pytest.mark.parametrize("unit", [sf.Unit(), sf.Unit(2, "replace")], ids=str)
def test_the_counts_of_a_tree_spend_the_cost_exactly(cost, unit):
    axis_method = AxisMethod("tree", (Fraction(1, 2),), 2**12, unit, cost, by_label=False)
    noise = Recorder()
    drawn_points(axis_method, Cells(np.array([5, 900]), np.array([40, 60]), 2**12), noise)
    assert [size for _, size in noise.drawn] == [16, 256, 4096]
    spent = sum(loss(law, unit) for law, _ in noise.drawn)
    assert spent == (cost.rho if isinstance(cost, sf.ZCDP) else cost.epsilon)
