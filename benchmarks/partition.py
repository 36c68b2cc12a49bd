"""Partitioning a cube of 10^6 occupied cells, and 10^5 range counts over 10^4 cells.

A bare histogram of the points by numpy is the floor.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.generate import points
from benchmarks.measuring import Chart, Row, medians
from sfumato.answers.question import AnyQuestion
from sfumato.answers.registry import answer_of, questions, tag_of
from sfumato.domain.cube import Cube
from sfumato.domain.domain import Domain, Interval
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.partition.adaptive import AutoPartitioner
from sfumato.questions.partition.fixed_depth import (
    BinaryPartitioner,
    MedianPartitioner,
    MultiQuantilePartitioner,
)
from sfumato.questions.partition.privtree import PrivTreePartitioner
from sfumato.questions.partition.release import Partition
from sfumato.random.bits import current

CHART = Chart("cpu s", ("what",))
ROWS = 2_000_000
RANGES = 100_000
TAILORED = {
    "PrivTree": PrivTreePartitioner(),
    "binary, 2^16 cells": BinaryPartitioner(depth=16),
    "median, 2^10 cells": MedianPartitioner(depth=10),
    "multi-quantile, 4^5 cells": MultiQuantilePartitioner(depth=5),
}
"""Partitioners that are measured with other parameters than their defaults, by name."""


def asked() -> dict[str, AnyQuestion]:
    """Every registered partitioner, by the name of its row."""
    named = {type(question) for question in TAILORED.values()}
    others = [kind for kind in questions() if answer_of(kind) is Partition and kind not in named]
    return {tag_of(kind).replace("-", " "): kind() for kind in others} | TAILORED


def rows(quick: bool = False) -> list[Row]:
    """Measure every partitioner on one cube, then range counts on trees of about 10^4 cells."""
    domain = Domain(x=Interval(0, 1), y=Interval(0, 1))
    lattice = AutoPartitioner().needs(domain).lattice
    table = points(ROWS // 10 if quick else ROWS)
    cells = []
    for values, axis in zip(table, lattice.grids, strict=True):
        cells.append(axis.locate(values.copy()))
    cube = Cube.of_cells(lattice, np.stack(cells, axis=1))
    occupied = int((cube.counts > 0).sum())
    runs = 1 if quick else 5
    floor = medians(lambda: np.histogram2d(table[0], table[1], bins=100), runs)
    found: list[Row] = []
    for name, question in asked().items():
        wall, process = medians(partial(question.answer, cube, Unit(), PureDP(1), current()), runs)
        found.append(
            {
                "what": name,
                "occupied cells": occupied,
                "wall s": wall,
                "cpu s": process,
                "histogram2d cpu s": floor[1],
            }
        )
    return [*found, _ranges(cube, runs)]


def _ranges(cube: Cube, runs: int) -> Row:
    tree = BinaryPartitioner(depth=13).answer(cube, Unit(), PureDP(1), current())
    ends = np.sort(np.random.default_rng(1).random((2, 2, RANGES)), axis=0)
    wall, process = medians(
        lambda: tree.count(x=(ends[0, 0], ends[1, 0]), y=(ends[0, 1], ends[1, 1])), runs
    )
    return {
        "what": f"10^5 ranges over {len(tree.counts):,} cells",
        "wall s": wall,
        "cpu s": process,
    }
