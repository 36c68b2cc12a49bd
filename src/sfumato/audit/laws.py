"""Probabilities of noise, computed from its parameter as the papers state them.

No method of the law that is audited is used, so that a mistake there cannot hide here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.errors import UsageError
from sfumato.mechanisms.bounded_noise import CountLaw, TruncatedLaplace
from sfumato.mechanisms.noise import DiscreteGaussian, DiscreteLaplace, Law
from sfumato.mechanisms.thresholds import TruncatedGeometric


def log_weight(law: CountLaw) -> Callable[[Array], Array]:
    """The logarithm of the unnormalised probability, for an array of integers."""
    match law:
        case DiscreteLaplace(scale=scale):
            return lambda x: -np.abs(x) / float(scale)
        case DiscreteGaussian(sigma_squared=sigma_squared):
            return lambda x: -np.square(x, dtype=float) / (2 * float(sigma_squared))
        case TruncatedLaplace(scale=scale, bound=bound):
            return lambda x: np.where(np.abs(x) <= bound, -np.abs(x) / float(scale), -np.inf)


def support(law: CountLaw, reach: float = 60) -> Array:
    """The integers that carry all but about exp(-reach) of the probability, in order."""
    match law:
        case DiscreteLaplace(scale=scale):
            top = math.ceil(float(scale) * reach) + 2
        case DiscreteGaussian(sigma_squared=sigma_squared):
            top = math.ceil(math.sqrt(2 * float(sigma_squared) * reach)) + 2
        case TruncatedLaplace(bound=bound):
            top = bound
    return np.arange(-top, top + 1)


def masses(law: CountLaw, values: Array) -> Array:
    """Probabilities of integers: float64 ndarray of the shape of ``values``."""
    return np.asarray(np.exp(log_weight(law)(values) - _log_normaliser(law)))


SMOOTH = 10**8
"""A sigma^2 from which on a discrete Gaussian equals the continuous one to the last bit.

They differ by terms of exp(-2 pi^2 sigma^2), which underflow.
"""


@lru_cache(maxsize=4096)
def log_mass(law: Law, value: int) -> float:
    """The logarithm of the probability of one integer."""
    if isinstance(law, DiscreteLaplace):
        # In closed form: ln tanh(1 / 2b) - |x| / b with scale b.
        scale = float(law.scale)
        return math.log(math.tanh(1 / (2 * scale))) - abs(value) / scale
    return float(log_weight(law)(np.array(value))) - _log_normaliser(law)


@lru_cache(maxsize=4096)
def log_at_least(law: Law, value: int) -> float:
    """The logarithm of P(Z >= value)."""
    if isinstance(law, DiscreteLaplace):
        # With q = exp(-1 / scale): q^k / (1 + q) for k >= 1; below, what is left of 1.
        inverse = 1 / float(law.scale)
        log_total = math.log1p(math.exp(-inverse))
        if value > 0:
            return -value * inverse - log_total
        return math.log1p(-math.exp(-(1 - value) * inverse - log_total))
    values = support(law)
    above = values >= value
    if not above.any():
        return -math.inf
    return log_sum(log_weight(law)(values[above])) - _log_normaliser(law)


@lru_cache(maxsize=4096)
def renyi(law: Law, shift: int, alpha: float) -> float:
    """The Renyi divergence of order alpha between a law and itself shifted by an integer."""
    if isinstance(law, DiscreteGaussian) and law.sigma_squared > SMOOTH:
        # Canonne, Kamath, Steinke 2020, Prop. 5, with equality.
        return alpha * shift**2 / (2 * float(law.sigma_squared))
    # The sum needs values far out: its terms fall off only at about alpha * shift.
    values = support(law, 200 * alpha)
    weight = log_weight(law)
    terms = alpha * weight(values) + (1 - alpha) * weight(values - shift)
    return (log_sum(terms) - _log_normaliser(law)) / (alpha - 1)


@lru_cache(maxsize=64)
def key_masses(law: object) -> tuple[Array, Array]:
    """The noise on the count of a key that shows it as often as (epsilon, delta) allow.

    Returns
    -------
    values : int64 ndarray
        Rising.
    probabilities : float64 ndarray
        The steps of pi(0), pi(1), ..., by the recursion of Desfontaines et al. 2022, Def. 2 and
        Thm 1.
    """
    if not isinstance(law, TruncatedGeometric):
        raise UsageError(
            f"the probabilities of {type(law).__name__}",
            "the audit knows no formula for them",
            "Audit it by its outputs",
        )
    growth = math.exp(float(law.epsilon))
    delta = float(law.delta)
    curve = [0.0]
    while curve[-1] < 1:
        last = curve[-1]
        curve.append(min(growth * last + delta, 1 - (1 - last - delta) / growth, 1.0))
    middle = next(n for n, probability in enumerate(curve) if probability >= 0.5)
    # A count is shown from ``middle`` on, so that a key of n rows is shown with probability pi(n).
    steps = np.diff(np.array(curve))
    return middle - np.arange(len(curve) - 1, 0, -1), steps[::-1]


def log_sum(terms: Array) -> float:
    """ln of the sum of exp(terms), without overflow."""
    top = float(terms.max())
    if not math.isfinite(top):
        return top
    return top + math.log(float(np.exp(terms - top).sum()))


@lru_cache(maxsize=64)
def _log_normaliser(law: CountLaw) -> float:
    if isinstance(law, DiscreteGaussian) and law.sigma_squared > SMOOTH:
        return math.log(2 * math.pi * float(law.sigma_squared)) / 2
    return log_sum(log_weight(law)(support(law)))
