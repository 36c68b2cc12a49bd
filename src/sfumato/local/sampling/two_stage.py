"""The paper's own sampler, Algorithms 2 to 4: a coin chooses the ball or the rest of the space.

The fast sampler is tested against this readable one, which is as exact, and slower. Coins and cells
are drawn without error:

    *Coins.* A word below floor(p 2^64) says yes, one above says no; the one between is continued
    with the next 64 bits of p.
    *Outside the ball* (Algorithm 3): uniform points of R_L, until one lies beyond L. A point is its
    cell, 16 bits an axis, and its place in the cell, 48 bits and as many more as it takes. Floats
    decide where the distance differs from L by more than 2^-36 (1 + 2L) sqrt d, which is 2^10 times
    their error, and decimals elsewhere.
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction

import numpy as np

from sfumato.local.sampling.cells import Cells, CellSampler
from sfumato.local.sampling.decimals import DIGITS, context, exactly
from sfumato.local.sampling.floats import Flags, Floats
from sfumato.local.sampling.reals import Level, Uniform, norm, settle
from sfumato.random.bits import Bits, Words

_MARGIN = 2.0**-36
_BITS_WITHIN_CELL = np.uint64(48)


def two_stage_cells(
    ball: CellSampler, ball_probability: Decimal, radius: Fraction, points: Floats, bits: Bits
) -> Floats:
    """Algorithm 2: with probability p_L a report inside the ball of radius L, else one outside it.

    ``ball`` is Algorithm 4: a distance of density proportional to r^(d-1) exp(-k r) on [0, L], and
    a uniform direction.
    """
    near = coins(ball_probability, len(points), bits)
    found = np.empty(points.shape)
    found[near] = ball.draw(points[near], bits)
    found[~near] = _outside(points[~near], radius, bits)
    return found


def coins(probability: Decimal, count: int, bits: Bits) -> Flags:
    """Flip coins of a probability that is known to fifty digits: bool, shape (count,)."""
    with localcontext(context(DIGITS + 20)):
        whole = int((probability * 2**64).to_integral_value(ROUND_FLOOR))
        rest = probability * 2**64 - whole
    if whole >= 2**64:
        return np.ones(count, dtype=bool)
    words = bits.words(count)
    heads = words < np.uint64(whole)
    # The one word at the border is continued: what is left of p decides it.
    for tie in np.flatnonzero(words == np.uint64(whole)):
        heads[tie] = coins(rest, 1, bits)[0]
    return heads


def _outside(points: Floats, radius: Fraction, bits: Bits) -> Cells:
    """Algorithm 3: uniform in the report space, drawn again while within L of the point."""
    found = np.empty(points.shape, dtype=np.int64)
    missing = np.arange(len(points))
    while missing.size:
        words = bits.words(missing.size * points.shape[1]).reshape(missing.size, -1)
        beyond = _beyond(points[missing], words, radius, bits)
        found[missing[beyond]] = (words[beyond] >> _BITS_WITHIN_CELL).astype(np.int64)
        missing = missing[~beyond]
    return found


def _beyond(points: Floats, words: Words, radius: Fraction, bits: Bits) -> Flags:
    """Whether each report lies beyond L of its point."""
    length = float(radius)
    side = 1 + 2 * length
    places = words.astype(np.float64) * (side * 2.0**-64) - length
    room = np.sqrt(((places - points) ** 2).sum(axis=1)) - length
    beyond = room > 0
    is_open = np.abs(room) < _MARGIN * side * math.sqrt(points.shape[1])
    for row in np.flatnonzero(is_open):
        beyond[row] = _certainly_beyond(points[row], words[row].tolist(), radius, bits)
    return np.asarray(beyond)


def _certainly_beyond(point: Floats, words: list[int], radius: Fraction, bits: Bits) -> bool:
    """Do what ``_beyond`` does for one report, in decimals."""
    uniforms = [Uniform(word, bits) for word in words]

    def evaluate(level: Level) -> bool:
        length = exactly(radius)
        places = [each.known(level.bits) * (1 + 2 * length) - length for each in uniforms]
        differences = [x - Decimal(float(v)) for x, v in zip(places, point, strict=True)]
        return level.below(length, norm(differences))

    return settle(evaluate)
