"""Data for tests of quantiles.

They are a domain with every kind of axis, the methods, and cells from counts.
"""

import numpy as np

import sfumato as sf
from sfumato.questions.quantiles.cells import Cells, points_of
from sfumato.questions.quantiles.methods import AxisMethod
from sfumato.random.bits import Bits

DOMAIN = sf.Domain(
    x=sf.Interval(-5, 5),
    y=sf.Interval(0, 100, step=1),
    kind=sf.Categories(["a", "b", "c"]),
    day=sf.Interval("2013-01-01", "2014-01-01"),
)
SELECTIONS = ["joint", "recursive"]
METHODS = [*SELECTIONS, "tree"]


def cells_of(counts):
    """The occupied cells of an axis with so many rows in each cell."""
    counts = np.array(counts, dtype=np.int64)
    occupied = np.flatnonzero(counts)
    return Cells(occupied, counts[occupied], len(counts))


def drawn_points(method: AxisMethod, cells: Cells, bits: Bits) -> np.ndarray:
    """Choose lattice points, whether or not anything pays for their ranks."""
    if method.method == "tree":
        return method.draw_with_ranks(cells, bits)[0]
    edges = method.select(cells.divided(method.subcells), bits)
    return points_of(edges, method.subcells, method.cells, method.snap)
