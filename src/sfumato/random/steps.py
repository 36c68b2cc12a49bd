"""Exact draws from a law on finitely many outcomes whose cumulative probabilities are known between integers at any depth.

Guarantee: given uniform independent bits, outcome i is drawn with probability T(i) - T(i - 1), T(-1) = 0, exactly.
Holds because: U is uniform in [0, 1), and ``depth`` bits of it are drawn at first. ``enclose(depth)`` gives integers
low[i] <= T(i) 2**depth <= high[i]. The outcome is named only where all U that begin with the bits drawn lie between T(i - 1)
and T(i), which two integer comparisons show; else ``word`` more bits are drawn, and T is enclosed as deep as U is known.
How often: at the usual depth of 63, once in 2**62 draws per outcome. Termination: the open U shrink with every word.
Source: inversion with lazily known bits: Devroye 1986, II.2 and XV.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato.random.bits import Bits

Enclosure: TypeAlias = Callable[[int], tuple[list[int], list[int]]]
_CHUNK = 2**18


class Steps:
    """The table of one law.

    Parameters
    ----------
    enclose : callable
        From a depth to the low and high ends of the cumulative probabilities; the last one is 1, exactly.
    depth, word : int
        How many bits begin a draw, and how many continue one. Tests shrink them to run over all bit strings.
    """

    def __init__(self, enclose: Enclosure, depth: int = 63, word: int = 48) -> None:
        self._enclose, self._depth, self._word = enclose, depth, word
        low, high = enclose(depth)
        self._low, self._high = np.array(low, dtype=np.uint64), np.array(high, dtype=np.uint64)

    def draw(self, size: int, bits: Bits) -> NDArray[np.int64]:
        """Return ``size`` independent outcomes, shape (size,)."""
        drawn = np.empty(size, dtype=np.int64)
        for start in range(0, size, _CHUNK):
            self._fill(drawn[start : start + _CHUNK], bits)
        return drawn

    def _fill(self, out: NDArray[np.int64], bits: Bits) -> None:
        prefixes = bits.words(out.size) >> np.uint64(64 - self._depth)
        out[:] = np.searchsorted(self._high, prefixes, side="right")
        for index in np.flatnonzero(prefixes + np.uint64(1) > self._low[out]):
            out[index] = self._deepen(int(prefixes[index]), bits)

    def _deepen(self, prefix: int, bits: Bits) -> int:
        depth = self._depth
        while True:
            more = int(bits.words(1)[0]) >> (64 - self._word)
            prefix, depth = prefix << self._word | more, depth + self._word
            low, high = self._enclose(depth)
            outcome = bisect_right(high, prefix)
            if prefix + 1 <= low[outcome]:
                return outcome
