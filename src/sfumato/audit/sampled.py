"""The sampled audit: a lower bound on a mechanism's privacy loss, from its outputs alone.

The mechanism runs many times on two neighbouring data sets. Half of the runs choose an event. The
other half bound its probability: p under one data set from below, q under the other from above
(Clopper and Pearson 1934). Both bounds hold together with the stated confidence, whatever the
mechanism is, because the event does not depend on the runs that judge it. They refute every claim
of (epsilon, delta) with epsilon below ln((p - delta) / q), and every claim of rho-zCDP with rho
below D_alpha(Bernoulli(p) || Bernoulli(q)) / alpha for any alpha > 1, by data processing.

The choice of the event decides only how tight the bound is. Here it is a threshold on a score. The
score is the log-likelihood ratio, added up over the numbers that visibly differ between the data
sets, as if they were independent; the threshold is the one with the best bound.

Source: Clopper and Pearson 1934; Jagielski, Ullman, Oprea, NeurIPS 2020 (events); Bun and Steinke,
TCC 2016 (rho).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from sfumato.audit.runs import Draws, Mechanism, Published, Rows
from sfumato.basics import Array
from sfumato.random.bits import Bits, current

CONFIDENCE = 0.999
MOST_BINS = 24
ALPHAS = np.geomspace(1.05, 64, 24)

Gain: TypeAlias = Callable[[Array, Array], Array]


def epsilon_gain(delta: float = 0.0) -> Gain:
    """Return a function from p and q to the epsilon that they prove to be spent, at this delta."""

    def gain(p: Array, q: Array) -> Array:
        return np.log(np.maximum(p - delta, q) / q)

    return gain


def rho_gain(p: Array, q: Array) -> Array:
    """The rho that p and q prove to be spent: the largest D_alpha of two coins over alpha."""
    p = np.maximum(p, q)[..., None]
    q = np.asarray(q)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        heads = ALPHAS * np.log(p) + (1 - ALPHAS) * np.log(q)
        tails = np.where(p < 1, ALPHAS * np.log1p(-p) + (1 - ALPHAS) * np.log1p(-q), -np.inf)
        divergence = np.logaddexp(heads, tails) / (ALPHAS - 1)
    return np.asarray(np.where(q < 1, divergence / ALPHAS, 0).max(axis=-1))


def sampled_loss(
    mechanism: Mechanism,
    here: Rows,
    there: Rows,
    *,
    runs: int,
    gain: Gain | None = None,
    confidence: float = CONFIDENCE,
    noise: Bits | None = None,
) -> float:
    """Return a lower bound on the privacy loss of a mechanism between two neighbouring data sets.

    Parameters
    ----------
    mechanism : callable
        From rows and bits to ``Published``.
    here, there : tuple of rows
        Neighbouring data sets; both directions are tried.
    runs : int
        How often the mechanism runs on each data set.
    gain : callable or None
        ``epsilon_gain(delta)`` or ``rho_gain``. None: ``epsilon_gain(0)``.
    confidence : float
        The probability that the bound is right is at least this.
    noise : Bits or None
        None: the private keystream that publishing uses.
    """
    bits = current() if noise is None else noise
    of_one, of_other = (
        outputs([_seen(mechanism(rows, bits)) for _ in range(runs)]) for rows in (here, there)
    )
    return bound(of_one, of_other, gain=gain, confidence=confidence)


def _seen(output: Published) -> Draws:
    return (*output.shown, *output.numbers)


def bound(
    here: Array, there: Array, *, gain: Gain | None = None, confidence: float = CONFIDENCE
) -> float:
    """Return the same bound, from outputs that are there already.

    Parameters
    ----------
    here, there : int64 ndarrays of shape (runs, numbers)
        Independent outputs. The one with fewer columns is padded with zeros.
    gain, confidence
        As in ``sampled_loss``.

    >>> rng = np.random.default_rng(1)
    >>> bound(rng.integers(0, 2, (400, 1)), rng.integers(1, 3, (400, 1))) > 2
    True
    """
    gain = gain or epsilon_gain()
    columns = max(here.shape[1], there.shape[1])
    here = np.pad(here, ((0, 0), (0, columns - here.shape[1])))
    there = np.pad(there, ((0, 0), (0, columns - there.shape[1])))
    # A quarter of the runs makes the score and a quarter chooses the threshold. Only the other half
    # judges: neither score nor threshold depends on it, so its bounds hold.
    score = _score(here[::4], there[::4])
    choosing = score(here[2::4]), score(there[2::4])
    judging = score(here[1::2]), score(there[1::2])
    # Two bounds must hold together.
    alpha = (1 - confidence) / 2
    candidates = []
    # Either data set may be the one under which the event is the more likely.
    for likelier, sign in ((0, 1), (1, -1)):
        promised, threshold = _best(
            choosing[likelier] * sign, choosing[1 - likelier] * sign, gain, alpha
        )
        candidates.append((promised, threshold, likelier, sign))
    _, threshold, likelier, sign = max(candidates)
    p, q = _bounds(
        judging[likelier] * sign, judging[1 - likelier] * sign, np.array([threshold]), alpha
    )
    return float(gain(p, q)[0])


def outputs(numbers: Sequence[tuple[int, ...]]) -> Array:
    """Outputs as an int64 ndarray: a row holds how many numbers there are, and then the numbers.

    Shorter rows are padded with zeros. As a number of its own, the length can be told apart.
    """
    most = max(map(len, numbers))
    rows = [(len(row), *row, *(0,) * (most - len(row))) for row in numbers]
    return np.array(rows, dtype=np.int64)


def clopper_pearson(hits: Array, trials: int, alpha: float) -> tuple[Array, Array]:
    """Lower and upper bounds on a probability, each wrong with probability at most ``alpha``.

    Parameters
    ----------
    hits : ndarray of int
    trials : int
    alpha : float
    """
    from scipy.special import betaincinv

    hits = np.asarray(hits, dtype=float)
    low = np.where(hits == 0, 0.0, betaincinv(np.maximum(hits, 1), trials - hits + 1, alpha))
    high = np.where(
        hits == trials, 1.0, betaincinv(hits + 1, np.maximum(trials - hits, 1), 1 - alpha)
    )
    return low, high


def _bounds(here: Array, there: Array, thresholds: Array, alpha: float) -> tuple[Array, Array]:
    """Return bounds on the probability that a score is at least the threshold, for each threshold.

    From below under the first data set, from above under the other.
    """
    low, _ = clopper_pearson(_hits(here, thresholds), len(here), alpha)
    _, high = clopper_pearson(_hits(there, thresholds), len(there), alpha)
    return low, high


def _hits(scores: Array, thresholds: Array) -> Array:
    return len(scores) - np.searchsorted(np.sort(scores), thresholds)


def _best(here: Array, there: Array, gain: Gain, alpha: float) -> tuple[float, float]:
    thresholds = _levels(np.concatenate([here, there]), parts=64)
    promised = gain(*_bounds(here, there, thresholds, alpha))
    best = int(np.argmax(promised))
    return float(promised[best]), float(thresholds[best])


def _levels(values: Array, parts: int) -> Array:
    """Points that divide values: all of them if they are few, else quantiles, the least first."""
    distinct = np.unique(values)
    if len(distinct) <= parts:
        return distinct
    # Quantiles at which rare outputs are told apart, too: one of them may give a person away.
    tails = np.array([0.001, 0.002, 0.005, 0.01])
    shares = np.concatenate([np.linspace(0, 1, parts + 1), tails, 1 - tails])
    return np.unique(np.quantile(values, shares, method="higher"))


def _score(here: Array, there: Array) -> Callable[[Array], Array]:
    """A function from outputs to the log-likelihood ratio of one against other, over columns."""
    tables = []
    for column in range(here.shape[1]):
        table = _ratios(here[:, column], there[:, column])
        if table is not None:
            tables.append((column, *table))

    def score(outputs: Array) -> Array:
        total = np.zeros(len(outputs))
        for column, edges, ratios in tables:
            places = np.searchsorted(edges, outputs[:, column], side="right")
            total += ratios[places]
        # Equal sums in another order of terms must not differ by rounding.
        return total.round(9)

    return score


def _ratios(here: Array, there: Array) -> tuple[Array, Array] | None:
    """Bins of one column and their log-likelihood ratios; None if a chi-square sees no difference.

    A column without a difference would add noise to the score.
    """
    both = np.concatenate([here, there])
    # Two bins, or as many as get 200 runs each.
    bins = min(MOST_BINS, max(2, len(both) // 200))
    edges = _levels(both, bins)[1:]
    counts = _binned(here, edges)
    counts_of_other = _binned(there, edges)
    together = counts + counts_of_other
    held = together > 0
    statistic = float((np.square(counts - counts_of_other)[held] / together[held]).sum())
    freedom = int(held.sum()) - 1
    if statistic <= freedom + 1.5 * np.sqrt(2 * freedom):
        return None
    return edges, np.log((counts + 0.5) / (counts_of_other + 0.5))


def _binned(values: Array, edges: Array) -> Array:
    places = np.searchsorted(edges, values, side="right")
    return np.bincount(places, minlength=len(edges) + 1)
