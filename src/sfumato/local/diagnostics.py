"""What the source's scripts show: density against radius, the share inside the ball, the report
space, a sweep over L.

Everything is simulated on a public point: no person's value is touched.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from sfumato.local.bpm import BPM, centre_reports
from sfumato.local.sampling.constants import variance
from sfumato.numbers import Exactly, positive

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Diagnosis(msgspec.Struct, frozen=True):
    """Simulated reports of the cube's centre beside what they should show.

    Attributes
    ----------
    reports : int
    inside, expected : float
        Share of the reports within L, and p_L.
    standard_error : float
        Of the share.
    in_space : bool
        Whether all lie in [-L, 1 + L]^d.
    """

    reports: int
    inside: float
    expected: float
    standard_error: float
    in_space: bool

    def __str__(self) -> str:
        return (
            f"{self.reports:,} reports: {100 * self.inside:.2f} % within L, {100 * self.expected:.2f} % expected "
            f"(+-{200 * self.standard_error:.2f}); {'all' if self.in_space else 'NOT all'} in the report space"
        )


def diagnose(bpm: BPM, reports: int = 100_000) -> Diagnosis:
    """Draw reports and compare them with the law.

    >>> diagnose(BPM(epsilon=2, L="0.3", dimension=2), 1000).in_space
    True
    """
    drawn = centre_reports(bpm, reports)
    inside = float((np.linalg.norm(drawn - 0.5, axis=1) <= float(bpm.L)).mean())
    expected, reach = bpm.ball_probability, float(bpm.L)
    error = (expected * (1 - expected) / reports) ** 0.5
    return Diagnosis(
        reports, inside, expected, error, bool(((drawn >= -reach) & (drawn <= 1 + reach)).all())
    )


class Sweep(msgspec.Struct, frozen=True):
    """How the mechanism changes with L: parallel tuples.

    Attributes
    ----------
    L, variance, signal, ball : tuple of float
        ``variance`` is that of a debiased report of a corner.
    limit : float
        d (d + 1) / epsilon^2, the variance without bound.
    auto : float
        The L that "auto" takes.
    """

    L: tuple[float, ...]
    variance: tuple[float, ...]
    signal: tuple[float, ...]
    ball: tuple[float, ...]
    limit: float
    auto: float

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw it on a matplotlib Axes."""
        from sfumato.charts import reports as local

        return local.draw_sweep(
            self.L, self.variance, self.signal, self.ball, self.limit, self.auto, ax
        )


def sweep(*, epsilon: Exactly, dimension: int, points: int = 40) -> Sweep:
    """Compute the mechanism's figures over a range of L around the automatic one.

    >>> found = sweep(epsilon=2, dimension=2, points=5)
    >>> found.auto
    4.495
    """
    exact = positive(epsilon, "epsilon")
    auto = BPM(exact, "auto", dimension)
    reaches = [Fraction(f"{x:.4g}") for x in np.geomspace(0.02, 3, points) * float(auto.L)]
    made = [BPM(exact, reach, dimension) for reach in reaches]
    corner = Decimal(dimension) / 4
    return Sweep(
        tuple(map(float, reaches)),
        tuple(variance(exact, reach, dimension, corner) for reach in reaches),
        tuple(each.signal_probability for each in made),
        tuple(each.ball_probability for each in made),
        dimension * (dimension + 1) / float(exact) ** 2,
        float(auto.L),
    )
