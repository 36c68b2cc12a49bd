"""What a question asks to have counted, and what it may ask of the data once that is counted."""

from __future__ import annotations

from typing import Protocol

import msgspec

from sfumato.cube import Cube
from sfumato.lattice import Lattice


class Needs(msgspec.Struct, frozen=True):
    """What is to be counted before a question can be answered, from public things only.

    Attributes
    ----------
    lattice : Lattice
        The cells in which rows are counted.
    numbers : int
        How many numbers the answer may hold at most; with keys, how many for each key that is
        shown. It is checked before the charge, so that what was paid for can be stored.
    """

    lattice: Lattice
    numbers: int


class Counts(Protocol):
    """The counted data, as a question that is being answered may see them.

    Every call counts exactly the same rows of the same persons, so that the contribution bound
    holds over all of them together. A ``Cube`` is the simplest implementation: it serves every
    lattice that its own refines.
    """

    @property
    def lattice(self) -> Lattice:
        """The lattice that the question named."""

    def serves(self, lattice: Lattice) -> bool:
        """Whether the rows can be counted on another lattice; decided by public things only."""

    def on(self, lattice: Lattice) -> Cube:
        """Count the same rows on a lattice.

        Raises
        ------
        InternalError
            If it is a lattice that these counts do not serve.
        """
