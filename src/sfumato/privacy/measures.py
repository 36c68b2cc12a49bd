"""Privacy measures: how much is promised, as exact numbers; how they add up, and are converted.

Measures are never mixed without a named conversion. ``compose`` says what several releases promise
together.

Costs that differ in their last digits only are said once, by ``common_cost``. Three questions share
an epsilon of 1 as 0.333333333, 0.333333333 and 0.333333334, so that nothing is left over. A reader
is told one number that holds for all three.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import msgspec

from sfumato.basics import (
    DELTA_UNITS,
    EPSILON_UNITS,
    RHO_UNITS,
    Exactly,
    ExplainedStruct,
    Number,
    decimal,
    fraction,
    is_decimal_comma,
    least_whole,
    positive,
    probability,
    rounded,
    settle,
    units_down,
    units_up,
)
from sfumato.errors import InternalError, UsageError, shown

# An amount in whole units: of epsilon or rho, and of delta.
Money: TypeAlias = tuple[int, int]

# How accounts add up.
COMPOSITIONS = ("sum", "curves")

LARGEST_EPSILON = 10**9

# The largest costs that a ledger can count.
LARGEST_RHO = 10**6

# The amounts that accounts count, with the whole units of each to one.
UNITS = {"epsilon": EPSILON_UNITS, "delta": DELTA_UNITS, "rho": RHO_UNITS}


class _Counted(
    ExplainedStruct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    repr_omit_defaults=True,
):
    """A measure that an account counts, in whole units."""

    @property
    def amounts(self) -> dict[str, Fraction]:
        """What it amounts to, by the names of amounts."""
        return {name: getattr(self, name) for name in UNITS if name in self.__struct_fields__}

    @property
    def money(self) -> Money:
        """What it costs, in whole units, rounded up."""
        first, *others = [units_up(amount, UNITS[name]) for name, amount in self.amounts.items()]
        return first, sum(others)

    def __str__(self) -> str:
        amounts = self.amounts.items()
        return ", ".join(f"{name} = {decimal(amount)}" for name, amount in amounts)


class PureDP(_Counted, frozen=True, tag="pure"):
    """Pure epsilon-differential privacy (Dwork, McSherry, Nissim, Smith, TCC 2006).

    ``widens_to``, of an account's total, is as in ``ZCDP``.

    >>> PureDP("0.5").money
    (500000000, 0)
    """

    epsilon: Number
    widens_to: ApproxDP | None = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(
            self, "epsilon", _amount(self.epsilon, "epsilon", LARGEST_EPSILON)
        )
        msgspec.structs.force_setattr(self, "widens_to", _by_curves(self.widens_to))


class ApproxDP(_Counted, frozen=True, tag="approx"):
    """Approximate (epsilon, delta)-differential privacy.

    Parameters
    ----------
    epsilon, delta : number or text
    composition : str
        Of an account's total, for good: "sum" adds up epsilons and deltas; "curves" counts many
        small answers tightly (``privacy.composition``).
    aside : number, text or None
        By curves: the part of delta that answers with a delta of their own may use together. None:
        a quarter.

    >>> ApproxDP("3", "1e-6").money
    (3000000000, 1000000000000)
    """

    epsilon: Number
    delta: Number
    composition: str = "sum"
    aside: Number | None = None

    def __post_init__(self) -> None:
        epsilon = _amount(self.epsilon, "epsilon", LARGEST_EPSILON)
        delta = fraction(self.delta, "delta")
        if not 0 <= delta < 1:
            raise UsageError(
                f"delta = {decimal(delta)}",
                "delta is a probability below 1",
                "Choose a delta far below one over the number of persons, such as 1e-6",
            )
        settle(self, epsilon=epsilon, delta=delta)
        self._require_composition()

    def _require_composition(self) -> None:
        if self.composition not in COMPOSITIONS:
            raise UsageError(
                f"composition = {shown(self.composition)}",
                f"accounts add up by {' or by '.join(COMPOSITIONS)}",
                'Write composition="sum" or composition="curves"',
            )
        if self.composition == "curves" and not self.delta:
            raise UsageError(
                "an account by curves without a delta",
                "curves need one",
                'Give a delta far below one over the number of persons, such as "1e-6"',
            )
        if self.aside is None:
            return
        aside = fraction(self.aside, "aside")
        if self.composition != "curves" or not 0 <= aside < self.delta:
            raise UsageError(
                f"aside = {decimal(aside)}",
                "it is a part of the delta of an account by curves",
                'Leave it out, or write composition="curves" and a smaller number',
            )
        msgspec.structs.force_setattr(self, "aside", aside)


class ZCDP(_Counted, frozen=True, tag="zcdp"):
    """Zero-concentrated differential privacy, rho (Bun and Steinke, TCC 2016).

    Parameters
    ----------
    rho : number or text
    widens_to : ApproxDP or None
        Of an account's total: the one (epsilon, delta) to which the custodian may widen the account
        later. It then adds up by curves.

    >>> ZCDP("0.5").money
    (500000000000, 0)
    """

    rho: Number
    widens_to: ApproxDP | None = None

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "rho", _amount(self.rho, "rho", LARGEST_RHO))
        msgspec.structs.force_setattr(self, "widens_to", _by_curves(self.widens_to))


class MetricDP(ExplainedStruct, frozen=True, tag="metric", forbid_unknown_fields=True):
    """Metric privacy: two persons' reports differ by a factor of at most exp(epsilon * distance).

    Chatzikokolakis, Andres, Bordenabe, Palamidessi, PETS 2013. It composes by adding epsilons, and
    no central account holds it: each person's own device pays.

    >>> import sfumato as sf
    >>> sf.BPM(epsilon=2, L=0.3, dimension=2).guarantee.measure
    MetricDP(epsilon=Fraction(2, 1), metric='euclidean')
    """

    epsilon: Number
    metric: str = "euclidean"

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(
            self, "epsilon", _amount(self.epsilon, "epsilon", LARGEST_EPSILON)
        )

    def __str__(self) -> str:
        return f"epsilon = {decimal(self.epsilon)} per unit of {self.metric} distance"


def _by_curves(target: ApproxDP | None) -> ApproxDP | None:
    """The total to which an account may be widened, which always adds up by curves."""
    if target is None:
        return None
    if not isinstance(target, ApproxDP):
        raise UsageError(
            f"widens_to = {shown(target)}",
            "an account in epsilon or rho is widened to an epsilon and a delta",
            'Write widens_to=sf.ApproxDP("5.4", "1e-6")',
        )
    return msgspec.structs.replace(target, composition="curves")


CentralMeasure: TypeAlias = PureDP | ApproxDP | ZCDP
Measure: TypeAlias = CentralMeasure | MetricDP


def spendable(measure: CentralMeasure) -> CentralMeasure:
    """Bring a cost to whole units, rounded down.

    So what a mechanism uses never exceeds what the account was charged.
    """
    whole = {}
    for name, amount in measure.amounts.items():
        down = units_down(amount, UNITS[name])
        if down == 0 and name != "delta":
            raise UsageError(
                f"{name} = {decimal(amount)}",
                f"it is below the smallest unit, {1 / UNITS[name]:g}",
                f"Choose a larger {name}",
            )
        whole[name] = Fraction(down, UNITS[name])
    return msgspec.structs.replace(measure, **whole)


def total_of(measure: CentralMeasure) -> Money:
    """The total of an account, in whole units, rounded down: never more than was stated."""
    # After ``spendable`` the numbers are whole units, so nothing is rounded up.
    return spendable(measure).money


def without_delta(cost: CentralMeasure) -> CentralMeasure:
    """What a mechanism that needs no delta uses of a cost, and is charged for.

    Parameters
    ----------
    cost : PureDP, ApproxDP or ZCDP

    Returns
    -------
    PureDP or ZCDP

    >>> import sfumato as sf
    >>> from sfumato.extending import without_delta
    >>> without_delta(sf.ApproxDP("0.5", "1e-6"))
    PureDP(epsilon=Fraction(1, 2))
    """
    return PureDP(cost.epsilon) if isinstance(cost, ApproxDP) else cost


def asked_cost(*, epsilon: Exactly | None, delta: Exactly, rho: Exactly | None) -> CentralMeasure:
    """Read the cost of a release from its keywords: ``epsilon`` (with ``delta``) or ``rho``, never
    both.
    """
    return spendable(measure_of("the cost of a release", epsilon=epsilon, delta=delta, rho=rho))


def measure_of(
    what: str,
    *,
    epsilon: Exactly | None = None,
    delta: Exactly = 0,
    rho: Exactly | None = None,
    prefix: str = "",
) -> CentralMeasure:
    """Read a cost or a total as it was given: an epsilon, with or without a delta, or a rho.

    Parameters
    ----------
    what : str
        What is read, as an error names it.
    prefix : str
        Of the three names in an error: "--" where they are options.

    Raises
    ------
    UsageError
        If both epsilon and rho are given, or neither, or a number is out of range.

    >>> str(measure_of("a total", epsilon=3, delta="1e-6"))
    'epsilon = 3, delta = 0.000001'
    """
    has_delta = fraction(delta, "delta") != 0
    if epsilon is not None and rho is None:
        return ApproxDP(epsilon, delta) if has_delta else PureDP(epsilon)
    if rho is not None and epsilon is None:
        if has_delta:
            raise rho_with_delta(prefix)
        return ZCDP(rho)
    obstacle = f"{prefix}epsilon and {prefix}rho are both given, and one of them is enough"
    if epsilon is None:
        obstacle = f"neither {prefix}epsilon nor {prefix}rho is given"
    remedy = 'Write epsilon="0.5", or rho="0.01" for Gaussian noise'
    if prefix == "--":
        remedy = "Write --epsilon 0.5, or --rho 0.01 for Gaussian noise"
    raise UsageError(what, obstacle, remedy)


def stated_total(
    amount: Exactly | CentralMeasure, name: str, *, in_rho: bool = False
) -> CentralMeasure:
    """Read the total of an account as people write it, in Python and in options alike.

    Parameters
    ----------
    amount : number, text, PureDP, ApproxDP or ZCDP
        Text is EPSILON; EPSILON,DELTA; rho=RHO; or as accounts are printed: epsilon = 3, delta =
        1e-6.
    name : str
        What errors call it.
    in_rho : bool
        Whether a number without a name is a rho.

    >>> print(stated_total("3,1e-6", "budget"))
    epsilon = 3, delta = 0.000001
    >>> print(stated_total("rho=0.5", "budget"))
    rho = 0.5
    """
    if isinstance(amount, CentralMeasure):
        return amount
    parts: dict[str, Exactly] = {"rho" if in_rho else "epsilon": amount}
    if isinstance(amount, str):
        parts = _parts_of_total(amount, in_rho=in_rho) or parts
    delta = parts.pop("delta", 0)
    # Checked first under the name of the total: an option --epsilon may stand beside it.
    fraction(delta, f"the delta of {name}")
    for number in parts.values():
        positive(number, name)
    return measure_of(name, delta=delta, epsilon=parts.get("epsilon"), rho=parts.get("rho"))


def _parts_of_total(text: str, *, in_rho: bool) -> dict[str, Exactly] | None:
    """Return the numbers of a total by their names; None if it is no list of such parts."""
    unnamed = iter(["rho"] if in_rho else ["epsilon", "delta"])
    numbers: dict[str, Exactly] = {}
    if is_decimal_comma(text):
        return None
    for part in text.split(","):
        first, equals, number = (word.strip() for word in part.partition("="))
        measure = first if equals else next(unnamed, "")
        if measure not in ("epsilon", "delta", "rho") or measure in numbers:
            return None
        numbers[measure] = number if equals else first
    return numbers


def rho_with_delta(prefix: str = "") -> UsageError:
    """The error of a rho that is given beside a delta."""
    return UsageError(
        f"{prefix}rho with {prefix}delta",
        "zero-concentrated privacy has no delta",
        f"Leave {prefix}delta out",
    )


def _amount(given: Exactly, name: str, limit: int) -> Fraction:
    """Read an amount above 0 that some ledger can count."""
    amount = positive(given, name)
    if amount > limit:
        article = "an" if name == "epsilon" else "a"
        raise UsageError(
            f"{article} {name} above {limit:,}",
            "no ledger counts that far, and it promises nothing",
            f"Choose a smaller {name}",
        )
    return amount


# --- composition and conversions ------------------------------------------------------------------

# What an account counts, in the words of a refusal.
KINDS = {"pure": "epsilon alone", "approx": "epsilon and delta", "zcdp": "rho"}

_IN_RHO = 'open another account, whose budget is a rho: budget="rho=0.5"'
_WITH_DELTA = (
    'open another account, whose budget has a delta: budget="2,1e-6" '
    "(command line: --account NAME --budget 2,1e-6)"
)
# What to do about a cost in one measure on an account in another.
_REMEDIES = {
    ("zcdp", "pure"): f"Give epsilon in place of rho; or {_IN_RHO}",
    ("zcdp", "approx"): f"Give epsilon and delta in place of rho; or {_IN_RHO}",
    ("approx", "pure"): f"To find keys, or for noise with a bound, {_WITH_DELTA}",
    ("approx", "zcdp"): f"Give rho, or epsilon without a delta; where it needs one, {_WITH_DELTA}",
}


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
        # Nothing else converts: (epsilon, delta) implies no rho, and a rho no epsilon without a
        # delta.
        case _:
            raise UsageError(
                f"a release that costs {cost}",
                f"its account counts {KINDS[rule]}, and this cost cannot be counted in it",
                _REMEDIES[rule_of(cost), rule],
            )


def charge_together(costs: Sequence[CentralMeasure], rule: str) -> Money:
    """What several releases cost an account together: no less than each of them promises."""
    charges = [charge(cost, rule) for cost in costs]
    first = sum(money[0] for money in charges)
    return first, sum(money[1] for money in charges)


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

    Of a rho it is the largest one that ``pure_to_zcdp`` turns into at most this rho: what Laplace
    noise may spend of it.

    >>> pure_epsilon(ZCDP("0.5"))
    Fraction(1, 1)
    """
    if not isinstance(cost, ZCDP):
        return cost.epsilon
    return PureDP(_root_down(2 * cost.rho)).epsilon  # refused where it is not above 0


