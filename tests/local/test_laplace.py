"""Reports of the multivariate Laplace mechanism have the law that is promised."""

from __future__ import annotations

import numpy as np
import pytest

from local.laws import fits
from sfumato.local.laplace import MultivariateLaplace
from sfumato.random import PublicSeed, override

COUNT = 120_000


@pytest.mark.parametrize("d", [1, 2, 4])
def test_laplace_radii_are_gamma(d: int) -> None:
    from scipy import stats

    mechanism = MultivariateLaplace(3, d)
    with override(PublicSeed(f"laplace {d}")):
        radii = np.linalg.norm(mechanism.perturb(np.full((COUNT, d), 0.25)) - 0.25, axis=1)
    for factor, sound in ((1, True), (1.05, False)):
        part = np.minimum((stats.gamma.cdf(radii * 3 * factor, d) * 50).astype(int), 49)
        assert fits(np.bincount(part, minlength=50), np.full(50, COUNT / 50)) is sound
