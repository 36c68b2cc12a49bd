"""The normal numbers that ``random.normal`` draws, to any precision: the same words, continued with
fresh bits, in decimals.
"""

from __future__ import annotations

from decimal import Decimal, getcontext
from functools import lru_cache

import numpy as np

from sfumato.local.sampling.constants import pi
from sfumato.local.sampling.reals import Level, Uniform
from sfumato.random.bits import Bits
from sfumato.random.normal import FAR, PLACE_BITS, SLOTS, Trace, tables


class Normal:
    """A standard normal real number: its place in a slab, or else the first trial in the rest that
    is accepted.

    Parameters
    ----------
    word : int
        The word that began it.
    trial : sequence of three int
        The last words of its trials, where the word fell to the rest; earlier trials were certainly
        rejected.
    bits : Bits
        Where further bits come from.
    """

    def __init__(self, word: int, trial: list[int], bits: Bits) -> None:
        self._slot, self._negative, self._bits = word % SLOTS, word >> 63 == 1, bits
        # The place is a signed number: with its first bit turned, it counts up from the lowest.
        self._place = Uniform((word ^ 1 << 63) // SLOTS, bits, PLACE_BITS)
        if self._slot >= tables().slabs:
            self._begin(trial)

    def _begin(self, trial: list[int]) -> None:
        self._strip = int(np.searchsorted(tables().starts, np.uint64(trial[0]), side="right")) - 1
        self._across, self._height = (Uniform(word >> 1, self._bits, 63) for word in trial[1:])

    def known(self, level: Level) -> Decimal:
        """The number, to an absolute error of 2^(4 - level)."""
        if self._slot < tables().slabs:
            width = Decimal(float(tables().widths[self._slot]) * 2.0 ** (PLACE_BITS - 1))
            return width * (2 * self._place.known(level.bits) - 1)
        while (size := self._size(level)) is None:
            # What is certainly rejected stays so at every level.
            self._begin(self._bits.words(3).tolist())
        return -size if self._negative else size

    def _size(self, level: Level) -> Decimal | None:
        """The trial, or None where it is rejected."""
        found, across, height = (
            tables(),
            self._across.known(level.bits),
            self._height.known(level.bits),
        )
        left, step = (Decimal(float(each)) for each in found.strips[self._strip, :2])
        lift = height * int(found.weights[self._strip]) * Decimal(found.mass) / 2**64
        if not step:
            size = (FAR**2 - 2 * across.ln()).sqrt()
            # Both sides are tiny numbers of one magnitude; a comparison of their quotient keeps the
            # tolerance relative.
            return (
                size
                if level.below(lift * size / (-(Decimal(FAR) ** 2) / 2).exp(), Decimal(1))
                else None
            )
        size = left + step * across
        room = (-size * size / 2).exp() - stacked(int(found.under[self._strip]), getcontext().prec)
        return size if level.below(lift / step, room) else None


def normal_at(trace: Trace, position: int, bits: Bits) -> Normal:
    """The real number of one float of ``random.normal.fill``."""
    found = int(np.searchsorted(trace.rest, position))
    trial = (
        trace.trials[:, found].tolist()
        if found < trace.rest.size and trace.rest[found] == position
        else []
    )
    return Normal(int(trace.words[position]), trial, bits)


@lru_cache(maxsize=256)
def stacked(slabs: int, digits: int) -> Decimal:
    """Height of the widest slabs upon each other, in the decimal arithmetic in force, which has so
    many digits.
    """
    scale = 2 ** (PLACE_BITS - 1)
    narrow = sum(
        (1 / (Decimal(float(width)) * scale) for width in tables().widths[:slabs]), Decimal(0)
    )
    return (pi(digits) / 2).sqrt() / SLOTS * narrow