def compose(costs: Sequence[CentralMeasure]) -> CentralMeasure:
    """Add up costs of one measure, or of pure and approximate ones (basic composition; Dwork, Lei
    2009).
    """
    rhos = [cost.rho for cost in costs if isinstance(cost, ZCDP)]
    if len(rhos) == len(costs):
        return ZCDP(sum(rhos, Fraction(0)))
    if rhos:
        raise UsageError(
            "composing rho with epsilon",
            "they are different measures",
            "Convert by pure_to_zcdp or zcdp_to_approx first",
        )
    epsilons = [cost.epsilon for cost in costs if not isinstance(cost, ZCDP)]
    deltas = [cost.delta for cost in costs if isinstance(cost, ApproxDP)]
    epsilon = sum(epsilons, Fraction(0))
    delta = sum(deltas, Fraction(0))
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

    # Every order gives a valid epsilon, so an imperfect minimum costs accuracy and no privacy.
    minimum = minimize_scalar(
        epsilon_at, bounds=(-12, 25), method="bounded", options={"xatol": 1e-10}
    )
    # A trifle more covers the rounding of floats.
    units = math.ceil(minimum.fun * (1 + 1e-12) * EPSILON_UNITS)
    # At least one unit, where delta alone pays.
    return ApproxDP(Fraction(max(1, units), EPSILON_UNITS), delta)


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

    def is_too_much(units: int) -> bool:
        return zcdp_to_approx(Fraction(units, RHO_UNITS), delta).epsilon > epsilon

    # rho-zCDP is no better than epsilon = rho.
    high = math.ceil(float(epsilon) * RHO_UNITS)
    low = least_whole(is_too_much, 0, high) - 1
    if not low:
        raise UsageError(
            "epsilon with delta",
            "they allow no Gaussian noise at all",
            "Choose a larger epsilon or delta",
        )
    return ZCDP(Fraction(low, RHO_UNITS))


