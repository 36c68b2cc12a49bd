"""The noise of reports as a mixture of normals, which convolves with a cluster's own spread in
closed form.

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

_GRID, _SCALES, _LEAST = 240, 12, 1e-4


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


def noise_law(mechanism: Mechanism) -> NoiseLaw:
    """Describe the noise of BPM or of the multivariate Laplace mechanism."""
    d, k = mechanism.dimension, float(mechanism.epsilon)
    reach = float(mechanism.L) if isinstance(mechanism, BPM) else math.inf
    spread = math.sqrt(d + 1) / k
    far = min(reach, (d + 12 * math.sqrt(d) + 12) / k)
    radii = (np.arange(_GRID) + 0.5) / _GRID * far
    with np.errstate(divide="ignore"):
        log_density = -k * radii + np.log(-np.expm1(-k * (reach - radii)))
    log_mass = log_density + (d - 1) * np.log(radii)
    mass = np.exp(log_mass - log_mass.max())
    mass /= mass.sum()
    # The normaliser of the density over d-dimensional space, on the same grid.
    log_ball = math.log(2) + d / 2 * math.log(math.pi) - math.lgamma(d / 2)
    log_density -= (
        log_mass.max()
        + math.log(np.exp(log_mass - log_mass.max()).sum())
        + math.log(far / _GRID)
        + log_ball
    )
    top = min(spread, reach / math.sqrt(d + 2))
    # The scales of exp(-k |z|) are Gamma((d + 1) / 2): this is how far they reach on a logarithmic
    # axis.
    wide = math.sqrt(2 / (d + 1))
    variances = top**2 * np.geomspace(math.exp(-6 * wide), math.exp(3.4 * wide), _SCALES)
    log_normal = -d / 2 * np.log(2 * math.pi * variances) - radii[:, None] ** 2 / (2 * variances)
    kept = mass > 1e-9
    design = (
        np.exp(np.minimum(log_normal[kept] - log_density[kept, None], 50))
        * np.sqrt(mass[kept])[:, None]
    )
    from scipy.optimize import nnls

    shares, _ = nnls(
        np.vstack([design, np.full(_SCALES, 10.0)]), np.append(np.sqrt(mass[kept]), 10.0)
    )
    used = shares > _LEAST
    shares, variances = shares[used] / shares[used].sum(), variances[used]
    # The total variance is what tells centres apart: it is made exact.
    variances *= float((mass * radii**2).sum()) / d / float(shares @ variances)
    floor = -d * math.log(1 + 2 * reach) if math.isfinite(reach) else -math.inf
    return NoiseLaw(shares, variances, mechanism.background_probability, floor)
