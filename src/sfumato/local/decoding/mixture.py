"""The likelihood of reports when points come in clusters: what a server knows of k normal clusters
under known noise.

A report has density b u + (1 - b) sum over j of p_j sum over m of c_m N(x; mu_j, (s_j + w_m) I),
with the noise of ``noiselaw``: shares c_m and variances w_m, background b of density u. Parameters
are one vector: k log weights, k d means, k log variances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.local.decoding.noiselaw import NoiseLaw
from sfumato.local.sampling.floats import Floats
from sfumato.plain_kmeans import squared_distances

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
    """Per report: the log likelihood, shape (n,); and for each cluster, shape (k, n), its share of
    the report, and the sums of that
    share over scales divided by the total variance and by its square; and the squared distances."""

    logs: Floats
    mass: Floats
    pull: Floats
    push: Floats
    squared: Floats


def _parts(points: Floats, clusters: Clusters, law: NoiseLaw) -> _Parts:
    d = points.shape[1]
    squared = np.ascontiguousarray(squared_distances(points, clusters.means).T)
    total = clusters.variances[:, None] + law.variances  # (k, m)
    logs = (
        math.log1p(-law.background)
        + np.log(law.shares)
        - d / 2 * np.log(2 * math.pi * total)
        + np.log(clusters.weights)[:, None]
    )
    ground = math.log(law.background) + law.floor if law.background > 0 else -math.inf
    # A constant for each report, which the nearest cluster's widest scale brings near its
    # likelihood, keeps exponentials in range.
    shift = np.max(
        [
            (squared * (-0.5 / total[:, [m]]) + logs[:, [m]]).max(axis=0)
            for m in {0, len(law.shares) - 1}
        ],
        axis=0,
    )
    if math.isfinite(ground):
        np.maximum(shift, ground, out=shift)
    mass, pull, push = (np.zeros_like(squared) for _ in range(3))
    term = np.empty_like(squared)
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


def likelihood(
    vector: Floats, k: int, points: Floats, counts: Floats, law: NoiseLaw
) -> tuple[float, Floats]:
    """Mean log likelihood of counted reports and its gradient."""
    clusters = Clusters.of(vector, k)
    value, weights, means, variances = 0.0, np.zeros(k), np.zeros(clusters.means.shape), np.zeros(k)
    for start in range(0, len(points), _BLOCK):
        part = slice(start, start + _BLOCK)
        here, by = points[part], counts[part]
        found = _parts(here, clusters, law)
        value += float(by @ found.logs)
        mass, pull = found.mass @ by, found.pull * by
        weights += mass - clusters.weights * mass.sum()
        means += pull @ here - pull.sum(axis=1)[:, None] * clusters.means
        variances += (
            0.5
            * ((found.push * found.squared) @ by - here.shape[1] * pull.sum(axis=1))
            * clusters.variances
        )
    return value / counts.sum(), np.concatenate([weights, means.ravel(), variances]) / counts.sum()


def information(
    vector: Floats, k: int, points: Floats, counts: Floats, law: NoiseLaw
) -> tuple[Floats, Floats]:
    """Summed score and Fisher information, by outer products of scores: shapes (p,) and (p, p)."""
    clusters = Clusters.of(vector, k)
    size = len(vector)
    score, found = np.zeros(size), np.zeros((size, size))
    for start in range(0, len(points), _BLOCK):
        part = slice(start, start + _BLOCK)
        here, by = points[part], counts[part]
        each = _scores(here, clusters, _parts(here, clusters, law))
        score += each @ by
        found += (each * by) @ each.T
    return score, found


def _scores(points: Floats, clusters: Clusters, parts: _Parts) -> Floats:
    """Gradient of the log likelihood of each report: float64 of shape (2k + kd, n)."""
    d = points.shape[1]
    by_weight = parts.mass - clusters.weights[:, None] * parts.mass.sum(axis=0)
    by_mean = parts.pull[:, None, :] * (points.T - clusters.means[:, :, None])
    by_variance = 0.5 * (parts.push * parts.squared - d * parts.pull) * clusters.variances[:, None]
    return np.concatenate([by_weight, by_mean.reshape(-1, len(points)), by_variance])
