"""Public first centres, far from one another and from the faces: they depend on k and d alone."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sfumato.arrays import Array

TRIES, HALVINGS = 30, 16


@lru_cache(maxsize=64)
def packing(k: int, d: int) -> Array:
    """Centres of k balls of one radius, as large as could be found, in [-1, 1]^d: float64 ndarray of shape (k, d).

    Su et al. 2016, section 3.1 (sphere packing): points at least a from the faces and 2a from one another, the largest a by bisection.
    The random trials come from a fixed seed.
    """
    low, high, best = 0.0, 1.0, np.zeros((k, d))
    for _ in range(HALVINGS):
        radius = (low + high) / 2
        found = _placed(k, d, radius)
        if found is None:
            high = radius
        else:
            low, best = radius, found
    best.flags.writeable = False
    return best


def _placed(k: int, d: int, radius: float) -> Array | None:
    rng, placed = np.random.default_rng([k, d]), np.empty((k, d))
    for i in range(k):
        trials = rng.uniform(radius - 1, 1 - radius, (TRIES, d))
        apart = ((trials[:, None, :] - placed[:i]) ** 2).sum(axis=2).min(
            axis=1, initial=np.inf
        ) >= 4 * radius**2
        if not apart.any():
            return None
        placed[i] = trials[int(apart.argmax())]
    return placed
