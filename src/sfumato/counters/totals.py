"""What a stream shows after each step."""

from __future__ import annotations

from sfumato.answers.estimate import Estimate
from sfumato.arrays import Array


class Total(Estimate, frozen=True, kw_only=True):
    """A running total after one step: an estimate with its interval, the band that holds for all steps, and the law of its error.

    Attributes
    ----------
    value, low, high : int or float; ndarray of shape (categories,) with categories
        The truth lies in [low, high] with probability ``confidence``, this one step taken alone.
    confidence : float
    step : int
        From 1 on.
    event : str
        The name of the step; "" if it has none.
    all_low, all_high : like ``low``
        All steps and categories together lie in these with the same probability.
    deviation : float
        Standard deviation of the error.
    law : str
        Of the error, in words.
    names : tuple of str
        Of the categories; empty without them.
    """

    step: int
    event: str
    all_low: float | Array
    all_high: float | Array
    deviation: float
    law: str
    names: tuple[str, ...]
