"""Whole releases, many times: intervals hold as often as they say, one by one and all at once."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.basics.numbers import sidak
from sfumato.domain.cube import Cube
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy.measures import CentralMeasure
from sfumato.random.bits import current
from support.statistics import check_coverage

DOMAIN = sf.Domain(x=sf.Interval(0, 1))
QUESTION = sf.Histogram("x", bins=20)
TRUTH = np.arange(20) ** 3
CUBE = Cube(QUESTION.needs(DOMAIN).lattice, TRUTH)


def mass_within(law: DiscreteLaplace | DiscreteGaussian, k: int) -> float:
    """P(|Z| <= k), from the law's formula."""
    x = np.arange(-4_000, 4_001, dtype=float)
    mass = (
        np.exp(-np.abs(x) / float(law.scale))
        if isinstance(law, DiscreteLaplace)
        else np.exp(-(x**2) / (2 * float(law.sigma_squared)))
    )
    return float(mass[np.abs(x) <= k].sum() / mass.sum())


@pytest.mark.parametrize("cost", [sf.PureDP("0.2"), sf.ZCDP("0.01")], ids=str)
@pytest.mark.parametrize("unit", [sf.Unit(), sf.Unit(3, "replace")], ids=str)
def test_ten_thousand_releases(cost: CentralMeasure, unit: sf.Unit) -> None:
    releases = [QUESTION.answer(CUBE, unit, cost, current()) for _ in range(10_000)]
    values = np.stack([release.values for release in releases])
    first = releases[0]
    for simultaneous in (False, True):
        half = int(first.accuracy(0.95, simultaneous)[0])
        inside = np.abs(values - TRUTH) <= half
        alpha = sidak(0.05, 20) if simultaneous else 0.05
        exact = mass_within(first.law, half)
        assert 1 - alpha <= exact
        assert mass_within(first.law, half - 1) < 1 - alpha  # the smallest that will do
        if simultaneous:
            check_coverage(int(inside.all(axis=1).sum()), 10_000, exact**20, near_miss=0.03)
        else:
            check_coverage(int(inside.sum()), inside.size, exact)


@pytest.mark.deep
def test_a_hundred_thousand_releases(evidence: Callable[[str, object], None]) -> None:
    law = DiscreteLaplace(Fraction(5))
    noise = law.sample(20 * 100_000, current()).reshape(100_000, 20)
    each, every = law.half_width(0.05), law.half_width(sidak(0.05, 20))
    figures = {
        "individual": [float((np.abs(noise) <= each).mean()), mass_within(law, each)],
        "simultaneous": [
            float((np.abs(noise) <= every).all(axis=1).mean()),
            mass_within(law, every) ** 20,
        ],
    }
    for found, exact in figures.values():
        assert abs(found - exact) < 6.3 * (exact * (1 - exact) / 100_000) ** 0.5
    evidence("coverage", figures)
