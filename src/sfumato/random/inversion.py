"""Laplace and Gaussian noise by a table: 16 bits decide most draws, further bits the rest.

*Enclosures.* Exponentials and cumulative laws lie between two integers, for exact comparisons with
random bits. An enclosure at ``depth`` bits is a pair of integers (low, high) with low <= value *
2**depth <= high. Every rounding is directed: each product, quotient and remainder is rounded down
in ``low`` and up in ``high``. So the true value is always inside, and nothing rests on an analysis
of rounding errors. The guard bits only keep the pairs narrow. How to read the code: ``a >> n`` and
``a // b`` round down; ``-(-a >> n)`` and ``-(-a // b)`` round up.

*The sampler.*

Guarantee: given uniform independent bits, a draw from ``Sampler(Law(power, spread))`` has the law
P(x) proportional to f(x) = exp(-abs(x)**power / spread) on the integers: the law itself, not an
approximation of it.

Holds because
    *Inversion.* Let T(0) < T(1) < ... be the cumulative law of an integer M >= 0. The T are
    irrational, and ``cumulative_law`` encloses them between integers at any depth. A *lane*, a
    quarter of a word, holds a side bit and the first 15 bits of a uniform U in [0, 1). ``_locate``
    names the M whose interval [T(M-1), T(M)) certainly contains all of the dyadic interval of U
    that is still possible, or says that U is *open*. An open U gets 48 more bits, and 48 more, with
    T enclosed as deep as U is known. So M is the interval that contains U.
    *Narrow laws* (t = 1). Interval 0 has weight f(0)/2 and interval M has f(M); x is +M or -M by
    the side bit. So P(x) is proportional to f(x).
    *Wide laws* (t = 2**shift). The integers of a side are cut into blocks tG <= y < t(G+1), with x
    = y or x = -1 - y, so that f(t(G+1)) <= f(x) <= f(tG). Interval M >= 1 stands for the
    *rectangle* of block M - 1, the part that lies under its lowest value f(tM): there the offset in
    the block is uniform. Interval 0, of weight 1, stands for the
    *remainder*, everything above the rectangles of all blocks at once: draw V uniform in [0, 1),
    the one block with f(t(G+1)) <= V < f(tG), a uniform offset in it, and accept if V < f(x), else
    start afresh. A trial gives x with weight f(t(G+1))/t + (f(x) - f(t(G+1)))/t = f(x)/t. So P(x)
    is proportional to f(x).
    *Comparisons* of V are made in floating point only where they hold with a margin of 2**-40
    relative and 2**-50 absolute in -log V. They assume that ``log`` and ``sqrt`` of the platform
    are right to 2**-42, ten bits worse than what IEEE libraries give. All others are made between
    integers, by ``exp_minus``, with as many bits of V as it takes.

How often: fewer than 4 in 100 lanes are open (those that straddle some T, the tail, the remainder
of a wide law). After one word fewer than one U in 2**36 is still open, and needs T deeper than the
table's 63 bits. The tests assert both. A trial is rejected with probability below 1 in 100.
Termination: at depth n the open U have mass at most the sum of the widths of the enclosures and of
the tail that the list leaves out, a polynomial in n times 2**-(2n/3). Likewise V is open only
within an enclosure of one of a few values, or where V < 2**-n. So every loop ends with probability
1, and after few words on average.
Range: a value beyond int64 would wrap; under the limit on scales, 2**48, it has probability below
exp(-2**14).
Not covered: time is not constant.
Source: inversion with lazily known bits: Devroye 1986, II.2 and XV; X = U + tV: Canonne, Kamath,
Steinke 2020, Alg. 2.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias, cast

import msgspec
import numpy as np

from sfumato.random.bits import Bits, Words
from sfumato.random.streams import Streams

# --- enclosures -----------------------------------------------------------------------------------

Pair: TypeAlias = tuple[int, int]
"""An enclosure: (low, high)."""

_GUARD_BITS = 64


class Law(msgspec.Struct, frozen=True):
    """The shape of a symmetric law on the integers, P(x) proportional to exp(-exponent(abs(x))).

    ``power`` 1 and ``spread`` b is the discrete Laplace law of scale b; ``power`` 2 and ``spread``
    2 sigma**2 is the discrete Gaussian law.
    """

    power: int
    spread: Fraction

    def exponent(self, distance: int) -> Fraction:
        """Return distance**power / spread."""
        return Fraction(distance**self.power) / self.spread


@lru_cache(maxsize=1024)
def exp_minus(exponent: Fraction, depth: int) -> Pair:
    """Enclose exp(-exponent), exponent >= 0, at ``depth`` bits; exp(0) is enclosed by itself.

    Method: halve the exponent until it is below 1/16, sum the positive series of exp, take the
    reciprocal, square back.
    """
    halvings = max(0, int(16 * exponent).bit_length())
    # Each squaring doubles the relative width of the pair, so each halving gets a bit of its own.
    work = depth + _GUARD_BITS + halvings
    unity = 1 << work
    exp_low, exp_high = _exp_small(exponent / 2**halvings, work)
    # The reciprocal falls as its argument grows, so the ends change places.
    low = unity * unity // exp_high
    high = -(-unity * unity // exp_low)
    for _ in range(halvings):
        low = low * low >> work
        high = -(-high * high >> work)
    spare = work - depth
    # exp(-exponent) is at most 1, whatever rounding up has made of it.
    return low >> spare, min(-(-high >> spare), 1 << depth)


def _exp_small(small: Fraction, work: int) -> Pair:
    """Enclose exp(small) for 0 <= small < 1/16."""
    numerator = small.numerator << work
    step_low = numerator // small.denominator
    step_high = -(-numerator // small.denominator)
    term_low = term_high = total_low = total_high = 1 << work
    count = 0
    while term_high > 1:
        count += 1
        scale = count << work
        term_low = term_low * step_low // scale
        term_high = -(-term_high * step_high // scale)
        total_low += term_low
        total_high += term_high
    # Each term is less than a sixteenth of the one before: all that follow the last add up to less
    # than it.
    return total_low, total_high + (term_high if step_high else 0)


@lru_cache(maxsize=8)
def cumulative_law(law: Law, shift: int, depth: int) -> tuple[list[int], list[int]]:
    """Enclose the cumulative law of the interval M that ``inversion`` draws, as lists of low and
    high ends.

    M >= 0 has weight f(M * 2**shift) = exp(-exponent(M * 2**shift)), except that M = 0 counts half
    when ``shift`` is 0. The lists end where less than 2**-(2 depth / 3) of the weight at 0 remains:
    a longer list costs more to build than it is worth.
    """
    work = depth + _GUARD_BITS
    sums, (total_low, total_high) = _partial_sums(law, shift, work, depth)
    # A share is sum / total: divide once, towards the safe side, then multiply.
    inverse_low = (1 << 2 * work) // total_high
    inverse_high = -(-(1 << 2 * work) // total_low)
    spare = 2 * work - depth
    unity = 1 << depth
    lows = [low * inverse_low >> spare for low, _ in sums]
    highs = [min(-(-high * inverse_high >> spare), unity) for _, high in sums]
    return lows, highs


def _partial_sums(law: Law, shift: int, work: int, depth: int) -> tuple[list[Pair], Pair]:
    """Return the enclosed partial sums of the weights, and the enclosed total of all of them."""
    first = law.exponent(1 << shift)
    # Neighbouring weights f(M + 1) / f(M) have the ratio exp(-first (2M + 1)) for power 2, which
    # shrinks by the constant factor exp(-2 first) from one M to the next; for power 1 it stays
    # exp(-first).
    ratio_low, ratio_high = exp_minus(first, work)
    shrink_low, shrink_high = exp_minus(2 * first, work)
    unity = 1 << work
    low = high = unity
    sum_low = sum_high = unity if shift else unity >> 1
    sums = [(sum_low, sum_high)]
    while True:
        low = low * ratio_low >> work
        high = -(-high * ratio_high >> work)
        if high << 2 * depth // 3 < unity - ratio_high:
            # The ratio never grows, so a geometric series bounds all that is left out.
            remainder = -(-(high << work) // (unity - ratio_high))
            return sums, (sum_low, sum_high + remainder)
        sum_low += low
        sum_high += high
        sums.append((sum_low, sum_high))
        if law.power > 1:
            ratio_low = ratio_low * shrink_low >> work
            ratio_high = -(-ratio_high * shrink_high >> work)


# --- the sampler ----------------------------------------------------------------------------------

_CHUNK = 2**15
_FEW = 8
"""Up to so many draws are made in plain integers, which is faster than array arithmetic."""

_OPEN = -(2**15)
"""The table's mark of an open lane: no value and no block of a closed lane is as low."""

