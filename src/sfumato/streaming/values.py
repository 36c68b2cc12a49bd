"""Values of tree nodes: scalars, arrays of any library that adds and scales, and nested lists, tuples and dicts of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from sfumato.arrays import Array
from sfumato.errors import UsageError

WHOLE = 2**14
"""Arrays above this size are worked on piece by piece."""


def combine(weights: Sequence[float], values: Sequence[Any]) -> Any:
    """Add up weights[i] * values[i], leaf by leaf, in order, in memory of its own: it never hands out one of the values.

    Large numpy arrays are worked on piece by piece, so that what is between stays in the processor's cache.

    >>> combine([1, 0.5], [{"a": [2.0, 4.0]}, {"a": [4.0, 8.0]}])
    {'a': [4.0, 8.0]}
    """
    first = values[0]
    if type(first) is float or type(first) is int:
        total = first * weights[0]
        for weight, value in zip(weights[1:], values[1:], strict=True):
            total += weight * value
        return total
    if isinstance(first, dict | list | tuple):
        return map_leaves(lambda *leaves: combine(weights, leaves), *values)
    if type(first) is np.ndarray and first.dtype.kind == "f":
        return _by_pieces(weights, values) if first.size > WHOLE else _at_once(weights, values)
    total = first * weights[0]  # also by 1, for that gives memory of its own
    for weight, value in zip(weights[1:], values[1:], strict=True):
        total = total + (value if weight == 1 else value * weight)
    return total


def map_leaves(function: Callable[..., Any], *values: Any) -> Any:
    """Apply a function to the leaves of values that are nested alike.

    Raises
    ------
    UsageError
        They are not nested alike.
    """
    first = values[0]
    if not isinstance(first, dict | list | tuple):
        return function(*values)
    if any(type(value) is not type(first) or len(value) != len(first) for value in values[1:]):
        raise unlike()
    if isinstance(first, dict):
        if any(value.keys() != first.keys() for value in values[1:]):
            raise unlike()
        return {key: map_leaves(function, *(value[key] for value in values)) for key in first}
    items = [map_leaves(function, *parts) for parts in zip(*values, strict=True)]
    if isinstance(first, tuple):
        return type(first)(*items) if hasattr(first, "_fields") else tuple(items)
    return items


def leaves(value: Any) -> list[Any]:
    """The leaves in order: of dicts, that of their keys as they stand."""
    if type(value) is float:
        return [value]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def rebuilt(like: Any, items: Sequence[Any]) -> Any:
    """Nest items as the leaves of ``like`` are."""
    if not isinstance(like, dict | list | tuple):
        return items[0]
    each = iter(items)
    return map_leaves(lambda _: next(each), like)


def _at_once(weights: Sequence[float], values: Sequence[Array]) -> Array:
    total: Array = values[0] * weights[0]
    for weight, value in zip(weights[1:], values[1:], strict=True):
        total += value if weight == 1 else value * weight
    return total


def _by_pieces(weights: Sequence[float], values: Sequence[Any]) -> Array:
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
    """What is said when values do not fit together."""
    return UsageError("adding values of different nesting or shape", "they have no common structure", "Give values that are nested alike")
