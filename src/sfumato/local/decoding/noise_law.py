"""The noise of reports as a mixture of normals, which is easily convolved with clusters.

exp(-k |z|) is a mixture of normals of all scales exactly; the law inside a ball, exp(-k r) - exp(-k
L), nearly so. A few scales are fitted to its density by non-negative least squares. Used for
decoding only: no privacy rests on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.local.bpm import BPM
from sfumato.local.mechanism import Mechanism
from sfumato.local.sampling.floats import Floats

_GRID = 240
_SCALES = 12
_LEAST_SHARE = 1e-4
_SUM_WEIGHT = 10.0
"""How heavily the fit weighs that shares add up to 1."""


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
    log_normal = log_normal - distances[:, None] ** 2 / (2 * variances)
    kept = mass > 1e-9
    # The quotient of densities should be 1 everywhere, weighed by mass.
    quotients = np.exp(np.minimum(log_normal[kept] - log_density[kept, None], 50))
    design = quotients * np.sqrt(mass[kept])[:, None]
    rows = np.vstack([design, np.full(_SCALES, _SUM_WEIGHT)])
    shares, _ = nnls(rows, np.append(np.sqrt(mass[kept]), _SUM_WEIGHT))
    used = shares > _LEAST_SHARE
    return shares[used] / shares[used].sum(), variances[used]
