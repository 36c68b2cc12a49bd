"""Standard normal draws: nearly all from one word and one table, the rest by rejection.

The law of real numbers is exact.

*Slabs.* Over x >= 0 the curve f(x) = exp(-x^2 / 2) has the area A = sqrt(pi / 2). Under it lies a
stack of slabs [0, x_i), the widest at the bottom, each of the area A / 1024: the height of slab i
is A / (1024 x_i), and x_i is chosen so that its upper corner stays below the curve. So the normal
law is a mixture of 1024 equal parts, nearly all of them uniform on [-x_i, x_i). One word makes one
draw: its lowest ten bits choose the part, and the others, a signed number, are the place in it. The
two are disjoint, as Doornik (2005) asks.
*Rest.* The few parts without a slab share what lies between the stack and the curve, by rejection
from narrow strips. Three words make a trial. The first, below 2^64, chooses a strip by integer
weights w. With V and U from the others the trial is x = left + U step, accepted where V w c / step
< f(x) - (the stack's height there). Every envelope w c / step lies above what it covers, so
accepted trials have exactly the density of the rest. Beyond 8 the strip is Marsaglia's tail: x =
sqrt(64 - 2 ln U), accepted where V w c x < f(8).
*Floats.* All x_i and edges of strips are multiples of 2^-40, and the 54 bits of a place are
converted without error, so a float differs from its real number by less than ``ERROR``. Trials
closer than ``_MARGIN`` to their acceptance, and all beyond 8, are called *doubtful*:
``standard_normal`` takes them as the floats say; the local mechanisms compute them with as many
digits as it takes (``local.reals``).
Source: Marsaglia and Tsang 2000 (the stack); Marsaglia 1964 (the tail); mixtures and rejection:
Devroye 1986, II.3 and II.4.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from sfumato.basics import Array
from sfumato.random.bits import Bits, Words

Floats = np.typing.NDArray[np.float64]
Integers = np.typing.NDArray[np.int64]

SLOT_BITS = 10
SLOTS: int = 2**SLOT_BITS
PLACE_BITS: int = 64 - SLOT_BITS
ERROR = 2.0**-49
"""How far a draw that is not doubtful may be from the real number that its words began, at most."""

FAR = 8
"""Where the last strip begins, which has no end."""

_RESOLUTION = 2.0**-40
"""Widths and edges are multiples of it, so that floats and decimals hold the same numbers."""

_SPARE = 2.0**-24
"""By how much, relatively, slabs stay below the curve and envelopes lie above what they cover."""

_STRIPS_PER_SLAB = 4
_STRIPS_BEYOND = 64
_MARGIN = 2.0**-36
_PIECE = 2**15
_CHUNK = 2**17


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
        Left edge, step, height of the stack, and w c / step; the last one is the tail, with a step
        of 0 and w c.
    under : int64 ndarray of shape (strips,)
        How many slabs lie under each strip.
    """

    widths: Floats
    slabs: int
    starts: Words
    weights: Words
    mass: float
    strips: Floats
    under: Integers


class Trace(NamedTuple):
    """What normals were made of.

    Attributes
    ----------
    words : uint64 ndarray of shape (n,)
    rest : int64 ndarray of shape (m,)
        Indices, in order, of draws from the rest.
    trials : uint64 ndarray of shape (3, m)
        The words of their last trials, which were accepted or are doubtful.
    doubtful : int64 ndarray
        Indices of doubtful draws.
    """

    words: Words
    rest: Integers
    trials: Words
    doubtful: Integers


def standard_normal(count: int, bits: Bits, *, scale: float = 1.0, dtype: str = "float64") -> Array:
    """Draw from the normal law of a standard deviation: ndarray of shape (count,) and a floating
    dtype.

    Floats for noise that is added to floats. Central answers never use them (``discrete`` is
    exact). No privacy claim rests on more than that their law is close: the low-order bits of a
    float sum can tell what was added to what (Mironov 2012).

    >>> from sfumato.random import current
    >>> standard_normal(3, current()).shape
    (3,)
    """
    drawn: Array = np.empty(count, dtype=dtype)
    buffer = np.empty(min(count, _CHUNK))
    for start in range(0, count, _CHUNK):
        piece = buffer[: min(_CHUNK, count - start)]
        fill(piece, bits)
        np.multiply(piece, scale, out=drawn[start : start + piece.size], casting="same_kind")
    return drawn


def fill(target: Floats, bits: Bits) -> Trace:
    """Fill a flat float64 array with independent normals, and describe what they were made of."""
    words = bits.words(target.size)
    slots, places = np.empty((2, min(target.size, _PIECE)), dtype=np.int64)
    places_in_rest = [np.empty(0, dtype=np.int64)]
    for start in range(0, target.size, _PIECE):
        part = slice(start, start + _PIECE)
        in_rest = _fill_piece(target[part], words[part].view(np.int64), slots, places)
        places_in_rest.append(in_rest + start)
    rest = np.concatenate(places_in_rest)
    values, trials, doubtful = _draw_rest(rest.size, bits)
    # The table left zeros of the place's sign, which is the sign of the draw.
    target[rest] = np.copysign(values, target[rest])
    return Trace(words, rest, trials, rest[doubtful])


