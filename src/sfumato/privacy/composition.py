"""Composition: what several releases promise together, and named conversions of measures."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction

from sfumato.basics.numbers import DELTA_UNITS, EPSILON_UNITS, RHO_UNITS, probability
from sfumato.errors import InternalError, UsageError
from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure, Money, PureDP

RULES = {
    "pure": "pure epsilon, added",
    "approx": "epsilon and delta, each added",
    "zcdp": "rho, added",
}
"""What an account counts, by the name of its rule."""

REMEDIES = {
    "pure": "Give epsilon alone; to find keys, or for noise with a bound, open another account, "
    'whose budget has a delta: budget=sf.ApproxDP("2", "1e-6") (command line: --budget 2,1e-6)',
    "approx": "Give epsilon and delta",
    "zcdp": "Give rho, or epsilon alone",
}
"""What may be charged to an account, by the name of its rule."""


def rule_of(measure: CentralMeasure) -> str:
    """The rule of an account whose total is given in this measure."""
    return str(measure.__struct_config__.tag)


def charge(cost: CentralMeasure, rule: str) -> Money:
    """What a release costs an account, in its units, rounded up.

    Sums of epsilon, of (epsilon, delta) and of rho are valid filters even when each cost is chosen
    after seeing earlier answers (Rogers, Roth, Ullman, Vadhan 2016; Feldman, Zrnic 2021).

    Raises
    ------
    UsageError
        If the account's rule has no conversion from this measure.

    >>> charge(PureDP("1"), "zcdp")
    (500000000000, 0)
    """
    match cost, rule:
        case (PureDP(), "pure" | "approx") | (ApproxDP(), "approx") | (ZCDP(), "zcdp"):
            return cost.money
        case PureDP(epsilon=epsilon), "zcdp":
            return pure_to_zcdp(epsilon).money
        case _:
            raise UsageError(
                f"a release that costs {cost} on an account that counts {RULES[rule]}",
                "that cost has no conversion into the account's measure",
                REMEDIES[rule],
            )


def in_measure(money: Money, rule: str) -> Fraction | tuple[Fraction, Fraction]:
    """Read whole units as numbers again: an epsilon, a rho, or a pair of epsilon and delta.

    >>> in_measure((500000000, 0), "pure")
    Fraction(1, 2)
    """
    match rule:
        case "pure":
            return Fraction(money[0], EPSILON_UNITS)
        case "zcdp":
            return Fraction(money[0], RHO_UNITS)
        case "approx":
            return Fraction(money[0], EPSILON_UNITS), Fraction(money[1], DELTA_UNITS)
        case _:
            raise InternalError(f"There is no rule {rule!r} of accounts.")


def selection_epsilon(cost: CentralMeasure) -> Fraction:
    """The epsilon of an exponential mechanism that a cost allows: epsilon^2 / 8 is at most rho
    (Cesar, Rogers 2021).

    >>> selection_epsilon(ZCDP("0.5"))
    Fraction(2, 1)
    """
    return _root_down(8 * cost.rho) if isinstance(cost, ZCDP) else cost.epsilon


def pure_epsilon(cost: CentralMeasure) -> Fraction:
    """The epsilon of a mechanism of pure privacy that a cost allows. A delta is not used.

    >>> pure_epsilon(ZCDP("0.5"))
    Fraction(1, 1)
    """
    return zcdp_to_pure(cost.rho).epsilon if isinstance(cost, ZCDP) else cost.epsilon


def compose(costs: Sequence[CentralMeasure]) -> CentralMeasure:
    """Add up costs of one measure, or of pure and approximate ones (basic composition; Dwork, Lei
    2009).
    """
    if all(isinstance(cost, ZCDP) for cost in costs):
        return ZCDP(sum((cost.rho for cost in costs if isinstance(cost, ZCDP)), Fraction(0)))
    if any(isinstance(cost, ZCDP) for cost in costs):
        raise UsageError(
            "composing rho with epsilon",
            "they are different measures",
            "Convert by pure_to_zcdp or zcdp_to_approx first",
        )
    epsilon = sum((cost.epsilon for cost in costs if not isinstance(cost, ZCDP)), Fraction(0))
    delta = sum((cost.delta for cost in costs if isinstance(cost, ApproxDP)), Fraction(0))
    return ApproxDP(epsilon, delta) if delta else PureDP(epsilon)


def pure_to_zcdp(epsilon: Fraction) -> ZCDP:
    """epsilon-DP is (epsilon^2 / 2)-zCDP (Bun and Steinke 2016, Prop. 1.4)."""
    return ZCDP(epsilon * epsilon / 2)


def zcdp_to_approx(rho: Fraction, delta: Fraction) -> ApproxDP:
    """rho-zCDP is (epsilon, delta)-DP; the least epsilon over the order alpha, rounded up.

    delta = exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) * (1 - 1/alpha)^alpha for every
    alpha > 1 (Canonne, Kamath, Steinke 2020, Cor. 13); any alpha is valid, so the search costs
    tightness and never privacy.

    >>> str(zcdp_to_approx(Fraction(1, 2), Fraction(1, 10**6)))
    'epsilon = 5.221534445, delta = 0.000001'
    """
    from scipy.optimize import minimize_scalar

    r = float(rho)
    log_delta = math.log(probability(delta, "delta"))

    def epsilon_at(log_order: float) -> float:
        a = 1 + math.exp(log_order)
        return a * r + (-log_delta - math.log(a - 1) + a * math.log1p(-1 / a)) / (a - 1)

    found = minimize_scalar(
        epsilon_at, bounds=(-12, 25), method="bounded", options={"xatol": 1e-10}
    )
    # A trifle more covers the rounding of floats. At least one unit, where delta alone pays.
    units = max(1, math.ceil(found.fun * (1 + 1e-12) * EPSILON_UNITS))
    return ApproxDP(Fraction(units, EPSILON_UNITS), delta)


@functools.lru_cache(maxsize=256)
def approx_to_zcdp(epsilon: Fraction, delta: Fraction) -> ZCDP:
    """The largest rho, in whole units, that ``zcdp_to_approx`` turns into at most this (epsilon,
    delta).

    A mechanism that is rho-zCDP for it is (epsilon, delta)-DP, and may be charged as such.

    Raises
    ------
    UsageError
        If the pair does not allow one unit of rho.

    >>> str(approx_to_zcdp(Fraction(1), Fraction(1, 10**6)))
    'rho = 0.024355970359'
    """
    low = 0
    # rho-zCDP is no better than epsilon = rho.
    high = math.ceil(float(epsilon) * RHO_UNITS)
    while high - low > 1:
        middle = (low + high) // 2
        if zcdp_to_approx(Fraction(middle, RHO_UNITS), delta).epsilon <= epsilon:
            low = middle
        else:
            high = middle
    if not low:
        raise UsageError(
            "epsilon with delta",
            "they allow no Gaussian noise at all",
            "Choose a larger epsilon or delta",
        )
    return ZCDP(Fraction(low, RHO_UNITS))


def zcdp_to_pure(rho: Fraction) -> PureDP:
    """The largest epsilon, in whole units, that ``pure_to_zcdp`` turns into at most this rho.

    It is what Laplace noise may spend of a rho.

    >>> str(zcdp_to_pure(Fraction(1, 2)))
    'epsilon = 1'
    """
    return PureDP(_root_down(2 * rho))


def _root_down(square: Fraction) -> Fraction:
    """The largest epsilon, in whole units, whose square is at most this."""
    return Fraction(math.isqrt(int(square * EPSILON_UNITS**2)), EPSILON_UNITS)


def plan_epsilon(costs: Sequence[PureDP | ApproxDP], delta: Fraction) -> Fraction:
    """How large epsilon is at ``delta`` for a whole plan, by privacy-loss distributions; rounded
    up.

    Twenty answers at 0.1 cost 2.0 by addition, and 1.789 at delta 1e-6.
    Holds because: a plan's costs are fixed before any answer is seen, and each question is
    dominated by the worst mechanism of its cost (randomised response for pure epsilon; Kairouz, Oh,
    Viswanath 2015), whatever noise it adds.

    Raises
    ------
    UsageError
        If the extra ``risk`` (dp-accounting) is not installed, or ``delta`` is too small for the
        deltas of the costs.

    Source: dp-accounting's pessimistic discretisation of the loss.
    """
    try:
        from dp_accounting.pld import common
        from dp_accounting.pld import privacy_loss_distribution as pld
    except ImportError:
        raise UsageError(
            "tight composition",
            "dp-accounting is not installed",
            "Run: pip install 'sfumato[risk]'",
        ) from None
    losses = []
    for cost in costs:
        worst = common.DifferentialPrivacyParameters(
            float(cost.epsilon), float(cost.delta) if isinstance(cost, ApproxDP) else 0.0
        )
        losses.append(pld.from_privacy_parameters(worst, value_discretization_interval=1e-4))
    together = functools.reduce(lambda one, other: one.compose(other), losses)
    found = together.get_epsilon_for_delta(float(delta)) * (1 + 1e-12)
    if not math.isfinite(found):
        raise UsageError(
            "tight composition",
            "the costs' own deltas already use up the one that is asked for",
            "Ask at a larger delta",
        )
    return Fraction(math.ceil(found * EPSILON_UNITS), EPSILON_UNITS)
