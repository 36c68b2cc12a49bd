"""Everything random: a keystream of private bits, and exact integer samplers that consume it.

Bits: ``bits`` (the keystream), ``derived`` (bits of a secret key and a position), ``streams`` (bits
of a secret and each of many messages, by the keyed hashes of ``macs``), ``seeded`` (repeatable,
never private).
Laws on the integers: ``discrete`` is the door; ``inversion`` draws Laplace and Gaussian noise,
``finite`` any law on finitely many outcomes, ``truncated`` the noise that selects keys,
``weighted`` choices by weight. ``enclosure`` gives them exponentials between two integers.
``normal`` draws floats, which no central answer uses.
"""

from sfumato.random.bits import Bits, Keystream, PublicSeed, current, override
from sfumato.random.discrete import (
    bernoulli,
    bernoulli_exp,
    choice,
    gaussian,
    geometric,
    integer_below,
    laplace,
    uniform_below,
)

__all__ = [
    "Bits",
    "Keystream",
    "PublicSeed",
    "bernoulli",
    "bernoulli_exp",
    "choice",
    "current",
    "gaussian",
    "geometric",
    "integer_below",
    "laplace",
    "override",
    "uniform_below",
]
