"""k normal clusters fitted to reports by maximum likelihood, under a weak prior.

Several starts on few reports, the best of them on some thousands (L-BFGS), then Fisher's scoring on
all of them, which is as good as the full maximum. Where a start is known, that one alone. The means
lie in the unit cube, which is public.
Source: deconvolution by mixtures: Bovy, Hogg, Roweis 2011; scoring: Le Cam's one-step estimator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sfumato.basics.kmeans import kmeans
from sfumato.local.decoding.likelihood import Clusters, information, likelihood
from sfumato.local.decoding.noise_law import NoiseLaw
from sfumato.local.sampling.floats import Floats

FEW = 4_000
"""Reports for trying starts."""

SOME = 24_000
"""Reports for the best of the starts."""

STARTS = 6
FINER_STARTS = 4
"""Starts with twice as many clusters."""

GOOD_STARTS = 3
"""Starts that are followed further."""

SCORING_STEPS = 3
WIDEST = 0.15
NARROWEST = 1e-5
"""Limits of a cluster's variance, per axis."""


@dataclass(frozen=True)
class NormalClusters:
    """k normal clusters: their parameters as a vector (see ``likelihood``) and its covariance."""

    vector: Floats
    covariance: Floats
    k: int
    laws: ClassVar[int] = 48

    @property
    def clusters(self) -> Clusters:
        """What was fitted."""
        return Clusters.of(self.vector, self.k)

    def others(self, count: int, rng: np.random.Generator, size: float = 1.0) -> list[Floats]:
        """Vectors that may be the true one, in pairs about the estimate.

        ``size`` scales their standard deviations.
        """
        low, high = _limits(self.k, len(self.vector))
        root = np.linalg.cholesky(self.covariance)
        pairs = (count + 1) // 2
        steps = [root @ rng.normal(size=len(self.vector)) for _ in range(pairs)]
        vectors = [self.vector + by * step for step in steps for by in (size, -size)]
        return [np.clip(vector, low, high) for vector in vectors[:count]]


def drawn(vector: Floats, k: int, uniforms: Floats, normals: Floats) -> Floats:
    """Points of the clusters, made of given uniforms and normals."""
    clusters = Clusters.of(vector, k)
    which = np.minimum(np.searchsorted(np.cumsum(clusters.weights), uniforms), k - 1)
    spread = np.sqrt(clusters.variances[which])[:, None]
    return np.asarray(np.clip(clusters.means[which] + normals * spread, 0, 1))


def fit_from(means: Floats, points: Floats, counts: Floats, law: NoiseLaw) -> NormalClusters:
    """Fit to counted reports, from means that are nearly right."""
    prior = _prior(len(means), points.shape[1], counts)
    _, vector = _climb(_start(means), points, counts, law, prior, steps=150)
    return _scored(vector, points, counts, law, prior)


def fit(reports: Floats, k: int, law: NoiseLaw, rng: np.random.Generator) -> NormalClusters:
    """Fit to reports of which nothing is known."""
    chosen = rng.choice(len(reports), min(SOME, len(reports)), replace=False)
    everyone = np.ones(len(reports))
    prior = _prior(k, reports.shape[1], everyone)
    vector = _searched(reports[chosen], everyone[chosen], k, law, prior, rng)
    return _scored(vector, reports, everyone, law, prior)


def scored(vector: Floats, points: Floats, counts: Floats, law: NoiseLaw) -> NormalClusters:
    """Improve a vector that was fitted to some of the reports by all of them."""
    k = _clusters(vector, points)
    return _scored(vector, points, counts, law, _prior(k, points.shape[1], counts))


def evidence(fitted: NormalClusters, points: Floats, counts: Floats, law: NoiseLaw) -> float:
    """Log likelihood of counted reports, averaged over the prior, by Laplace's approximation."""
    prior = _prior(fitted.k, points.shape[1], counts)
    mean, _ = likelihood(fitted.vector, fitted.k, points, counts, law)
    value = float(counts.sum()) * mean
    value -= 0.5 * float(prior.precision @ (fitted.vector - prior.center) ** 2)
    volumes = float(np.log(prior.precision).sum()) + float(np.linalg.slogdet(fitted.covariance)[1])
    # Clusters can be named in k! ways, and each has as much evidence.
    return float(value + 0.5 * volumes + math.lgamma(fitted.k + 1))


@dataclass(frozen=True)
class _Prior:
    """Independent normals for the parameters, weighed against so many reports."""

    center: Floats
    precision: Floats
    reports: float


def _prior(k: int, d: int, counts: Floats) -> _Prior:
    """Weights alike, means in the cube, and a tenth of the cube's side as spread, each within a
    factor e or so.

    Where noise is large, likelihood alone shrinks clusters to points, which fit by chance and stand
    for nobody.
    """
    center = np.concatenate(
        [np.full(k, -math.log(k)), np.full(k * d, 0.5), np.full(k, math.log(0.01))]
    )
    return _Prior(center, np.repeat([1.0, 8.0, 1.0], [k, k * d, k]), float(counts.sum()))


