"""Chosen integers in place of noise: how ``sfumato.audit`` replays a mechanism.

The only way to bypass a law's sampler.

A law of integers draws through ``IntegerLaw.sample``. Where the bits that it is given are a
``Script``, the law asks the script for its draws; everywhere else it draws from the bits. A release
made under a script says that it is not private.

A selection of edges has no noise that could be replaced. Where the bits are a ``Script``, it asks
the script for the outcome, and tells it how likely each outcome is, by the weights that it draws
by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, final

import msgspec

from sfumato.basics.numbers import Array
from sfumato.random import bits


class Drawn(Protocol):
    """A law of integers, as far as a script knows it."""

    def sample(self, size: int, noise: bits.Bits, /) -> Array: ...


@dataclass(frozen=True, repr=False, eq=False)
class Selection:
    """A selection of public edges, as far as a script knows it.

    For audits only: ``log_probability`` is computed from true counts.

    Attributes
    ----------
    first : int
        The lowest edge that can be chosen.
    edges : int
        From how many edges.
    size : int
        How many edges are chosen at once, in order.
    distinct : bool
        Whether they must differ.
    log_probability : callable
        From edges, int64 ndarray of shape (size,), to ln P of choosing them.
    """

    first: int
    edges: int
    size: int
    distinct: bool
    log_probability: Callable[[Array], float]


class Script:
    """Chosen integers in place of noise: a law asks a script for its draws.

    Never private, and stamped so.
    """

    @final
    @property
    def private(self) -> Literal[False]:
        """A release made under a script says that it is not private."""
        return False

    def words(self, count: int) -> bits.Words:
        """Hand out raw bits, of which a script has none unless a subclass says so."""
        raise NotImplementedError

    def draw(self, law: Drawn, size: int) -> Array:
        """Hand out ``size`` integers in place of draws from ``law``: int64 ndarray."""
        raise NotImplementedError

    def choose(self, selection: Selection) -> Array:
        """Hand out the edges that a selection is to choose: int64 ndarray of shape (size,)."""
        raise NotImplementedError


class IntegerLaw(msgspec.Struct, frozen=True):
    """A law of integers: what noise on counts is drawn from."""

    def sample(self, size: int, noise: bits.Bits) -> Array:
        """Draw ``size`` independent values: int64 ndarray of shape (size,)."""
        if isinstance(noise, Script):
            return noise.draw(self, size)
        return self._draw(size, noise)

    def _draw(self, size: int, noise: bits.Bits) -> Array:
        """Draw from the bits."""
        raise NotImplementedError
