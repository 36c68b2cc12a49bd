"""Reports of one device, with no trusted curator."""

from __future__ import annotations

from collections.abc import Iterator

from sfumato.audit.runs import Pair, Published, Rows
from sfumato.audit.subjects.subject import PURE, Subject
from sfumato.local import BPM, MultivariateLaplace
from sfumato.privacy.unit import Unit
from sfumato.random.bits import Bits

APART: Pair = (((0.25, 0.5),), ((0.75, 0.5),))


def _device(name: str, mechanism: BPM | MultivariateLaplace) -> Subject:
    """Two points half a side apart, on a coarse lattice: epsilon 2 per unit of distance is 1 for these two."""

    def run(rows: Rows, noise: Bits) -> Published:
        report = mechanism.place(mechanism.draw_cells(rows, noise))[0]
        return Published(tuple(int(axis) for axis in (report * 4) // 1), None)

    return Subject(name, Unit(neighbours="replace"), PURE, run, pair=APART)


def subjects() -> Iterator[Subject]:
    """Every subject of this room."""
    yield _device("BPM report, half a side apart", BPM(2, 3, 2))
    yield _device("Laplace report, half a side apart", MultivariateLaplace(2, 2))
