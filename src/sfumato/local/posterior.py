"""What reports with little signal say of k normal clusters: draws from the posterior.

Where reports say little, the likelihood has many maxima, and none of them stands for anybody. An
average over everything that the reports leave possible does: where they say nothing, it is the
prior, and k-means on it gives centres that are spread evenly over the cube.

Several Markov chains (Metropolis) start from the prior and are warmed into the posterior. A chain
moves one cluster at a time, to a fresh draw from the prior or a step away, and reads the density
of the reports off a table over distances, because the noise is the same in all directions.
Source: Neal 1996 (annealing); Robert, Casella 2004 (independence and random-walk proposals).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from sfumato.basics import Array
from sfumato.local.constants import Floats
from sfumato.local.normal_clusters import Clusters, NoiseLaw, even_density

# If more of them still say little, so many say hardly less.
MOST_REPORTS = 10_000


# The variances that a cluster may have, per axis.
VARIANCES = np.geomspace(1e-4, 0.06, 6)


_TABLE = 4096


@dataclass(frozen=True)
class Posterior:
    """Draws of k normal clusters that may be behind the reports.

    Attributes
    ----------
    vectors : list of float64 ndarray of shape (p,)
        As ``Clusters.vector``.
    vector : float64 ndarray of shape (p,)
        The likeliest of them.
    k : int
    evidence : float
        Log of the marginal likelihood beyond that of points spread evenly over the cube, in nats.
    """

    vectors: list[Floats]
    vector: Floats
    k: int
    evidence: float
    # Draws of which points are made: many, because each may be far from the others.
    laws: ClassVar[int] = 480

    @property
    def clusters(self) -> Clusters:
        """The likeliest draw."""
        return Clusters.of(self.vector, self.k)

    def others(self, count: int, rng: np.random.Generator, size: float = 1.0) -> list[Floats]:
        """So many of the draws. Their spread is exact, so ``size`` does not change it."""
        chosen = rng.choice(len(self.vectors), count, replace=count > len(self.vectors))
        return [self.vectors[i] for i in chosen]


class _Kernel:
    """Density of a report for a cluster, by distance and variance: a table."""

    def __init__(self, law: NoiseLaw, points: Floats) -> None:
        d = points.shape[1]
        # The cube's farthest corner from any report.
        away = np.maximum(np.abs(points), np.abs(points - 1))
        farthest = float(np.sqrt((away**2).sum(axis=1)).max())
        radii = np.linspace(0, farthest, _TABLE)
        totals = VARIANCES[:, None] + law.variances
        peaks = (1 - law.background) * law.shares * (2 * math.pi * totals) ** (-d / 2)
        exponents = -(radii[:, None, None] ** 2) / (2 * totals)
        values = (peaks * np.exp(exponents)).sum(axis=2)
        self.table = np.ascontiguousarray(values.T).ravel()
        self.scale = (_TABLE - 1) / farthest

    def at(self, points: Floats, means: Floats, sizes: Array) -> Floats:
        """Densities of shape (chains, n), for one cluster of each chain."""
        squared = (means**2).sum(axis=1)[:, None] - 2 * (means @ points.T)
        squared += (points**2).sum(axis=1)
        places = np.sqrt(np.maximum(squared, 0, out=squared), out=squared)
        places *= self.scale
        places += 0.5
        index = places.astype(np.int32)
        np.minimum(index, _TABLE - 1, out=index)
        index += (sizes * _TABLE).astype(np.int32)[:, None]
        return np.asarray(self.table[index])


@dataclass
class _Chains:
    """The state of all chains.

    Attributes
    ----------
    means : float64 ndarray of shape (chains, k, d)
    sizes : int64 ndarray of shape (chains, k)
        Index of each cluster's variance.
    logits : float64 ndarray of shape (chains, k)
    parts : float64 ndarray of shape (k, chains, n)
        Density of each report for each cluster.
    density : float64 ndarray of shape (chains, n)
    value : float64 ndarray of shape (chains,)
        Log likelihood.
    """

    means: Floats
    sizes: Array
    logits: Floats
    parts: Floats
    density: Floats
    value: Floats

    def weights(self) -> Floats:
        return _softmax(self.logits)


def sample(reports: Floats, k: int, law: NoiseLaw, rng: np.random.Generator) -> Posterior:
    """Draw clusters that may be behind reports of shape (n, d)."""
    points = reports
    if len(points) > MOST_REPORTS:
        points = points[rng.choice(len(points), MOST_REPORTS, replace=False)]
    # Chains keep a number for each cluster and report, 400,000 in all, about.
    chains = int(np.clip(400_000 // (k * len(points)), 8, 64))
    walk = _Walk(points, law, _Kernel(law, points), rng)
    state = walk.start(chains, k)
    logs = np.zeros(chains)
    for before, heat in pairwise(np.linspace(0, 1, 101) ** 3):
        # Weights are taken before the move, as annealed importance sampling asks.
        logs += (heat - before) * state.value
        walk.sweep(state, heat)
    evidence = float(np.log(np.mean(np.exp(logs - logs.max()))) + logs.max())
    state = _resampled(state, logs, rng)
    vectors: list[Floats] = []
    values: list[Floats] = []
    for _ in range(20):
        # Four sweeps over all clusters lie between two draws that are kept.
        for _ in range(4):
            walk.sweep(state, 1.0)
        vectors += _vectors(state)
        values.append(state.value.copy())
    likeliest = vectors[int(np.argmax(np.concatenate(values)))]
    even = float(np.log(np.maximum(even_density(points, law), walk.floor)).sum())
    return Posterior(vectors, likeliest, k, evidence - even)


@dataclass(frozen=True)
class _Walk:
    """Moves chains among the clusters that may be behind the reports."""

    points: Floats
    law: NoiseLaw
    kernel: _Kernel
    rng: np.random.Generator

    @property
    def floor(self) -> float:
        """Density of the background; it keeps logarithms finite where there is none."""
        return self.law.background_density_above_zero

    def start(self, chains: int, k: int) -> _Chains:
        means = self.rng.random((chains, k, self.points.shape[1]))
        sizes = self._prior_sizes((chains, k))
        # Log weights are standard normal beforehand.
        logits = self.rng.normal(size=(chains, k))
        parts = np.stack([self.kernel.at(self.points, means[:, j], sizes[:, j]) for j in range(k)])
        density = self._density(logits, parts)
        return _Chains(means, sizes, logits, parts, density, self._value(density))

    def sweep(self, state: _Chains, heat: float) -> None:
        for j in range(state.logits.shape[1]):
            self._move(state, j, heat)
        self._weigh(state, heat)

    def _move(self, state: _Chains, j: int, heat: float) -> None:
        """Propose another place and size for the cluster j of each chain."""
        rng = self.rng
        chains, _, d = state.means.shape
        # In three moves of ten a cluster is drawn from the prior anew.
        fresh = np.asarray(rng.random(chains)) < 0.3
        # Steps of several lengths: nobody knows beforehand which the reports tell apart.
        length = 0.5 * 10.0 ** rng.uniform(-1.5, 0, (chains, 1)) / math.sqrt(d)
        # Reflected into the cube, so that a step and its reverse are alike.
        away = np.abs(state.means[:, j] + length * rng.normal(size=(chains, d))) % 2
        moved = np.minimum(away, 2 - away)
        means = np.where(fresh[:, None], rng.random((chains, d)), moved)
        keep = rng.random(chains) < 0.5
        sizes = np.where(keep, state.sizes[:, j], self._prior_sizes(chains))
        part = self.kernel.at(self.points, means, sizes)
        weight = state.weights()[:, [j]]
        density = state.density + weight * (part - state.parts[j])
        # Taking a part away again leaves rounding errors, which may fall below the floor.
        np.maximum(density, self.floor, out=density)
        value = self._value(density)
        taken = self._taken(heat * (value - state.value))
        state.means[taken, j] = means[taken]
        state.sizes[taken, j] = sizes[taken]
        state.parts[j, taken] = part[taken]
        state.density[taken] = density[taken]
        state.value[taken] = value[taken]

    def _weigh(self, state: _Chains, heat: float) -> None:
        chains, k = state.logits.shape
        # This step keeps the normal prior as it is (Neal 1998), so that only likelihoods count.
        turn = 0.5
        step = self.rng.normal(size=(chains, k))
        logits = math.sqrt(1 - turn**2) * state.logits + turn * step
        density = self._density(logits, state.parts)
        value = self._value(density)
        taken = self._taken(heat * (value - state.value))
        state.logits[taken] = logits[taken]
        state.density[taken] = density[taken]
        state.value[taken] = value[taken]

    def _taken(self, gains: Floats) -> Array:
        """Return which proposals are taken, by Metropolis's rule."""
        return np.log(self.rng.random(len(gains))) < gains

    def _density(self, logits: Floats, parts: Floats) -> Floats:
        return np.asarray(np.einsum("ck,kcn->cn", _softmax(logits), parts) + self.floor)

    def _value(self, density: Floats) -> Floats:
        return np.asarray(np.log(density).sum(axis=1))

    def _prior_sizes(self, shape: int | tuple[int, int]) -> Array:
        # Variances are thought to be log-normal about 0.01, as in ``normal_clusters``.
        odds = np.exp(-0.5 * np.log(VARIANCES / 0.01) ** 2)
        return self.rng.choice(len(VARIANCES), shape, p=odds / odds.sum())


def _resampled(state: _Chains, logs: Floats, rng: np.random.Generator) -> _Chains:
    """Chains in proportion to their weights, at evenly spaced quantiles."""
    chains = len(logs)
    shares = np.cumsum(np.exp(logs - logs.max()))
    kept = np.searchsorted(shares / shares[-1], (np.arange(chains) + rng.random()) / chains)
    kept = np.minimum(kept, chains - 1)
    return _Chains(
        state.means[kept],
        state.sizes[kept],
        state.logits[kept],
        state.parts[:, kept],
        state.density[kept],
        state.value[kept],
    )


def _softmax(logits: Floats) -> Floats:
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))


def _vectors(state: _Chains) -> list[Floats]:
    weights = state.weights()
    return [
        Clusters(weights[c], state.means[c], VARIANCES[state.sizes[c]]).vector()
        for c in range(len(weights))
    ]
