"""The cost of an answer beyond its scan: from a cube to a release that is stored and read back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.measuring import Chart, Row, medians
from sfumato.data import source
from sfumato.domain.cube import Cube
from sfumato.domain.domain import Domain, Interval
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.publishing.publisher import Publisher
from sfumato.questions.histogram import Histogram
from sfumato.questions.partition.uniform import UniformPartitioner
from sfumato.random.bits import current

CHART = Chart("cpu ms", ("what", "cells"))


def rows(quick: bool = False) -> list[Row]:
    """Measure answers of 10^4 and 10^6 cells, a ledger in memory, and inexact noise alone."""
    return [row for side in (100, 1_000) for row in _rows(side, 5 if quick else 9)]


def _rows(side: int, runs: int) -> list[Row]:
    domain = Domain(x=Interval(0, 1), y=Interval(0, 1))
    question = Histogram(["x", "y"], bins=side)
    cost = PureDP("0.5")
    unit = Unit()
    rng = np.random.default_rng(1)
    cells = side * side
    cube = Cube(question.needs(domain).lattice, rng.integers(0, 100, cells))
    works: dict[str, Callable[[], object]] = {
        "histogram, answer from its cube": lambda: question.answer(cube, unit, cost, current()),
        "histogram, charged, stored, read back": _whole(domain, question),
        "uniform grid, answer from its cube": lambda: UniformPartitioner().answer(
            cube, unit, cost, current()
        ),
    }
    floor = medians(lambda: rng.laplace(0, 2, cells), runs)
    return [_row(what, cells, medians(work, runs), floor) for what, work in works.items()]


def _whole(domain: Domain, question: Histogram) -> Callable[[], object]:
    publisher = Publisher(source(np.zeros((10, 2)), domain, name="bench"), budget="1000000")
    publisher.release(question, epsilon="0.5")
    return lambda: publisher.release(question, epsilon="0.5", fresh=True)


def _row(what: str, cells: int, seconds: tuple[float, float], floor: tuple[float, float]) -> Row:
    return {
        "what": what,
        "cells": cells,
        "wall ms": seconds[0] * 1e3,
        "cpu ms": seconds[1] * 1e3,
        "numpy noise cpu ms": floor[1] * 1e3,
        "ratio": seconds[1] / floor[1],
    }
