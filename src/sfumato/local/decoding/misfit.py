"""Do reports look like those of k normal clusters? If not, how far are the centres off?

*The test.* Reports are simulated from the fitted clusters through the law of the noise, and
compared with the real ones: for each cluster, the reports nearest to it are cut into classes of
equal expected size along each axis, and by their distance, and a chi-square of two samples is taken
of each cut. Where the clusters are normal, the least of these probabilities, times their number
(Bonferroni), is at most ``RARE`` with that probability. Noise that is wider than the clusters hides
their shape from the test, and from the decoder as well.

*The remedy.* Where the test refuses, twice as many clusters are fitted, which can take the shape of
a cluster that is not normal. How far k-means on these lies from k-means on the others is how far
the presumption has moved the centres: an offset of unknown sign, whose square is added to the
variance.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.basics.kmeans import assign
from sfumato.local.bpm import BPM
from sfumato.local.decoding.likelihood import Clusters
from sfumato.local.decoding.normal_clusters import NormalClusters, drawn
from sfumato.local.decoding.posterior import Posterior
from sfumato.local.mechanism import Mechanism
from sfumato.local.sampling.floats import Floats

CLASSES = 8
"""Of a cut."""

FEWEST = 20
"""Reports in a class, at least."""

SIMULATED = 200_000
RARE = 1e-3


def looks_normal(
    reports: Floats,
    fitted: NormalClusters | Posterior,
    mechanism: Mechanism,
    rng: np.random.Generator,
) -> bool:
    """Whether the reports may come from the fitted clusters."""
    means = fitted.clusters.means
    simulated = _simulated(fitted, mechanism, rng)
    nearest = assign(reports, means)
    nearest_simulated = assign(simulated, means)
    least = 1.0
    cuts = 0
    for j, mean in enumerate(means):
        here = reports[nearest == j] - mean
        there = simulated[nearest_simulated == j] - mean
        if len(here) < CLASSES * FEWEST or len(there) < CLASSES * FEWEST:
            continue
        for one, other in zip(_measured(here), _measured(there), strict=True):
            least = min(least, _probability(one, other))
            cuts += 1
    return least * max(cuts, 1) > RARE


def _simulated(
    fitted: NormalClusters | Posterior, mechanism: Mechanism, rng: np.random.Generator
) -> Floats:
    """Reports of points drawn from the clusters, by the exact law of the noise: float64 of shape
    (SIMULATED, d).
    """
    d = mechanism.dimension
    uniforms = rng.random(SIMULATED)
    points = drawn(fitted.vector, fitted.k, uniforms, rng.normal(size=(SIMULATED, d)))
    directions = rng.normal(size=points.shape)
    directions /= np.sqrt((directions**2).sum(axis=1, keepdims=True))
    found = points + directions * _distances(mechanism, rng)[:, None]
    silent = rng.random(SIMULATED) < mechanism.background_probability
    if silent.any() and isinstance(mechanism, BPM):
        radius = float(mechanism.L)
        found[silent] = rng.uniform(-radius, 1 + radius, (int(silent.sum()), d))
    return np.asarray(found)


def _distances(mechanism: Mechanism, rng: np.random.Generator) -> Floats:
    """How far reports with signal lie from their points: float64 ndarray of shape (SIMULATED,)."""
    from scipy.special import gammainc, gammaincinv

    d = mechanism.dimension
    k = float(mechanism.epsilon)
    if not isinstance(mechanism, BPM):
        return np.asarray(rng.gamma(d, 1 / k, SIMULATED))
    # A uniform point of a ball whose radius is Gamma(d + 1), truncated to L: see ``local.bpm``.
    within = gammainc(d + 1, k * float(mechanism.L))
    radii = gammaincinv(d + 1, within * rng.random(SIMULATED)) / k
    return np.asarray(radii * rng.random(SIMULATED) ** (1 / d))


def _measured(away: Floats) -> list[Floats]:
    """What is cut: each coordinate, and the distance."""
    return [*away.T, np.sqrt((away**2).sum(axis=1))]


def _probability(one: Floats, other: Floats) -> float:
    """Of so large a chi-square, if both samples have one law; the second cuts the classes."""
    from scipy.special import chdtrc

    edges = np.quantile(other, np.linspace(0, 1, CLASSES + 1)[1:-1])
    counts = np.bincount(np.searchsorted(edges, one), minlength=CLASSES)
    other_counts = np.bincount(np.searchsorted(edges, other), minlength=CLASSES)
    both = counts + other_counts
    # Samples of two sizes: each count is scaled by the root of their quotient.
    scale = math.sqrt(len(other) / len(one))
    differences = np.square(counts * scale - other_counts / scale)
    statistic = float((differences[both > 0] / both[both > 0]).sum())
    return float(chdtrc(CLASSES - 1, statistic))


def split(clusters: Clusters) -> Floats:
    """Two means for each cluster, on either side of its own: float64 ndarray of shape (2k, d)."""
    k, d = clusters.means.shape
    step = np.zeros((k, d))
    # Along one axis each, by turns.
    step[np.arange(k), np.arange(k) % d] = np.sqrt(clusters.variances)
    both = np.concatenate([clusters.means - step, clusters.means + step])
    return np.asarray(np.clip(both, 0.02, 0.98))
