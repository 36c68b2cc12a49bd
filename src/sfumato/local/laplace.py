"""The multivariate Laplace mechanism: the simplest metric privacy, and the limit of a large L.

Density of a report x for a point v: proportional to exp(-epsilon |x - v|) on all of R^d; |x - v| is
Gamma(d, rate epsilon) and the direction is uniform. Reports lie on a lattice whose cells are 2^-16
times a power of two near 1 + 2 d / epsilon wide.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from sfumato.basics.numbers import Array, Number, decimal, positive
from sfumato.errors import UsageError
from sfumato.local.mechanism import (
    RESOLUTION,
    LocalMechanism,
    check_dimension,
    in_blocks,
    read_array,
    reports_of,
)
from sfumato.local.sampling.cells import Cells, CellSampler
from sfumato.local.sampling.distances import DistanceLaw
from sfumato.local.sampling.floats import Floats
from sfumato.privacy.guarantee import Proof
from sfumato.random.bits import Bits, current

FARTHEST = 2**40
"""Cells that are read from others lie within this of 0; a report beyond it has no chance of
happening.
"""


class MultivariateLaplace(LocalMechanism, frozen=True, tag="laplace"):
    """Perturb points on their owner's device with noise whose density falls with the Euclidean
    distance.

    Parameters
    ----------
    epsilon : str, int, Fraction, Decimal or float
        Above 0, per unit of distance in the unit cube.
    dimension : int
        d, the number of axes.

    Attributes
    ----------
    variance : float
        Of one report, summed over the axes: d (d + 1) / epsilon^2.
    ldp_level : float
        epsilon sqrt d: the plain local privacy between any two points of the cube.

    Raises
    ------
    UsageError
        epsilon is not above 0, the dimension is not from 1 to 100,000, points have another shape or
        hold NaN.

    {metric_privacy}
    {proof}

    >>> MultivariateLaplace(epsilon=2, dimension=2).variance
    1.5
    """

    epsilon: Number
    dimension: int

    proof: ClassVar[Proof] = Proof(
        sensitivity="|x - v| moves by at most the distance of two points.",
        because=(
            "the normaliser is the same for all points; reports are rounded to a public lattice, "
            "which is post-processing, and their cells are drawn without error."
        ),
        not_covered=(
            "several reports of one person add up; that a person takes part; "
            "the time a report takes."
        ),
        source=(
            "Chatzikokolakis, Andres, Bordenabe, Palamidessi 2013; Fernandes, Dras, McIver 2019."
        ),
    )
    background_probability: ClassVar[float] = 0.0
    signal_probability: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "epsilon", positive(self.epsilon, "epsilon"))
        msgspec.structs.force_setattr(self, "dimension", check_dimension(self.dimension))
        if not Fraction(1, 10**9) <= self.epsilon <= 10**9:
            raise UsageError(
                f"epsilon = {decimal(self.epsilon)}",
                "it lies between 1e-9 and 1e9",
                "Choose epsilon in that range",
            )

    @property
    def log_normalizer(self) -> float:
        """Log density at the true point: ln(epsilon^d / (S_d Gamma(d)))."""
        d = self.dimension
        return (
            d * math.log(self.epsilon)
            - d / 2 * math.log(math.pi)
            + math.lgamma(d / 2 + 1)
            - math.lgamma(d + 1)
        )

    @property
    def variance(self) -> float:
        """Total variance of one report."""
        return self.dimension * (self.dimension + 1) / float(self.epsilon) ** 2

    @property
    def ldp_level(self) -> float:
        """Plain local differential privacy between any two points of the unit cube."""
        return float(self.epsilon) * math.sqrt(self.dimension)

    @property
    def title(self) -> str:
        """In words."""
        return f"multivariate Laplace mechanism in {self.dimension} dimensions"

    def log_density(self, v: ArrayLike, x: ArrayLike) -> Array:
        """Log density of reports x for points v, shapes (d,) or (n, d), broadcast."""
        points = read_array(v, self.dimension, "points")
        reports = read_array(x, self.dimension, "reports")
        distances = np.linalg.norm(reports - points, axis=-1)
        found: Array = self.log_normalizer - float(self.epsilon) * distances
        # One pair of points gives a number, not an array of no dimensions.
        plain: Array = found[()]
        return plain

    def debias(self, mean_of_reports: ArrayLike) -> Floats:
        """The mean itself: reports are unbiased."""
        return read_array(mean_of_reports, self.dimension, "means of reports")

    @property
    def width(self) -> Fraction:
        """Width of a cell of the lattice: a power of two."""
        spread = 1 + 2 * self.dimension / float(self.epsilon)
        return Fraction(2) ** math.ceil(math.log2(spread)) / RESOLUTION

    def perturb(self, points: ArrayLike) -> Floats:
        """Draw one report for each point of the unit cube, shape (n, d) or (d,): float64 of the
        same shape, on the lattice.
        """
        bits = current()
        sampler = _sampler(self)
        return reports_of(self, points, lambda part, target: sampler.draw(part, bits, target))

    def draw_cells(self, points: ArrayLike, bits: Bits | None = None) -> Cells:
        """Draw the lattice cell of one report for each point: int64, shape (n, d)."""
        source = bits or current()
        sampler = _sampler(self)
        cells = in_blocks(
            points, self.dimension, lambda part, target: sampler.draw(part, source, target)
        )
        return cells.astype(np.int64)

    def place(self, cells: ArrayLike, out: Floats | None = None) -> Floats:
        """Centres of cells as points: float64 like ``cells``, in ``out`` if it is given."""
        found: Floats = np.add(cells, 0.5, out=out)
        found *= float(self.width)
        return found

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the largest cell that is read."""
        return -FARTHEST, FARTHEST

    def __str__(self) -> str:
        epsilon = decimal(self.epsilon)
        lines = [
            f"Multivariate Laplace, epsilon = {epsilon} per unit of distance, "
            f"{self.dimension} dimensions:",
            f"  plain local privacy between any two points: epsilon = {self.ldp_level:.4g}",
            f"  a centroid within 0.05 takes {self.reports_needed(0.05):,} reports",
        ]
        return "\n".join(lines)


@lru_cache(maxsize=64)
def _sampler(mechanism: MultivariateLaplace) -> CellSampler:
    # The distance of a point in d dimensions has the factor r^(d - 1) of its sphere: Gamma(d).
    distance = DistanceLaw(mechanism.dimension, mechanism.epsilon, radius=None, ball=0)
    return CellSampler(mechanism.dimension, distance, Fraction(0), mechanism.width)
