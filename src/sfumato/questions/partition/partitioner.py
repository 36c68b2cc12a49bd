"""The base of all partitioners: a question over Interval axes, and the lattice on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from sfumato.answers import Needs, Question
from sfumato.basics import MOST_PARTITION_CELLS
from sfumato.domain import Domain, Lattice, fine_lattice, named_axes
from sfumato.errors import printable
from sfumato.questions.partition.release import Partition


class OverAxes(Question[Partition], frozen=True):
    """A question over Interval axes, which is answered by a partition.

    Attributes
    ----------
    axes : str, sequence of str, or None
        The axes to divide. None: all Interval axes of the domain.
    name : str
        What partitions of this kind are called.

    >>> import sfumato as sf
    >>> from sfumato.extending import OverAxes
    >>> isinstance(sf.BinaryPartitioner(["lon", "lat"]), OverAxes)
    True
    """

    axes: str | Sequence[str] | None = None

    name: ClassVar[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.axes is not None:
            msgspec.structs.force_setattr(self, "axes", named_axes(self.axes))

    def needs(self, domain: Domain) -> Needs:
        """The default lattice."""
        lattice = fine_lattice(domain.intervals(self.axes))
        return Needs(lattice, self.most_numbers(lattice))

    def most_numbers(self, lattice: Lattice) -> int:
        """How many counts the answer may hold at most.

        A tree has fewer nodes above its cells than cells, and each node has at most one count.
        """
        return 2 * min(lattice.size, MOST_PARTITION_CELLS)

    @property
    def title(self) -> str:
        if self.axes is None:
            return self.name
        return f"{self.name} of {' x '.join(map(printable, self.axes))}"
