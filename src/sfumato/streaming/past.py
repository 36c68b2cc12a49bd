"""The past of a stream under a fixed convolution, one value a step: sum over i <= t of f_(t-i) v_i, as soon as v_t is there.

Steps are numbered from 0, and BASE of them make a unit. The units so far are cut into blocks as the binary digits of their number say, the
largest first, so that blocks merge as nodes of a tree do. When a block of n steps is complete, one fast Fourier transform finds what its
values add to the n steps after it; what earlier blocks add to the same steps is put on top. The two steps of a pair fall under exactly one
such block, or into one unit, where a scalar product serves. A step so costs O(log(T)^2) on average, the longest O(T log T), where adding
up all of the past costs O(T); memory is all values, and a double a value.

A state is never changed: blocks are shared between the states of a stream, and the last unit is copied.
Source: van der Hoeven, *Relax, but don't be too lazy*, 2002 (there with both factors unknown; here f is known beforehand).
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import DTypeLike

from sfumato.arrays import Array

BASE = 64
"""Steps of a unit."""

Block: TypeAlias = tuple[Array, Array]
"""Values of n steps, and what all values so far add to the n steps that follow: two ndarrays of shape (n, size)."""


class Past(msgspec.Struct, frozen=True, eq=False):
    """What a stream of rows of numbers has been: secret, as it is all noise so far.

    Attributes
    ----------
    blocks : tuple of blocks, the smallest and latest first
    tail : ndarray of shape (fewer than BASE, size)
        Values after the blocks.
    """

    blocks: tuple[Block, ...]
    tail: Array

    def add(self, row: Array, weights: Array) -> tuple[Array, Past]:
        """Take the value of a step.

        Parameters
        ----------
        row : ndarray of shape (size,)
        weights : float64 ndarray of shape (horizon,)
            f, with f_0 = 1. It must be the same at every step.

        Returns
        -------
        float64 ndarray of shape (size,), and the past with this step
        """
        done = len(self.tail)
        found = row + weights[done:0:-1] @ self.tail
        if self.blocks:
            found += self.blocks[0][1][done]
        tail = np.concatenate((self.tail, row[None]))
        if done + 1 < BASE:
            return found, Past(self.blocks, tail)
        return found, Past(_merged(self.blocks, tail, weights), tail[:0])


def empty(size: int, dtype: DTypeLike) -> Past:
    """No steps yet, of rows of so many numbers."""
    return Past((), np.empty((0, size), dtype=dtype))


def _merged(blocks: tuple[Block, ...], values: Array, weights: Array) -> tuple[Block, ...]:
    """Put a complete unit to the blocks, joining those of equal length."""
    joined, size = 0, len(values)
    while joined < len(blocks) and len(blocks[joined][0]) == size:
        joined, size = joined + 1, 2 * size
    values, older = (
        np.concatenate([*(block for block, _ in blocks[:joined][::-1]), values]),
        blocks[joined:],
    )
    ahead = _ahead(values, weights)
    if older:
        ahead += older[0][1][size : 2 * size]
    return (values, ahead), *older


def _ahead(values: Array, weights: Array) -> Array:
    """What n values add to the n steps after them: the half of a cyclic convolution of length 2n that nothing wraps around into."""
    from scipy import fft

    n = len(values)
    spectrum = fft.rfft(values.astype(np.float64, copy=False), 2 * n, axis=0)
    spectrum *= fft.rfft(weights[: 2 * n], 2 * n)[:, None]
    return np.asarray(fft.irfft(spectrum, 2 * n, axis=0, overwrite_x=True)[n:])
