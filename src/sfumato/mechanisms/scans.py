"""Sums of exp-weighted terms over all prefixes, suffixes and windows of an array: additions only, nothing lost in the tails.

A sum is kept as a pair: an integer reference P, exact, and a double s, so that the sum is s * exp(rate * P). P is the largest
exponent among the terms, so s is at least the weight of that term; differences of prefix sums, which lose small sums beside
large ones, are never taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Array
from sfumato.errors import InternalError

NEVER = -(2**61)
"""The exponent of an empty sum."""
BLOCK = 2**14


@dataclass(frozen=True, repr=False, eq=False, slots=True)
class Terms:
    """Terms weight * exp(rate * exponent). ``exponents``: int64 ndarray; ``weights``: float64 ndarray of the same shape."""

    exponents: Array
    weights: Array


def exp_of(rate: float, difference: Array) -> Array:
    """exp(rate * difference) for integer differences, which are at most 0: float64 ndarray."""
    return np.exp(rate * difference.astype(np.float64))


def running(terms: Terms, rate: float, span: float) -> Terms:
    """Sums of the first 1, 2, ... terms.

    ``span`` bounds how far rate * P may rise within a block: below it, a common reference of the block loses no term that is
    within 690 - span of the largest. Sums before the first term of any weight are empty: the exponents of such terms, which may lie
    on either side of NEVER, are no references.
    """
    found = Terms(np.full(len(terms.weights), NEVER), np.zeros(len(terms.weights)))
    weighty = np.flatnonzero(terms.weights)
    if len(weighty):
        held = slice(int(weighty[0]), None)
        sums = _running(Terms(terms.exponents[held], terms.weights[held]), rate, span)
        found.exponents[held], found.weights[held] = sums.exponents, sums.weights
    if not np.isfinite(found.weights).all():
        raise InternalError("A sum of exponentials is not finite.")
    return found


def _running(terms: Terms, rate: float, span: float) -> Terms:
    peaks = np.maximum.accumulate(terms.exponents)
    sums = np.empty(len(peaks))
    carry, carried = 0.0, NEVER
    for start, stop in _blocks(peaks, rate, span):
        reference = int(peaks[stop - 1])
        held = terms.weights[start:stop] * exp_of(rate, terms.exponents[start:stop] - reference)
        held[0] += carry * float(np.exp(rate * float(carried - reference)))
        np.cumsum(held, out=held)
        carry, carried = float(held[-1]), reference
        sums[start:stop] = held * np.exp(rate * (reference - peaks[start:stop]).astype(np.float64))
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
    """Sums over terms[starts[i] : stops[i]], where both ends never decrease with i and no window is empty.

    Returns
    -------
    list of (indices, sums)
        Which windows get which parts; a window's sum is the sum of its parts, of which there are at most two.

    Method: the first window's end is a checkpoint; each window that begins before it is a suffix up to the checkpoint and a
    prefix beyond it; the next window opens the next checkpoint. So each term is in at most one suffix and one prefix scan.
    """
    parts: list[tuple[Array, Terms]] = []
    first = 0
    while first < len(starts):
        checkpoint = int(stops[first])
        last = int(np.searchsorted(starts, checkpoint, side="left"))
        low, high = int(starts[first]), int(stops[last - 1])
        suffix = running(
            Terms(terms.exponents[low:checkpoint][::-1], terms.weights[low:checkpoint][::-1]),
            rate,
            span,
        )
        parts.append((np.arange(first, last), _take(suffix, checkpoint - 1 - starts[first:last])))
        beyond = first + int(np.searchsorted(stops[first:last], checkpoint, side="right"))
        if beyond < last:
            prefix = running(
                Terms(terms.exponents[checkpoint:high], terms.weights[checkpoint:high]), rate, span
            )
            parts.append(
                (np.arange(beyond, last), _take(prefix, stops[beyond:last] - checkpoint - 1))
            )
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
