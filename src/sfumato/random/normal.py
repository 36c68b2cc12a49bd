"""Standard normal doubles, for noise that is added to floats; central answers never use them (``discrete`` is exact).

Method: the ziggurat of Marsaglia and Tsang (2000) with 256 layers of equal area, whole arrays at a time. The layer, the sign and the
place within the layer are disjoint bits of one word, as Doornik (2005) asks; 98.8 % of the words are done after one comparison.
Law: of real numbers it is exactly normal, tail included. Doubles round it: places are multiples of 2^-53 of the layer's width, and exp
and log are right to some 2^-52. No privacy claim rests on more than that the law is close: the low-order bits of a float sum can tell
what was added to what (Mironov 2012).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from sfumato.random.bits import Bits

Floats = np.ndarray
_LAYERS = 256
_PIECE = 2**14
_UNIT = 2.0**-53
_TAIL = 3.6541528853610088
"""Where the tail begins, for 256 layers: the root of ``_gap``, which a test finds again."""


def standard_normal(count: int, bits: Bits) -> Floats:
    """Draw from the standard normal law: float64 ndarray of shape (count,).

    >>> from sfumato.random import current
    >>> standard_normal(3, current()).shape
    (3,)
    """
    found = np.empty(count)
    for start in range(0, count, _PIECE):
        _fill(found[start : start + _PIECE], bits)
    return found


def _fill(target: Floats, bits: Bits) -> None:
    missing = _once(target, bits)
    while missing.size:
        again = np.empty(missing.size)
        still = _once(again, bits)
        target[missing] = again
        missing = missing[still]


def _once(target: Floats, bits: Bits) -> np.ndarray:
    """Fill ``target`` with one trial each; positions that were rejected, intp ndarray."""
    width, inner, _ = _tables()
    words = bits.words(target.size)
    layer = (words & np.uint64(_LAYERS - 1)).view(np.int64)
    place = (words >> np.uint64(11)).view(np.int64)
    outside = np.flatnonzero(place >= inner.take(layer))
    np.multiply(place, width.take(layer), out=target)
    rejected = outside[:0]
    if outside.size:
        accepted = _outside(target, outside, layer[outside], bits)
        rejected = outside[~accepted]
    # The sign is bit 8 of the word, moved to where doubles keep theirs.
    target.view(np.uint64)[...] ^= (words & np.uint64(_LAYERS)) << np.uint64(55)
    return rejected


def _outside(target: Floats, places: np.ndarray, layer: np.ndarray, bits: Bits) -> np.ndarray:
    """Judge the trials that do not lie under the next layer: by the density, or drawn from the tail; bool ndarray."""
    edges = _tables()[2]
    x = target[places]
    low, high = np.exp(-(edges[layer] ** 2) / 2), np.exp(-(edges[layer + 1] ** 2) / 2)
    accepted = np.asarray(low + _uniform(bits, x.size) * (high - low) < np.exp(-(x**2) / 2))
    tail = layer == 0
    if tail.any():
        target[places[tail]] = _tails(int(tail.sum()), bits)
        accepted |= tail
    return accepted


def _tails(count: int, bits: Bits) -> Floats:
    """Draw beyond the last edge: r + x with x exponential of rate r, kept while 2 y > x^2 for a standard exponential y."""
    found, missing = np.empty(count), np.arange(count)
    while missing.size:
        x = -np.log(_uniform(bits, missing.size)) / _TAIL
        kept = -2 * np.log(_uniform(bits, missing.size)) > x**2
        found[missing[kept]] = _TAIL + x[kept]
        missing = missing[~kept]
    return found


def _uniform(bits: Bits, count: int) -> Floats:
    """Uniform doubles in (0, 1), shape (count,)."""
    return ((bits.words(count) >> np.uint64(11)) + 0.5) * _UNIT


@cache
def _tables() -> tuple[Floats, np.ndarray, Floats]:
    """Width of each layer per unit of place, the place below which a trial is inside, and the edges x_0 >= r > ... > 0."""
    edges = _edges(_TAIL)
    inner = np.floor(edges[1:] / edges[:-1] / _UNIT).astype(np.int64)
    for table in (width := edges[:-1] * _UNIT, inner, edges):
        table.flags.writeable = False
    return width, inner, edges


def _edges(tail: float) -> Floats:
    """Edges of layers of equal area v; layer 0 is as wide as its area needs, and holds the tail."""
    area = tail * math.exp(-(tail**2) / 2) + math.sqrt(math.pi / 2) * math.erfc(tail / math.sqrt(2))
    edges = [area / math.exp(-(tail**2) / 2), tail]
    for _ in range(_LAYERS - 2):
        edges.append(math.sqrt(-2 * math.log(min(1.0, area / edges[-1] + math.exp(-(edges[-1] ** 2) / 2)))))
    return np.array([*edges, 0.0])
