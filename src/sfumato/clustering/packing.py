"""Public first centres, far from one another and from the faces: they depend on k and d alone."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sfumato.basics.numbers import Array

TRIES = 30
HALVINGS = 16


@lru_cache(maxsize=64)
def packing(k: int, d: int) -> Array:
    """The centres of k equal balls in [-1, 1]^d, as large as could be found.

    The points are at least a from the faces and 2a from one another. Bisection finds the largest a
    for which random trials succeed. The trials come from a fixed seed.

    Source: Su et al. 2016, section 3.1 (sphere packing).

    Returns
    -------
    float64 ndarray of shape (k, d).
    """
    low = 0.0
    high = 1.0
    best = np.zeros((k, d))
    for _ in range(HALVINGS):
        radius = (low + high) / 2
        centres = _placed(k, d, radius)
        if centres is None:
            high = radius
        else:
            low = radius
            best = centres
    # The cache hands out this array again and again.
    best.flags.writeable = False
    return best


def _placed(k: int, d: int, radius: float) -> Array | None:
    """Centres of k balls of this radius; None if the trials find no room for them."""
    rng = np.random.default_rng([k, d])
    placed = np.empty((k, d))
    for i in range(k):
        trials = rng.uniform(radius - 1, 1 - radius, (TRIES, d))
        squared = ((trials[:, None, :] - placed[:i]) ** 2).sum(axis=2)
        is_apart = squared.min(axis=1, initial=np.inf) >= 4 * radius**2
        if not is_apart.any():
            return None
        placed[i] = trials[int(is_apart.argmax())]
    return placed
