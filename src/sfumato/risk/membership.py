"""Was this person in the data? How well any attacker can tell two neighbours apart.

A test that accuses at a false-positive rate ``fpr`` finds members at a true-positive rate of at
most ``tpr``. The curve of the two says all that a guarantee says; advantage, precision and
reconstruction follow from it. A guarantee gives the worst curve of all mechanisms that have it. The
noise that is added gives a curve of its own, which is lower.

Sources: Wasserman and Zhou 2010, Thm 2.4; Dong, Roth and Su 2022, section 2; Kulynych et al. 2025.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from scipy.special import ndtr, ndtri

from sfumato.basics.numbers import Exactly, fraction, probability
from sfumato.errors import UsageError
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.privacy import belief
from sfumato.privacy.measures import ZCDP, ApproxDP, PureDP
from sfumato.risk import discrete, renyi
from sfumato.risk.laws import Gaussian, Laplace, Noise, Protection, shift_of

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


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
            return renyi.advantage(float(rho))
        case Laplace(scale=scale):
            return -math.expm1(-shift_of(of, sensitivity) / scale / 2)
        case Gaussian(sigma=sigma):
            return math.erf(shift_of(of, sensitivity) / sigma / math.sqrt(8))
        case DiscreteLaplace() | DiscreteGaussian():
            return discrete.advantage(of, int(shift_of(of, sensitivity)))
    raise _unknown(of)


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
            return renyi.true_positive_rate(float(rho), rate)
        case Laplace(scale=scale):
            return _of_laplace(shift_of(of, sensitivity) / scale, rate)
        case Gaussian(sigma=sigma):
            return float(ndtr(ndtri(rate) + shift_of(of, sensitivity) / sigma))
        case DiscreteLaplace() | DiscreteGaussian():
            return discrete.true_positive_rate(of, int(shift_of(of, sensitivity)), rate)
    raise _unknown(of)


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
    return _loss_of_noise(of, allowed, sensitivity)


def _loss_of_noise(of: Noise, allowed: float, sensitivity: Exactly) -> float:
    match of:
        case Laplace(scale=scale):
            ratio = shift_of(of, sensitivity) / scale
            if allowed < 0.5:
                return ratio
            return max(ratio + 2 * math.log(2 * (1 - allowed)), -ratio)
        case Gaussian(sigma=sigma):
            ratio = shift_of(of, sensitivity) / sigma
            if allowed == 0:
                return math.inf
            return ratio**2 / 2 - ratio * float(ndtri(allowed))
        case DiscreteLaplace() | DiscreteGaussian():
            return discrete.loss(of, int(shift_of(of, sensitivity)), allowed)
    raise _unknown(of)


def _two_lines(epsilon: float, delta: float, fpr: float) -> float:
    """Return a point of the curve of (epsilon, delta), which is the lower of two lines."""
    from_zero = delta + fpr * _exp(epsilon)
    to_one = 1 - math.exp(-epsilon) * (1 - delta - fpr)
    return max(min(from_zero, to_one, 1.0), 0.0)


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
        one = _loss_distribution(pld, noise, shift_of(noise, sensitivity))
        total = one if total is None else total.compose(one)
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
            rate = float(1 / exact)
            return pld.from_discrete_laplace_mechanism(rate, sensitivity=moved, **step)
        case DiscreteGaussian():
            return pld.from_discrete_gaussian_mechanism(noise.sigma, sensitivity=moved, **step)
