"""Table inversion on 16-bit lanes: exact, because whatever a lane leaves open is settled with further bits.

Guarantee: given uniform independent bits, a draw from ``Sampler(Law(power, spread))`` has the law P(x) proportional to
f(x) = exp(-abs(x)**power / spread) on the integers: the law itself, not an approximation of it.

Holds because
    *Inversion.* A rung M >= 0 has the cumulative law T, an irrational list known by ``ladder`` between integers at any depth.
    A lane holds a side bit and the first 15 bits of a uniform U in [0, 1); ``decide`` names the rung M whose interval
    [T(M-1), T(M)) certainly contains all of the dyadic interval of U that is still possible, or says that it is open.
    An open U gets 48 more bits, and 48 more, with T enclosed as deep as U is known. So M is the rung that contains U.
    *Narrow laws* (t = 1). Rung 0 counts f(0)/2, rung M counts f(M), and x = +M or -M by the side bit: P(x) ~ f(x).
    *Wide laws* (t = 2**shift). The integers of a side are the blocks tG <= y < t(G+1), with x = y or x = -1 - y, so that
    f(t(G+1)) <= f(x) <= f(tG). Rung M >= 1 stands for the part of block M - 1 that lies under its lowest value f(tM):
    there the place in the block is uniform. Rung 0, weight 1, stands for everything above that in all blocks at once:
    draw V uniform in [0, 1), the one block with f(t(G+1)) <= V < f(tG), a uniform place in it, and accept if V < f(x),
    else start afresh. A trial gives x with weight f(t(G+1))/t + (f(x) - f(t(G+1)))/t = f(x)/t: P(x) ~ f(x).
    *Comparisons* of V are made in floating point only where they hold with a margin of 2**-40 relative and 2**-50
    absolute in -log V; they assume that ``log`` and ``sqrt`` of the platform are right to 2**-42, ten bits worse than what
    IEEE libraries give. All others are made between integers, by ``exp_minus``, with as many bits of V as it takes.

How often: of all lanes fewer than 4 in 100 are open (those that straddle a threshold, the tail, rung 0 of a wide law);
of all U fewer than one in 2**36 are still open after one word, and need thresholds deeper than the table's 63 bits. Both
are asserted by the tests. A trial is rejected with probability below 1 in 100.
Termination: at depth n the open U have mass at most the sum of the thresholds' enclosures and the tail that the list leaves
out, a polynomial in n times 2**-(2n/3); likewise V is open only within an enclosure of one of a few values, plus V < 2**-n.
So every loop ends with probability 1, and after few words on average. A value beyond int64 would
wrap; under the limit on scales, 2**48, it has probability below exp(-2**14).
Not covered: time is not constant.
Source: inversion with lazily known bits: Devroye 1986, II.2 and XV; X = U + tV: Canonne, Kamath, Steinke 2020, Alg. 2.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat
from typing import cast

import numpy as np
from numpy.typing import NDArray

from sfumato.random.bits import Bits, Words
from sfumato.random.enclosure import Law, exp_minus, ladder

_CHUNK = 2**15
_FEW = 8  # draws that are made without array arithmetic, which is faster
_OPEN = -(2**15)
_RELATIVE, _ABSOLUTE = 2.0**-40, 2.0**-50

Integers = NDArray[np.int64]
Lanes = NDArray[np.uint16]


@dataclass(frozen=True, slots=True)
class Grain:
    """How many bits are looked at together. Tests shrink these to run over all bit strings; the code stays the same.

    ``lane`` bits start a draw, ``word`` bits continue one, and blocks are chosen so that the law, measured in blocks,
    has a scale below 2**knee.
    """

    lane: int = 16
    word: int = 48
    knee: int = 7

    def lanes(self, bits: Bits, count: int) -> Lanes:
        """Return ``count`` independent uniform integers below 2**lane, four from a word."""
        lanes = bits.words(-(-count // 4)).view(np.uint16)[:count]
        if self.lane < 16:
            lanes >>= np.uint16(16 - self.lane)
        return lanes

    def more(self, bits: Bits, count: int) -> Words:
        """Return ``count`` independent uniform integers below 2**word."""
        words = bits.words(count)
        words >>= np.uint64(64 - self.word)
        return words

    def places(self, bits: Bits, count: int, shift: int) -> Lanes | Integers:
        """Return ``count`` independent uniform integers below 2**shift."""
        if shift <= 16 and count > 16:
            lanes = bits.words(-(-count // 4)).view(np.uint16)[:count]
            lanes >>= np.uint16(16 - shift)
            return lanes
        words = bits.words(count)
        words >>= np.uint64(64 - shift)
        return words.view(np.int64)

    def few(self, bits: Bits, count: int, shift: int) -> Iterable[tuple[int, int]]:
        """Return lanes and places, as ``lanes`` and then ``places`` would, in plain integers."""
        words = bits.words(2 * count if shift else count).tolist()
        lanes = [(word & 0xFFFF) >> 16 - self.lane for word in words[:count]]
        return zip(
            lanes,
            [word >> 64 - shift for word in words[count:]] if shift else repeat(0),
            strict=False,
        )


PRODUCTION = Grain()


class Sampler:
    """The table of one law. Building it takes milliseconds; it holds about 200 KiB and may be shared by threads."""

    def __init__(self, law: Law, grain: Grain = PRODUCTION) -> None:
        self.law, self.grain = law, grain
        scale = math.floor(law.spread) if law.power == 1 else math.isqrt(math.floor(law.spread / 2))
        self.shift = max(0, scale.bit_length() - grain.knee)
        self._depth = grain.lane - 1 + grain.word
        low, high = ladder(law, self.shift, self._depth)
        # One rung more, which no prefix can be below, stands for the tail: always open.
        self._low, self._high = (
            np.array([*low, 0], dtype=np.uint64),
            np.array(high, dtype=np.uint64),
        )
        self._direct = self._lane_table()

    def draw(self, size: int, bits: Bits) -> Integers:
        """Return ``size`` independent draws, shape (size,)."""
        if size <= _FEW:
            return np.array(self._few(size, bits), dtype=np.int64)
        drawn = np.empty(size, dtype=np.int64)
        for start in range(0, size, _CHUNK):
            self._fill(drawn[start : start + _CHUNK], bits)
        return drawn

    def _few(self, size: int, bits: Bits) -> list[int]:
        """Do what ``_fill`` does, in plain integers."""
        drawn = list[int]()
        while len(drawn) < size:
            for lane, place in self.grain.few(bits, size - len(drawn), self.shift):
                value = self._try(lane, place, bits)
                if value is not None:
                    drawn.append(value)
        return drawn

    def _try(self, lane: int, place: int, bits: Bits) -> int | None:
        """Do what ``_trial`` does for one draw, in plain integers; None if it is rejected."""
        found = self._direct.item(lane)
        return (
            found << self.shift | place if found != _OPEN else self._settle_one(lane, place, bits)
        )

    def _fill(self, out: Integers, bits: Bits) -> None:
        rejected = self._trial(out, bits)
        while rejected.size:
            again = np.empty(rejected.size, dtype=np.int64)
            still = self._trial(again, bits)
            out[rejected] = again
            rejected = rejected[still]

    def _trial(self, out: Integers, bits: Bits) -> NDArray[np.intp]:
        """Fill ``out`` with one trial each, and return the positions of the trials that were rejected."""
        lanes = self.grain.lanes(bits, out.size)
        found = self._direct.take(lanes)
        out[:] = found
        if self.shift:
            out <<= np.int64(self.shift)
            out |= self.grain.places(bits, out.size, self.shift)
        opened: NDArray[np.intp] = (found == _OPEN).nonzero()[0]
        if not opened.size:
            return opened
        settled, accepted = self._settle(lanes[opened], out[opened], bits)
        out[opened] = settled
        rejected: NDArray[np.intp] = opened[~accepted]
        return rejected

    # -- inversion: lanes to rungs

    def _lane_table(self) -> NDArray[np.int16]:
        """Tabulate what each lane decides: the value, or the block, or _OPEN."""
        half = 1 << self.grain.lane - 1
        starts = np.arange(half, dtype=np.uint64) << np.uint64(self.grain.word)
        rungs, closed = self._decide(starts, 1 << self.grain.word)
        if self.shift:
            closed &= rungs > 0
        table = np.full(2 * half, _OPEN, dtype=np.int16)
        table[:half][closed] = self._signed(rungs, np.False_)[closed]
        table[half:][closed] = self._signed(rungs, np.True_)[closed]
        return table

    def _decide(self, prefixes: Words, width: int) -> tuple[Integers, NDArray[np.bool_]]:
        """Name the rungs that the intervals [prefix, prefix + width) start in, and whether they lie inside them whole."""
        rungs = np.searchsorted(self._high, prefixes, side="right")
        return rungs, prefixes + np.uint64(width) <= self._low[rungs]

    def _signed(self, rungs: Integers, negative: NDArray[np.bool_] | np.bool_) -> Integers:
        """Return the value on a side; for a wide law the block, counted down from -1 on the negative side."""
        return cast(Integers, np.where(negative, -rungs, rungs - 1 if self.shift else rungs))

    def _settle(
        self, lanes: Lanes, drawn: Integers, bits: Bits
    ) -> tuple[Integers, NDArray[np.bool_]]:
        """Give open lanes further bits: the values drawn, and whether the trials are accepted."""
        word, side = self.grain.word, self.grain.lane - 1
        prefixes = (lanes & np.uint16((1 << side) - 1)).astype(np.uint64) << np.uint64(
            word
        ) | self.grain.more(bits, lanes.size)
        rungs, closed = self._decide(prefixes, 1)
        for index in np.flatnonzero(~closed):
            rungs[index] = self._deepen(int(prefixes[index]), bits)
        negative = lanes >> np.uint16(side) != 0
        accepted = np.ones(lanes.size, dtype=np.bool_)
        signed = self._signed(rungs, negative)
        if not self.shift:
            return signed, accepted
        places = drawn & ((1 << self.shift) - 1)
        settled = signed << self.shift | places
        above = np.flatnonzero(rungs == 0)
        if above.size:
            settled[above], accepted[above] = self._above(negative[above], places[above], bits)
        return settled, accepted

    def _settle_one(self, lane: int, place: int, bits: Bits) -> int | None:
        """Do what ``_settle`` does for one lane; None if the trial is rejected."""
        word, side = self.grain.word, self.grain.lane - 1
        prefix = (lane & (1 << side) - 1) << word | int(self.grain.more(bits, 1)[0])
        rung, negative = (
            int(np.searchsorted(self._high, np.uint64(prefix), side="right")),
            lane >> side,
        )
        if prefix + 1 > self._low.item(rung):
            rung = self._deepen(prefix, bits)
        if not self.shift:
            return -rung if negative else rung
        if rung:
            return (-rung if negative else rung - 1) << self.shift | place
        values, accepted = self._above(np.array([bool(negative)]), np.array([place]), bits)
        return int(values[0]) if accepted[0] else None

    def _deepen(self, prefix: int, bits: Bits) -> int:
        """Find the rung of one U that its first bits leave open."""
        depth = self._depth
        while True:
            prefix, depth = self._lengthen(prefix, depth, bits)
            low, high = ladder(self.law, self.shift, depth)
            rung = bisect_right(high, prefix)
            if rung < len(low) and prefix + 1 <= low[rung]:
                return rung

    def _lengthen(self, prefix: int, depth: int, bits: Bits) -> tuple[int, int]:
        word = self.grain.word
        return prefix << word | int(self.grain.more(bits, 1)[0]), depth + word

    # -- rung 0 of a wide law: the part of every block above its lowest value

    def _above(
        self, negative: NDArray[np.bool_], places: Integers, bits: Bits
    ) -> tuple[Integers, NDArray[np.bool_]]:
        """Draw V, the block that V chooses, and whether V lies under the law there."""
        draws = self.grain.more(bits, places.size)
        near, far = self._reach(draws)
        width = float(1 << self.shift)
        blocks = np.floor(near / width)
        certain = blocks == np.floor(far / width)
        values = self._place(blocks.astype(np.int64), negative, places)
        distances = np.abs(values).astype(np.float64)
        accepted = distances < near
        for index in np.flatnonzero(~(certain & (accepted | (distances >= far)))):
            values[index], accepted[index] = self._above_exactly(
                int(draws[index]), bool(negative[index]), int(places[index]), bits
            )
        return values, accepted

    def _place(self, blocks: Integers, negative: NDArray[np.bool_], places: Integers) -> Integers:
        return cast(Integers, np.where(negative, ~blocks, blocks) << self.shift | places)

    def _reach(self, draws: Words) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bound, from below and above, the distance at which f falls to V, for all V in [draw, draw + 1) / 2**word."""
        unit = 2.0**-self.grain.word
        with np.errstate(divide="ignore"):
            least, most = -np.log((draws + np.uint64(1)) * unit), -np.log(draws * unit)
        least = np.maximum(least * (1 - _RELATIVE) - _ABSOLUTE, 0.0)
        most = most * (1 + _RELATIVE) + _ABSOLUTE
        spread = float(self.law.spread)
        if self.law.power == 1:
            return least * spread, most * spread
        return np.sqrt(least * spread), np.sqrt(most * spread)

    def _above_exactly(
        self, prefix: int, negative: bool, place: int, bits: Bits
    ) -> tuple[int, bool]:
        """Do what ``_above`` does for one V, between integers, with as many bits of V as it takes."""
        depth = self.grain.word
        while True:
            block = self._block(prefix, depth)
            if block is not None:
                value = (~block if negative else block) << self.shift | place
                under = self._under(prefix, depth, abs(value))
                if under is not None:
                    return value, under
            prefix, depth = self._lengthen(prefix, depth, bits)

    def _block(self, prefix: int, depth: int) -> int | None:
        """Find the largest G with V < f(tG), or None while V is not known well enough."""
        least, beyond = 0, 1
        while under := self._under(prefix, depth, beyond << self.shift):
            least, beyond = beyond, 2 * beyond
        while under is not None and beyond - least > 1:
            middle = (least + beyond) // 2
            under = self._under(prefix, depth, middle << self.shift)
            least, beyond = (middle, beyond) if under else (least, middle)
        return None if under is None else least

    def _under(self, prefix: int, depth: int, distance: int) -> bool | None:
        """Say whether V < f(distance), or None while V is not known well enough."""
        low, high = exp_minus(self.law.exponent(distance), depth)
        if prefix + 1 <= low:
            return True
        return False if prefix >= high else None
