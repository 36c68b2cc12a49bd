"""Questions and releases as JSON, and as the plain values of TOML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np

from sfumato.exact import fraction

UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError, ArithmeticError, RecursionError)
"""What decoding a false file raises."""


def to_bytes(value: Any) -> bytes:
    """Encode releases as JSON: the same bytes for the same release, always."""
    return msgspec.json.encode(value, enc_hook=_encode, order="deterministic")


def from_bytes(data: bytes, kind: Any) -> Any:
    """Decode what ``to_bytes`` wrote."""
    return msgspec.json.decode(data, type=kind, dec_hook=_decode)


def from_plain(plain: Any, kind: Any) -> Any:
    """Turn plain dicts and lists, as TOML gives them, into frozen values; unknown fields are refused."""
    return msgspec.convert(plain, kind, dec_hook=_decode)


def _encode(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, np.ndarray | Sequence):
        return value.tolist() if isinstance(value, np.ndarray) else list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


DECODERS: dict[type, Callable[[Any], Any]] = {}
"""How values are decoded whose kinds are not all known here: by the type that a field declares."""


def _decode(kind: type, plain: Any) -> Any:
    if kind in DECODERS:
        return DECODERS[kind](plain)
    if kind is Fraction:
        return fraction(plain, "a number")
    if kind is np.ndarray and isinstance(plain, list) and set(map(type, plain)) <= {int}:
        return np.array(plain, dtype=np.int64)
    raise TypeError(f"this is no {kind.__name__}")
