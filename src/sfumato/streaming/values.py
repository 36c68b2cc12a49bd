"""Values of tree nodes, and the past of a stream of them under a fixed convolution.

*Values* are scalars, arrays, and nested lists, tuples and dicts of them. Arrays may be of any
library whose arrays can be added and scaled.

*The past of a stream* (``Past``): sum over i <= t of f_(t-i) v_i at each step t.

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

from collections.abc import Callable, Iterable, Sequence
from operator import add
from typing import Protocol, Self, TypeAlias, TypeGuard, TypeVar, cast

import msgspec
import numpy as np

from sfumato.basics import Array
from sfumato.errors import UsageError

# --- values ---------------------------------------------------------------------------------------

# Arrays above this size are processed piece by piece.
WHOLE = 2**14

T = TypeVar("T")
V = TypeVar("V")

# A leaf, or nested lists, tuples and dicts of leaves; type checkers cannot express this.
Nested: TypeAlias = object

_NESTS: tuple[type, ...] = (dict, list, tuple)


class Leaf(Protocol):
    """A number or an array, of any library: it can be added and scaled."""

    def __add__(self, other: Self, /) -> Self: ...
    def __mul__(self, other: float, /) -> Self: ...


class _Combine(Protocol):
    def __call__(self, weights: Sequence[float], values: Sequence[V]) -> V: ...


def _combine(weights: Sequence[float], values: Sequence[Leaf]) -> Nested:
    """Add up weights[i] * values[i], leaf by leaf and in order.

    The result has memory of its own and is never one of the values. Large numpy arrays are
    processed piece by piece, so that intermediate results stay in the processor's cache.

    >>> combine([1, 0.5], [{"a": [2.0, 4.0]}, {"a": [4.0, 8.0]}])
    {'a': [4.0, 8.0]}
    """
    first = values[0]
    if isinstance(first, _NESTS):
        return map_leaves(lambda leaves: combine(weights, leaves), *values)
    if _are_floats(values):
        return _by_pieces(weights, values) if values[0].size > WHOLE else _at_once(weights, values)
    # Multiplied even by 1, which gives memory of its own.
    total = first * weights[0]
    for weight, value in zip(weights[1:], values[1:], strict=True):
        total = total + (value if weight == 1 else value * weight)
    return total


# A type checker cannot see that values that are nested alike give one that is nested like them.
combine = cast(_Combine, _combine)


def added(value: V, other: Nested) -> V:
    """Add up two values that are nested alike, leaf by leaf."""
    return cast(V, map_leaves(lambda pair: add(*pair), value, other))


def map_leaves(function: Callable[[Sequence[object]], object], *values: Nested) -> Nested:
    """Apply a function to the leaves, one of each value, of values that are nested alike.

    Raises
    ------
    UsageError
        If they are not nested alike.
    """
    first = values[0]
    if not isinstance(first, _NESTS):
        return function(values)
    if any(_form(value) != _form(first) for value in values[1:]):
        raise unlike()
    if isinstance(first, dict):
        dicts = cast("tuple[dict[object, object], ...]", values)
        return {key: map_leaves(function, *(nest[key] for nest in dicts)) for key in first}
    entries = zip(*cast("tuple[Sequence[object], ...]", values), strict=True)
    items = [map_leaves(function, *parts) for parts in entries]
    return refilled(first, items) if isinstance(first, tuple) else items


def _form(value: Nested) -> tuple[type, object]:
    """Return what nests that are alike have in common: their type, and their keys or length."""
    if isinstance(value, dict):
        return type(value), value.keys()
    return type(value), len(value) if isinstance(value, list | tuple) else None


def refilled(like: tuple[T, ...], items: Iterable[object]) -> tuple[object, ...]:
    """Return items as a tuple, or as a named tuple if ``like`` is one."""
    if not hasattr(like, "_make"):
        return tuple(items)
    named: tuple[object, ...] = like._make(items)
    return named


def _are_floats(values: Sequence[object]) -> TypeGuard[Sequence[Array]]:
    """Tell whether the first value is a numpy array of floats; the others must be like it."""
    first = values[0]
    return type(first) is np.ndarray and first.dtype.kind == "f"


def leaves(value: Nested) -> list[Leaf]:
    """Return the leaves in order; a dict has the order of its keys."""
    if type(value) is float:
        return [value]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves(item)]
    return [cast(Leaf, value)]


def rebuilt(like: V, items: Sequence[Leaf]) -> V:
    """Nest items as the leaves of ``like`` are."""
    if not isinstance(like, dict | list | tuple):
        return cast(V, items[0])
    remaining = iter(items)
    return cast(V, map_leaves(lambda _: next(remaining), like))


def _at_once(weights: Sequence[float], values: Sequence[Array]) -> Array:
    total: Array = values[0] * weights[0]
    for weight, value in zip(weights[1:], values[1:], strict=True):
        total += value if weight == 1 else value * weight
    return total


def _by_pieces(weights: Sequence[float], values: Sequence[Array]) -> Array:
    flat = [np.ascontiguousarray(value).reshape(-1) for value in values]
    if any(value.shape != values[0].shape for value in values):
        raise unlike()
    # Memory of its own: callers may change the sum, and states share the values.
    total = np.empty_like(flat[0])
    spare = np.empty(WHOLE, dtype=total.dtype)
    for start in range(0, total.size, WHOLE):
        piece = slice(start, start + WHOLE)
        out = total[piece]
        np.multiply(flat[0][piece], weights[0], out=out)
        for weight, value in zip(weights[1:], flat[1:], strict=True):
            if weight == 1:
                out += value[piece]
            else:
                out += np.multiply(value[piece], weight, out=spare[: out.size])
    return cast(Array, total.reshape(values[0].shape))


def unlike() -> UsageError:
    """Return the refusal of values that do not fit together."""
    return UsageError(
        "adding values of different nesting or shape",
        "they have no common structure",
        "Give values that are nested alike",
    )


# --- the past of a stream -------------------------------------------------------------------------

# The number of steps in a unit.
BASE = 64

# The values of n steps, and what all values up to them add to the n steps that follow.
#
# Both are ndarrays of shape (n, size).
Block: TypeAlias = tuple[Array, Array]


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
        row_sum = row + weights[done:0:-1] @ self.tail
        if self.blocks:
            row_sum += self.blocks[0][1][done]
        tail = np.concatenate((self.tail, row[None]))
        if done + 1 < BASE:
            return row_sum, Past(self.blocks, tail)
        return row_sum, Past(_merged(self.blocks, tail, weights), tail[:0])


def empty(size: int, dtype: np.typing.DTypeLike) -> Past:
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
    # What the values add to as many steps after them: in a cyclic convolution of twice their length
    # nothing wraps around into the second half.
    from scipy import fft

    spectrum = fft.rfft(values.astype(np.float64, copy=False), 2 * size, axis=0)
    spectrum *= fft.rfft(weights[: 2 * size], 2 * size)[:, None]
    ahead = np.asarray(fft.irfft(spectrum, 2 * size, axis=0, overwrite_x=True)[size:])
    if older:
        # The older block adds first to the steps of ``values`` themselves, then to the steps ahead.
        ahead += older[0][1][size : 2 * size]
    return (values, ahead), *older
