"""Standard normal draws: nearly all of them from one word and one table, the rest by rejection; the law of real numbers is exact.

*Slabs.* Over x >= 0 the curve f(x) = exp(-x^2 / 2) has the area A = sqrt(pi / 2). Under it lies a stack of slabs [0, x_i), the widest
at the bottom, each of the area A / 1024: the height of slab i is A / (1024 x_i), and x_i is chosen so that its upper corner stays below
the curve. So the normal law is a mixture of 1024 equal parts, nearly all of them uniform on [-x_i, x_i). One word makes one draw:
its lowest ten bits choose the part, and the others, a signed number, are the place: they are disjoint, as Doornik (2005) asks.
*Rest.* The few parts without a slab share what lies between the stack and the curve, by rejection from narrow strips. Three
words make a trial. The first, below 2^64, chooses a strip by integer weights w; with V and U from the others the trial is x = left
+ U step, accepted where V w c / step < f(x) - (the stack's height there). Every envelope w c / step lies above what it covers,
so that accepted trials have exactly the density of the rest. Beyond 8 the strip is Marsaglia's tail: x = sqrt(64 - 2 ln U), accepted
where V w c x < f(8).
*Floats.* All x_i and edges of strips are multiples of 2^-40, and the 54 bits of a place are converted without error, so a float differs
from its real number by less than ``ERROR``. Trials closer than ``_MARGIN`` to their acceptance, and all beyond 8, are called *doubtful*:
``standard_normal`` takes them as the floats say, ``local`` computes them with as many digits as it takes.
Source: Marsaglia and Tsang 2000 (the stack); Marsaglia 1964 (the tail); mixtures and rejection: Devroye 1986, II.3 and II.4.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array
from sfumato.random.bits import Bits, Words

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]

SLOTS, SLOT_BITS = 2**10, 10
PLACE_BITS = 64 - SLOT_BITS
ERROR = 2.0**-49
"""How far a draw that is not doubtful may be from the real number that its words began, at most."""
FAR = 8
"""Where the last strip begins, which has no end."""

_GRAIN = 2.0**-40
_SPARE = 2.0**-24
_STRIPS_A_SLAB, _STRIPS_BEYOND = 4, 64
_MARGIN = 2.0**-36
_PIECE = 2**15
_MOST = 2**17


class Tables(NamedTuple):
    """The slabs, and the strips of the rest.

    Attributes
    ----------
    widths : float64 ndarray of shape (1024,)
        x_i per unit of place; 0 for the parts without a slab, which keeps a place's sign.
    slabs : int
        How many parts have a slab.
    starts, weights : uint64 ndarray of shape (strips,)
        The first word that chooses each strip, and how many do; together 2^64.
    mass : float
        c, taken as the dyadic number that it is.
    strips : float64 ndarray of shape (strips, 4)
        Left edge, step, height of the stack, and w c / step; the last one is the tail, with a step of 0 and w c.
    under : int64 ndarray of shape (strips,)
        How many slabs lie under each strip.
    """

    widths: Floats
    slabs: int
    starts: Words
    weights: Words
    mass: float
    strips: Floats
    under: Positions


class Trace(NamedTuple):
    """What normals were made of.

    Attributes
    ----------
    words : uint64 ndarray of shape (n,)
    rest : int64 ndarray of shape (m,)
        Positions, in order, of draws from the rest.
    trials : uint64 ndarray of shape (3, m)
        The words of their last trials, which were accepted or are doubtful.
    doubtful : int64 ndarray
        Positions of doubtful draws.
    """

    words: Words
    rest: Positions
    trials: Words
    doubtful: Positions


def standard_normal(count: int, bits: Bits, *, scale: float = 1.0, dtype: str = "float64") -> Array:
    """Draw from the normal law of a standard deviation: ndarray of shape (count,) and a floating dtype.

    Floats for noise that is added to floats; central answers never use them (``discrete`` is exact). No privacy claim rests on more
    than that their law is close: the low-order bits of a float sum can tell what was added to what (Mironov 2012).

    >>> from sfumato.random import current
    >>> standard_normal(3, current()).shape
    (3,)
    """
    found: Array = np.empty(count, dtype=dtype)
    spare = np.empty(min(count, _MOST))
    for start in range(0, count, _MOST):
        piece = spare[: min(_MOST, count - start)]
        fill(piece, bits)
        np.multiply(piece, scale, out=found[start : start + piece.size], casting="same_kind")
    return found


def fill(target: Floats, bits: Bits) -> Trace:
    """Fill a flat float64 array with independent normals, and tell what they were made of."""
    words = bits.words(target.size)
    spare = np.empty((2, min(target.size, _PIECE)), dtype=np.int64)
    found = [np.empty(0, dtype=np.int64)]
    for start in range(0, target.size, _PIECE):
        part = slice(start, start + _PIECE)
        found.append(_fill_piece(target[part], words[part].view(np.int64), *spare) + start)
    rest = np.concatenate(found)
    values, trials, doubtful = _draw_rest(rest.size, bits)
    target[rest] = np.copysign(values, target[rest])
    return Trace(words, rest, trials, rest[doubtful])


def _fill_piece(
    target: Floats, words: NDArray[np.int64], slots: Positions, places: NDArray[np.int64]
) -> Positions:
    """Fill a few, which stay in the cache; the positions of those that fall to the rest, which hold a zero of their sign."""
    slots, places = slots[: words.size], places[: words.size]
    np.bitwise_and(words, SLOTS - 1, out=slots)
    np.right_shift(words, SLOT_BITS, out=places)
    np.copyto(target, places)
    widths = places.view(np.float64)
    tables().widths.take(slots, mode="clip", out=widths)  # in range already: "clip" spares a copy
    target *= widths
    return np.flatnonzero(slots >= tables().slabs)


def _draw_rest(count: int, bits: Bits) -> tuple[Floats, Words, Positions]:
    """Draw sizes from the rest: floats, the words of their trials, shape (3, count), and which are doubtful."""
    if not count:
        return np.empty(0), np.empty((3, 0), dtype=np.uint64), np.empty(0, dtype=np.int64)
    tries = count + count // 3 + 16
    while True:
        words = bits.words(3 * tries).reshape(3, tries)
        chosen = np.searchsorted(tables().starts, words[0], side="right") - 1
        left, step, below, lift = tables().strips[chosen].T
        left += step * unit(words[1])
        room = np.exp(left * left * -0.5) - below - lift * unit(words[2])
        doubtful = (np.abs(room) < _MARGIN) | (step == 0)
        # However many are kept, those that are have the same law: so all may be drawn again where they are too few.
        kept = np.flatnonzero((room > 0) | doubtful)[:count]
        if kept.size == count:
            return left[kept], words[:, kept], np.flatnonzero(doubtful[kept])
        tries *= 2


def unit(words: Words) -> Floats:
    """The upper 63 bits as numbers of [0, 1): right to a relative 2^-53 and an absolute 2^-63."""
    found = (words >> np.uint64(1)).view(np.int64).astype(np.float64)
    found *= 2.0**-63
    return found


@cache
def tables() -> Tables:
    """Stack the slabs and cut the rest into strips; tests check both in decimals."""
    wide = _stack()
    heights = np.cumsum([0.0, *(math.sqrt(math.pi / 2) / SLOTS / wide)])
    ends = np.array([0, *(wide[::-1] / _GRAIN).astype(np.int64)])
    inner = (
        ends[:-1, None] + np.diff(ends)[:, None] * np.arange(_STRIPS_A_SLAB) // _STRIPS_A_SLAB
    ).ravel()
    far = int(FAR / _GRAIN)
    outer = ends[-1] + (far - ends[-1]) * np.arange(_STRIPS_BEYOND) // _STRIPS_BEYOND
    edges = np.concatenate((inner, outer, [far])) * _GRAIN
    under = np.concatenate(
        (
            np.repeat(np.arange(len(wide), 0, -1), _STRIPS_A_SLAB),
            np.zeros(_STRIPS_BEYOND + 1, dtype=np.int64),
        )
    )
    step, below = np.append(np.diff(edges), 0.0), heights[under]
    areas = (np.exp(-(edges**2) / 2) - below) * (1 + _SPARE) * np.where(step > 0, step, 1 / FAR)
    mass = float(areas.sum() * (1 + _SPARE))
    weights = np.ceil(areas / mass * 2.0**64).astype(np.uint64)
    weights[0] = (
        int(weights[0]) - int(weights.sum())
    ) % 2**64  # with what is left over, so that all words choose a strip
    starts = np.cumsum(weights) - weights
    lift = weights.astype(np.float64) * (mass * 2.0**-64) / np.where(step > 0, step, 1.0)
    widths = np.zeros(SLOTS)
    widths[: len(wide)] = wide * 2.0 ** (1 - PLACE_BITS)
    found = Tables(
        widths,
        len(wide),
        starts,
        weights,
        mass,
        np.stack((edges, step, below, lift), axis=1),
        under,
    )
    for each in (found.widths, found.starts, found.weights, found.strips, found.under):
        each.flags.writeable = False
    return found


def _stack() -> Floats:
    """Widths of the slabs, from the widest: each the largest, but for a little to spare, whose corner lies under the curve."""
    area, height, x = math.sqrt(math.pi / 2) / SLOTS, 0.0, FAR / 2 + 0.5
    found: list[float] = []
    while True:
        for _ in range(8):  # Newton's steps for f(x) = height + area / x
            curve = math.exp(-x * x / 2)
            x += (curve - height - area / x) / (x * curve - area / x**2)
        if x**3 * curve < 2 * area or not 0 < x < FAR:
            return np.array(found)
        x = math.floor(x * (1 - _SPARE) / _GRAIN) * _GRAIN
        found.append(x)
        height += area / x
