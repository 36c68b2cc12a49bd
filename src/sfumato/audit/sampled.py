"""A lower bound on what a mechanism spends, from its outputs alone: run it often on two neighbours, and find them apart.

Half of the runs choose an event, the other half bound its probability p under one data set from below and q under the other
from above (Clopper and Pearson 1934). Whatever the mechanism is, these hold together with the stated confidence, because the
event does not depend on the runs that judge it. Then a promise of (epsilon, delta) is refuted below ln((p - delta) / q), and
a promise of rho-zCDP below D_alpha(Bernoulli(p) || Bernoulli(q)) / alpha for every alpha > 1, by data processing.

How the event is chosen decides only how close the bound comes. Here: a likelihood-ratio score, added up over the numbers
that visibly differ between the two data sets as if they were independent, and the threshold on it that promises most.
Source: Clopper and Pearson 1934; Jagielski, Ullman, Oprea, NeurIPS 2020 (events); Bun and Steinke, TCC 2016 (rho).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from sfumato.arrays import Array
from sfumato.audit.runs import Mechanism, Rows
from sfumato.random.bits import Bits, current

CONFIDENCE = 0.999
BINS, PER_BIN = 24, 200
THRESHOLDS = 64
TAILS = (0.001, 0.002, 0.005, 0.01)  # rare outputs are told apart, too: one may give a person away
ALPHAS = np.geomspace(1.05, 64, 24)

Gain: TypeAlias = Callable[[Array, Array], Array]


def epsilon_gain(delta: float = 0.0) -> Gain:
    """What p under one data set and q under the other prove of epsilon, at this delta."""

    def gain(p: Array, q: Array) -> Array:
        return np.asarray(np.log(np.maximum(p - delta, q) / q))

    return gain


def rho_gain(p: Array, q: Array) -> Array:
    """What they prove of rho: the largest Renyi divergence of two coins over its order."""
    p, q = np.maximum(p, q)[..., None], np.asarray(q)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        heads = ALPHAS * np.log(p) + (1 - ALPHAS) * np.log(q)
        tails = np.where(p < 1, ALPHAS * np.log1p(-p) + (1 - ALPHAS) * np.log1p(-q), -np.inf)
        divergence = np.logaddexp(heads, tails) / (ALPHAS - 1)
    return np.asarray(np.where(q < 1, divergence / ALPHAS, 0).max(axis=-1))


def sampled_loss(
    mechanism: Mechanism,
    one: Rows,
    other: Rows,
    *,
    runs: int,
    gain: Gain | None = None,
    confidence: float = CONFIDENCE,
    noise: Bits | None = None,
) -> float:
    """A lower bound on what a mechanism spends between two neighbours, wrong with probability at most 1 - ``confidence``.

    Parameters
    ----------
    mechanism : callable
        From rows and bits to ``Published``; run ``runs`` times on each data set.
    one, other : tuple of rows
        Neighbouring data sets; both directions are tried.
    runs : int
    gain : callable
        ``epsilon_gain(delta)``, which is the default with delta 0, or ``rho_gain``.
    confidence : float
    noise : Bits or None
        None: the private keystream, as in production.
    """
    bits = current() if noise is None else noise
    samples = [
        outputs([mechanism(rows, bits).numbers for _ in range(runs)]) for rows in (one, other)
    ]
    return bound(samples[0], samples[1], gain=gain, confidence=confidence)


def bound(
    one: Array, other: Array, *, gain: Gain | None = None, confidence: float = CONFIDENCE
) -> float:
    """The same from outputs at hand.

    Parameters
    ----------
    one, other : int64 ndarrays of shape (runs, numbers)
        Independent outputs; where one has more columns, the other is filled up with zeros.
    gain, confidence
        As in ``sampled_loss``.

    >>> rng = np.random.default_rng(1)
    >>> bound(rng.integers(0, 2, (400, 1)), rng.integers(1, 3, (400, 1))) > 2
    True
    """
    gain = gain or epsilon_gain()
    wide = max(one.shape[1], other.shape[1])
    one, other = (np.pad(found, ((0, 0), (0, wide - found.shape[1]))) for found in (one, other))
    score = _score(one[::4], other[::4])
    chosen, judged = (score(one[2::4]), score(other[2::4])), (score(one[1::2]), score(other[1::2]))
    alpha = (1 - confidence) / 2
    candidates = [
        (*_best(chosen[a] * sign, chosen[b] * sign, gain, alpha), a, b, sign)
        for a, b, sign in ((0, 1, 1), (1, 0, -1))
    ]
    _, threshold, a, b, sign = max(candidates)
    p, q = _bounds(judged[a] * sign, judged[b] * sign, np.array([threshold]), alpha)
    return float(gain(p, q)[0])


def outputs(numbers: Sequence[tuple[int, ...]]) -> Array:
    """Outputs as an array: how many numbers there are, then the numbers, filled up with zeros."""
    wide = max(map(len, numbers))
    return np.array(
        [(len(row), *row, *(0,) * (wide - len(row))) for row in numbers], dtype=np.int64
    )


def clopper_pearson(hits: Array, trials: int, alpha: float) -> tuple[Array, Array]:
    """Lower and upper bounds of a probability, each wrong with probability at most ``alpha``."""
    from scipy.special import betaincinv

    hits = np.asarray(hits, dtype=float)
    low = np.where(hits == 0, 0.0, betaincinv(np.maximum(hits, 1), trials - hits + 1, alpha))
    high = np.where(
        hits == trials, 1.0, betaincinv(hits + 1, np.maximum(trials - hits, 1), 1 - alpha)
    )
    return low, high


def _bounds(one: Array, other: Array, thresholds: Array, alpha: float) -> tuple[Array, Array]:
    """The event is a score of at least the threshold: its probability from below under one, from above under the other."""
    hits = [len(scores) - np.searchsorted(np.sort(scores), thresholds) for scores in (one, other)]
    return clopper_pearson(hits[0], len(one), alpha)[0], clopper_pearson(
        hits[1], len(other), alpha
    )[1]


def _best(one: Array, other: Array, gain: Gain, alpha: float) -> tuple[float, float]:
    """The threshold that promises most on the runs that choose, and what it promises."""
    thresholds = _levels(np.concatenate([one, other]), THRESHOLDS)
    promised = gain(*_bounds(one, other, thresholds, alpha))
    best = int(np.argmax(promised))
    return float(promised[best]), float(thresholds[best])


def _levels(values: Array, parts: int) -> Array:
    """Where values are cut: all of them where they are few, else at even quantiles and in the tails; the least one leads."""
    distinct = np.unique(values)
    if len(distinct) <= parts:
        return distinct
    tails = np.array(TAILS)
    return np.unique(
        np.quantile(
            values,
            np.concatenate([np.linspace(0, 1, parts + 1), tails, 1 - tails]),
            method="higher",
        )
    )


def _score(one: Array, other: Array) -> Callable[[Array], Array]:
    """The log-likelihood ratio of one against other, added up over columns."""
    tables = [
        (column, *found)
        for column in range(one.shape[1])
        if (found := _ratios(one[:, column], other[:, column])) is not None
    ]

    def score(outputs: Array) -> Array:
        total = np.zeros(len(outputs))
        for column, edges, ratios in tables:
            total += ratios[np.searchsorted(edges, outputs[:, column], side="right")]
        return total.round(9)

    return score


def _ratios(one: Array, other: Array) -> tuple[Array, Array] | None:
    """Bins of one column with their log-likelihood ratios, or None where a chi-square sees no difference."""
    both = np.concatenate([one, other])
    bins = min(BINS, max(2, len(both) // PER_BIN))
    edges = _levels(both, bins)[1:]
    here, there = (
        np.bincount(np.searchsorted(edges, found, side="right"), minlength=len(edges) + 1)
        for found in (one, other)
    )
    held = here + there > 0
    statistic = float((np.square(here - there)[held] / (here + there)[held]).sum())
    freedom = int(held.sum()) - 1
    if statistic <= freedom + 1.5 * np.sqrt(2 * freedom):
        return None
    return edges, np.log((here + 0.5) / (there + 0.5))
