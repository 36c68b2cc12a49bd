"""Tests against rho-zCDP: what no attacker can beat, from Renyi divergences of two coins.

Holds because: a test turns two outputs into two coins, of probabilities tpr and fpr, and no processing raises a Renyi
divergence; under rho-zCDP that of order a is at most a rho in both directions (Bun and Steinke 2016, Def. 1.1 and
Lemma 2.2). Every order gives a valid bound, so a grid of orders costs tightness and never truth.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato.arrays import Array

_LOG_SPACING = np.geomspace(1e-4, 1e4, 400)
ORDERS = 1 + _LOG_SPACING


def true_positive_rate(rho: float, fpr: float) -> float:
    """The largest rate that no order forbids."""
    return _largest(lambda tpr: _allowed(tpr, fpr, rho), fpr)


def advantage(rho: float) -> float:
    """Largest where the rates are (1 + A) / 2 and (1 - A) / 2: what is allowed is convex and symmetric about that line."""
    return _largest(lambda gain: _allowed((1 + gain) / 2, (1 - gain) / 2, rho), 0.0)


def _largest(allowed: Callable[[float], bool], low: float) -> float:
    high = 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return high


def _allowed(tpr: float, fpr: float, rho: float) -> bool:
    if tpr >= 1:
        return False
    limit = ORDERS * rho
    return bool((_divergence(tpr, fpr) <= limit).all() and (_divergence(fpr, tpr) <= limit).all())


def _divergence(p: float, q: float) -> Array:
    """Of two coins, at all orders: ln(p^a q^(1-a) + (1-p)^a (1-q)^(1-a)) / (a - 1)."""
    heads = ORDERS * np.log(p) + (1 - ORDERS) * np.log(q)
    tails = ORDERS * np.log1p(-p) + (1 - ORDERS) * np.log1p(-q)
    return np.asarray(np.logaddexp(heads, tails) / (ORDERS - 1))
