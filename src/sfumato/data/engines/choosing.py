"""What readers of engines have in common: they are told how rows are chosen."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Self

from sfumato.arrays import Array
from sfumato.data.reader import CountingReader
from sfumato.lattice import LatticeAxis


class ChoosingTable(CountingReader):
    """A table whose engine bounds each person's rows, and drops those that fail a condition."""

    _choice: tuple[LatticeAxis, ...] | None = None
    _conditions: Sequence[tuple[LatticeAxis, Array]] = ()

    def choosing(
        self,
        choice: Sequence[LatticeAxis],
        conditions: Sequence[tuple[LatticeAxis, Array]],
    ) -> Self:
        """Give the same table, told how rows are chosen."""
        told = copy.copy(self)
        told._choice = tuple(choice)
        told._conditions = conditions
        return told
