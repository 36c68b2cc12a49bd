"""What noise on counts spends, and which noise was drawn."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sfumato.mechanisms.noise import DiscreteGaussian, Law, Script
from sfumato.privacy.unit import Unit


def loss(law: Law, unit: Unit) -> Fraction:
    """Epsilon, or rho, that counts of disjoint cells cost under this noise.

    It is L1 / scale, or L2^2 / (2 sigma^2).
    """
    if isinstance(law, DiscreteGaussian):
        return Fraction(unit.rows_per_person**2 * (2 if unit.neighbours == "replace" else 1)) / (
            2 * law.sigma_squared
        )
    return Fraction(unit.rows_per_person * (2 if unit.neighbours == "replace" else 1)) / law.scale


class Recorder(Script):
    """Hands out zeros, and remembers which laws were asked for how many draws."""

    def __init__(self) -> None:
        self.drawn: list[tuple[Law, int]] = []

    def draw(self, law: Law, size: int) -> np.ndarray:
        self.drawn.append((law, size))
        return np.zeros(size, np.int64)
