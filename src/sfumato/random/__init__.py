"""Everything random: a keystream of private bits, and exact integer samplers that consume it.

Bits: ``bits`` (the keystream; bits of a secret key and a position; repeatable bits, never private),
``streams`` (bits of a secret and each of many messages, by keyed hashes).

Laws on the integers: ``discrete`` is the door, and makes choices by weight; ``inversion`` draws
Laplace and Gaussian noise, and encloses exponentials between two integers; ``finite`` draws from
any law on finitely many outcomes, ``truncated`` the noise that selects keys. ``normal`` draws
floats, which no central answer uses.
"""

from sfumato.random.bits import Bits, Keystream, PublicSeed, current, override
from sfumato.random.discrete import (
    choice,
    gaussian,
    integer_below,
    laplace,
)

__all__ = [
    "Bits",
    "Keystream",
    "PublicSeed",
    "choice",
    "current",
    "gaussian",
    "integer_below",
    "laplace",
    "override",
]
