"""Everything random: a keystream of private bits, and exact integer samplers that consume it."""

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
