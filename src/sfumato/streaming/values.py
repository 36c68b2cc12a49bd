"""Values of tree nodes: scalars, arrays of any library that adds and scales, and nested lists, tuples and dicts of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from sfumato.errors import UsageError

_WHOLE, _PIECE = 2**15, 2**15


def combine(weights: Sequence[float], values: Sequence[Any]) -> Any:
    """Add up weights[i] * values[i], leaf by leaf, in order; a weight of exactly 1 leaves its value as it is.

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
    if isinstance(first, np.ndarray) and first.size > _WHOLE and first.dtype.kind == "f":
        return _by_pieces(weights, values)
    total = _scaled(weights[0], first)
    for weight, value in zip(weights[1:], values[1:], strict=True):
        total = total + _scaled(weight, value)
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
        raise _unlike()
    if isinstance(first, dict):
        if any(value.keys() != first.keys() for value in values[1:]):
            raise _unlike()
        return {key: map_leaves(function, *(value[key] for value in values)) for key in first}
    items = [map_leaves(function, *parts) for parts in zip(*values, strict=True)]
    if isinstance(first, tuple):
        return type(first)(*items) if hasattr(first, "_fields") else tuple(items)
    return items


def leaves(value: Any) -> list[Any]:
    """The leaves in order: of dicts, that of their keys as they stand."""
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in leaves(item)]
    if isinstance(value, list | tuple):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


def _scaled(weight: float, value: Any) -> Any:
    return value if weight == 1 else value * weight


def _by_pieces(weights: Sequence[float], values: Sequence[Any]) -> np.ndarray:
    flat = [np.ascontiguousarray(value).reshape(-1) for value in values]
    if any(value.shape != values[0].shape for value in values):
        raise _unlike()
    found = np.empty_like(flat[0])
    spare = np.empty(_PIECE, dtype=found.dtype)
    for start in range(0, found.size, _PIECE):
        piece = slice(start, start + _PIECE)
        out = found[piece]
        np.multiply(flat[0][piece], weights[0], out=out)
        for weight, value in zip(weights[1:], flat[1:], strict=True):
            if weight == 1:
                out += value[piece]
            else:
                out += np.multiply(value[piece], weight, out=spare[: out.size])
    return cast(np.ndarray, found.reshape(values[0].shape))


def _unlike() -> UsageError:
    return UsageError("adding values of different nesting or shape", "they have no common structure", "Give values that are nested alike")
