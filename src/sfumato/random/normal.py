"""Standard normal floats, for noise that is added to floats; central answers never use them (``discrete`` is exact).

Method: the ziggurat of Marsaglia and Tsang (2000) with 256 layers of equal area, whole arrays at a time. The layer and the signed
place within the layer are disjoint bits of one word, as Doornik (2005) asks; 98.8 % of the words are done after one comparison.
Law: of real numbers it is exactly normal, tail included. Doubles round it: places are odd multiples of 2^-53 of the layer's width, and exp
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
"""Where the tail begins, for 256 layers: the layers then end at 0, which a test checks."""


def standard_normal(count: int, bits: Bits, *, scale: float = 1.0, dtype: str = "float64") -> Floats:
    """Draw from the normal law of a standard deviation: ndarray of shape (count,) and a floating dtype.

    >>> from sfumato.random import current
    >>> standard_normal(3, current()).shape
    (3,)
    """
    found = np.empty(count, dtype=dtype)
    spare = np.empty(min(count, _PIECE))
    outside = []
    for start in range(0, count, _PIECE):
        piece = spare[: min(_PIECE, count - start)]
        places, layer = _inside(piece, bits)
        np.multiply(piece, scale, out=found[start : start + piece.size], casting="same_kind")
        outside.append((places + start, layer, piece[places]))
    if outside:
        places, layer, trials = (np.concatenate(parts) for parts in zip(*outside, strict=True))
        _settle(found, scale, places, layer, trials, bits)
    return found


def _inside(target: Floats, bits: Bits) -> tuple[np.ndarray, np.ndarray]:
    """Fill ``target`` with one trial each; positions and layers of those that do not lie under the next layer, two ndarrays."""
    words = bits.words(target.size).view(np.int64)
    layer = words & (_LAYERS - 1)
    words >>= 11
    np.add(words, 0.5, out=target)
    found = _tables()[0].take(layer, mode="clip")  # in range already: "clip" spares a copy
    width, inner = found.real, found.imag
    outside = np.flatnonzero(np.abs(target) >= inner)
    target *= width
    return outside, layer[outside]


def _settle(found: Floats, scale: float, places: np.ndarray, layer: np.ndarray, trials: Floats, bits: Bits) -> None:
    """Judge the trials outside by the density, or draw them from the tail; draw anew what is rejected, until nothing is."""
    while places.size:
        accepted = _under(trials, layer, bits)
        tail = layer == 0
        trials[tail] = np.copysign(_tails(int(tail.sum()), bits), trials[tail])
        accepted |= tail
        found[places[accepted]] = trials[accepted] * scale
        places = places[~accepted]
        again = np.empty(places.size)
        outside, layer = _inside(again, bits)
        found[places] = again * scale
        places, trials = places[outside], again[outside]


def _under(trials: Floats, layer: np.ndarray, bits: Bits) -> np.ndarray:
    """Whether a uniform height between the layer's lower and upper edge lies under the density; bool ndarray."""
    edges = _tables()[1]
    low, high = np.exp(-(edges[layer] ** 2) / 2), np.exp(-(edges[layer + 1] ** 2) / 2)
    return np.asarray(low + _uniform(bits, trials.size) * (high - low) < np.exp(-(trials**2) / 2))


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
def _tables() -> tuple[np.ndarray, Floats]:
    """Width of each layer per unit of place, with the place below which a trial is inside as imaginary part; the edges of the layers."""
    edges = _edges(_TAIL)
    both = 2 * edges[:-1] * _UNIT + 1j * np.floor(edges[1:] / edges[:-1] / _UNIT / 2)
    both.flags.writeable = edges.flags.writeable = False
    return both, edges


def _edges(tail: float) -> Floats:
    """Edges of layers of equal area v; layer 0 is as wide as its area needs, and holds the tail."""
    area = tail * math.exp(-(tail**2) / 2) + math.sqrt(math.pi / 2) * math.erfc(tail / math.sqrt(2))
    edges = [area / math.exp(-(tail**2) / 2), tail]
    for _ in range(_LAYERS - 2):
        edges.append(math.sqrt(-2 * math.log(min(1.0, area / edges[-1] + math.exp(-(edges[-1] ** 2) / 2)))))
    return np.array([*edges, 0.0])