def _fill_piece(target: Floats, words: Integers, slots: Integers, places: Integers) -> Integers:
    """Fill a piece that stays in the cache; return the indices of the draws that fall to the rest.

    ``slots`` and ``places`` are buffers. The draws of the rest hold a zero of their sign.
    """
    slots = slots[: words.size]
    places = places[: words.size]
    np.bitwise_and(words, SLOTS - 1, out=slots)
    np.right_shift(words, SLOT_BITS, out=places)
    np.copyto(target, places)
    # The places are spent: their memory takes the widths.
    widths = places.view(np.float64)
    # All slots are in range already: "clip" spares a copy.
    tables().widths.take(slots, mode="clip", out=widths)
    target *= widths
    return np.flatnonzero(slots >= tables().slabs)


def _draw_rest(count: int, bits: Bits) -> tuple[Floats, Words, Integers]:
    """Draw sizes from the rest: floats, the words of their trials, shape (3, count), and which are
    doubtful.
    """
    if not count:
        return np.empty(0), np.empty((3, 0), dtype=np.uint64), np.empty(0, dtype=np.int64)
    tries = count + count // 3 + 16
    while True:
        words = bits.words(3 * tries).reshape(3, tries)
        strips = np.searchsorted(tables().starts, words[0], side="right") - 1
        left, step, below, envelope = tables().strips[strips].T
        left += step * unit(words[1])
        room = np.exp(left * left * -0.5) - below - envelope * unit(words[2])
        doubtful = (np.abs(room) < _MARGIN) | (step == 0)
        # However many are kept, those that are have the same law. So where they are too few, all
        # may be drawn again.
        kept = np.flatnonzero((room > 0) | doubtful)[:count]
        if kept.size == count:
            return left[kept], words[:, kept], np.flatnonzero(doubtful[kept])
        tries *= 2


def unit(words: Words) -> Floats:
    """The upper 63 bits as numbers of [0, 1): right to a relative 2^-53 and an absolute 2^-63."""
    uniforms = (words >> np.uint64(1)).view(np.int64).astype(np.float64)
    uniforms *= 2.0**-63
    return uniforms


@cache
def tables() -> Tables:
    """Stack the slabs and cut the rest into strips; tests check both in decimals."""
    slab_widths = _stack()
    edges, under = _strips(slab_widths)
    slab_heights = math.sqrt(math.pi / 2) / SLOTS / slab_widths
    below = np.cumsum([0.0, *slab_heights])[under]
    # The last strip is the tail, marked by a step of 0.
    step = np.append(np.diff(edges), 0.0)
    # f falls, so its value at the left edge bounds it; the tail's mass is at most f(8) / 8.
    areas = (np.exp(-(edges**2) / 2) - below) * (1 + _SPARE) * np.where(step > 0, step, 1 / FAR)
    mass = float(areas.sum() * (1 + _SPARE))
    # Weights are rounded up, so an envelope stays above what it covers.
    weights = np.ceil(areas / mass * 2.0**64).astype(np.uint64)
    # The first strip takes what is left over, so that all words choose a strip.
    weights[0] = (int(weights[0]) - int(weights.sum())) % 2**64
    starts = np.cumsum(weights) - weights
    envelope = weights.astype(np.float64) * (mass * 2.0**-64) / np.where(step > 0, step, 1.0)
    widths = np.zeros(SLOTS)
    widths[: len(slab_widths)] = slab_widths * 2.0 ** (1 - PLACE_BITS)
    strips = np.stack((edges, step, below, envelope), axis=1)
    tables = Tables(widths, len(slab_widths), starts, weights, mass, strips, under)
    for array in (tables.widths, tables.starts, tables.weights, tables.strips, tables.under):
        array.flags.writeable = False
    return tables


def _strips(slab_widths: Floats) -> tuple[Floats, Integers]:
    """Left edges of the strips, and how many slabs lie under each: four for each slab, then 64 up
    to 8, then the tail.
    """
    # In units of the resolution, so that cutting is exact.
    ends = np.array([0, *(slab_widths[::-1] / _RESOLUTION).astype(np.int64)])
    parts = np.arange(_STRIPS_PER_SLAB)
    inner = (ends[:-1, None] + np.diff(ends)[:, None] * parts // _STRIPS_PER_SLAB).ravel()
    far = int(FAR / _RESOLUTION)
    outer = ends[-1] + (far - ends[-1]) * np.arange(_STRIPS_BEYOND) // _STRIPS_BEYOND
    edges = np.concatenate((inner, outer, [far])) * _RESOLUTION
    over_slabs = np.repeat(np.arange(len(slab_widths), 0, -1), _STRIPS_PER_SLAB)
    beyond = np.zeros(_STRIPS_BEYOND + 1, dtype=np.int64)
    return edges, np.concatenate((over_slabs, beyond))


def _stack() -> Floats:
    """Widths of the slabs, the widest first: each the largest, but for a little to spare, whose
    corner lies under the curve.
    """
    area = math.sqrt(math.pi / 2) / SLOTS
    height = 0.0
    x = FAR / 2 + 0.5
    widths: list[float] = []
    while True:
        # Newton's steps for f(x) = height + area / x.
        for _ in range(8):
            curve = math.exp(-x * x / 2)
            x += (curve - height - area / x) / (x * curve - area / x**2)
        # Near the top of the curve no slab of this area fits: there Newton leaves the falling
        # branch.
        if x**3 * curve < 2 * area or not 0 < x < FAR:
            return np.array(widths)
        x = math.floor(x * (1 - _SPARE) / _RESOLUTION) * _RESOLUTION
        widths.append(x)
        height += area / x
