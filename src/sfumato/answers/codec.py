"""Questions and releases as JSON, and as the plain values of TOML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar, get_origin

import msgspec
import numpy as np

from sfumato.basics import fraction

T = TypeVar("T")

UNREADABLE = (
    msgspec.MsgspecError,
    ValueError,
    TypeError,
    ArithmeticError,
    LookupError,
    RecursionError,
)
"""What decoding a false file raises."""


def to_bytes(value: object) -> bytes:
    """Encode releases as JSON: the same bytes for the same release, always."""
    return msgspec.json.encode(value, enc_hook=_encode, order="deterministic")


def from_bytes(data: bytes, kind: type[T]) -> T:
    """Decode what ``to_bytes`` wrote."""
    return msgspec.json.decode(data, type=kind, dec_hook=_decode)


def from_plain(plain: object, kind: type[T]) -> T:
    """Turn dicts and lists, as TOML gives them, into frozen values, refusing unknown fields."""
    return msgspec.convert(plain, kind, dec_hook=_decode)


def _encode(value: object) -> object:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, np.ndarray):
        plain: object = value.tolist()
        return plain
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


DECODERS: dict[type, Callable[[object], object]] = {}
"""How values are decoded whose kinds are not all known here: by the type that a field declares."""


def _decode(kind: type, plain: object) -> object:
    if kind is object:
        return plain  # its own class reads it
    if kind in DECODERS:
        return DECODERS[kind](plain)
    if kind is Fraction:
        return fraction(plain, "a number")  # type: ignore[arg-type]  # it says what it cannot read
    plainly = get_origin(kind) or kind  # arrays are declared with or without their shape and dtype
    # The type itself is compared: to ``isinstance`` a boolean is an integer.
    if plainly is np.ndarray and isinstance(plain, list) and set(map(type, plain)) <= {int}:
        return np.array(plain, dtype=np.int64)
    raise TypeError(f"this is no {plainly.__name__}")
