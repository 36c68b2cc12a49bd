"""Reports of the multivariate Laplace mechanism have the law that is promised."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate

from local.laws import fits
from sfumato.local.mechanism import MultivariateLaplace
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


@pytest.mark.parametrize("dimension", [1, 2, 3, 7])
def test_the_density_is_one_and_falls_by_epsilon_a_unit(dimension: int) -> None:
    """Over shells around the point, whose surfaces the gamma function gives."""
    law = MultivariateLaplace("1.5", dimension)
    point = np.full(dimension, 0.25)
    radii = np.linspace(0, 60, 20_001)
    reports = np.repeat(point[None], len(radii), axis=0)
    reports[:, 0] += radii
    density = np.exp(law.log_density(point, reports))
    surface = 2 * math.pi ** (dimension / 2) / math.gamma(dimension / 2)
    assert integrate.simpson(
        density * surface * radii ** (dimension - 1), x=radii
    ) == pytest.approx(1, rel=1e-7)
    assert law.log_density(point, point) == pytest.approx(law.log_normalizer)
    steps = np.diff(law.log_density(point, reports)) / np.diff(radii)
    assert steps == pytest.approx(np.full(len(steps), -1.5), rel=1e-6)


def test_cells_lie_evenly_around_the_origin() -> None:
    """A report is the centre of its cell, so it errs by at most half of the width, either way."""
    law = MultivariateLaplace(2, 2)
    cells = np.array([[0, 5], [7, -9]])
    assert law.place(cells).tolist() == (-law.place(-1 - cells)).tolist()
    assert law.place(cells)[0, 0] == float(law.width) / 2
    assert law.limits[0] == -law.limits[1] < 0
