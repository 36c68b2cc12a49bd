"""Counts that fit noisy counts: draws from a posterior, for rules that look at far bins.

A rule that chooses by estimates of what lies far out is led astray by noise there. So it asks what
it would lead to for many tables of counts that fit the noisy ones, each as often as it is probable.

*The prior* is a chain over the bins, in their order. In front there may be a *lead*, with nobody in
it. A bin with somebody in it is *occupied*, at one of the levels 1, 1.6, 1.6^2, .., each of which
stands for the counts around it. From an occupied bin to the next, the logarithm of the level moves
by a Laplace law about a drift, or, with a small probability, to any level. An occupied bin may be
followed by a *gap* with nobody in it, which is rarely left again.

*The posterior* follows from the law of the noise: a pass over the bins, forward, leads to the
probabilities of the states of each bin given the bins up to it, and a pass backward draws states.
Within a level, the count has the law of the noise about the noisy count.

It reads published numbers only, so it costs nothing. The seed is public and fixed: equal answers
lead to equal draws.

Source: forward filtering, backward sampling: Fruehwirth-Schnatter 1994; Carter, Kohn 1994.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from sfumato.basics import Array
from sfumato.mechanisms import DiscreteLaplace, Law

RATIO = 1.6  # from one level to the next
LEVELS = 60  # the last is 10^12
LEAD = 0  # states: the lead, the gap, then the levels
GAP = 1
SEED = 39
MOST_DRAWS = 30_000  # of all tables together, as long as each has as many as FEWEST
FEWEST = 30


@dataclass(frozen=True)
class Prior:
    """How likely levels follow each other, and how many tables are drawn.

    Attributes
    ----------
    begins, ends, resumes : float
        Probabilities that a bin is the first that is occupied, that a gap follows an occupied bin,
        and that a gap is left.
    scale, drift : float
        Of the law of the change of a level's logarithm.
    spread : float
        The probability that any level follows.
    draws : int
        Of each table; there are fewer where tables are many.
    """

    begins: float
    ends: float
    resumes: float
    scale: float
    drift: float
    spread: float
    draws: int


def drawn_tables(noisy: Array, law: Law, unity: int, prior: Prior) -> Iterator[tuple[Array, Array]]:
    """Draw tables of counts that fit noisy ones, some tables at a time.

    Parameters
    ----------
    noisy : ndarray of shape (tables, bins)
        Noisy counts, times ``unity``. Bins are in the order of their values.
    law : DiscreteLaplace or DiscreteGaussian
        The noise on each of them.

    Yields
    ------
    int64 ndarray
        Which tables.
    float64 ndarray of shape (these tables, draws, bins)
        Counts, from 0 on. Other tables decide nothing but how many draws there are.
    """
    noise = _noise(law, unity)
    ends = _level_ends()
    counts = np.asarray(noisy, dtype=float) / unity
    draws = min(prior.draws, max(FEWEST, MOST_DRAWS // max(len(counts), 1)))
    # So many numbers are held for each bin while states are drawn.
    at_once = max(1, 2**21 // (draws * (LEVELS + 2)))
    randoms = np.random.default_rng(SEED).random((2, prior.draws, counts.shape[1]))[:, :draws]
    for start in range(0, len(counts), at_once):
        some = np.arange(start, min(start + at_once, len(counts)))
        filtered = _filtered(counts[some], noise, prior)
        states = _drawn_states(filtered, randoms[0], prior)
        levels = np.maximum(states - 2, 0)
        centre = counts[some][:, None, :]
        errors = noise.drawn_between(ends[levels] - centre, ends[levels + 1] - centre, randoms[1])
        yield some, np.where(states >= 2, centre + errors, 0.0)


# --- the noise ------------------------------------------------------------------------------------

OfNoise: TypeAlias = Callable[[Array], Array]


@dataclass(frozen=True)
class _Noise:
    """A continuous law of noise on a count, symmetric about 0.

    Attributes
    ----------
    scale : float
        In rows.
    density, below, quantile : callable
        The density at a multiple of the scale, the probability of less, and its inverse.
    """

    scale: float
    density: OfNoise
    below: OfNoise
    quantile: OfNoise

    def between(self, low: Array, high: Array) -> Array:
        """The probability of noise between two ends, exact far out on both sides."""
        above_zero = low > 0
        least = np.where(above_zero, -high, low) / self.scale
        most = np.where(above_zero, -low, high) / self.scale
        return np.asarray(self.below(most) - self.below(least))

    def drawn_between(self, low: Array, high: Array, random: Array) -> Array:
        """Noise between two ends that has a random share of the probability below it."""
        above_zero = low > 0
        least = self.below(np.where(above_zero, -high, low) / self.scale)
        most = self.below(np.where(above_zero, -low, high) / self.scale)
        with np.errstate(divide="ignore"):
            drawn = self.scale * self.quantile(least + random * (most - least))
        return np.asarray(np.clip(np.where(above_zero, -drawn, drawn), low, high))


def _noise(law: Law, unity: int) -> _Noise:
    if isinstance(law, DiscreteLaplace):
        return _Noise(float(law.scale) / unity, _laplace_density, _laplace_below, _laplace_quantile)
    from scipy.special import ndtr, ndtri

    return _Noise(law.sigma / unity, _gaussian_density, ndtr, ndtri)


def _laplace_density(at: Array) -> Array:
    return np.asarray(np.exp(-np.abs(at)) / 2)


def _laplace_below(at: Array) -> Array:
    tail = np.exp(-np.abs(at)) / 2
    return np.asarray(np.where(at < 0, tail, 1 - tail))


def _laplace_quantile(probability: Array) -> Array:
    tail = np.minimum(probability, 1 - probability)
    return np.asarray(np.sign(probability - 0.5) * -np.log(2 * tail))


def _gaussian_density(at: Array) -> Array:
    return np.asarray(np.exp(-(at**2) / 2) / math.sqrt(2 * math.pi))


# --- the chain ------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _level_ends() -> Array:
    ends = RATIO ** (np.arange(LEVELS + 1) - 0.5)
    ends.flags.writeable = False  # it is shared
    return np.asarray(ends)


@lru_cache(maxsize=4)
def _transitions(prior: Prior) -> Array:
    levels = np.arange(LEVELS)
    moves = math.log(RATIO) * (levels - levels[:, None]) - prior.drift
    near = np.exp(-np.abs(moves) / prior.scale)
    near /= near.sum(axis=1, keepdims=True)
    transitions = np.zeros((LEVELS + 2, LEVELS + 2))
    transitions[LEAD, LEAD] = 1 - prior.begins
    transitions[LEAD, 2:] = prior.begins / LEVELS
    transitions[GAP, GAP] = 1 - prior.resumes
    transitions[GAP, 2:] = prior.resumes / LEVELS
    transitions[2:, GAP] = prior.ends
    occupied = (1 - prior.spread) * near + prior.spread / LEVELS
    transitions[2:, 2:] = (1 - prior.ends) * occupied
    transitions.flags.writeable = False  # it is shared
    return transitions


def _filtered(counts: Array, noise: _Noise, prior: Prior) -> Array:
    """Return the probabilities of each bin's states, given the bins up to it.

    Returns
    -------
    float64 ndarray of shape (tables, bins, states)
    """
    transitions = _transitions(prior)
    ends = _level_ends()
    filtered = np.empty((*counts.shape, LEVELS + 2))
    before = np.zeros((len(counts), LEVELS + 2))
    before[:, LEAD] = 1
    for at in range(counts.shape[1]):
        # Further out than that no state is likely: all of them would have the likelihood 0.
        # Farther below 0, in multiples of the scale of the noise, no count is told apart.
        near = np.clip(counts[:, at], -30.0 * noise.scale, ends[-1])[:, None]
        likely = np.empty((len(counts), LEVELS + 2))
        likely[:, :2] = noise.density(near / noise.scale) / noise.scale
        likely[:, 2:] = noise.between(ends[:-1] - near, ends[1:] - near) / np.diff(ends)
        # Relative to the likeliest state, and never 0.
        likely = np.maximum(likely / likely.max(axis=1, keepdims=True), 1e-250)
        joint = (before @ transitions) * likely
        filtered[:, at] = before = joint / joint.sum(axis=1, keepdims=True)
    return filtered


def _drawn_states(filtered: Array, randoms: Array, prior: Prior) -> Array:
    """Draw states backward: int64 ndarray of shape (tables, draws, bins).

    Parameters
    ----------
    filtered : float64 ndarray of shape (tables, bins, states)
    randoms : float64 ndarray of shape (draws, bins)
        Uniform numbers, the same for all tables.
    """
    into = np.ascontiguousarray(_transitions(prior).T)
    n_tables, n_bins, _ = filtered.shape
    states = np.empty((n_tables, len(randoms), n_bins), np.int64)
    for at in reversed(range(n_bins)):
        probabilities = filtered[:, at, None, :]
        if at < n_bins - 1:
            probabilities = probabilities * into[states[:, :, at + 1]]
        sums = np.cumsum(probabilities, axis=2)
        states[:, :, at] = (sums < randoms[:, at, None] * sums[:, :, -1:]).sum(axis=2)
    return states
