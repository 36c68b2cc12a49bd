"""The normals of ``random.normal`` to any precision, from the same words and fresh bits."""

from __future__ import annotations

from decimal import Decimal, getcontext
from functools import lru_cache

import numpy as np

from sfumato.local.sampling.decimals import pi
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
        self._slot = word % SLOTS
        self._is_negative = word >> 63 == 1
        self._bits = bits
        # The place is a signed number. With its first bit turned, it counts up from the lowest.
        self._place = Uniform((word ^ 1 << 63) // SLOTS, bits, PLACE_BITS)
        if self._slot >= tables().slabs:
            self._begin(trial)

    def _begin(self, trial: list[int]) -> None:
        """Start a trial: its first word is read whole, the others are the first bits of V and U."""
        strip_word, across_word, height_word = trial
        starts = tables().starts
        self._strip = int(np.searchsorted(starts, np.uint64(strip_word), side="right")) - 1
        self._across = Uniform.of_unit(across_word, self._bits)
        self._height = Uniform.of_unit(height_word, self._bits)

    def known(self, level: Level) -> Decimal:
        """The number, to an absolute error of 2^(4 - level)."""
        if self._slot < tables().slabs:
            width = Decimal(float(tables().widths[self._slot]) * 2.0 ** (PLACE_BITS - 1))
            return width * (2 * self._place.known(level.bits) - 1)
        while (size := self._size(level)) is None:
            # What is certainly rejected stays so at every level.
            self._begin(self._bits.words(3).tolist())
        return -size if self._is_negative else size

    def _size(self, level: Level) -> Decimal | None:
        """The trial, or None where it is rejected."""
        found = tables()
        across = self._across.known(level.bits)
        height = self._height.known(level.bits)
        left = Decimal(float(found.strips[self._strip, 0]))
        step = Decimal(float(found.strips[self._strip, 1]))
        envelope = height * int(found.weights[self._strip]) * Decimal(found.mass) / 2**64
        if not step:
            size = (FAR**2 - 2 * across.ln()).sqrt()
            # Both sides are tiny numbers of one magnitude. Comparing their quotient with 1 keeps
            # the tolerance relative.
            tail = (-(Decimal(FAR) ** 2) / 2).exp()
            return size if level.below(envelope * size / tail, Decimal(1)) else None
        size = left + step * across
        stack = stack_height(int(found.under[self._strip]), getcontext().prec)
        room = (-size * size / 2).exp() - stack
        return size if level.below(envelope / step, room) else None


def normal_at(trace: Trace, index: int, bits: Bits) -> Normal:
    """The real number of one float of ``random.normal.fill``."""
    found = int(np.searchsorted(trace.rest, index))
    in_rest = found < trace.rest.size and trace.rest[found] == index
    trial = trace.trials[:, found].tolist() if in_rest else []
    return Normal(int(trace.words[index]), trial, bits)


@lru_cache(maxsize=256)
def stack_height(slabs: int, digits: int) -> Decimal:
    """Height of so many of the widest slabs upon each other, in the arithmetic in force, which has
    so many digits.
    """
    scale = 2 ** (PLACE_BITS - 1)
    inverse_widths = sum(
        (1 / (Decimal(float(width)) * scale) for width in tables().widths[:slabs]), Decimal(0)
    )
    return (pi(digits) / 2).sqrt() / SLOTS * inverse_widths
