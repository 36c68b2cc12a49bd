"""Frozen values: a Struct of msgspec that refuses arguments, and values as JSON and plain ones.

``ExplainedStruct`` says in three parts which of its arguments do not fit. It is no part of
``errors``, which imports no library: a script that fails needs nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar, get_origin

import msgspec
import numpy as np

from sfumato.basics.numbers import fraction
from sfumato.errors import ArgumentError, SfumatoError, misfit_of, shortened, was_entered

if TYPE_CHECKING:
    # Type checkers know a Struct's arguments from its fields, and no metaclass must hide them.
    ExplainedStruct = msgspec.Struct
else:

    class _Explaining(type(msgspec.Struct)):
        """Calls the class; what msgspec says of arguments that do not fit is said as we say it."""

        def __call__(cls, *args: object, **named: object) -> object:
            try:
                return super().__call__(*args, **named)
            except SfumatoError as error:
                refusal = error
            except (TypeError, ValueError) as error:
                unfit = _misfit(cls, args, named, error)
                if unfit is None:
                    raise
                refusal = unfit
            # Outside the except block, so that Python adds no context again.
            try:
                raise shortened(refusal)
            finally:
                del refusal

    def _misfit(
        cls: type, args: tuple[object, ...], named: dict[str, object], error: Exception
    ) -> ArgumentError | None:
        """The error of arguments that do not fit, or of a table among them; None of another."""
        first = cls.__match_args__
        if was_entered(error):
            for name, value in [*zip(first, args, strict=False), *named.items()]:
                # A value that compares to others by an array: one of numpy, a column or a frame.
                if hasattr(value, "dtype") or hasattr(value, "__arrow_c_stream__"):
                    return ArgumentError(
                        f"{cls.__name__}({name}=...)",
                        f"a value of type {type(value).__name__} is not what it takes",
                        "Give a number, a word or a list; help() says which",
                    )
            return None
        fields = msgspec.structs.fields(cls)
        others = [field.name for field in fields if field.name not in first]
        needed = [field.name for field in fields if field.required]
        return misfit_of(cls.__name__, first, others, needed, len(args), named)

    class ExplainedStruct(msgspec.Struct, metaclass=_Explaining):
        """A Struct whose class refuses arguments that do not fit by an ``ArgumentError``."""


# --- as JSON, and as the plain values of TOML -----------------------------------------------------

T = TypeVar("T")

# What decoding a false file raises.
UNREADABLE = (
    msgspec.MsgspecError,
    ValueError,
    TypeError,
    ArithmeticError,
    LookupError,
    RecursionError,
)


def to_bytes(value: object) -> bytes:
    """Encode values as JSON: the same bytes for the same release, always."""
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


# How values are decoded whose kinds are not all known here: by the type that a field declares.
DECODERS: dict[type, Callable[[object], object]] = {}


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
