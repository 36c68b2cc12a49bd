"""The largest epsilon within a risk: a handful of scans, because each scan names the one answer that matters next.

Every S_i(rate) falls with the rate, and ln S_i is convex. The risk is within rho as long as every S_i is at least
top_i / rho, so the largest rate is the least of the roots of the single answers. From the loose bound, which is safe: scan
for the worst answer, go to its root, scan again; the rate can only fall, and where the same answer is the worst, it is
the least root. A root takes a few passes over one answer's distances (Newton, from the safe side monotone by convexity).
"""

from __future__ import annotations

import math

from sfumato.errors import Infeasible, InternalError
from sfumato.numbers import Exactly, probability
from sfumato.risk.kernel import Answers

CLOSE = 1e-9  # relative width of the bracket whose lower end is returned
ROUNDING = 1e-12  # a risk that misses a limit by less has met it
MOST_SCANS = 200


def read_risk(risk: Exactly) -> float:
    """Read a risk in (0, 1)."""
    return float(probability(risk, "risk"))


def loose_epsilon(odds: float, slope: float, risk: float) -> float:
    """Invert the loose bound: ``odds`` is ln of the odds against the likeliest world, ``slope`` is Dv / Df."""
    gain = odds + math.log(risk) - math.log1p(-risk)
    if gain < -ROUNDING:
        raise too_low(risk, math.exp(-float(math.log1p(math.exp(odds)) if odds < 700 else odds)))
    return math.inf if slope == 0 else max(gain, 0.0) / slope


def too_low(risk: float, prior: float) -> Infeasible:
    """Refuse a risk below what the adversary believes anyway."""
    return Infeasible(
        f"a disclosure risk of {risk:.6g}",
        f"the likeliest world has a probability of {prior:.6g} before anything is published",
        f"Allow a risk of at least {prior:.6g}, which is {prior - risk:.6g} more, or take a larger universe",
    )


def tight_epsilon(found: Answers, scale: float, risk: float) -> float:
    """The largest epsilon whose tight bound is within the risk."""
    goal = math.log(risk)
    if found.at_zero.log_risk > goal + ROUNDING:
        raise too_low(risk, math.exp(found.at_zero.log_risk))
    if len(found.values) == 1 or scale == 0 or found.at_infinity.log_risk <= goal + ROUNDING:
        return math.inf
    if found.at_zero.log_risk >= goal - ROUNDING:
        return 0.0
    return _settle(found, scale, risk, _largest_rate(found, goal) * scale)


def _largest_rate(found: Answers, goal: float) -> float:
    """The least of the roots of the single answers."""
    reach = float(found.values[-1] - found.values[0])
    top = found.at_zero.log_risk
    safe = max((math.log(-math.expm1(top)) - top + goal - math.log1p(-math.exp(goal))) / reach, 0.0)
    index = found.worst(safe).at
    if (
        found.limit(index) <= goal + ROUNDING
    ):  # its risk never reaches the goal; that of the worst exact answer does
        index = found.at_infinity.at
    rate = _root(found, index, goal, safe, safe)
    for _ in range(MOST_SCANS):
        worst = found.worst(rate)
        if worst.at == index or worst.log_risk <= goal + ROUNDING:
            return rate
        index, rate = worst.at, _root(found, worst.at, goal, safe, rate)
    raise InternalError("the search for epsilon did not end: please report it")


def _root(found: Answers, index: int, goal: float, safe: float, start: float) -> float:
    """Where one answer's risk reaches the goal."""
    top, rate = found.top_of(index), start
    for _ in range(MOST_SCANS):
        log_sum, slope = found.one(index, rate)
        excess = log_sum - (top - goal)
        if slope == 0:
            break
        step = -excess / slope
        if abs(excess) <= 1e-13 or abs(step) <= 1e-14 * rate:
            break
        rate = max(rate + step, safe)
    return rate


def _settle(found: Answers, scale: float, limit: float, epsilon: float) -> float:
    """Return the end of a bracket of relative width 1e-9 that satisfies the requirement as it is computed."""

    def within(level: float) -> bool:
        return math.exp(found.worst(level / scale).log_risk) <= limit

    step, low, high = 1e-13, epsilon, math.inf
    while not within(low):
        high, low, step = low, low * (1 - step), step * 8
    if high == math.inf or high > low * (1 + CLOSE):
        step, high = CLOSE / 2, min(high, low * (1 + CLOSE / 2))
        while within(high) and step < 1:
            low, step = high, step * 4
            high = low * (1 + step)
    while high > low * (1 + CLOSE):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return low
