"""The likelihood of reports of normal clusters under known noise, and its derivatives.

A report has density b u + (1 - b) sum over j of p_j sum over m of c_m N(x; mu_j, (s_j + w_m) I),
with the noise of ``noise_law``: shares c_m and variances w_m, background b of density u. Parameters
are one vector: k log weights, k d means, k log variances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.basics.kmeans import squared_distances
from sfumato.local.decoding.noise_law import NoiseLaw
from sfumato.local.sampling.floats import Floats

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
    log_shares = math.log1p(-law.background) + np.log(law.shares)
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
    """A constant for each report near its log likelihood, which keeps exponentials in range.

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
        found = _parts(here, clusters, law)
        value += float(by @ found.logs)
        mass = found.mass @ by
        pull = found.pull * by
        weights += mass - clusters.weights * mass.sum()
        means += pull @ here - pull.sum(axis=1)[:, None] * clusters.means
        stretch = (found.push * found.squared) @ by - here.shape[1] * pull.sum(axis=1)
        variances += 0.5 * stretch * clusters.variances
    gradient = np.concatenate([weights, means.ravel(), variances])
    return value / counts.sum(), gradient / counts.sum()


def even_density(points: Floats, law: NoiseLaw) -> Floats:
    """Density of reports if points are spread evenly over the cube: float64 ndarray of shape (n,).

    A normal report of an even point has, on each axis, a difference of two normal probabilities.
    """
    from scipy.special import ndtr

    found = np.full(len(points), law.background_density)
    for share, variance in zip((1 - law.background) * law.shares, law.variances, strict=True):
        scaled = points / math.sqrt(variance)
        found += share * (ndtr(scaled) - ndtr(scaled - 1 / math.sqrt(variance))).prod(axis=1)
    return found


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
        scores = _scores(here, clusters, _parts(here, clusters, law))
        score += scores @ by
        products += (scores * by) @ scores.T
    return score, products


def _scores(points: Floats, clusters: Clusters, parts: _Parts) -> Floats:
    """Gradient of the log likelihood of each report: float64 of shape (2k + kd, n)."""
    d = points.shape[1]
    by_weight = parts.mass - clusters.weights[:, None] * parts.mass.sum(axis=0)
    by_mean = parts.pull[:, None, :] * (points.T - clusters.means[:, :, None])
    stretch = parts.push * parts.squared - d * parts.pull
    by_variance = 0.5 * stretch * clusters.variances[:, None]
    return np.concatenate([by_weight, by_mean.reshape(-1, len(points)), by_variance])
