"""Intervals of consistent cells, from the exact law of the noise on all counts of a tree."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from sfumato.questions.partition.estimates import TreeEstimates
from sfumato.questions.partition.ranges import influence
from sfumato.random import PublicSeed
from sfumato.testing import deterministic

PLANE = sf.Domain(x=sf.Interval(0, 1), y=sf.Interval(0, 1))
QUESTIONS = {
    "every level counted": sf.BinaryPartitioner(depth=5),
    "stopping": sf.BinaryPartitioner(depth=6, stop_below=100),
    "medians": sf.MedianPartitioner(depth=4, stop_below=50),
}
COSTS = [{"epsilon": "0.5"}, {"rho": "0.02"}]
RUNS = 20_000


def _estimates(name: str, cost: dict[str, str]) -> TreeEstimates:
    points = np.random.default_rng(4).beta(2, 5, (4000, 2))
    budget = sf.PureDP(1) if "epsilon" in cost else sf.ZCDP(1)
    with deterministic(7), sf.Publisher(sf.source(points, PLANE, name=name), budget=budget) as pub:
        found = pub.release(QUESTIONS[name], **cost)._estimates
    assert isinstance(found, TreeEstimates)
    return found


@pytest.mark.parametrize("cost", COSTS, ids=str)
@pytest.mark.parametrize("name", QUESTIONS)
def test_the_coefficients_are_those_of_the_estimates(name: str, cost: dict[str, str]) -> None:
    found = _estimates(name, cost)
    coefficients = influence(found.tree, found._combined, found.inferred)
    counts = found.noisy if found.inner is None else np.append(found.noisy, found.inner.count)
    assert coefficients @ counts == pytest.approx(found.inferred.estimate, abs=1e-6)
    variances = coefficients**2 @ found._noise_variances[found._law_of_draw]
    assert variances == pytest.approx(found.inferred.variance)


@pytest.mark.parametrize("cost", COSTS, ids=str)
@pytest.mark.parametrize("name", QUESTIONS)
def test_they_hold_and_are_nearly_as_narrow_as_can_be(name: str, cost: dict[str, str]) -> None:
    found = _estimates(name, cost)
    bits = PublicSeed(f"cells {name} {cost}")
    which = found._law_of_draw
    noise = np.empty((RUNS, len(which)))
    for at, law in enumerate(found.laws):
        mine = which == at
        noise[:, mine] = law.sample(RUNS * int(mine.sum()), bits).reshape(RUNS, -1)
    coefficients = influence(found.tree, found._combined, found.inferred)[found.tree.leaves]
    errors = np.abs(noise @ coefficients.T)
    half = found.cell_half_widths(0.05)
    assert (errors > half).mean(axis=0).max() <= 0.05 + 6 * np.sqrt(0.05 * 0.95 / RUNS)
    assert (half / np.quantile(errors, 0.95, axis=0)).mean() <= 1.05
    # A tenth less does not hold.
    assert (errors > 0.9 * half).mean() > 0.055
    assert (half <= found.half_widths(found.variances, 0.05) * (1 + 1e-9)).all()


def test_large_trees_have_chernoffs_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _estimates("medians", COSTS[0])
    monkeypatch.setattr("sfumato.questions.partition.estimates.MOST_DRAWS", 3)
    bound = found.half_widths(found.variances, 0.05)
    assert found.cell_half_widths(0.05).tolist() == bound.tolist()
