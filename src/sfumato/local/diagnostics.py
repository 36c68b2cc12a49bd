"""Simulated reports beside their law, and a sweep over L: what the source's scripts show.

Everything is simulated on a public point: no person's value is touched.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from sfumato.basics.numbers import Exactly, positive
from sfumato.local.bpm import BPM, centre_reports
from sfumato.local.sampling.constants import variance

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
        all_or_not = "all" if self.in_space else "NOT all"
        return (
            f"{self.reports:,} reports: {100 * self.inside:.2f}% within L, "
            f"{100 * self.expected:.2f}% expected (+-{200 * self.standard_error:.2f}); "
            f"{all_or_not} in the report space"
        )


def diagnose(bpm: BPM, reports: int = 100_000) -> Diagnosis:
    """Draw reports and compare them with the law.

    >>> diagnose(BPM(epsilon=2, L="0.3", dimension=2), 1000).in_space
    True
    """
    drawn = centre_reports(bpm, reports)
    radius = float(bpm.L)
    inside = float((np.linalg.norm(drawn - 0.5, axis=1) <= radius).mean())
    expected = bpm.ball_probability
    standard_error = (expected * (1 - expected) / reports) ** 0.5
    in_space = bool(((drawn >= -radius) & (drawn <= 1 + radius)).all())
    return Diagnosis(reports, inside, expected, standard_error, in_space)


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
        from sfumato.charts import reports as charts

        return charts.draw_sweep(self, ax)


def sweep(*, epsilon: Exactly, dimension: int, points: int = 40) -> Sweep:
    """Compute the mechanism's figures over a range of L around the automatic one.

    >>> found = sweep(epsilon=2, dimension=2, points=5)
    >>> found.auto
    4.495
    """
    exact = positive(epsilon, "epsilon")
    auto = BPM(exact, "auto", dimension)
    radii = [Fraction(f"{x:.4g}") for x in np.geomspace(0.02, 3, points) * float(auto.L)]
    mechanisms = [BPM(exact, radius, dimension) for radius in radii]
    corner = Decimal(dimension) / 4
    return Sweep(
        L=tuple(map(float, radii)),
        variance=tuple(variance(exact, radius, dimension, corner) for radius in radii),
        signal=tuple(each.signal_probability for each in mechanisms),
        ball=tuple(each.ball_probability for each in mechanisms),
        limit=dimension * (dimension + 1) / float(exact) ** 2,
        auto=float(auto.L),
    )
