"""What a stream returns after each step."""

from __future__ import annotations

from sfumato.answers.estimate import Estimate
from sfumato.basics.numbers import Array


class Total(Estimate, frozen=True, kw_only=True):
    """A running total after one step, with its interval, its band and its error distribution.

    Attributes
    ----------
    value, low, high : int or float; ndarray of shape (categories,) with categories
        The truth lies in [low, high] with probability ``confidence``, for this one step.
    confidence : float
    step : int
        From 1 on.
    event : str
        The name of the step; "" if it has none.
    all_low, all_high : like ``low``
        The band: all steps and categories together lie in theirs with probability ``confidence``.
    deviation : float
        Standard deviation of the error.
    law : str
        The error distribution in words.
    names : tuple of str
        Names of the categories; empty without categories.
    """

    step: int
    event: str
    all_low: float | Array
    all_high: float | Array
    deviation: float
    law: str
    names: tuple[str, ...]
