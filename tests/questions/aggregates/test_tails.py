"""Bounds on weighted sums of discrete noise hold, and are nearly tight where noise is fine."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law
from sfumato.questions.aggregates.intervals import _table, half_widths

COEFFICIENTS = [
    (4, 0, 0),
    (4, -4, 0),
    (1, 3, 0),
    (2, 2, 2),
    (1, -2, 3),
    (1, 4, 4),
]
LAWS = [
    DiscreteLaplace(Fraction(1, 2)),
    DiscreteLaplace(Fraction(1)),
    DiscreteLaplace(Fraction(13, 2)),
    DiscreteLaplace(Fraction(60)),
    DiscreteGaussian(Fraction(1, 4)),
    DiscreteGaussian(Fraction(3, 2)),
    DiscreteGaussian(Fraction(900)),
]


def masses(law: Law) -> np.ndarray:
    """Probabilities of -largest..largest, beyond which less than 1e-13 lies."""
    if isinstance(law, DiscreteLaplace):
        largest = int(32 * float(law.scale)) + 2
        x = np.arange(-largest, largest + 1)
        weight = np.exp(-np.abs(x) / float(law.scale))
    else:
        largest = int(9 * law.sigma) + 2
        x = np.arange(-largest, largest + 1)
        weight = np.exp(-(x**2) / (2 * float(law.sigma_squared)))
    return np.asarray(weight / weight.sum())


def stretched(mass: np.ndarray, by: int) -> np.ndarray:
    """The law of a whole multiple."""
    if by == 0:
        return np.ones(1)
    spread = np.zeros((len(mass) - 1) * abs(by) + 1)
    spread[:: abs(by)] = mass
    return spread


def missed(law: Law, coefficients: tuple[int, ...], bound: float) -> float:
    """P(abs(sum) > bound), by convolution."""
    mass = masses(law)
    total = np.ones(1)
    for each in coefficients:
        total = np.convolve(total, stretched(mass, each))
    at = np.arange(len(total)) - len(total) // 2
    return float(total[np.abs(at) > bound].sum())


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("coefficients", COEFFICIENTS, ids=str)
@pytest.mark.parametrize("alpha", [0.2, 0.05, 1e-3, 1e-8])
def test_bounds_hold(law: Law, coefficients: tuple[int, ...], alpha: float) -> None:
    (bound,) = half_widths(law, np.array([coefficients], float), alpha)
    assert missed(law, coefficients, float(bound)) <= alpha + 1e-12


@pytest.mark.parametrize("law", [LAWS[3], LAWS[6]], ids=str)
@pytest.mark.parametrize("coefficients", COEFFICIENTS, ids=str)
def test_bounds_of_fine_noise_are_nearly_tight(law: Law, coefficients: tuple[int, ...]) -> None:
    (bound,) = half_widths(law, np.array([coefficients], float), 0.05)
    slack = 1.1 * sum(map(abs, coefficients))
    assert missed(law, coefficients, 0.995 * float(bound) - slack) > 0.05


def test_bounds_scale_with_their_coefficients() -> None:
    law = DiscreteLaplace(Fraction(1000))
    one, many = half_widths(law, np.array([[0.1, 0.2, 0.3], [10, 20, 30]]), 0.05)
    assert many == pytest.approx(100 * one)
    assert half_widths(law, np.zeros((1, 2)), 0.05).tolist() == [0]


def test_the_table_of_ratios_is_convex_along_each_ratio() -> None:
    """Interpolation between its points is then never below the quantile."""
    table = _table(0.05)
    # The scales are raised by a thousandth to lie apart. That changes second differences by far
    # less than their own size.
    assert np.diff(table, 2, axis=0).min() > -1e-4
    assert np.diff(table, 2, axis=1).min() > -1e-4
    assert np.diff(table, axis=0).min() > -1e-6