def _root_down(square: Fraction) -> Fraction:
    """The largest epsilon, in whole units, whose square is at most this."""
    # Both roundings go down, so the square never exceeds what is allowed.
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
    together = functools.reduce(lambda loss, other: loss.compose(other), losses)
    epsilon = together.get_epsilon_for_delta(float(delta)) * (1 + 1e-12)
    if not math.isfinite(epsilon):
        raise UsageError(
            "tight composition",
            "the costs' own deltas already use up the one that is asked for",
            "Ask at a larger delta",
        )
    return Fraction(math.ceil(epsilon * EPSILON_UNITS), EPSILON_UNITS)


# --- costs that are nearly alike ------------------------------------------------------------------

# By what share of the largest one costs may differ that are said as one.
NEARLY = Fraction(1, 10**6)

DIGITS = 4


class CommonCost(msgspec.Struct, frozen=True):
    """One cost that is said of several answers.

    Attributes
    ----------
    cost : PureDP, ApproxDP, ZCDP or MetricDP
        At least that of each.
    is_rounded : bool
        Whether it is above that of some.
    """

    cost: Measure
    is_rounded: bool

    def __str__(self) -> str:
        return f"{self.cost} (rounded up)" if self.is_rounded else str(self.cost)


def common_cost(costs: Sequence[Measure]) -> CommonCost | None:
    """The cost that may be said of each, rounded up where they differ; None if they differ more.

    Holds because: a promise at some cost holds at each larger one, too.

    >>> from sfumato.privacy.measures import PureDP
    >>> print(common_cost([PureDP("0.333333333"), PureDP("0.333333334")]))
    epsilon = 0.3334 (rounded up)
    >>> common_cost([PureDP("0.3"), PureDP("0.4")]) is None
    True
    """
    first = costs[0]
    if all(cost == first for cost in costs):
        return CommonCost(first, is_rounded=False)
    if isinstance(first, MetricDP) or any(type(cost) is not type(first) for cost in costs):
        return None
    common = {}
    for name in first.amounts:
        amounts = [getattr(cost, name) for cost in costs]
        most = max(amounts)
        least = min(amounts)
        if most - least > most * NEARLY:
            return None
        common[name] = most if most == least else Fraction(rounded(most, DIGITS, up=True))
    return CommonCost(msgspec.structs.replace(first, **common), is_rounded=True)
