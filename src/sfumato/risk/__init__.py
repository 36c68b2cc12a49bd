"""Choosing epsilon from a disclosure risk: what an adversary can come to believe.

``bounds`` and ``choice`` follow Lee and Clifton 2011, for an adversary who knows the universe.
``membership`` and ``acceptable`` ask whether a person is in the data, for any guarantee.
"""

from sfumato.risk.acceptable import Risk
from sfumato.risk.bounds import (
    Worlds,
    confidence,
    disclosure_risk,
    optimal_epsilon,
    posterior_belief,
    prior_belief,
    tighter_upper_bound_posterior,
    upper_bound_epsilon,
    upper_bound_posterior,
)
from sfumato.risk.choice import Choice, Choices, WorstWorld, choose
from sfumato.risk.membership import (
    Gaussian,
    Laplace,
    advantage,
    composed_advantage,
    gaussian_for,
    posterior,
    true_positive_rate,
)
from sfumato.risk.sensitivity import bounded_sensitivity, unbounded_sensitivity

__all__ = [
    "Choice",
    "Choices",
    "Gaussian",
    "Laplace",
    "Risk",
    "Worlds",
    "WorstWorld",
    "advantage",
    "bounded_sensitivity",
    "choose",
    "composed_advantage",
    "confidence",
    "disclosure_risk",
    "gaussian_for",
    "optimal_epsilon",
    "posterior",
    "posterior_belief",
    "prior_belief",
    "tighter_upper_bound_posterior",
    "true_positive_rate",
    "unbounded_sensitivity",
    "upper_bound_epsilon",
    "upper_bound_posterior",
]
