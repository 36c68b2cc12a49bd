"""k normal clusters fitted to reports by maximum likelihood, under a weak prior.

*The noise of reports as a mixture of normals* (``NoiseLaw``), which is easily convolved with
clusters.

exp(-k |z|) is a mixture of normals of all scales exactly; the law inside a ball, exp(-k r) - exp(-k
L), nearly so. A few scales are fitted to its density by non-negative least squares. Used for
decoding only: no privacy rests on it.

*The likelihood of reports of normal clusters under known noise* (``likelihood``), and its
derivatives.

A report has density b u + (1 - b) sum over j of p_j sum over m of c_m N(x; mu_j, (s_j + w_m) I),
with the noise of ``NoiseLaw``: shares c_m and variances w_m, background b of density u. Parameters
are one vector: k log weights, k d means, k log variances.

*The fit* (``NormalClusters``).

Several starts on few reports, the best of them on some thousands (L-BFGS), then Fisher's scoring on
all of them, which is as good as the full maximum. Where a start is known, that one alone. The means
lie in the unit cube, which is public.
Source: deconvolution by mixtures: Bovy, Hogg, Roweis 2011; scoring: Le Cam's one-step estimator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import ClassVar

import numpy as np

from sfumato.basics.kmeans import kmeans, squared_distances
from sfumato.local.bpm import BPM
from sfumato.local.constants import Floats
from sfumato.local.mechanism import Mechanism

# --- the law of the noise -------------------------------------------------------------------------

_GRID = 240
_SCALES = 12
# How heavily the fit weighs that shares add up to 1.
_SUM_WEIGHT = 10.0


@dataclass(frozen=True)
class NoiseLaw:
    """A report is, with probability ``background``, uniform with log density ``floor``; else its
    point plus normal noise.

    Attributes
    ----------
    shares, variances : float64 ndarray of shape (scales,)
        Of the normals, per axis.
    background, floor : float
    """

    shares: Floats
    variances: Floats
    background: float
    floor: float

    @property
    def background_density(self) -> float:
        """Density of the reports that say nothing, by their share."""
        return self.background * math.exp(self.floor) if self.background > 0 else 0.0

    @property
    def background_density_above_zero(self) -> float:
        """The same, kept so far from 0 that single precision has a logarithm of it."""
        return max(self.background_density, 1e-30)


def noise_law(mechanism: Mechanism) -> NoiseLaw:
    """Describe the noise of BPM or of the multivariate Laplace mechanism."""
    d = mechanism.dimension
    radius = float(mechanism.L) if isinstance(mechanism, BPM) else math.inf
    distances, mass, log_density = _radial_law(d, float(mechanism.epsilon), radius)
    spread = math.sqrt(d + 1) / float(mechanism.epsilon)
    top = min(spread, radius / math.sqrt(d + 2))
    # The scales of exp(-k |z|) are Gamma((d + 1) / 2): this is how far they reach on a logarithmic
    # axis.
    wide = math.sqrt(2 / (d + 1))
    scales = np.geomspace(math.exp(-6 * wide), math.exp(3.4 * wide), _SCALES)
    shares, variances = _fitted(d, distances, mass, log_density, top**2 * scales)
    # The total variance is what tells centres apart: it is made exact.
    variances *= float((mass * distances**2).sum()) / d / float(shares @ variances)
    floor = -d * math.log(1 + 2 * radius) if math.isfinite(radius) else -math.inf
    return NoiseLaw(shares, variances, mechanism.background_probability, floor)


def _radial_law(d: int, k: float, radius: float) -> tuple[Floats, Floats, Floats]:
    """Distances on a grid, their masses, and the log density of the noise over d-dimensional space
    at them.
    """
    far = min(radius, (d + 12 * math.sqrt(d) + 12) / k)
    distances = (np.arange(_GRID) + 0.5) / _GRID * far
    with np.errstate(divide="ignore"):
        log_density = -k * distances + np.log(-np.expm1(-k * (radius - distances)))
    log_mass = log_density + (d - 1) * np.log(distances)
    mass = np.exp(log_mass - log_mass.max())
    log_sum = log_mass.max() + math.log(mass.sum())
    mass /= mass.sum()
    # Surface of the unit sphere: it turns a density over distances into one over space.
    log_sphere = math.log(2) + d / 2 * math.log(math.pi) - math.lgamma(d / 2)
    log_density -= log_sum + math.log(far / _GRID) + log_sphere
    return distances, mass, log_density


def _fitted(
    d: int, distances: Floats, mass: Floats, log_density: Floats, variances: Floats
) -> tuple[Floats, Floats]:
    """Shares of normals of these variances whose density is nearest to the given one; unused ones
    are left out.
    """
    from scipy.optimize import nnls

    log_normal = -d / 2 * np.log(2 * math.pi * variances)
    squared_distances = distances[:, None] ** 2
    log_normal = log_normal - squared_distances / (2 * variances)
    kept = mass > 1e-9
    # The quotient of densities should be 1 everywhere, weighed by mass.
    quotients = np.exp(np.minimum(log_normal[kept] - log_density[kept, None], 50))
    design = quotients * np.sqrt(mass[kept])[:, None]
    rows = np.vstack([design, np.full(_SCALES, _SUM_WEIGHT)])
    shares, _ = nnls(rows, np.append(np.sqrt(mass[kept]), _SUM_WEIGHT))
    used = shares > 1e-4
    return shares[used] / shares[used].sum(), variances[used]


# --- the likelihood -------------------------------------------------------------------------------

_BLOCK = 2**11


@dataclass(frozen=True)
class Clusters:
    """Normal clusters.

    Attributes
    ----------
    weights : float64 ndarray of shape (k,)
    means : float64 ndarray of shape (k, d)
    variances : float64 ndarray of shape (k,)
        Per axis.
    """

    weights: Floats
    means: Floats
    variances: Floats

    def vector(self) -> Floats:
        """As one vector of 2k + kd numbers."""
        return np.concatenate([np.log(self.weights), self.means.ravel(), np.log(self.variances)])

    @classmethod
    def of(cls, vector: Floats, k: int) -> Clusters:
        """Read such a vector; log weights are defined up to a constant."""
        logits = vector[:k]
        weights = np.exp(logits - logits.max())
        return cls(weights / weights.sum(), vector[k:-k].reshape(k, -1), np.exp(vector[-k:]))


@dataclass(frozen=True)
class _Parts:
    """What likelihood and gradient are made of, for each report and each cluster.

    Attributes
    ----------
    logs : float64 ndarray of shape (n,)
        Log likelihood of each report.
    mass : float64 ndarray of shape (k, n)
        Each cluster's share of the report.
    pull, push : float64 ndarray of shape (k, n)
        Sums over scales of that share divided by the total variance, and by its square.
    squared : float64 ndarray of shape (k, n)
        Squared distances.
    """

    logs: Floats
    mass: Floats
    pull: Floats
    push: Floats
    squared: Floats


def _parts(points: Floats, clusters: Clusters, law: NoiseLaw) -> _Parts:
    d = points.shape[1]
    squared = np.ascontiguousarray(squared_distances(points, clusters.means).T)
    # Of shape (k, scales).
    total = clusters.variances[:, None] + law.variances
    log_of_clusters = math.log1p(-law.background)
    log_shares = log_of_clusters + np.log(law.shares)
    log_peaks = log_shares - d / 2 * np.log(2 * math.pi * total)
    logs = log_peaks + np.log(clusters.weights)[:, None]
    ground = math.log(law.background) + law.floor if law.background > 0 else -math.inf
    shift = _shift(squared, total, logs, ground)
    mass, pull, push = (np.zeros_like(squared) for _ in range(3))
    term = np.empty_like(squared)
    # In place: these arrays are the largest here.
    for m in range(len(law.shares)):
        np.multiply(squared, -0.5 / total[:, [m]], out=term)
        term += logs[:, [m]]
        term -= shift
        np.exp(term, out=term)
        mass += term
        term /= total[:, [m]]
        pull += term
        term /= total[:, [m]]
        push += term
    whole = mass.sum(axis=0) + np.exp(ground - shift)
    return _Parts(np.log(whole) + shift, mass / whole, pull / whole, push / whole, squared)


def _shift(squared: Floats, total: Floats, logs: Floats, ground: float) -> Floats:
    """Return a constant for each report near its log likelihood, which keeps exponentials in range.

    The narrowest and the widest scale of the cluster that explains it best are enough.
    """
    ends = {0, total.shape[1] - 1}
    best = [(squared * (-0.5 / total[:, [m]]) + logs[:, [m]]).max(axis=0) for m in ends]
    shift: Floats = np.max(best, axis=0)
    if math.isfinite(ground):
        np.maximum(shift, ground, out=shift)
    return shift


def likelihood(
    vector: Floats, k: int, points: Floats, counts: Floats, law: NoiseLaw
) -> tuple[float, Floats]:
    """Mean log likelihood of counted reports and its gradient."""
    clusters = Clusters.of(vector, k)
    value = 0.0
    weights = np.zeros(k)
    means = np.zeros(clusters.means.shape)
    variances = np.zeros(k)
    for start in range(0, len(points), _BLOCK):
        here = points[start : start + _BLOCK]
        by = counts[start : start + _BLOCK]
        parts = _parts(here, clusters, law)
        value += float(by @ parts.logs)
        mass = parts.mass @ by
        pull = parts.pull * by
        weights += mass - clusters.weights * mass.sum()
        means += pull @ here - pull.sum(axis=1)[:, None] * clusters.means
        stretch = (parts.push * parts.squared) @ by - here.shape[1] * pull.sum(axis=1)
        variances += 0.5 * stretch * clusters.variances
    gradient = np.concatenate([weights, means.ravel(), variances])
    return value / counts.sum(), gradient / counts.sum()


def even_density(points: Floats, law: NoiseLaw) -> Floats:
    """Density of reports if points are spread evenly over the cube: float64 ndarray of shape (n,).

    A normal report of an even point has, on each axis, a difference of two normal probabilities.
    """
    from scipy.special import ndtr

    density = np.full(len(points), law.background_density)
    for share, variance in zip((1 - law.background) * law.shares, law.variances, strict=True):
        scaled = points / math.sqrt(variance)
        density += share * (ndtr(scaled) - ndtr(scaled - 1 / math.sqrt(variance))).prod(axis=1)
    return density


def information(
    vector: Floats, k: int, points: Floats, counts: Floats, law: NoiseLaw
) -> tuple[Floats, Floats]:
    """Summed score and Fisher information, by outer products of scores: shapes (p,) and (p, p)."""
    clusters = Clusters.of(vector, k)
    size = len(vector)
    score = np.zeros(size)
    products = np.zeros((size, size))
    for start in range(0, len(points), _BLOCK):
        here = points[start : start + _BLOCK]
        by = counts[start : start + _BLOCK]
        parts = _parts(here, clusters, law)
        mass = parts.mass - clusters.weights[:, None] * parts.mass.sum(axis=0)
        pull = parts.pull[:, None, :] * (here.T - clusters.means[:, :, None])
        stretch = parts.push * parts.squared - here.shape[1] * parts.pull
        variances = 0.5 * stretch * clusters.variances[:, None]
        # Gradient of the log likelihood of each report: shape (2k + kd, n).
        scores = np.concatenate([mass, pull.reshape(-1, len(here)), variances])
        score += scores @ by
        products += (scores * by) @ scores.T
    return score, products


# --- the fit --------------------------------------------------------------------------------------

# Reports for trying starts.
FEW = 4_000

# Reports for the best of the starts.
SOME = 24_000


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
    return np.clip(clusters.means[which] + normals * spread, 0, 1)


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
    for means in _starts(near, by, 2 * k, rng)[:4]:
        _, vector = climbed(means, 40)
        uniforms = rng.random(FEW)
        finer = drawn(vector, 2 * k, uniforms, rng.normal(size=(FEW, near.shape[1])))
        starts.append(kmeans(finer, k, seed=rng, tries=4, steps=30))
    # By what ``_climb`` minimised. The best three are followed further.
    tried = sorted((climbed(means, 25) for means in starts), key=itemgetter(0))
    followed = [_climb(vector, points, counts, law, prior, steps=50) for _, vector in tried[:3]]
    _, best = min(followed, key=itemgetter(0))
    return _climb(best, points, counts, law, prior, steps=150)[1]


def _starts(points: Floats, counts: Floats, k: int, rng: np.random.Generator) -> list[Floats]:
    """Means far apart among the reports, brought into the cube, and means anywhere in the cube, by
    turns.
    """
    near = np.clip(points, 0, 1)
    starts = []
    for _ in range(3):
        starts.append(rng.uniform(0.05, 0.95, (k, points.shape[1])))
        starts.append(kmeans(near, k, weights=counts, seed=rng, steps=10))
    return starts


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
    minimum = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(low, high, strict=True)),
        options={"maxiter": steps, "ftol": 1e-10},
    )
    return float(minimum.fun), np.asarray(minimum.x)


def _limits(k: int, size: int) -> tuple[Floats, Floats]:
    """Public limits of the parameters: weights within a factor e^6 of each other, means in the
    cube, variances per axis from 1e-5 to 0.15.
    """
    means = size - 2 * k
    even = np.full(k, -math.log(k))
    low = np.concatenate([even - 3, np.zeros(means), np.full(k, math.log(1e-5))])
    return low, np.concatenate([even + 3, np.ones(means), np.full(k, math.log(0.15))])


def _scored(
    vector: Floats, points: Floats, counts: Floats, law: NoiseLaw, prior: _Prior
) -> NormalClusters:
    """Fisher's scoring on all reports: the estimate and its covariance."""
    k = _clusters(vector, points)
    low, high = _limits(k, len(vector))
    precision = np.diag(prior.precision)
    for _ in range(3):
        score, known = information(vector, k, points, counts, law)
        step = np.linalg.solve(known + precision, score - precision @ (vector - prior.center))
        # No parameter moves by more than a quarter: far from the maximum the information misleads.
        vector = np.clip(vector + step / max(1.0, 4 * float(np.abs(step).max())), low, high)
    _, known = information(vector, k, points, counts, law)
    covariance = np.asarray(np.linalg.inv(known + precision), dtype=np.float64)
    return NormalClusters(vector, covariance, k)


def _clusters(vector: Floats, points: Floats) -> int:
    return int(len(vector) // (points.shape[1] + 2))
