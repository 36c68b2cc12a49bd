"""Laws of reports for chi-square tests, and twins that must fail: each a fault that somebody
published or that is easily made.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special, stats

from sfumato.local.bpm import BPM

FALSE_ALARM = 1e-9
RNG = np.random.default_rng(5)


def fits(observed: np.ndarray, expected: np.ndarray) -> bool:
    """Whether counts could come from a law, at a false alarm of one in 10^9; cells that expect few
    are merged.
    """
    order = np.argsort(expected)
    few = np.cumsum(expected[order]) < 25
    merged = [np.append(each[order][~few], each[order][few].sum()) for each in (observed, expected)]
    if few.sum() == 0:
        merged = [observed, expected]
    elif merged[1][-1] < 25:
        merged = [np.append(each[:-2], each[-2] + each[-1]) for each in merged]
    statistic = float(((merged[0] - merged[1]) ** 2 / merged[1]).sum())
    return statistic <= float(stats.chi2.isf(FALSE_ALARM, len(merged[1]) - 1))


def shells(bpm: BPM, edges: np.ndarray) -> np.ndarray:
    """P(edges[i] <= |x - v| < edges[i + 1]) up to L, then the rest, from the incomplete gamma
    function.
    """
    d, k, reach = bpm.dimension, float(bpm.epsilon), float(bpm.L)
    below = (
        special.gammainc(d, k * np.minimum(edges, reach))
        / special.gammainc(d, k * reach)
        * bpm.ball_probability
    )
    return np.append(np.diff(below), 1 - below[-1])


def public_ball_probability(bpm: BPM) -> float:
    """p_L as the public implementation has it: the mass in the ball lacks a factor exp(-k L)."""
    d, k, reach = bpm.dimension, float(bpm.epsilon), float(bpm.L)
    sphere = 2 * math.pi ** (d / 2) / math.gamma(d / 2)
    right = sphere * special.gammainc(d, k * reach) * math.gamma(d) / k**d
    ball = math.pi ** (d / 2) / math.gamma(d / 2 + 1) * reach**d
    wrong = right * math.exp(k * reach)
    return wrong / (wrong + math.exp(-k * reach) * ((1 + 2 * reach) ** d - ball))


def twin(
    bpm: BPM, point: np.ndarray, count: int, ball_probability: float, epsilon: float
) -> np.ndarray:
    """Reports by the two stages in plain numpy, with any share in the ball and any rate."""
    d, reach = bpm.dimension, float(bpm.L)
    near = RNG.random(count) < ball_probability
    radius = (
        special.gammaincinv(d, RNG.random(count) * special.gammainc(d, epsilon * reach)) / epsilon
    )
    direction = RNG.normal(size=(count, d))
    found = point + radius[:, None] * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    missing = np.flatnonzero(~near)
    while missing.size:
        fresh = RNG.uniform(-reach, 1 + reach, (missing.size, d))
        found[missing] = fresh
        missing = missing[np.linalg.norm(fresh - point, axis=1) <= reach]
    return found
