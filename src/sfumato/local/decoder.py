"""From reports to clusters: k-means as if the noise were not there, because the server knows its law exactly.

k-means run on reports finds the noise: uniform background and far-flung reports pull the centres apart. Here a mixture of k
normal clusters, convolved with the known noise, is fitted by maximum likelihood, under a weak prior that counts as little as a
few reports; the means lie in the unit cube, which is public. Several starts on few reports, the best of them on some thousands
(L-BFGS), then Fisher's scoring on all of them, which is as good as the full maximum. In one and two dimensions all reports are
used from the start, gathered in narrow cells.
The centres are those of k-means on points drawn from the fitted clusters, with parameters nearly as uncertain as they are:
where reports leave something open, centres that are good on average over what may be true.

It sees reports only, so it is post-processing: it costs nothing and can be run again.
Intervals are those of maximum likelihood, carried through the k-means step; they presume that clusters are about normal and that
the right optimum was found.
Source: deconvolution by mixtures: Bovy, Hogg, Roweis 2011; scoring: Le Cam's one-step estimator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.centers import assign, kmeans, sse
from sfumato.errors import UsageError
from sfumato.local.floats import Floats
from sfumato.local.mechanism import Mechanism, read_array
from sfumato.local.mixture import Clusters, information, likelihood
from sfumato.local.noiselaw import NoiseLaw, noise_law

FEW, SOME = 4_000, 24_000  # reports for trying starts, and for the best of them
STARTS, FINER, GOOD, STEPS = 6, 4, 3, 3
SYNTHETIC, REPEATS, RESTARTS = 24_000, 48, 6
DOUBT = 0.5  # of the parameters' standard errors: their normal approximation is too wide where reports say little
WIDEST, NARROWEST = 0.15, 1e-5  # variance of a cluster, per axis
FAR = 40  # standard deviations of the noise: no honest report lies farther from the cube, and a false one must not count for more


@dataclass(frozen=True)
class Decoded:
    """What reports say of k clusters.

    Attributes
    ----------
    centers : float64 ndarray of shape (k, d)
        In the unit cube, by falling weight.
    weights : float64 ndarray of shape (k,)
        Share of the persons nearest to each centre.
    center_errors, weight_errors : float64 ndarray of shapes (k, d) and (k,)
        Standard errors.
    clusters : Clusters
        The normal clusters that were fitted.
    """

    centers: Floats
    weights: Floats
    center_errors: Floats
    weight_errors: Floats
    clusters: Clusters


def check_clusters(n_clusters: object, reports: int) -> int:
    """Read the number of clusters."""
    if isinstance(n_clusters, bool) or not isinstance(n_clusters, int | np.integer) or n_clusters < 1:
        raise UsageError(f"n_clusters = {n_clusters!r}", "it is a whole number from 1 on", "Give the number of clusters")
    if n_clusters > reports:
        raise UsageError(
            f"{n_clusters:,} clusters of {reports:,} reports", "there are more clusters than reports", "Ask for fewer clusters"
        )
    return int(n_clusters)


def decode(reports: Floats, mechanism: Mechanism, n_clusters: int, rng: np.random.Generator) -> Decoded:
    """Fit clusters to reports of one mechanism.

    Parameters
    ----------
    reports : float64 ndarray of shape (n, d)
    mechanism : BPM or MultivariateLaplace
        The one that the reports were drawn by.
    n_clusters : int
        At most n.
    rng : numpy Generator
        For starts and drawn points: the same reports and seed give the same clusters.

    Raises
    ------
    UsageError
        If there are more clusters than reports, or reports have another shape.
    """
    found = np.atleast_2d(read_array(reports, mechanism.dimension, "reports"))
    k, law = check_clusters(n_clusters, len(found)), noise_law(mechanism)
    if not law.background:
        far = FAR * math.sqrt(float(law.shares @ law.variances))
        found = np.clip(found, -far, 1 + far)
    points, counts = _gathered(found, law, rng)
    prior = _prior(k, found.shape[1], len(found))
    best = _fitted(points, counts, k, law, prior, rng)
    everything = (points, counts) if found.shape[1] <= 2 else (found, np.ones(len(found)))
    vector, covariance = _scored(best, k, *everything, law, prior)
    return _centred(vector, covariance, k, rng)


def _gathered(reports: Floats, law: NoiseLaw, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Reports to fit to: in one and two dimensions means of cells much narrower than the noise, else some at random."""
    d = reports.shape[1]
    if d > 2:
        chosen = rng.choice(len(reports), min(SOME, len(reports)), replace=False)
        return reports[chosen], np.ones(len(chosen))
    width = math.sqrt(float(law.shares @ law.variances)) / 12
    cells = np.floor((reports - reports.min(axis=0)) / width).astype(np.int64)
    flat = cells @ np.append(cells.max(axis=0)[1:] + 1, 1) if d == 2 else cells[:, 0]
    _, index, counts = np.unique(flat, return_inverse=True, return_counts=True)
    means = np.stack([np.bincount(index, axis) for axis in reports.T], axis=1) / counts[:, None]
    return means, counts.astype(np.float64)


