"""Membership tests against discrete noise, cell by cell."""

from fractions import Fraction

import numpy as np
import pytest

from risk.noises import NOISES, RATES, _masses
from sfumato import risk
from sfumato.mechanisms.noise import DiscreteGaussian
from sfumato.risk import Gaussian
from sfumato.risk import membership as discrete


@pytest.mark.parametrize(("noise", "shift"), NOISES[3:], ids=str)
def test_noise_on_whole_numbers_cell_by_cell(noise, shift):
    mass, moved = _masses(noise, shift)
    assert risk.advantage(noise, sensitivity=shift) == pytest.approx(
        np.clip(moved - mass, 0, None).sum()
    )
    order = np.argsort(-(np.arange(-400, 400)))
    false, true = (np.concatenate([[0], np.cumsum(p[order])]) for p in (mass, moved))
    for rate in RATES:
        assert risk.true_positive_rate(noise, rate, sensitivity=shift) == pytest.approx(
            np.interp(rate, false, true), abs=1e-12
        )


def test_wide_noise_meets_the_integral():
    table = discrete.discrete_advantage(DiscreteGaussian(Fraction(90_000**2)), 10_000)
    assert table == pytest.approx(risk.advantage(Gaussian(9.0)), rel=1e-6)
    beyond = discrete.discrete_advantage(DiscreteGaussian(Fraction(900_000**2)), 100_000)
    assert beyond == pytest.approx(risk.advantage(Gaussian(9.0)), rel=1e-6)
