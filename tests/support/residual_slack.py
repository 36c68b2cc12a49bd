"""What residuals cost together, as the proof in ``mechanisms/noise`` states it."""

from __future__ import annotations

import math

MARGIN = 1.01
"""By how much the slack is overestimated: far more than the rounding of doubles."""


def slack_of(bound: float) -> float:
    """The slack h of a residual, from the bound on its ln(1 + eta): at most infinity."""
    if bound >= math.log(2):
        return math.inf
    return MARGIN * 2 * math.atanh(math.expm1(bound))


def total_rho(spent: float, slack: float) -> float:
    """The rho of residuals of R and H."""
    return (math.sqrt(spent) + math.sqrt(slack)) ** 2
