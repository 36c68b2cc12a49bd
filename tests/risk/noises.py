"""Noise, shifts and rates for tests of membership."""

from fractions import Fraction

import numpy as np

from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.risk import Gaussian, Laplace

RATES = [1e-6, 0.001, 0.05, 0.2, 0.5, 0.7, 0.99]


NOISES = [
    (Laplace(2.0), 1),
    (Laplace(0.5), 1),
    (Gaussian(1.5), 1),
    (DiscreteLaplace(Fraction(3, 2)), 1),
    (DiscreteLaplace(Fraction(5)), 7),
    (DiscreteGaussian(Fraction(2)), 1),
    (DiscreteGaussian(Fraction(30)), 4),
]


def _masses(noise, shift):
    """Probabilities of both neighbours' answers, cell by cell."""
    x = np.arange(-400, 400)
    if isinstance(noise, DiscreteLaplace):
        mass = np.exp(-np.abs(x) / float(noise.scale))
    else:
        mass = np.exp(-(x**2) / 2 / float(noise.sigma_squared))
    mass /= mass.sum()
    return mass, np.roll(mass, shift)
