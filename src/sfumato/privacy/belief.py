"""What a promise means to somebody who suspects something: how sure they can become.

Odds of a person's presence are multiplied by e^l at most when an answer with privacy loss l is
seen, whatever else the observer knows.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from sfumato.basics import rounded
from sfumato.privacy.measures import ZCDP, ApproxDP, CentralMeasure, PureDP
from sfumato.privacy.unit import Unit

# How sure the observer is beforehand that previews speak of.
PRIOR = 0.01

# How often the loss of Gaussian noise may be larger than previews say.
SELDOM = 1e-6

# An epsilon above it protects hardly anyone, and every statement of it says so.
LARGE = 10

# Percent, beyond which a belief is printed with dots.
ALMOST = 99.99

# Odds beyond e^700 would leave doubles.
LARGEST_LOG_ODDS = 700.0


def loss(promise: CentralMeasure, exceeded: float = 0.0) -> float:
    """The privacy loss that an answer exceeds with at most this probability, if the person is
    present.

    Holds because: under pure privacy the loss is at most epsilon. Under (epsilon, delta),
    P(l > L) <= delta / (1 - e^(epsilon - L)), since the set S of such outputs has
    P(S) <= e^epsilon Q(S) + delta and Q(S) <= e^-L P(S). Under rho-zCDP,
    P(l > rho + 2 sqrt(rho t)) <= e^-t (Bun and Steinke 2016, Lemma 3.5).

    >>> loss(PureDP("0.5"))
    0.5
    """
    match promise:
        case PureDP(epsilon=epsilon):
            return float(epsilon)
        case ApproxDP(epsilon=epsilon, delta=delta):
            # With a positive delta, no finite bound on the loss holds with certainty.
            share = float(delta) / exceeded if exceeded > 0 else float(delta > 0)
            return float(epsilon) - math.log1p(-share) if share < 1 else math.inf
        case ZCDP(rho=rho):
            if exceeded <= 0:
                return math.inf
            return float(rho) + 2 * math.sqrt(float(rho) * -math.log(exceeded))


def after(prior: float, loss: float) -> float:
    """The belief of somebody whose belief was ``prior``, after this loss.

    >>> round(after(0.01, 1), 4)
    0.0267
    """
    log_odds_after = log_odds(prior) + loss
    within = min(max(log_odds_after, -LARGEST_LOG_ODDS), LARGEST_LOG_ODDS)
    return 1 / (1 + math.exp(-within))


def log_odds(chance: float) -> float:
    """ln of chance / (1 - chance)."""
    return math.log(chance) - math.log1p(-chance)


def group(promise: CentralMeasure, size: int) -> CentralMeasure:
    """What a promise for one change is worth for ``size`` changes: group privacy.

    epsilon becomes k epsilon, and rho becomes k^2 rho; (epsilon, delta) becomes
    (k epsilon, delta (e^(k epsilon) - 1) / (e^epsilon - 1)).
    Holds because: Dwork and Roth 2014, Thm 2.2; Bun and Steinke 2016, Prop. 1.9; for delta, k steps
    along a chain.

    >>> str(group(ZCDP("0.1"), 2))
    'rho = 0.4'
    """
    match promise:
        case PureDP(epsilon=epsilon):
            return PureDP(size * epsilon)
        case ZCDP(rho=rho):
            return ZCDP(size**2 * rho)
        case ApproxDP(epsilon=epsilon, delta=delta):
            powers = (math.exp(min(i * float(epsilon), LARGEST_LOG_ODDS)) for i in range(size))
            # A trifle more covers the rounding of floats.
            worse = delta * Fraction(sum(powers) * (1 + 1e-12))
            # ``ApproxDP`` refuses a delta of 1, so one that promises nothing is written one unit
            # below it.
            largest = Fraction(10**18 - 1, 10**18)
            return ApproxDP(size * epsilon, min(worse, largest))


def sentence(promise: CentralMeasure, unit: Unit) -> str:
    """What a promise means to somebody who was 1% sure, in one sentence without its full stop.

    Under delta and zCDP the loss has no limit, and the sentence says how seldom it is larger: ten
    times delta, or 10^-6.

    >>> sentence(PureDP("0.5"), Unit())
    'anyone 1% sure that a person is in the data can become at most 1.64% sure'
    >>> sentence(PureDP(50), Unit())
    'anyone 1% sure that a person is in the data can become 99.99...% sure'
    """
    seldom = _seldom(promise)
    is_replaced = unit.neighbours == "replace"
    fact = "what a person's rows are" if is_replaced else f"that {unit.anyone} is in the data"
    if seldom >= 1:
        return f"delta is too large to limit how sure anyone can become {fact}"
    percent = 100 * after(PRIOR, loss(promise, seldom))
    if percent < ALMOST:
        # Rounded up, and still below 100.
        digits = 3 if percent < 99 else 4
        sure = f"at most {rounded(percent, digits, up=True)}% sure"
    else:
        sure = f"{ALMOST:g}...% sure"
    unless = f", except with probability {plain_probability(seldom)}" if seldom else ""
    return f"anyone {100 * PRIOR:g}% sure {fact} can become {sure}{unless}"


def afterwards(promise: CentralMeasure) -> float:
    """How sure somebody who was 1% sure can become, between 0 and 1: what ``sentence`` says.

    >>> round(afterwards(PureDP("0.5")), 4)
    0.0164
    """
    seldom = _seldom(promise)
    return after(PRIOR, loss(promise, seldom)) if seldom < 1 else 1.0


def plain_probability(chance: float) -> str:
    """A small probability in one digit, as people write it.

    >>> plain_probability(1e-06)
    '0.000001'
    """
    return f"{Decimal(f'{chance:.1g}'):f}"


def _seldom(promise: CentralMeasure) -> float:
    """How often the loss may be larger than is said."""
    match promise:
        case PureDP():
            return 0.0
        case ApproxDP(delta=delta):
            # At ten times delta the loss stays within epsilon - ln 0.9, which is about 0.105 more.
            return 10 * float(delta)
        case ZCDP():
            return SELDOM


def is_large(promise: CentralMeasure) -> bool:
    """Whether a promise allows so much that it must say so.

    That is an epsilon above 10, or a rho whose loss exceeds 10 more than once in 10^6.
    """
    if isinstance(promise, ZCDP):
        return loss(promise, SELDOM) > LARGE
    return promise.epsilon > LARGE


def warning(promise: CentralMeasure, unit: Unit) -> str:
    """What a large epsilon allows, as a sentence; "" where there is nothing to warn of.

    >>> warning(PureDP(50), Unit()).partition(":")[0]
    'Epsilon above 10 protects hardly anyone'
    >>> warning(PureDP(1), Unit())
    ''
    """
    if not is_large(promise):
        return ""
    subject = "epsilon above 10"
    if isinstance(promise, ZCDP):
        subject = f"{promise} amounts to an epsilon above 10, and"
    subject = subject[0].upper() + subject[1:]
    return f"{subject} protects hardly anyone: {sentence(promise, unit)}."
