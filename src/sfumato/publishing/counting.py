"""Counts of one source, kept for later questions for as long as the data stay the same."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from sfumato.cube import Cube
from sfumato.data import Source, count
from sfumato.data.bounding import fresh_key
from sfumato.errors import DataError
from sfumato.forking import renewed_in_children
from sfumato.lattice import Lattice
from sfumato.random.bits import Bits

if TYPE_CHECKING:
    from sfumato.data.reader import Progress


class _Counted(NamedTuple):
    """What the cubes at hand were counted from, and the noise that answers from them get."""

    label: str
    noise: Bits


class Counting:
    """Counts a source in as few scans as its questions allow.

    Attributes
    ----------
    lock : RLock
        To be held from `begin` to the last count of an answer. A second thread could otherwise
        begin in between, and the first one's later counts would be of other rows of each person.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._renew()
        renewed_in_children(self, Counting._renew)

    def _renew(self) -> None:
        """Begin anew, as a child process must: a thread of its parent may have been counting."""
        self.lock = threading.RLock()
        self._cubes: list[Cube] = []
        self._counted: _Counted | None = None
        self._row_choice_key = b""

    def begin(self, label: str, noise: Bits) -> None:
        """Keep the cubes at hand only if they are counts of the same data.

        Parameters
        ----------
        label : str
            Tells the state of the data. A table in memory may have been changed in place without a
            trace in its label, so it is always counted again.
        noise : Bits
            Answers with noise from a public seed get counts of their own.
        """
        before = self._counted
        same = before is not None and before.label == label and before.noise is noise
        if same and not self._source.in_memory:
            return
        # Which rows of a person count is chosen under this key, alike on every lattice. It must
        # never be guessed, so a new one stands before any count can be made under it.
        self._row_choice_key = fresh_key()
        self._cubes = []
        self._counted = _Counted(label, noise)

    def cubes(self, lattices: list[Lattice], progress: Progress | None) -> list[Cube]:
        """The counts on each lattice. One scan counts whatever no cube at hand can give.

        Raises
        ------
        DataError
            If the data were changed meanwhile: the answer would mix two states of them.
        """
        missing = [lattice for lattice in dict.fromkeys(lattices) if self._cached(lattice) is None]
        needed = _finest(missing)
        if needed:
            self._cubes += count(self._source, needed, progress, key=self._row_choice_key)
            # The label is read again after the scan: the file may have been written to meanwhile.
            if self._counted is None or self._counted.label != self._source.label:
                self._counted = None
                raise DataError(
                    self._source.title,
                    "it was changed while it was read",
                    "Ask again when nobody writes to it",
                )
        found = [self._cached(lattice) for lattice in lattices]
        return [cube for cube in found if cube is not None]

    def cube(self, lattice: Lattice, progress: Progress | None) -> Cube:
        """The counts on one lattice."""
        return self.cubes([lattice], progress)[0]

    def _cached(self, lattice: Lattice) -> Cube | None:
        return next((cube.on(lattice) for cube in self._cubes if cube.serves(lattice)), None)


def _finest(lattices: list[Lattice]) -> list[Lattice]:
    """The lattices that no other one refines: cubes on the others follow from theirs."""
    return [
        lattice
        for lattice in lattices
        if not any(other != lattice and other.refines(lattice) for other in lattices)
    ]


class ReleaseCounts:
    """The counts that one question may ask for.

    Every lattice is counted under the same choice of each person's rows: the privacy unit then
    holds for all counts of a release together.

    Parameters
    ----------
    cube : Cube
        On the lattice that the question named beforehand.
    recount : callable
        Counts the same rows on another lattice.
    """

    def __init__(self, cube: Cube, recount: Callable[[Lattice], Cube]) -> None:
        self._cube = cube
        self._recount = recount

    @property
    def lattice(self) -> Lattice:
        return self._cube.lattice

    def serves(self, lattice: Lattice) -> bool:
        return True

    def on(self, lattice: Lattice) -> Cube:
        return self._cube.on(lattice) if self._cube.serves(lattice) else self._recount(lattice)
