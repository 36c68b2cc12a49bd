"""The past of a stream under a fixed convolution: sum over i <= t of f_(t-i) v_i at each step t.

Steps are numbered from 0, and BASE of them make a unit. The units so far are cut into blocks whose
lengths are the binary digits of their number, the largest first, so that blocks merge as nodes of a
tree do. When a block of n steps is complete, one fast Fourier transform finds what its values add
to the n steps after it, and what earlier blocks add to the same steps is added on top. Any two
steps either meet in exactly one such transform, or lie in one unit, where a scalar product is used.

A step costs O(log(T)^2) on average, and the longest one O(T log T). Adding up all of the past would
cost O(T) a step. Memory holds all values, and one double for each.

A state is never changed: blocks are shared between the states of a stream, and the last unit is
copied.
Source: van der Hoeven, *Relax, but don't be too lazy*, 2002. There both factors are unknown; here f
is known beforehand.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import DTypeLike

from sfumato.basics.numbers import Array

BASE = 64
"""The number of steps in a unit."""

Block: TypeAlias = tuple[Array, Array]
"""The values of n steps, and what all values up to them add to the n steps that follow.

Both are ndarrays of shape (n, size).
"""


class Past(msgspec.Struct, frozen=True, eq=False):
    """The values of a stream so far, one row of numbers per step. Secret: they are noise.

    Attributes
    ----------
    blocks : tuple of blocks
        The smallest and latest first.
    tail : ndarray of shape (fewer than BASE, size)
        The values after the blocks.
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
    """Return the past of no steps, whose rows have ``size`` numbers."""
    return Past((), np.empty((0, size), dtype=dtype))


def _merged(blocks: tuple[Block, ...], values: Array, weights: Array) -> tuple[Block, ...]:
    """Return the blocks with a complete unit, joining those of equal length."""
    joined = 0
    size = len(values)
    while joined < len(blocks) and len(blocks[joined][0]) == size:
        joined += 1
        size *= 2
    # The latest block comes first, so that the values are joined from the end.
    values = np.concatenate([*(block for block, _ in blocks[:joined][::-1]), values])
    older = blocks[joined:]
    ahead = _ahead(values, weights)
    if older:
        ahead += older[0][1][size : 2 * size]
    return (values, ahead), *older


def _ahead(values: Array, weights: Array) -> Array:
    """Return what n values add to the n steps after them."""
    from scipy import fft

    n = len(values)
    # In a cyclic convolution of length 2n nothing wraps around into the second half.
    spectrum = fft.rfft(values.astype(np.float64, copy=False), 2 * n, axis=0)
    spectrum *= fft.rfft(weights[: 2 * n], 2 * n)[:, None]
    return np.asarray(fft.irfft(spectrum, 2 * n, axis=0, overwrite_x=True)[n:])
