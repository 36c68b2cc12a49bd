"""Noise that repeats, for tests of your own code.

What is released or reported under it is stamped as not private.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sfumato.errors import explained
from sfumato.random.bits import PublicSeed, override

__all__ = ["deterministic"]


@contextmanager
@explained
def deterministic(seed: int) -> Iterator[None]:
    """Draw all noise from a public seed while the block runs.

    Every guarantee made in the block is void, and says so.

    Parameters
    ----------
    seed : int
        The same seed gives the same noise.

    Releases and streams are stamped in their guarantee. Local reports are stamped in their label,
    in files as well, and a collector made outside the block refuses them; ``PrivateKMeans`` fitted
    in it says so in ``guarantee_``. An array that ``perturb`` returns holds no stamp: the
    mechanism's ``guarantee`` says "not private" as long as the block runs.

    >>> import numpy as np, sfumato as sf
    >>> src = sf.source(np.zeros((3, 1)), sf.Domain(x=sf.Interval(0, 4)), name="doc")
    >>> with deterministic(7):
    ...     release = sf.Publisher(src, budget="1").release(sf.Histogram("x", bins=4), epsilon="1")
    >>> release.guarantee.private
    False
    """
    with override(PublicSeed(seed)):
        yield
