"""Whether reports say enough to place clusters, and where centres lie that no report places.

Fits by maximum likelihood presume that reports say much. With little signal their clusters are
noise, and centres that are spread evenly over the cube, without data, have a smaller sum of
squares. So the likelihood of the fit is compared with that of even points. If it is not far beyond
what noise alone reaches, draws from the ``posterior`` take the place of the fit. If the posterior
does not promise much more than even centres, these are taken.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sfumato.basics.kmeans import kmeans, sse
from sfumato.local.decoding.likelihood import even_density, likelihood
from sfumato.local.decoding.noise_law import NoiseLaw
from sfumato.local.decoding.normal_clusters import NormalClusters
from sfumato.local.decoding.posterior import Posterior
from sfumato.local.sampling.floats import Floats

PLAIN = 20.0
PLAIN_FOR_EACH = 3.0
"""Nats beyond even points, at first and for each parameter, that no noise reaches: twice the log
of a likelihood ratio has a mean of one for each parameter.
"""

QUICK = 20_000
"""Reports of a first look."""

DECISIVE = 30.0
"""Nats of evidence from which on maximum likelihood is as good as the posterior."""

PROMISE = 1.5
"""How many times smaller than that of even centres the expected sum of squares must be.

Of centres fitted to noise the posterior promises more than it keeps: it knows the mean of all
points long before it knows any cluster.
"""

STRUCTURE = 10.0
PROMISE_WITH_STRUCTURE = 1.25
"""From so many nats of evidence on, a smaller promise is enough."""

EVEN_POINTS = 2**12


def says_much(reports: Floats, fitted: NormalClusters, law: NoiseLaw) -> bool:
    """Whether reports are so much likelier by the fitted clusters than by even points that noise
    cannot be the reason.
    """
    enough = PLAIN + PLAIN_FOR_EACH * len(fitted.vector)
    # Most often a part of many reports says enough, and the rest need not be looked at.
    step = max(1, len(reports) // QUICK)
    if step > 1 and _gain(reports[::step], fitted, law) > enough:
        return True
    return _gain(reports, fitted, law) > enough


def _gain(reports: Floats, fitted: NormalClusters, law: NoiseLaw) -> float:
    """Nats by which the fitted clusters explain reports better than even points."""
    mean, _ = likelihood(fitted.vector, fitted.k, reports, np.ones(len(reports)), law)
    even = np.log(np.maximum(even_density(reports, law), np.finfo(float).tiny))
    return len(reports) * mean - float(even.sum())


def shows_structure(posterior: Posterior, points: Floats, centers: Floats) -> bool:
    """Whether to believe centres, which are the best for points of the posterior."""
    least = PROMISE if posterior.evidence < STRUCTURE else PROMISE_WITH_STRUCTURE
    even = spread_evenly(posterior.k, points.shape[1])
    return sse(points, even) >= least * sse(points, centers)


@lru_cache(maxsize=32)
def spread_evenly(k: int, d: int) -> Floats:
    """Centres of k-means on even points of the unit cube: float64 ndarray of shape (k, d).

    Several mirror images are as good. Of these, the one is taken whose farthest centres lie at the
    upper ends of the axes.
    """
    from scipy.stats import qmc

    size = max(EVEN_POINTS, 1 << (16 * k - 1).bit_length())
    even = np.random.default_rng(0).random((size, d))
    if d <= qmc.Sobol.MAXDIM:
        even = qmc.Sobol(d, scramble=False).random(size) + 0.5 / size
    centers = kmeans(even, k, seed=0, tries=8)
    skewed = ((centers - 0.5) ** 3).sum(axis=0)
    found = np.where(skewed < 0, 1 - centers, centers)
    found.flags.writeable = False
    return np.asarray(found)