def _start(means: Floats) -> Floats:
    """Clusters alike but for their means."""
    k = len(means)
    return Clusters(np.full(k, 1 / k), np.clip(means, 0.02, 0.98), np.full(k, 0.01)).vector()


def _searched(
    points: Floats, counts: Floats, k: int, law: NoiseLaw, prior: _Prior, rng: np.random.Generator
) -> Floats:
    """The most likely parameters, from several starts, as a vector."""
    few = rng.choice(len(points), min(FEW, len(points)), replace=False)
    near = points[few]
    by = counts[few]

    def climbed(means: Floats, steps: int) -> tuple[float, Floats]:
        # The prior counts as much as it does beside all reports, so that few of them say where a
        # start leads.
        beside_all = replace(_prior(len(means), near.shape[1], by), reports=prior.reports)
        return _climb(_start(means), near, by, law, beside_all, steps)

    starts = _starts(near, by, k, rng)
    # Twice as many clusters are less likely to be stuck; k-means on points drawn from them makes a
    # start of its own.
    for means in _starts(near, by, 2 * k, rng)[:FINER_STARTS]:
        _, vector = climbed(means, 40)
        uniforms = rng.random(FEW)
        finer = drawn(vector, 2 * k, uniforms, rng.normal(size=(FEW, near.shape[1])))
        starts.append(kmeans(finer, k, seed=rng, tries=4, steps=30))
    tried = sorted((climbed(means, 25) for means in starts), key=_value)
    followed = [
        _climb(vector, points, counts, law, prior, steps=50) for _, vector in tried[:GOOD_STARTS]
    ]
    _, best = min(followed, key=_value)
    return _climb(best, points, counts, law, prior, steps=150)[1]


def _value(found: tuple[float, Floats]) -> float:
    """What ``_climb`` minimised."""
    return found[0]


def _starts(points: Floats, counts: Floats, k: int, rng: np.random.Generator) -> list[Floats]:
    """Means far apart among the reports, brought into the cube, and means anywhere in the cube, by
    turns.
    """
    near = np.clip(points, 0, 1)
    found = []
    for turn in range(STARTS):
        if turn % 2:
            found.append(kmeans(near, k, weights=counts, seed=rng, steps=10))
        else:
            found.append(rng.uniform(0.05, 0.95, (k, points.shape[1])))
    return found


def _climb(
    start: Floats, points: Floats, counts: Floats, law: NoiseLaw, prior: _Prior, steps: int
) -> tuple[float, Floats]:
    """Maximise likelihood and prior within the limits: minus the log of what was reached, and the
    vector.
    """
    from scipy.optimize import minimize

    k = _clusters(start, points)

    def objective(vector: Floats) -> tuple[float, Floats]:
        value, gradient = likelihood(vector, k, points, counts, law)
        away = vector - prior.center
        pull = prior.precision * away / prior.reports
        return 0.5 * float(pull @ away) - value, pull - gradient

    low, high = _limits(k, len(start))
    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)),
        options={"maxiter": steps, "ftol": 1e-10},
    )
    return float(found.fun), np.asarray(found.x)


def _limits(k: int, size: int) -> tuple[Floats, Floats]:
    """Public limits of the parameters: weights within a factor e^6 of each other, means in the
    cube, variances.
    """
    means = size - 2 * k
    even = np.full(k, -math.log(k))
    low = np.concatenate([even - 3, np.zeros(means), np.full(k, math.log(NARROWEST))])
    high = np.concatenate([even + 3, np.ones(means), np.full(k, math.log(WIDEST))])
    return low, high


def _scored(
    vector: Floats, points: Floats, counts: Floats, law: NoiseLaw, prior: _Prior
) -> NormalClusters:
    """Fisher's scoring on all reports: the estimate and its covariance."""
    k = _clusters(vector, points)
    low, high = _limits(k, len(vector))
    precision = np.diag(prior.precision)
    for _ in range(SCORING_STEPS):
        score, known = information(vector, k, points, counts, law)
        step = np.linalg.solve(known + precision, score - precision @ (vector - prior.center))
        # No parameter moves by more than a quarter: far from the maximum the information misleads.
        vector = np.clip(vector + step / max(1.0, 4 * float(np.abs(step).max())), low, high)
    _, known = information(vector, k, points, counts, law)
    covariance = np.asarray(np.linalg.inv(known + precision), dtype=np.float64)
    return NormalClusters(vector, covariance, k)


def _clusters(vector: Floats, points: Floats) -> int:
    """How many clusters a vector describes."""
    return int(len(vector) // (points.shape[1] + 2))
