"""Choosing epsilon from a disclosure risk: what an adversary can come to believe.

For an adversary who knows the universe, by Lee and Clifton 2011:

* ``choice``: the epsilon for a risk; ``choosing``: of an array, a frame or a file
* ``bounds``: beliefs and their bounds; ``universe``: what the adversary knows, and queries of it
* ``distinct_answers``: answers of all worlds; ``sensitivity``: how far they can move

For any guarantee:

* ``membership``: is a person in the data? ``acceptable``: the largest cost within a risk
* ``window``: between accurate enough and safe enough
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
from sfumato.risk.choice import Choice, Choices, WorstWorld
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
