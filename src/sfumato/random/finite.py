"""Exact draws from a law on finitely many outcomes, by inversion of its enclosed cumulative law.

Guarantee: given uniform independent bits, outcome i is drawn with probability T(i) - T(i - 1),
T(-1) = 0, exactly.
Holds because: U is uniform in [0, 1), and its first ``FIRST_BITS`` bits are drawn at once.
``enclose(depth)`` gives integers low[i] <= T(i) 2**depth <= high[i]. Outcome i is named only where
all U that begin with the bits drawn lie between T(i - 1) and T(i), which two integer comparisons
show. Otherwise ``MORE_BITS`` bits follow, and T is enclosed as deep as U is known.
How often: more bits are needed once in 2**62 draws per outcome.
Termination: the open U shrink with every word.
Source: inversion with lazily known bits: Devroye 1986, II.2 and XV.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from sfumato.random.bits import Bits, Words
from sfumato.random.streams import Streams

Enclosure: TypeAlias = Callable[[int], tuple[list[int], list[int]]]
"""From a depth to the low and high ends of the cumulative probabilities; the last one is 1,
exactly.
"""

_CHUNK = 2**18


class FiniteSampler:
    """The table of one law.

    Parameters
    ----------
    enclose : callable
        From a depth to the low and high ends of the cumulative probabilities; the last one is 1,
        exactly.
    """

    FIRST_BITS = 63
    MORE_BITS = 48

    def __init__(self, enclose: Enclosure) -> None:
        self._enclose = enclose
        low, high = enclose(self.FIRST_BITS)
        # 63 bits, not 64: the last high end is 2^63, which 64-bit words hold, and a prefix plus one
        # cannot overflow.
        self._low = np.array(low, dtype=np.uint64)
        self._high = np.array(high, dtype=np.uint64)

    def draw(self, size: int, bits: Bits) -> np.typing.NDArray[np.int64]:
        """Return ``size`` independent outcomes, shape (size,); from streams, one of each."""
        if isinstance(bits, Streams):
            return self._draw_each(bits)
        drawn = np.empty(size, dtype=np.int64)
        for start in range(0, size, _CHUNK):
            self._fill(drawn[start : start + _CHUNK], bits)
        return drawn

    def _draw_each(self, streams: Streams) -> np.typing.NDArray[np.int64]:
        """Draw one outcome from each stream: what ``draw(1, stream)`` draws."""
        prefixes = streams.block(0)[:, 0] >> np.uint64(64 - self.FIRST_BITS)
        drawn, is_open = self._located(prefixes)
        for index, stream in streams.several(np.flatnonzero(is_open)):
            drawn[index] = self.draw(1, stream)[0]
        return drawn

    def _fill(self, out: np.typing.NDArray[np.int64], bits: Bits) -> None:
        prefixes = bits.words(out.size) >> np.uint64(64 - self.FIRST_BITS)
        out[:], is_open = self._located(prefixes)
        for index in np.flatnonzero(is_open):
            out[index] = self._refine(int(prefixes[index]), bits)

    def _located(
        self, prefixes: Words
    ) -> tuple[np.typing.NDArray[np.int64], np.typing.NDArray[np.bool_]]:
        """The only outcome that each prefix can lead to, and whether others are open after all."""
        # The first outcome whose high end exceeds the prefix is the only one that can contain all
        # of [prefix, prefix + 1): every outcome before it certainly ends at or below the prefix.
        outcomes = np.searchsorted(self._high, prefixes, side="right")
        return outcomes, prefixes + np.uint64(1) > self._low[outcomes]

    def _refine(self, prefix: int, bits: Bits) -> int:
        """Name the outcome of one U that its first bits leave open."""
        depth = self.FIRST_BITS
        while True:
            # U is refined, never drawn anew: drawing anew would favour outcomes that are decided
            # early.
            more = int(bits.words(1)[0]) >> (64 - self.MORE_BITS)
            prefix = prefix << self.MORE_BITS | more
            depth += self.MORE_BITS
            low, high = self._enclose(depth)
            outcome = bisect_right(high, prefix)
            if prefix + 1 <= low[outcome]:
                return outcome
