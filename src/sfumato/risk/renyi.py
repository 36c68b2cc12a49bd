"""Bounds of membership tests under rho-zCDP, from Renyi divergences of two coins.

Holds because: a test turns the two output distributions into two coins, with probabilities tpr and
fpr. No processing raises a Renyi divergence, and under rho-zCDP that of order a is at most a rho in
both directions (Bun and Steinke 2016, Def. 1.1 and Lemma 2.2). Every order gives a valid bound, so
a grid of orders may cost tightness, but the bound holds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato.basics.numbers import Array

ORDERS = 1 + np.geomspace(1e-4, 1e4, 400)


def true_positive_rate(rho: float, fpr: float) -> float:
    """Return the largest true-positive rate that no order forbids."""
    return _largest(lambda tpr: _allowed(tpr, fpr, rho), fpr)


def advantage(rho: float) -> float:
    """Return the largest advantage A that no order forbids.

    It is reached at rates (1 + A) / 2 and (1 - A) / 2, since what is allowed is convex and
    symmetric about the line of such rates.
    """
    return _largest(lambda gain: _allowed((1 + gain) / 2, (1 - gain) / 2, rho), 0.0)


def _largest(allowed: Callable[[float], bool], low: float) -> float:
    high = 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if allowed(middle):
            low = middle
        else:
            high = middle
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