_RELATIVE_MARGIN = 2.0**-40
_ABSOLUTE_MARGIN = 2.0**-50

Integers = np.typing.NDArray[np.int64]
Lanes = np.typing.NDArray[np.uint16]
Flags = np.typing.NDArray[np.bool_]


class Sampler:
    """The table of one law.

    Building it takes milliseconds; it holds about 200 KiB and threads may share it.

    ``LANE_BITS`` start a draw and ``WORD_BITS`` continue one. Blocks are chosen so that the law,
    measured in blocks, has a scale below 2**BLOCKS_BITS. The proof holds for any such numbers;
    these make draws fast.
    """

    LANE_BITS = 16
    WORD_BITS = 48
    BLOCKS_BITS = 7

    def __init__(self, law: Law) -> None:
        self.law = law
        scale = math.floor(law.spread) if law.power == 1 else math.isqrt(math.floor(law.spread / 2))
        self.shift = max(0, scale.bit_length() - self.BLOCKS_BITS)
        # One bit of a lane is the side; the others and one word are the first bits of U.
        self._depth = self.LANE_BITS - 1 + self.WORD_BITS
        low, high = cumulative_law(law, self.shift, self._depth)
        # One interval more stands for the tail. Its low end is 0, which no prefix is below: it is
        # always open.
        self._low = np.array([*low, 0], dtype=np.uint64)
        self._high = np.array(high, dtype=np.uint64)
        self._decided = self._table_of_lanes()

    def draw(self, size: int, bits: Bits) -> Integers:
        """Return ``size`` independent draws, shape (size,); from streams, one of each."""
        if isinstance(bits, Streams):
            return self._draw_each(bits)
        if size <= _FEW:
            return np.array(self._draw_few(size, bits), dtype=np.int64)
        drawn = np.empty(size, dtype=np.int64)
        for start in range(0, size, _CHUNK):
            self._fill(drawn[start : start + _CHUNK], bits)
        return drawn

    def _draw_each(self, streams: Streams) -> Integers:
        """Make one draw from each stream: what ``draw(1, stream)`` makes."""
        words = streams.block(0)
        decided = self._decided.take((words[:, 0] & np.uint64(0xFFFF)).astype(np.uint16))
        drawn = decided.astype(np.int64)
        if self.shift:
            drawn <<= np.int64(self.shift)
            drawn |= (words[:, 1] >> np.uint64(64 - self.shift)).view(np.int64)
        for index, stream in streams.several(np.flatnonzero(decided == _OPEN)):
            drawn[index] = self.draw(1, stream)[0]
        return drawn

    # --- bits: how words are cut ----------------------------------------------------------------

    def _lanes(self, bits: Bits, count: int) -> Lanes:
        """Return ``count`` independent uniform integers below 2**LANE_BITS, four from a word."""
        return bits.words(-(-count // 4)).view(np.uint16)[:count]

    def _more(self, bits: Bits, count: int) -> Words:
        """Return ``count`` independent uniform integers below 2**WORD_BITS."""
        words = bits.words(count)
        words >>= np.uint64(64 - self.WORD_BITS)
        return words

    def _offsets(self, bits: Bits, count: int) -> Lanes | Integers:
        """Return ``count`` independent uniform offsets in a block: integers below 2**shift,
        ``shift`` above 0.
        """
        if self.shift <= 16 and count > 16:
            lanes = bits.words(-(-count // 4)).view(np.uint16)[:count]
            lanes >>= np.uint16(16 - self.shift)
            return lanes
        words = bits.words(count)
        words >>= np.uint64(64 - self.shift)
        return words.view(np.int64)

    def _lanes_and_offsets(self, bits: Bits, count: int) -> Iterable[tuple[int, int]]:
        """Return a few lanes and offsets in plain integers, each from a word of its own."""
        words = bits.words(2 * count if self.shift else count).tolist()
        lanes = [word & 0xFFFF for word in words[:count]]
        if not self.shift:
            return [(lane, 0) for lane in lanes]
        offsets = [word >> 64 - self.shift for word in words[count:]]
        return zip(lanes, offsets, strict=True)

    # --- trials ---------------------------------------------------------------------------------

    def _draw_few(self, size: int, bits: Bits) -> list[int]:
        """Do what ``_fill`` does, in plain integers."""
        drawn = list[int]()
        while len(drawn) < size:
            for lane, offset in self._lanes_and_offsets(bits, size - len(drawn)):
                value = self._try_one(lane, offset, bits)
                if value is not None:
                    drawn.append(value)
        return drawn

    def _try_one(self, lane: int, offset: int, bits: Bits) -> int | None:
        """Do what ``_try`` does for one draw, in plain integers; None if it is rejected."""
        decided = self._decided.item(lane)
        if decided == _OPEN:
            return self._settle_one(lane, offset, bits)
        return decided << self.shift | offset

    def _fill(self, out: Integers, bits: Bits) -> None:
        rejected = self._try(out, bits)
        while rejected.size:
            again = np.empty(rejected.size, dtype=np.int64)
            still = self._try(again, bits)
            out[rejected] = again
            rejected = rejected[still]

    def _try(self, out: Integers, bits: Bits) -> np.typing.NDArray[np.intp]:
        """Fill ``out`` with one trial each, and return the indices of the trials that were
        rejected.
        """
        lanes = self._lanes(bits, out.size)
        decided = self._decided.take(lanes)
        out[:] = decided
        if self.shift:
            out <<= np.int64(self.shift)
            out |= self._offsets(bits, out.size)
        opened: np.typing.NDArray[np.intp] = (decided == _OPEN).nonzero()[0]
        if not opened.size:
            return opened
        settled, accepted = self._settle(lanes[opened], out[opened], bits)
        out[opened] = settled
        rejected: np.typing.NDArray[np.intp] = opened[~accepted]
        return rejected

    # --- inversion: from U to its interval ------------------------------------------------------

    def _table_of_lanes(self) -> np.typing.NDArray[np.int16]:
        """Tabulate what each lane decides: the value, or the block, or _OPEN."""
        half = 1 << self.LANE_BITS - 1
        starts = np.arange(half, dtype=np.uint64) << np.uint64(self.WORD_BITS)
        intervals, closed = self._locate(starts, 1 << self.WORD_BITS)
        if self.shift:
            # The remainder of a wide law takes further bits, so a lane never decides it.
            closed &= intervals > 0
        table = np.full(2 * half, _OPEN, dtype=np.int16)
        table[:half][closed] = self._signed(intervals, np.False_)[closed]
        table[half:][closed] = self._signed(intervals, np.True_)[closed]
        return table

    def _locate(self, prefixes: Words, width: int) -> tuple[Integers, Flags]:
        """Name the interval that each [prefix, prefix + width) starts in, and whether it certainly
        lies inside.

        The first interval whose high end exceeds the prefix: all before it certainly end at or
        below the prefix. All of [prefix, prefix + width) is inside if it ends at or below the low
        end of that interval's T.
        """
        intervals = np.searchsorted(self._high, prefixes, side="right")
        closed = prefixes + np.uint64(width) <= self._low[intervals]
        return intervals, closed

    def _signed(self, intervals: Integers, negative: Flags | np.bool_) -> Integers:
        """Return the value on a side; for a wide law the block, counted down from -1 on the
        negative side.
        """
        positive = intervals - 1 if self.shift else intervals
        return cast(Integers, np.where(negative, -intervals, positive))

    def _settle(self, lanes: Lanes, drawn: Integers, bits: Bits) -> tuple[Integers, Flags]:
        """Give open lanes further bits: the values drawn, and whether the trials are accepted."""
        side = self.LANE_BITS - 1
        begun = (lanes & np.uint16((1 << side) - 1)).astype(np.uint64)
        prefixes = begun << np.uint64(self.WORD_BITS) | self._more(bits, lanes.size)
        intervals, closed = self._locate(prefixes, 1)
        for index in np.flatnonzero(~closed):
            intervals[index] = self._refine(int(prefixes[index]), bits)
        negative = lanes >> np.uint16(side) != 0
        accepted = np.ones(lanes.size, dtype=np.bool_)
        signed = self._signed(intervals, negative)
        if not self.shift:
            return signed, accepted
        offsets = drawn & ((1 << self.shift) - 1)
        settled = signed << self.shift | offsets
        in_remainder = np.flatnonzero(intervals == 0)
        if in_remainder.size:
            settled[in_remainder], accepted[in_remainder] = self._draw_remainder(
                negative[in_remainder], offsets[in_remainder], bits
            )
        return settled, accepted

    def _settle_one(self, lane: int, offset: int, bits: Bits) -> int | None:
        """Do what ``_settle`` does for one lane; None if the trial is rejected."""
        side = self.LANE_BITS - 1
        begun = lane & (1 << side) - 1
        prefix = begun << self.WORD_BITS | int(self._more(bits, 1)[0])
        interval = int(np.searchsorted(self._high, np.uint64(prefix), side="right"))
        if prefix + 1 > self._low.item(interval):
            interval = self._refine(prefix, bits)
        negative = bool(lane >> side)
        if not self.shift:
            return -interval if negative else interval
        if interval:
            return (-interval if negative else interval - 1) << self.shift | offset
        values, accepted = self._draw_remainder(np.array([negative]), np.array([offset]), bits)
        return int(values[0]) if accepted[0] else None

    def _refine(self, prefix: int, bits: Bits) -> int:
        """Find the interval of one U that its first bits leave open."""
        depth = self._depth
        while True:
            prefix, depth = self._lengthen(prefix, depth, bits)
            low, high = cumulative_law(self.law, self.shift, depth)
            interval = bisect_right(high, prefix)
            # Beyond the list lies the tail: at this depth it is open, and a deeper list is longer.
            if interval < len(low) and prefix + 1 <= low[interval]:
                return interval

    def _lengthen(self, prefix: int, depth: int, bits: Bits) -> tuple[int, int]:
        """Continue a number of which ``depth`` bits are known by a word."""
        more = int(self._more(bits, 1)[0])
        return prefix << self.WORD_BITS | more, depth + self.WORD_BITS

    # --- the remainder of a wide law: what lies above the rectangles of all blocks --------------

    def _draw_remainder(
        self, negative: Flags, offsets: Integers, bits: Bits
    ) -> tuple[Integers, Flags]:
        """Draw V and the block that it chooses; say whether V is under the law at the offset."""
        draws = self._more(bits, offsets.size)
        nearest, farthest = self._distance_bounds(draws)
        width = float(1 << self.shift)
        blocks = np.floor(nearest / width)
        one_block = blocks == np.floor(farthest / width)
        values = self._value(blocks.astype(np.int64), negative, offsets)
        distances = np.abs(values).astype(np.float64)
        accepted = distances < nearest
        certain = one_block & (accepted | (distances >= farthest))
        for index in np.flatnonzero(~certain):
            values[index], accepted[index] = self._draw_remainder_exactly(
                int(draws[index]), bool(negative[index]), int(offsets[index]), bits
            )
        return values, accepted

    def _value(self, blocks: Integers, negative: Flags, offsets: Integers) -> Integers:
        signed = np.where(negative, ~blocks, blocks)
        return cast(Integers, signed << self.shift | offsets)

    def _distance_bounds(
        self, draws: Words
    ) -> tuple[np.typing.NDArray[np.float64], np.typing.NDArray[np.float64]]:
        """Bound the distance at which f falls to V, for all V in [draw, draw + 1) / 2**WORD_BITS:
        (least, most).
        """
        unit = 2.0**-self.WORD_BITS
        with np.errstate(divide="ignore"):
            least = -np.log((draws + np.uint64(1)) * unit)
            most = -np.log(draws * unit)
        # The margins of the module's docstring, towards the outside.
        least = np.maximum(least * (1 - _RELATIVE_MARGIN) - _ABSOLUTE_MARGIN, 0.0)
        most = most * (1 + _RELATIVE_MARGIN) + _ABSOLUTE_MARGIN
        spread = float(self.law.spread)
        if self.law.power == 1:
            return least * spread, most * spread
        return np.sqrt(least * spread), np.sqrt(most * spread)

    def _draw_remainder_exactly(
        self, prefix: int, negative: bool, offset: int, bits: Bits
    ) -> tuple[int, bool]:
        """Do what ``_draw_remainder`` does for one V, between integers, with as many bits of V as
        it takes.
        """
        depth = self.WORD_BITS
        while True:
            block = self._block(prefix, depth)
            if block is not None:
                value = (~block if negative else block) << self.shift | offset
                under = self._is_under(prefix, depth, abs(value))
                if under is not None:
                    return value, under
            prefix, depth = self._lengthen(prefix, depth, bits)

    def _block(self, prefix: int, depth: int) -> int | None:
        """Find the largest G with V < f(tG), or None while V is not known well enough."""
        # f falls, so V < f(tG) holds up to some G and fails beyond it: double, then halve.
        least = 0
        beyond = 1
        while under := self._is_under(prefix, depth, beyond << self.shift):
            least = beyond
            beyond *= 2
        while under is not None and beyond - least > 1:
            middle = (least + beyond) // 2
            under = self._is_under(prefix, depth, middle << self.shift)
            if under:
                least = middle
            else:
                beyond = middle
        return None if under is None else least

    def _is_under(self, prefix: int, depth: int, distance: int) -> bool | None:
        """Say whether V < f(distance), or None while V is not known well enough."""
        low, high = exp_minus(self.law.exponent(distance), depth)
        if prefix + 1 <= low:
            return True
        return False if prefix >= high else None
