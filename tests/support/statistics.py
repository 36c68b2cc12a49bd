"""Statistical checks that know their own power.

A check too weak to notice the stated near miss is refused, not passed.

Each check answers one question, "could these draws come from this law?", with a false alarm once in
10^9 by default. Before it looks at the draws it computes how likely it would be to notice a near
miss (by default a scale wrong by 5 %), and raises ``TooFewDraws`` where that is below 999 in 1,000.

Noticing a 5 % wrong scale takes about 35,000 draws of |x|, a 1 % one about 900,000; in a chi-square
over all values more.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy import stats

from sfumato.audit.runs import masses, support
from sfumato.mechanisms.bounded_noise import CountLaw, TruncatedLaplace
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace

FALSE_ALARM = 1e-9
POWER = 1 - 1e-3
NEAR_MISS = Fraction(21, 20)
LEAST_EXPECTED = 25.0  # draws per cell of a chi-square: merged until each holds this many


class TooFewDraws(Exception):
    """The check would pass a near miss: it proves nothing, so it is refused."""


def scaled(law: CountLaw, factor: Fraction) -> CountLaw:
    """The same law with its scale (or sigma) multiplied by a factor: a near miss."""
    match law:
        case DiscreteLaplace(scale=scale):
            return DiscreteLaplace(scale * factor)
        case DiscreteGaussian(sigma_squared=sigma_squared):
            return DiscreteGaussian(sigma_squared * factor**2)
        case TruncatedLaplace(scale=scale, bound=bound):
            return TruncatedLaplace(scale * factor, bound)


def check_scale(
    draws: np.ndarray,
    law: CountLaw,
    *,
    near_miss: Fraction = NEAR_MISS,
    false_alarm: float = FALSE_ALARM,
) -> None:
    """Check the mean of |x| against the law's own, by a two-sided z test.

    Raises
    ------
    TooFewDraws
        If a scale wrong by the factor ``near_miss``, up or down, would be noticed with probability
        below ``POWER``.
    AssertionError
        If the draws do not fit.
    """
    mean, spread = _absolute_moments(law)
    critical = stats.norm.isf(false_alarm / 2)
    for factor in (near_miss, 1 / near_miss):
        other_mean, other_spread = _absolute_moments(scaled(law, factor))
        margin = abs(other_mean - mean) * math.sqrt(len(draws)) - critical * spread
        _require(
            stats.norm.cdf(margin / other_spread),
            f"the mean of {len(draws)} |x| against a scale wrong by {float(factor):.3g}",
        )
    z = (np.abs(draws).mean() - mean) / (spread / math.sqrt(len(draws)))
    assert abs(z) <= critical, f"mean |x| is {z:+.1f} standard errors from that of {law}"


def check_law(
    draws: np.ndarray,
    law: CountLaw,
    *,
    near_miss: CountLaw | None = None,
    false_alarm: float = FALSE_ALARM,
) -> None:
    """Check all values against the law, by a chi-square test.

    Values are merged until each cell expects 25 draws.

    ``near_miss`` is the wrong law that must be noticed; None: the same law, 5 % wider.

    Raises
    ------
    TooFewDraws, AssertionError
        As for ``check_scale``.
    """
    values = support(law)
    starts = _cells(masses(law, values) * len(draws))
    expected = np.add.reduceat(masses(law, values), starts)
    wrong = np.add.reduceat(masses(near_miss or scaled(law, NEAR_MISS), values), starts)
    freedom = len(starts) - 1
    if freedom < 1:
        raise TooFewDraws(f"{len(draws)} draws leave a single cell")
    critical = stats.chi2.isf(false_alarm, freedom)
    noncentral = len(draws) * float(((wrong - expected) ** 2 / expected).sum())
    _require(stats.ncx2.sf(critical, freedom, noncentral), f"a chi-square of {len(draws)} draws")
    cell = np.clip(np.searchsorted(values[starts], draws, side="right") - 1, 0, None)
    observed = np.bincount(cell, minlength=len(starts))
    statistic = float(((observed - expected * len(draws)) ** 2 / (expected * len(draws))).sum())
    assert statistic <= critical, f"chi-square {statistic:.0f} exceeds {critical:.0f} for {law}"


def check_coverage(
    hits: int,
    trials: int,
    expected: float,
    *,
    near_miss: float = 0.01,
    false_alarm: float = FALSE_ALARM,
) -> None:
    """Check how often intervals held, by a two-sided exact binomial test.

    Parameters
    ----------
    near_miss : float
        A coverage off by this much, up or down, must be noticed. Where ``expected + near_miss``
        reaches 1 only down counts.
    false_alarm : float
        Four standard errors are 6.3e-5.

    Raises
    ------
    TooFewDraws, AssertionError
        As for ``check_scale``.
    """
    low, high = (
        stats.binom.ppf(false_alarm / 2, trials, expected),
        stats.binom.isf(false_alarm / 2, trials, expected),
    )
    for wrong in (expected - near_miss, expected + near_miss):
        if wrong < 1:
            missed = stats.binom.cdf(high, trials, wrong) - stats.binom.cdf(low - 1, trials, wrong)
            _require(1 - missed, f"{trials} trials against a coverage of {wrong:.4f}")
    assert low <= hits <= high, (
        f"{hits} of {trials} intervals held; {low:.0f} to {high:.0f} expected"
    )


def clopper_pearson(hits: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """An interval for a probability, at least at this confidence (Clopper and Pearson 1934)."""
    alpha = 1 - confidence
    low = 0.0 if hits == 0 else float(stats.beta.ppf(alpha / 2, hits, trials - hits + 1))
    high = 1.0 if hits == trials else float(stats.beta.isf(alpha / 2, hits + 1, trials - hits))
    return low, high


def _absolute_moments(law: CountLaw) -> tuple[float, float]:
    values = support(law)
    mass = masses(law, values)
    mean = float((mass * np.abs(values)).sum())
    return mean, math.sqrt(float((mass * np.square(values, dtype=float)).sum()) - mean**2)


def _cells(expected: np.ndarray) -> np.ndarray:
    """Where cells start when values are merged, in order, until each expects enough.

    What is left at the end joins the last.
    """
    starts, held = [0], 0.0
    for i, mass in enumerate(expected):
        if held >= LEAST_EXPECTED:
            starts.append(i)
            held = 0.0
        held += float(mass)
    if held < LEAST_EXPECTED and len(starts) > 1:
        starts.pop()
    return np.array(starts)


def _require(power: float, what: str) -> None:
    if not power >= POWER:
        raise TooFewDraws(
            f"{what} would notice the near miss with probability {power:.4f} only; "
            f"{POWER} is needed"
        )


def covers(held: int, trials: int, confidence: float, *, false_alarm: float = FALSE_ALARM) -> bool:
    """Whether intervals that held so often may be ones of at least this confidence.

    An interval of exactly this confidence is refused with probability at most ``false_alarm``.

    >>> covers(9_480, 10_000, 0.95), covers(890, 1_000, 0.95)
    (True, False)
    """
    return bool(stats.binom.cdf(held, trials, confidence) > false_alarm)