@dataclass(frozen=True)
class _Prior:
    """What is thought of the parameters beforehand: independent normals, weighed against so many reports."""

    center: Floats
    precision: Floats
    reports: int


def _prior(k: int, d: int, reports: int) -> _Prior:
    """Weights alike, means in the cube, and a tenth of the cube's side as spread, each within a factor e or so.

    Where noise is large, likelihood alone shrinks clusters to points, which fit by chance and stand for nobody.
    """
    center = np.concatenate([np.full(k, -math.log(k)), np.full(k * d, 0.5), np.full(k, math.log(0.01))])
    return _Prior(center, np.repeat([1.0, 8.0, 1.0], [k, k * d, k]), reports)


def _fitted(points: Floats, counts: Floats, k: int, law: NoiseLaw, prior: _Prior, rng: np.random.Generator) -> Floats:
    """The most likely parameters, from several starts, as a vector."""
    few = rng.choice(len(points), min(FEW, len(points)), replace=False)
    near, by = points[few], counts[few]

    def climbed(means: Floats, steps: int) -> tuple[float, Floats]:
        clusters, m = np.clip(means, 0.02, 0.98), len(means)
        start = Clusters(np.full(m, 1 / m), clusters, np.full(m, 0.01)).vector()
        return _climb(start, near, by, m, law, _prior(m, near.shape[1], prior.reports), steps)

    starts = _starts(near, by, k, rng)
    # Twice as many clusters are less likely to be stuck; k-means on what they say makes a start of its own.
    for means in _starts(near, by, 2 * k, rng)[:FINER]:
        finer = _drawn(climbed(means, 40)[1], 2 * k, rng.random(FEW), rng.normal(size=(FEW, near.shape[1])))
        starts.append(kmeans(finer, k, seed=rng, tries=4, steps=30))
    tried = sorted((climbed(means, 25) for means in starts), key=lambda found: found[0])
    better = min((_climb(vector, points, counts, k, law, prior, 50) for _, vector in tried[:GOOD]), key=lambda found: found[0])
    return _climb(better[1], points, counts, k, law, prior, 150)[1]


def _starts(points: Floats, counts: Floats, k: int, rng: np.random.Generator) -> list[Floats]:
    """Means far apart among the reports, brought into the cube, and means anywhere in the cube, by turns."""
    d, near = points.shape[1], np.clip(points, 0, 1)
    found = []
    for turn in range(STARTS):
        means = kmeans(near, k, weights=counts, seed=rng, steps=10) if turn % 2 else rng.uniform(0.05, 0.95, (k, d))
        found.append(means)
    return found


def _climb(start: Floats, points: Floats, counts: Floats, k: int, law: NoiseLaw, prior: _Prior, steps: int) -> tuple[float, Floats]:
    from scipy.optimize import minimize

    def descend(vector: Floats) -> tuple[float, Floats]:
        value, gradient = likelihood(vector, k, points, counts, law)
        pull = prior.precision * (vector - prior.center) / prior.reports
        return 0.5 * float(pull @ (vector - prior.center)) - value, pull - gradient

    low, high = _limits(k, len(start))
    found = minimize(
        descend, start, jac=True, method="L-BFGS-B", bounds=list(zip(low, high, strict=True)), options={"maxiter": steps, "ftol": 1e-10}
    )
    return float(found.fun), np.asarray(found.x)


