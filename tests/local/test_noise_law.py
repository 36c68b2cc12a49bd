"""The mixture of normals that stands for the noise."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from sfumato.local.normal_clusters import noise_law
from sfumato.random import PublicSeed, override


def perturbed(
    mechanism: sf.BPM | sf.MultivariateLaplace, points: np.ndarray, seed: int
) -> np.ndarray:
    with override(PublicSeed(f"{mechanism.title} {seed}")):
        return mechanism.perturb(points)


@pytest.mark.parametrize(
    "mechanism",
    [sf.BPM(2, "auto", 2), sf.BPM(4, "0.5", 2), sf.BPM(8, "auto", 8), sf.MultivariateLaplace(3, 3)],
    ids=str,
)
def test_the_noise_law_is_near_to_the_noise(mechanism: sf.BPM) -> None:
    law, d = noise_law(mechanism), mechanism.dimension
    reports = perturbed(mechanism, np.full((40_000, d), 0.5), 1) - 0.5
    rng = np.random.default_rng(0)
    scales = np.sqrt(rng.choice(law.variances, 40_000, p=law.shares))
    drawn = rng.normal(size=(40_000, d)) * scales[:, None]
    if isinstance(mechanism, sf.BPM):
        silent = rng.random(40_000) < law.background
        drawn[silent] = rng.uniform(
            -0.5 - float(mechanism.L), 0.5 + float(mechanism.L), (int(silent.sum()), d)
        )
    from scipy import stats

    assert (
        stats.ks_2samp(np.linalg.norm(reports, axis=1), np.linalg.norm(drawn, axis=1)).statistic
        < 0.06
    )
