"""k normal clusters fitted to reports by maximum likelihood, under a weak prior that counts as
little as a few reports.

Several starts on few reports, the best of them on some thousands (L-BFGS), then Fisher's scoring on
all of them, which is as good as the full maximum. Where a start is known, that one alone. The means
lie in the unit cube, which is public.
Source: deconvolution by mixtures: Bovy, Hogg, Roweis 2011; scoring: Le Cam's one-step estimator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from sfumato.local.decoding.mixture import Clusters, information, likelihood
from sfumato.local.decoding.noiselaw import NoiseLaw
from sfumato.local.sampling.floats import Floats
from sfumato.plain_kmeans import kmeans

FEW, SOME = 4_000, 24_000  # reports for trying starts, and for the best of them
STARTS, FINER, GOOD, STEPS = 6, 4, 3, 3
WIDEST, NARROWEST = 0.15, 1e-5  # variance of a cluster, per axis


@dataclass(frozen=True)
class Normals:
    """k normal clusters: their parameters as a vector (see ``mixture``) and its covariance."""

    vector: Floats
    covariance: Floats
    k: int

    @property
    def clusters(self) -> Clusters:
        """What was fitted."""
        return Clusters.of(self.vector, self.k)

    def others(self, count: int, rng: np.random.Generator, size: float = 1.0) -> list[Floats]:
        """Vectors that may be the true one, in pairs about the estimate; ``size`` scales their
        standard deviations.
        """
        low, high = _limits(self.k, len(self.vector))
        root = np.linalg.cholesky(self.covariance)
        steps = [root @ rng.normal(size=len(self.vector)) for _ in range((count + 1) // 2)]
        return [
            np.clip(self.vector + by * step, low, high) for step in steps for by in (size, -size)
        ][:count]


def drawn(vector: Floats, k: int, places: Floats, noise: Floats) -> Floats:
    """Points of the clusters, made of given uniforms and normals."""
    clusters = Clusters.of(vector, k)
    which = np.minimum(np.searchsorted(np.cumsum(clusters.weights), places), k - 1)
    return np.asarray(
        np.clip(clusters.means[which] + noise * np.sqrt(clusters.variances[which])[:, None], 0, 1)
    )


def fit_from(means: Floats, points: Floats, counts: Floats, law: NoiseLaw) -> Normals:
    """Fit to counted reports, from means that are nearly right."""
    prior = _prior(len(means), points.shape[1], counts)
    return _scored(
        _climb(_start(means), points, counts, law, prior, 150)[1], points, counts, law, prior
    )


def fit(reports: Floats, k: int, law: NoiseLaw, rng: np.random.Generator) -> Normals:
    """Fit to reports of which nothing is known."""
    chosen = rng.choice(len(reports), min(SOME, len(reports)), replace=False)
    everyone = np.ones(len(reports))
    prior = _prior(k, reports.shape[1], everyone)
    return _scored(
        _searched(reports[chosen], everyone[chosen], k, law, prior, rng),
        reports,
        everyone,
        law,
        prior,
    )


def scored(vector: Floats, points: Floats, counts: Floats, law: NoiseLaw) -> Normals:
    """Improve a vector that was fitted to some of the reports by all of them."""
    k = _clusters(vector, points)
    return _scored(vector, points, counts, law, _prior(k, points.shape[1], counts))


def evidence(normals: Normals, points: Floats, counts: Floats, law: NoiseLaw) -> float:
    """Log likelihood of counted reports, averaged over all that was thought possible beforehand, by
    Laplace's approximation.
    """
    prior, k = _prior(normals.k, points.shape[1], counts), normals.k
    value = float(counts.sum()) * likelihood(normals.vector, k, points, counts, law)[0]
    value -= 0.5 * float(prior.precision @ (normals.vector - prior.center) ** 2)
    volumes = float(np.log(prior.precision).sum()) + float(np.linalg.slogdet(normals.covariance)[1])
    return float(value + 0.5 * volumes + math.lgamma(k + 1))  # clusters can be named in k! ways


@dataclass(frozen=True)
class _Prior:
    """What is thought of the parameters beforehand: independent normals, weighed against so many
    reports.
    """

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
    near, by = points[few], counts[few]

    def climbed(means: Floats, steps: int) -> tuple[float, Floats]:
        thought = replace(_prior(len(means), near.shape[1], by), reports=prior.reports)
        return _climb(_start(means), near, by, law, thought, steps)

    starts = _starts(near, by, k, rng)
    # Twice as many clusters are less likely to be stuck; k-means on what they say makes a start of
    # its own.
    for means in _starts(near, by, 2 * k, rng)[:FINER]:
        finer = drawn(
            climbed(means, 40)[1], 2 * k, rng.random(FEW), rng.normal(size=(FEW, near.shape[1]))
        )
        starts.append(kmeans(finer, k, seed=rng, tries=4, steps=30))
    tried = sorted((climbed(means, 25) for means in starts), key=lambda found: found[0])
    better = min(
        (_climb(vector, points, counts, law, prior, 50) for _, vector in tried[:GOOD]),
        key=lambda found: found[0],
    )
    return _climb(better[1], points, counts, law, prior, 150)[1]


def _starts(points: Floats, counts: Floats, k: int, rng: np.random.Generator) -> list[Floats]:
    """Means far apart among the reports, brought into the cube, and means anywhere in the cube, by
    turns.
    """
    d, near = points.shape[1], np.clip(points, 0, 1)
    found = []
    for turn in range(STARTS):
        means = (
            kmeans(near, k, weights=counts, seed=rng, steps=10)
            if turn % 2
            else rng.uniform(0.05, 0.95, (k, d))
        )
        found.append(means)
    return found


def _climb(
    start: Floats, points: Floats, counts: Floats, law: NoiseLaw, prior: _Prior, steps: int
) -> tuple[float, Floats]:
    from scipy.optimize import minimize

    k = _clusters(start, points)

    def descend(vector: Floats) -> tuple[float, Floats]:
        value, gradient = likelihood(vector, k, points, counts, law)
        pull = prior.precision * (vector - prior.center) / prior.reports
        return 0.5 * float(pull @ (vector - prior.center)) - value, pull - gradient

    low, high = _limits(k, len(start))
    found = minimize(
        descend,
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
    low = np.concatenate(
        [np.full(k, -math.log(k) - 3), np.zeros(means), np.full(k, math.log(NARROWEST))]
    )
    return low, np.concatenate(
        [np.full(k, -math.log(k) + 3), np.ones(means), np.full(k, math.log(WIDEST))]
    )


def _scored(
    vector: Floats, points: Floats, counts: Floats, law: NoiseLaw, prior: _Prior
) -> Normals:
    """Fisher's scoring on all reports: the estimate and its covariance."""
    k = _clusters(vector, points)
    low, high = _limits(k, len(vector))
    weight = np.diag(prior.precision)
    for _ in range(STEPS):
        score, known = information(vector, k, points, counts, law)
        step = np.linalg.solve(known + weight, score - weight @ (vector - prior.center))
        vector = np.clip(vector + step / max(1.0, 4 * float(np.abs(step).max())), low, high)
    known = information(vector, k, points, counts, law)[1]
    return Normals(vector, np.asarray(np.linalg.inv(known + weight), dtype=np.float64), k)


def _clusters(vector: Floats, points: Floats) -> int:
    """How many clusters a vector describes."""
    return int(len(vector) // (points.shape[1] + 2))
