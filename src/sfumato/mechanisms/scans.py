"""Sums of exp-weighted terms over prefixes, suffixes and windows of an array, by additions only.

A sum is kept as a pair: an integer reference P, exact, and a double s, so that the sum is
s * exp(rate * P). P is the largest exponent among the terms, so s is at least the weight of that
term. Differences of prefix sums, which lose small sums beside large ones, are never taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.errors import InternalError

NEVER = -(2**61)
"""The exponent of an empty sum."""

BLOCK = 2**14
"""Terms added one after the other at most: it bounds the relative error of a sum."""


@dataclass(frozen=True, repr=False, eq=False, slots=True)
class Terms:
    """Terms weight * exp(rate * exponent).

    ``exponents``: int64 ndarray; ``weights``: float64 ndarray of the same shape.
    """

    exponents: Array
    weights: Array


def exp_of(rate: float, difference: Array) -> Array:
    """exp(rate * difference) for integer differences, which are at most 0: float64 ndarray."""
    return np.exp(rate * difference.astype(np.float64))


def running(terms: Terms, rate: float, span: float) -> Terms:
    """Sums of the first 1, 2, ... terms.

    ``span`` bounds how far rate * P may rise within a block: below it, a common reference of the
    block loses no term that is within 690 - span of the largest. Sums before the first term of any
    weight are empty: the exponents of such terms, which may lie on either side of NEVER, are no
    references.
    """
    found = Terms(np.full(len(terms.weights), NEVER), np.zeros(len(terms.weights)))
    weighty = np.flatnonzero(terms.weights)
    if len(weighty):
        rest = slice(int(weighty[0]), None)
        sums = _running(Terms(terms.exponents[rest], terms.weights[rest]), rate, span)
        found.exponents[rest] = sums.exponents
        found.weights[rest] = sums.weights
    if not np.isfinite(found.weights).all():
        raise InternalError("A sum of exponentials is not finite.")
    return found


def _running(terms: Terms, rate: float, span: float) -> Terms:
    """Do what ``running`` does, where the first term has a weight."""
    peaks = np.maximum.accumulate(terms.exponents)
    sums = np.empty(len(peaks))
    carry = 0.0
    carry_exponent = NEVER
    for start, stop in _blocks(peaks, rate, span):
        reference = int(peaks[stop - 1])
        block = terms.weights[start:stop] * exp_of(rate, terms.exponents[start:stop] - reference)
        # The sum of all blocks before comes over at this block's reference.
        block[0] += carry * float(np.exp(rate * float(carry_exponent - reference)))
        np.cumsum(block, out=block)
        carry = float(block[-1])
        carry_exponent = reference
        # Each sum goes back to its own peak, so that it is at least the weight of its largest term.
        above_peak = (reference - peaks[start:stop]).astype(np.float64)
        sums[start:stop] = block * np.exp(rate * above_peak)
    return Terms(peaks, sums)


def _blocks(peaks: Array, rate: float, span: float) -> list[tuple[int, int]]:
    """Cut where the peak has risen by ``span`` or after 2^14 terms."""
    size = len(peaks)
    if size <= BLOCK and rate * float(peaks[-1] - peaks[0]) <= span:
        return [(0, size)]
    steps = np.floor(rate * (peaks - peaks[0]).astype(np.float64) / span)
    cuts = np.union1d(np.flatnonzero(np.diff(steps)) + 1, np.arange(BLOCK, size, BLOCK)).tolist()
    return list(zip([0, *cuts], [*cuts, size], strict=True))


def windows(
    terms: Terms, starts: Array, stops: Array, rate: float, span: float
) -> list[tuple[Array, Terms]]:
    """Sums over terms[starts[i] : stops[i]], where both ends never decrease with i and no window is
    empty.

    Returns
    -------
    list of (indices, sums)
        Which windows get which parts; a window's sum is the sum of its parts, of which there are at
        most two.

    Method: the first window's end is a checkpoint; each window that begins before it is a suffix up
    to the checkpoint and a prefix beyond it; the next window opens the next checkpoint. So each
    term is in at most one suffix and one prefix scan.
    """
    parts: list[tuple[Array, Terms]] = []
    first = 0
    while first < len(starts):
        checkpoint = int(stops[first])
        last = int(np.searchsorted(starts, checkpoint, side="left"))
        low = int(starts[first])
        high = int(stops[last - 1])
        up_to = Terms(terms.exponents[low:checkpoint][::-1], terms.weights[low:checkpoint][::-1])
        suffixes = running(up_to, rate, span)
        which = np.arange(first, last)
        parts.append((which, _take(suffixes, checkpoint - 1 - starts[first:last])))
        beyond = first + int(np.searchsorted(stops[first:last], checkpoint, side="right"))
        if beyond < last:
            after = Terms(terms.exponents[checkpoint:high], terms.weights[checkpoint:high])
            prefixes = running(after, rate, span)
            which = np.arange(beyond, last)
            parts.append((which, _take(prefixes, stops[beyond:last] - checkpoint - 1)))
        first = last
    return parts


def _take(terms: Terms, index: Array) -> Terms:
    return Terms(terms.exponents[index], terms.weights[index])


def total(parts: list[Terms], rate: float) -> Terms:
    """Add sums entry by entry."""
    peaks = np.maximum.reduce([part.exponents for part in parts])
    sums = np.zeros(len(peaks))
    for part in parts:
        sums += part.weights * exp_of(rate, part.exponents - peaks)
    return Terms(peaks, sums)