def _limits(k: int, size: int) -> tuple[Floats, Floats]:
    """Public limits of the parameters: weights within a factor e^6 of each other, means in the cube, variances."""
    means = size - 2 * k
    low = np.concatenate([np.full(k, -math.log(k) - 3), np.zeros(means), np.full(k, math.log(NARROWEST))])
    return low, np.concatenate([np.full(k, -math.log(k) + 3), np.ones(means), np.full(k, math.log(WIDEST))])


def _scored(vector: Floats, k: int, points: Floats, counts: Floats, law: NoiseLaw, prior: _Prior) -> tuple[Floats, Floats]:
    """Fisher's scoring on all reports: the estimate and its covariance."""
    low, high = _limits(k, len(vector))
    weight = np.diag(prior.precision)
    for _ in range(STEPS):
        score, known = information(vector, k, points, counts, law)
        step = np.linalg.solve(known + weight, score - weight @ (vector - prior.center))
        vector = np.clip(vector + step / max(1.0, 4 * float(np.abs(step).max())), low, high)
    return vector, np.asarray(np.linalg.inv(information(vector, k, points, counts, law)[1] + weight), dtype=np.float64)


def _centred(vector: Floats, covariance: Floats, k: int, rng: np.random.Generator) -> Decoded:
    """k-means on points drawn from what is known of the clusters, and how far the estimate's error moves it.

    Points come from many parameters, in pairs about the estimate: centres that are best on average over what may be true.
    """
    low, high = _limits(k, len(vector))
    root, d = np.linalg.cholesky(covariance), (len(vector) - 2 * k) // k
    steps = [root @ rng.normal(size=len(vector)) for _ in range(REPEATS // 2)]
    likely, doubtful = ([np.clip(vector + size * step, low, high) for step in steps for size in (by, -by)] for by in (1.0, DOUBT))
    places, noise = rng.random(SYNTHETIC), rng.normal(size=(SYNTHETIC, d))
    parts = np.array_split(np.arange(SYNTHETIC), REPEATS)
    pool = np.concatenate([_drawn(each, k, places[part], noise[part]) for each, part in zip(doubtful, parts, strict=True)])
    tried = kmeans(pool, Clusters.of(vector, k).means, steps=60), kmeans(pool, k, seed=rng, tries=RESTARTS, steps=60)
    centers = min(tried, key=lambda found: sse(pool, found))
    some = slice(0, SYNTHETIC // 8)
    near = [_settled(_drawn(each, k, places[some], noise[some]), centers) for each in likely]
    errors = [_spread(np.array([found[part] for found in near])) for part in (0, 1)]
    weights = _settled(pool, centers)[1]
    order = np.argsort(-weights, kind="stable")
    return Decoded(centers[order], weights[order], errors[0][order], errors[1][order], Clusters.of(vector, k))


def _spread(values: Floats) -> Floats:
    """Standard deviation by the median distance from the median: a repeat that settles elsewhere does not count."""
    return np.asarray(1.4826 * np.median(np.abs(values - np.median(values, axis=0)), axis=0))


def _drawn(vector: Floats, k: int, places: Floats, noise: Floats) -> Floats:
    """Points of the clusters, made of given uniforms and normals."""
    clusters = Clusters.of(vector, k)
    which = np.minimum(np.searchsorted(np.cumsum(clusters.weights), places), k - 1)
    return np.asarray(np.clip(clusters.means[which] + noise * np.sqrt(clusters.variances[which])[:, None], 0, 1))


def _settled(points: Floats, centers: Floats) -> tuple[Floats, Floats]:
    """Centres after a few more steps, and the share of the points nearest to each."""
    moved = kmeans(points, centers, steps=20)
    return moved, np.bincount(assign(points, moved), minlength=len(moved)).astype(np.float64) / len(points)
