"""Reports of one device, with no trusted curator."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sfumato.audit.runs import Mechanism, Pair, Published, Rows
from sfumato.audit.subjects.subject import PURE, Subject
from sfumato.local import BPM, MultivariateLaplace
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

APART: Pair = (((0.25, 0.5),), ((0.75, 0.5),))


def _device(name: str, made: Callable[[int], BPM | MultivariateLaplace]) -> Subject:
    """Two points half a side of the unit cube apart.

    An epsilon of 2 per unit of distance is 1 for these two, so that the claim is epsilon = 1.
    """

    def spending(times: int) -> Mechanism:
        mechanism = made(2 * times)

        def run(rows: Rows, noise: Bits) -> Published:
            report = mechanism.place(mechanism.draw_cells(rows, noise))[0]
            # Coarse outputs, so that few runs fill each of them.
            return Published(tuple(int(axis) for axis in (report * 4) // 1), None)

        return run

    return Subject(name, Unit(neighbours="replace"), PURE, spending(1), pair=APART, weaker=spending)


def subjects() -> Iterator[Subject]:
    """Every subject of this module."""
    yield _device("BPM report, half a side apart", lambda epsilon: BPM(epsilon, 3, 2))
    yield _device(
        "Laplace report, half a side apart", lambda epsilon: MultivariateLaplace(epsilon, 2)
    )
