"""The exact law of (1 - q) X - q Y, against enumeration and against what is nearly right."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.mechanisms import noise_sums as contrasts
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.mechanisms.noise_sums import contrast_half_width, exact_half_width, sum_masses

LAPLACE = DiscreteLaplace(Fraction(1))
GAUSSIAN = DiscreteGaussian(Fraction(2))


def masses_of(law, reach):
    at = np.arange(-reach, reach + 1)
    if law is LAPLACE:
        found = np.exp(-np.abs(at) / float(law.scale))
    else:
        found = np.exp(-(at**2) / (2 * float(law.sigma_squared)))
    return dict(zip(at.tolist(), (found / found.sum()).tolist(), strict=True))


@pytest.mark.parametrize("law", [LAPLACE, GAUSSIAN], ids=str)
@pytest.mark.parametrize(
    ("below", "above", "q"),
    [
        (1, 1, Fraction(1, 2)),
        (1, 2, Fraction(1, 3)),
        (2, 1, Fraction(7, 10)),
        (2, 0, Fraction(1, 4)),
        (0, 2, Fraction(1, 4)),
    ],
)
def test_every_half_width_is_the_smallest(law, below, above, q):
    """All draws of up to three counts are enumerated."""
    one = masses_of(law, 30 if below + above < 3 else 15)
    law_of_contrast = {}
    for drawn in product(one.items(), repeat=below + above):
        numbers = [number for number, _ in drawn]
        contrast = abs((1 - q) * sum(numbers[:below]) - q * sum(numbers[below:]))
        mass = math.prod(mass for _, mass in drawn)
        law_of_contrast[contrast] = law_of_contrast.get(contrast, 0.0) + mass
    for alpha in (0.5, 0.2, 0.05, 0.01):
        beyond = lambda half: sum(mass for at, mass in law_of_contrast.items() if at > half)  # noqa: E731 - a sum at one alpha
        half = contrast_half_width(law, below, above, q, alpha)
        assert beyond(half) <= alpha
        # One less would not do: a law that is a little too narrow or too wide is found.
        assert half == 0 or beyond(half - 1) > alpha


@pytest.mark.parametrize("law", [DiscreteLaplace(Fraction(5)), DiscreteGaussian(Fraction(40))])
def test_a_plain_sum_is_the_known_one(law):
    for number, alpha in product((1, 3, 40), (0.05, 1e-6)):
        known = exact_half_width([(law, number)], alpha)
        assert contrast_half_width(law, number, 0, Fraction(0), alpha) == known
        assert contrast_half_width(law, 0, number, Fraction(1), alpha) == known


def test_more_counts_never_make_it_narrower():
    law = DiscreteLaplace(Fraction(5))
    found = [contrast_half_width(law, k, 4, Fraction(1, 3), 0.05) for k in range(8)]
    assert found == sorted(found)


def test_laws_of_sums_are_laws():
    masses = sum_masses(DiscreteLaplace(Fraction(3)), 7, 1e-9)
    assert masses is not None
    assert abs(masses.sum() - 1) < 1e-8
    assert np.allclose(masses, masses[::-1], rtol=0, atol=1e-15)


def test_a_law_too_wide_to_be_computed_is_bounded(monkeypatch):
    law = DiscreteLaplace(Fraction(11))
    exact = contrast_half_width(law, 2, 3, Fraction(2, 5), 0.05)
    contrast_half_width.cache_clear()
    sum_masses.cache_clear()
    monkeypatch.setattr(contrasts, "LONGEST", 16)
    bound = contrast_half_width(law, 2, 3, Fraction(2, 5), 0.05)
    contrast_half_width.cache_clear()
    sum_masses.cache_clear()
    assert exact < bound < 2 * exact
    assert contrast_half_width(DiscreteLaplace(Fraction(10**9)), 2, 3, Fraction(2, 5), 0.05) > 10**9
