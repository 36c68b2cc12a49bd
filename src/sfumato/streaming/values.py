"""Values of tree nodes: scalars, arrays, and nested lists, tuples and dicts of them.

Arrays may be of any library whose arrays can be added and scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import add
from typing import Protocol, Self, TypeAlias, TypeGuard, TypeVar, cast

import numpy as np

from sfumato.basics.numbers import Array
from sfumato.errors import UsageError

WHOLE = 2**14
"""Arrays above this size are processed piece by piece."""

T = TypeVar("T")
V = TypeVar("V")

Nested: TypeAlias = object
"""A leaf, or nested lists, tuples and dicts of leaves; type checkers cannot express this."""

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
    kind: type = type(first)
    if kind is float or kind is int:
        total = first * weights[0]
        for weight, value in zip(weights[1:], values[1:], strict=True):
            total += value * weight
        return total
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


def added(one: V, other: Nested) -> V:
    """Add up two values that are nested alike, leaf by leaf."""
    return cast(V, map_leaves(lambda pair: add(*pair), one, other))


def map_leaves(function: Callable[[Sequence[object]], object], *values: Nested) -> Nested:
    """Apply a function to the leaves, one of each value, of values that are nested alike.

    Raises
    ------
    UsageError
        If they are not nested alike.
    """
    first = values[0]
    if isinstance(first, dict):
        if not _are_like(values, first):
            raise unlike()
        if any(value.keys() != first.keys() for value in values[1:]):
            raise unlike()
        return {key: map_leaves(function, *(value[key] for value in values)) for key in first}
    if isinstance(first, list | tuple):
        if not _are_like(values, first):
            raise unlike()
        if any(len(value) != len(first) for value in values[1:]):
            raise unlike()
        items = [map_leaves(function, *parts) for parts in zip(*values, strict=True)]
        return refilled(first, items) if isinstance(first, tuple) else items
    return function(values)


def refilled(like: tuple[T, ...], items: Iterable[object]) -> tuple[object, ...]:
    """Return items as a tuple, or as a named tuple if ``like`` is one."""
    if not hasattr(like, "_make"):
        return tuple(items)
    named: tuple[object, ...] = like._make(items)
    return named


def _are_like(values: Sequence[object], first: T) -> TypeGuard[Sequence[T]]:
    return all(type(value) is type(first) for value in values[1:])


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
    each = iter(items)
    return cast(V, map_leaves(lambda _: next(each), like))


def _at_once(weights: Sequence[float], values: Sequence[Array]) -> Array:
    total: Array = values[0] * weights[0]
    for weight, value in zip(weights[1:], values[1:], strict=True):
        total += value if weight == 1 else value * weight
    return total


def _by_pieces(weights: Sequence[float], values: Sequence[Array]) -> Array:
    flat = [np.ascontiguousarray(value).reshape(-1) for value in values]
    if any(value.shape != values[0].shape for value in values):
        raise unlike()
    found = np.empty_like(flat[0])
    spare = np.empty(WHOLE, dtype=found.dtype)
    for start in range(0, found.size, WHOLE):
        piece = slice(start, start + WHOLE)
        out = found[piece]
        np.multiply(flat[0][piece], weights[0], out=out)
        for weight, value in zip(weights[1:], flat[1:], strict=True):
            if weight == 1:
                out += value[piece]
            else:
                out += np.multiply(value[piece], weight, out=spare[: out.size])
    return cast(Array, found.reshape(values[0].shape))


def unlike() -> UsageError:
    """Return the refusal of values that do not fit together."""
    return UsageError(
        "adding values of different nesting or shape",
        "they have no common structure",
        "Give values that are nested alike",
    )
