"""Was this person in the data? How well any attacker can tell two neighbours apart.

A test that accuses at a false-positive rate ``fpr`` finds members at a true-positive rate of at
most ``tpr``. The curve of the two says all that a guarantee says; advantage, precision and
reconstruction follow from it. A guarantee gives the worst curve of all mechanisms that have it. The
noise that is added gives a curve of its own, which is lower.

Sources: Wasserman and Zhou 2010, Thm 2.4; Dong, Roth and Su 2022, section 2; Kulynych et al. 2025.

*The best membership tests against discrete noise* (Neyman and Pearson).

The best test accuses if the answer is ``t`` or more, and at t - 1 by tossing a coin. Holds because:
for discrete Laplace and discrete Gaussian noise the likelihood ratio of a shift grows with the
answer.

*Bounds of membership tests under rho-zCDP*, from Renyi divergences of two coins.

Holds because: a test turns the two output distributions into two coins, with probabilities tpr and
fpr. No processing raises a Renyi divergence, and under rho-zCDP that of order a is at most a rho in
both directions (Bun and Steinke 2016, Def. 1.1 and Lemma 2.2). Every order gives a valid bound, so
a grid of orders may cost tightness, but the bound holds.

*Continuous noise* (``Laplace``, ``Gaussian``), for questions about risk: how well one answer tells
two neighbours apart.

Releases add discrete noise, which is in ``sfumato.mechanisms``. These are its continuous
counterparts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

import msgspec
import numpy as np
from scipy.special import erfc, ndtr, ndtri

from sfumato.basics import (
    Array,
    Exactly,
    ExplainedStruct,
    fraction,
    least_whole,
    positive,
    probability,
    root,
)
from sfumato.errors import UsageError, explained
from sfumato.mechanisms import DiscreteGaussian, DiscreteLaplace, Law
from sfumato.privacy import ZCDP, ApproxDP, PureDP, belief

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


# --- discrete noise -------------------------------------------------------------------------------

# The largest sigma for which masses are added up. Above, an integral errs by a relative 1 /
# sigma^2.
WIDEST = 1e5
# A float holds no mass beyond this many sigmas.
FARTHEST = 39


def tail(law: Law, t: int) -> float:
    """Return P(Z >= t)."""
    if t <= 0:
        return 1 - _upper(law, 1 - t)
    return _upper(law, t)


def _upper(law: Law, t: int) -> float:
    """Return P(Z >= t) for t >= 1."""
    if isinstance(law, DiscreteLaplace):
        rate = 1 / float(law.scale)
        return math.exp(-rate * t) / (1 + math.exp(-rate))
    if law.sigma > WIDEST:
        return float(erfc((t - 0.5) / law.sigma / math.sqrt(2))) / 2
    table = _table(law)
    return float(table[t]) if t < len(table) else 0.0


@lru_cache(maxsize=4)
def _table(law: DiscreteGaussian) -> Array:
    """Return P(Z >= t) for t = 0, 1, ..."""
    t = np.arange(math.ceil(FARTHEST * law.sigma) + 2, dtype=float)
    mass = np.exp(-(t**2) / (2 * float(law.sigma_squared)))
    above = np.cumsum(mass[::-1])[::-1]
    # The law is symmetric, so the whole mass is that from 0 on, twice, less that at 0, which is 1.
    return np.asarray(above / (2 * above[0] - 1))


def discrete_advantage(law: Law, shift: int) -> float:
    """Return the largest true-positive rate less false-positive rate."""
    # The shifted law is the likelier one above shift / 2.
    t = shift // 2 + 1
    return tail(law, t - shift) - tail(law, t)


def discrete_loss(law: Law, shift: int, allowed: float) -> float:
    """Return the privacy loss that a shifted answer exceeds with at most this probability."""
    if isinstance(law, DiscreteLaplace):
        at = shift if allowed == 0 else min(shift + _least(law, allowed) - 1, shift)
        return (abs(at) - abs(at - shift)) / float(law.scale)
    if allowed == 0:
        return math.inf
    at = shift + _least(law, allowed) - 1
    return (2 * shift * at - shift**2) / (2 * float(law.sigma_squared))


def _least(law: Law, chance: float) -> int:
    """Return the smallest t with P(Z >= t) <= chance."""
    low = -1
    high = 1
    while tail(law, high) > chance:
        high *= 2
    while tail(law, low) <= chance:
        low *= 2
    return least_whole(lambda t: tail(law, t) <= chance, low, high)


# --- concentrated privacy -------------------------------------------------------------------------

ORDERS = 1 + np.geomspace(1e-4, 1e4, 400)


def _largest(allowed: Callable[[float], bool], low: float) -> float:
    high = 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if allowed(middle):
            low = middle
        else:
            high = middle
    # The upper end of the search: what an adversary can reach is never understated.
    return high


def _allowed(tpr: float, fpr: float, rho: float) -> bool:
    if tpr >= 1:
        return False
    limit = ORDERS * rho
    return bool((_divergence(tpr, fpr) <= limit).all() and (_divergence(fpr, tpr) <= limit).all())


def _divergence(p: float, q: float) -> Array:
    """Return the divergences of two coins at all orders.

    Of order a it is ln(p^a q^(1-a) + (1-p)^a (1-q)^(1-a)) / (a - 1).
    """
    heads = ORDERS * np.log(p) + (1 - ORDERS) * np.log(q)
    tails = ORDERS * np.log1p(-p) + (1 - ORDERS) * np.log1p(-q)
    return np.asarray(np.logaddexp(heads, tails) / (ORDERS - 1))


# --- continuous noise -----------------------------------------------------------------------------


class Laplace(ExplainedStruct, frozen=True, tag="laplace"):
    """Continuous Laplace noise.

    Parameters
    ----------
    scale : float
        Above 0: the mean size of the noise.

    >>> from sfumato import risk
    >>> risk.advantage(risk.Laplace(2.0), sensitivity=1)
    0.22119921692859512
    """

    scale: float

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "scale", float(positive(self.scale, "scale")))


class Gaussian(ExplainedStruct, frozen=True, tag="gaussian"):
    """Continuous Gaussian noise.

    Parameters
    ----------
    sigma : float
        Above 0: the standard deviation.

    >>> from sfumato import risk
    >>> round(risk.advantage(risk.Gaussian(2.0), sensitivity=1), 4)
    0.1974
    """

    sigma: float

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "sigma", float(positive(self.sigma, "sigma")))


Promise: TypeAlias = PureDP | ApproxDP | ZCDP
Noise: TypeAlias = Laplace | Gaussian | DiscreteLaplace | DiscreteGaussian
Protection: TypeAlias = Promise | Noise


@explained
def gaussian_for(*, epsilon: Exactly, delta: Exactly, sensitivity: Exactly = 1) -> Gaussian:
    """Return the least Gaussian noise that meets (epsilon, delta).

    Parameters
    ----------
    epsilon : number above 0
    delta : number in (0, 1)
    sensitivity : number
        By how much one person moves the answer, in L2.

    Returns
    -------
    Gaussian

    Holds because: with m = sensitivity / sigma, delta(epsilon) = Phi(m/2 - epsilon/m) - e^epsilon
    Phi(-m/2 - epsilon/m) grows with m, and the search ends on the side of more noise.
    Source: Balle and Wang 2018, Theorem 8.

    >>> round(gaussian_for(epsilon=1, delta="1e-6").sigma, 3)
    4.225
    """
    from scipy.special import log_ndtr, ndtr

    level = float(positive(epsilon, "epsilon"))
    slack = float(probability(delta, "delta"))

    def spent(shift: float) -> float:
        likely = ndtr(shift / 2 - level / shift)
        unlikely = math.exp(level + log_ndtr(-shift / 2 - level / shift))
        return float(likely - unlikely)

    low = 0.0
    high = 1.0
    while spent(high) <= slack:
        low = high
        high *= 2
    low, _ = root(lambda shift: spent(shift) > slack, low, high, 1e-13)
    return Gaussian(float(positive(sensitivity, "sensitivity")) / low)


def shift_of(noise: Noise, sensitivity: Exactly) -> float:
    """Check by how much one person moves the answer; for discrete noise it is a whole number."""
    exact = positive(sensitivity, "sensitivity")
    if isinstance(noise, DiscreteLaplace | DiscreteGaussian) and exact.denominator != 1:
        raise UsageError(
            "a fractional sensitivity for noise on whole numbers",
            "its answers are whole",
            "Give a whole sensitivity",
        )
    return float(exact)


# --- any protection -------------------------------------------------------------------------------


@explained
def advantage(of: Protection, *, sensitivity: Exactly = 1) -> float:
    """How much better than guessing is the best membership test?

    It is the largest difference of true-positive rate and false-positive rate.

    Parameters
    ----------
    of : PureDP, ApproxDP, ZCDP; or Laplace, Gaussian, DiscreteLaplace, DiscreteGaussian
        A guarantee, or the noise that is added.
    sensitivity : number
        For noise: by how much one person moves the answer, in L1 for Laplace and in L2 for Gaussian
        noise.

    Returns
    -------
    float
        In [0, 1). For ZCDP an upper bound, from Renyi divergences; exact for all others.

    Holds because: the two lines of the curve of (epsilon, delta) meet where the advantage is
    (e^epsilon - 1 + 2 delta) / (e^epsilon + 1) (Kairouz, Oh, Viswanath 2015); 1 - e^(-epsilon/2)
    and 2 Phi(m/2) - 1 are total variation distances of shifted laws.

    >>> round(advantage(PureDP(1)), 3), round(advantage(Laplace(1)), 3)
    (0.462, 0.393)
    """
    match of:
        case PureDP(epsilon=epsilon):
            return math.tanh(float(epsilon) / 2)
        case ApproxDP(epsilon=epsilon, delta=delta):
            odds = _exp(float(epsilon))
            return math.tanh(float(epsilon) / 2) + 2 * float(delta) / (1 + odds)
        case ZCDP(rho=rho):
            # It is reached at rates (1 + A) / 2 and (1 - A) / 2: what is allowed is convex and
            # symmetric about the line of such rates.
            return _largest(lambda gain: _allowed((1 + gain) / 2, (1 - gain) / 2, float(rho)), 0.0)
        case Laplace(scale=scale):
            return -math.expm1(-shift_of(of, sensitivity) / scale / 2)
        case Gaussian(sigma=sigma):
            shift = shift_of(of, sensitivity)
            return math.erf(shift / sigma / math.sqrt(8))
        case DiscreteLaplace() | DiscreteGaussian():
            return discrete_advantage(of, int(shift_of(of, sensitivity)))
    raise _unknown(of)


@explained
def true_positive_rate(of: Protection, fpr: Exactly, *, sensitivity: Exactly = 1) -> float:
    """Which share of the members does a test find that accuses a share ``fpr`` of the others?

    It is also the largest probability of reconstructing a record that could be guessed with
    probability ``fpr`` beforehand (Kulynych et al. 2025).

    Parameters
    ----------
    of : PureDP, ApproxDP, ZCDP; or Laplace, Gaussian, DiscreteLaplace, DiscreteGaussian
        A guarantee, or the noise that is added.
    fpr : number in (0, 1)
        The test's false-positive rate.
    sensitivity : number
        As for ``advantage``.

    Returns
    -------
    float
        The largest true-positive rate, at least ``fpr``.

    >>> round(true_positive_rate(PureDP(1), "0.01"), 4)
    0.0272
    """
    rate = float(probability(fpr, "fpr"))
    match of:
        case PureDP(epsilon=epsilon):
            return _two_lines(float(epsilon), 0.0, rate)
        case ApproxDP(epsilon=epsilon, delta=delta):
            return _two_lines(float(epsilon), float(delta), rate)
        case ZCDP(rho=rho):
            return _largest(lambda tpr: _allowed(tpr, rate, float(rho)), rate)
        case Laplace(scale=scale):
            return _of_laplace(shift_of(of, sensitivity) / scale, rate)
        case Gaussian(sigma=sigma):
            shift = shift_of(of, sensitivity)
            return float(ndtr(ndtri(rate) + shift / sigma))
        case DiscreteLaplace() | DiscreteGaussian():
            shift = int(shift_of(of, sensitivity))
            t = _least(of, rate)
            low = tail(of, t)
            high = tail(of, t - 1)
            # A coin at t - 1 makes the curve a straight line between two thresholds.
            share = (rate - low) / (high - low) if high > low else 0.0
            beyond = tail(of, t - shift)
            return beyond + share * (tail(of, t - 1 - shift) - beyond)
    raise _unknown(of)


@explained
def posterior(
    of: Protection, prior: Exactly, *, exceeded: Exactly = 0, sensitivity: Exactly = 1
) -> float:
    """How sure can an attacker become that a person is in the data?

    Parameters
    ----------
    of : PureDP, ApproxDP, ZCDP; or Laplace, Gaussian, DiscreteLaplace, DiscreteGaussian
        A guarantee, or the noise that is added.
    prior : number in (0, 1)
        The attacker's belief beforehand.
    exceeded : number in [0, 1)
        The probability, over the noise and with the person in the data, that the attacker becomes
        surer still. At 0 there is a limit below 1 for pure epsilon and Laplace noise only.
    sensitivity : number
        As for ``advantage``.

    Returns
    -------
    float
        A probability; 1 if there is no limit below it.

    Holds because: odds grow by e^l, with l the privacy loss. For a guarantee see
    ``privacy.belief``; for noise it follows from the law.

    >>> round(posterior(PureDP(1), "0.01"), 4)
    0.0267
    """
    chance = float(probability(prior, "prior"))
    allowed = float(fraction(exceeded, "exceeded"))
    if not 0 <= allowed < 1:
        raise UsageError(
            "exceeded outside [0, 1)", "it is a probability", 'Choose exceeded such as 0 or "1e-6"'
        )
    return belief.after(chance, loss(of, allowed, sensitivity))


def loss(of: Protection, allowed: float, sensitivity: Exactly = 1) -> float:
    """Return the privacy loss that is exceeded with at most a probability of ``allowed``.

    The probability is that with the person in the data.
    """
    if isinstance(of, PureDP | ApproxDP | ZCDP):
        return belief.loss(of, allowed)
    match of:
        case Laplace(scale=scale):
            ratio = shift_of(of, sensitivity) / scale
            # Half of all answers have the largest loss, so that no smaller probability excludes it.
            if allowed < 0.5:
                return ratio
            return max(ratio + 2 * math.log(2 * (1 - allowed)), -ratio)
        case Gaussian(sigma=sigma):
            ratio = shift_of(of, sensitivity) / sigma
            if allowed == 0:
                return math.inf
            return ratio**2 / 2 - ratio * float(ndtri(allowed))
        case DiscreteLaplace() | DiscreteGaussian():
            return discrete_loss(of, int(shift_of(of, sensitivity)), allowed)
    raise _unknown(of)


def _two_lines(epsilon: float, delta: float, fpr: float) -> float:
    """Return a point of the curve of (epsilon, delta), which is the lower of two lines."""
    share_left = 1 - delta - fpr
    to_one = 1 - math.exp(-epsilon) * share_left
    return max(min(delta + fpr * _exp(epsilon), to_one, 1.0), 0.0)


def _exp(epsilon: float) -> float:
    """Return e^epsilon; a huge finite number where a float would overflow."""
    return math.exp(min(epsilon, 700.0))


def _of_laplace(ratio: float, fpr: float) -> float:
    """Return P(Z > t - shift) for the threshold t with P(Z > t) = fpr."""
    if fpr > 0.5:
        return 1 - math.exp(-ratio) * (1 - fpr)
    if fpr < math.exp(-ratio) / 2:
        return fpr * math.exp(ratio)
    return 1 - math.exp(-ratio) / (4 * fpr)


def _unknown(of: object) -> UsageError:
    return UsageError(
        f"the risk of a {type(of).__name__}",
        "it is neither a guarantee nor noise",
        "Give PureDP, ApproxDP, ZCDP or noise",
    )


@explained
def composed_advantage(answers: Sequence[tuple[Noise, Exactly]]) -> float:
    """Return an upper bound of the advantage against several answers together.

    This needs the extra ``risk``.

    Parameters
    ----------
    answers : sequence of pairs of noise and a number
        The noise of each answer, and its sensitivity, as for ``advantage``.

    Returns
    -------
    float
        From 0 (no answers) to 1.

    Raises
    ------
    UsageError
        If dp-accounting is not installed.

    Holds because: total variation is the delta at epsilon 0, which privacy-loss distributions
    compose. dp-accounting's pessimistic discretisation makes it an upper bound.

    >>> from sfumato import risk
    >>> round(risk.composed_advantage([(risk.Gaussian(2.0), 1), (risk.Gaussian(2.0), 1)]), 3)
    0.276
    """
    try:
        from dp_accounting.pld import privacy_loss_distribution as pld
    except ImportError:
        raise UsageError(
            "the risk of several answers",
            "dp-accounting is not installed",
            "Run: pip install 'sfumato[risk]'",
        ) from None
    total = None
    for noise, sensitivity in answers:
        losses = _loss_distribution(pld, noise, shift_of(noise, sensitivity))
        total = losses if total is None else total.compose(losses)
    return 0.0 if total is None else float(total.get_delta_for_epsilon(0))


def _loss_distribution(pld: ModuleType, noise: Noise, shift: float) -> PrivacyLossDistribution:
    step = {"value_discretization_interval": 1e-4}
    moved = int(shift)
    match noise:
        case Laplace(scale=scale):
            return pld.from_laplace_mechanism(scale, sensitivity=shift, **step)
        case Gaussian(sigma=sigma):
            return pld.from_gaussian_mechanism(sigma, sensitivity=shift, **step)
        case DiscreteLaplace(scale=exact):
            return pld.from_discrete_laplace_mechanism(float(1 / exact), sensitivity=moved, **step)
        case DiscreteGaussian():
            return pld.from_discrete_gaussian_mechanism(noise.sigma, sensitivity=moved, **step)
