"""The search for the largest epsilon within a risk, in a few scans of all answers.

Every S_i(rate) (see ``distinct_answers``) falls with the rate, and ln S_i is convex. The risk is
within rho as long as every S_i is at least top_i / rho. Each answer alone thus allows rates up to a
root of its own, and the largest rate is the least of these roots.

The search starts from the loose bound, which is safe. It scans for the worst answer, goes to its
root and scans again. The rate can only fall, and when the same answer is the worst again, its root
is the least. A root takes a few passes over one answer's distances: Newton's method, which by
convexity is monotone from the safe side.
"""

from __future__ import annotations

import math

from sfumato.basics.numbers import Exactly, probability
from sfumato.errors import Infeasible, InternalError
from sfumato.risk.distinct_answers import Answers

# The relative width of the bracket whose lower end is returned.
CLOSE = 1e-9
# A risk that exceeds a limit by less than this meets it.
ROUNDING = 1e-12
MOST_SCANS = 200


def read_risk(risk: Exactly) -> float:
    """Read a risk in (0, 1)."""
    return float(probability(risk, "risk"))


def loose_epsilon(odds: float, slope: float, risk: float) -> float:
    """Return the epsilon at which the loose bound reaches the risk.

    ``odds`` is ln of the odds against the likeliest world, and ``slope`` is Dv / Df.
    """
    gain = odds + math.log(risk) - math.log1p(-risk)
    if gain < -ROUNDING:
        log_prior = -math.log1p(math.exp(odds)) if odds < 700 else -odds
        raise too_low(risk, math.exp(log_prior))
    return math.inf if slope == 0 else max(gain, 0.0) / slope


def too_low(risk: float, prior: float) -> Infeasible:
    """Return the refusal of a risk below what the adversary believes beforehand."""
    enough = f"Allow a risk of at least {prior:.6g}, which is {prior - risk:.6g} more"
    return Infeasible(
        f"a disclosure risk of {risk:.6g}",
        f"the likeliest world has a probability of {prior:.6g} before anything is published",
        f"{enough}, or take a larger universe",
    )


def tight_epsilon(found: Answers, scale: float, risk: float) -> float:
    """Return the largest epsilon whose tight bound is within the risk."""
    goal = math.log(risk)
    if found.at_zero.log_risk > goal + ROUNDING:
        raise too_low(risk, math.exp(found.at_zero.log_risk))
    if len(found.values) == 1 or scale == 0 or found.at_infinity.log_risk <= goal + ROUNDING:
        return math.inf
    if found.at_zero.log_risk >= goal - ROUNDING:
        return 0.0
    return _settle(found, scale, risk, _largest_rate(found, goal) * scale)


def _largest_rate(found: Answers, goal: float) -> float:
    """Return the least of the roots of the single answers."""
    apart = float(found.values[-1] - found.values[0])
    top = found.at_zero.log_risk
    # The rate at which the loose bound reaches the goal: no answer's risk is above it there.
    log_odds = math.log(-math.expm1(top)) - top
    safe = max((log_odds + goal - math.log1p(-math.exp(goal))) / apart, 0.0)
    index = found.worst(safe).at
    if found.limit(index) <= goal + ROUNDING:
        # This answer's risk never reaches the goal; that of the worst exact answer does.
        index = found.at_infinity.at
    rate = _root(found, index, goal, safe, safe)
    for _ in range(MOST_SCANS):
        worst = found.worst(rate)
        if worst.at == index or worst.log_risk <= goal + ROUNDING:
            return rate
        index = worst.at
        rate = _root(found, index, goal, safe, rate)
    raise InternalError("the search for epsilon did not end: please report it")


def _root(found: Answers, index: int, goal: float, safe: float, start: float) -> float:
    """Return the rate at which one answer's risk reaches the goal."""
    top = found.top_of(index)
    rate = start
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
    """Return the lower end of a bracket of relative width 1e-9 around the largest epsilon.

    The risk at the lower end, as it is computed, is within the limit; that at the upper end is not.
    """

    def within(level: float) -> bool:
        return math.exp(found.worst(level / scale).log_risk) <= limit

    low = epsilon
    high = math.inf
    step = 1e-13
    while not within(low):
        high = low
        low *= 1 - step
        step *= 8
    if high > low * (1 + CLOSE):
        step = CLOSE / 2
        high = min(high, low * (1 + step))
        while within(high) and step < 1:
            low = high
            step *= 4
            high = low * (1 + step)
    while high > low * (1 + CLOSE):
        middle = (low + high) / 2
        if within(middle):
            low = middle
        else:
            high = middle
    return low
