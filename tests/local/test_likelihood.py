"""The likelihood of reports and its gradient."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from sfumato.local.normal_clusters import Clusters, information, likelihood, noise_law


@pytest.mark.parametrize(
    "mechanism",
    [sf.BPM(4, "0.5", 2), sf.BPM(8, "auto", 4), sf.MultivariateLaplace(4, 1)],
    ids=lambda m: m.title,
)
def test_the_gradient_is_that_of_the_likelihood(mechanism: sf.BPM) -> None:
    rng, k, d = np.random.default_rng(0), 3, mechanism.dimension
    points, counts, law = rng.random((300, d)), rng.random(300) + 0.5, noise_law(mechanism)
    vector = Clusters(
        np.array([0.5, 0.3, 0.2]), rng.random((k, d)), np.array([0.01, 0.002, 0.03])
    ).vector()
    value, gradient = likelihood(vector, k, points, counts, law)
    score, known = information(vector, k, points, counts, law)
    assert score / counts.sum() == pytest.approx(gradient, abs=1e-12)
    assert np.linalg.eigvalsh(known).min() > -1e-6
    for i in range(len(vector)):
        step = np.zeros(len(vector))
        step[i] = 1e-5
        slope = (
            likelihood(vector + step, k, points, counts, law)[0]
            - likelihood(vector - step, k, points, counts, law)[0]
        ) / 2e-5
        assert slope == pytest.approx(gradient[i], abs=1e-6)
    assert np.isfinite(value)
