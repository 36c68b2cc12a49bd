"""Quantiles beside the plain recursion of JointExp on sorted values, and beside a sort.

The recursion stands for the reference code: it multiplies in linear space by FFT, loses the tails,
and draws one tuple. Memory is the peak that numpy and Python allocate beyond the input. Rank errors
are means over quantiles and over several draws.
"""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np

from benchmarks.measuring import Chart, Row, medians
from sfumato.basics.numbers import Array
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.questions.quantiles.cells import Cells
from sfumato.questions.quantiles.methods import AxisMethod, Method
from sfumato.random.bits import current

CHART = Chart(
    "cpu ms", ("who", "rows", "quantiles"), others=("recursion by FFT, tails lost", "bare sort")
)
POINTS = 2**20
LOWER = -5.0
UPPER = 5.0


def rows(quick: bool = False) -> list[Row]:
    """Measure normal values, 9 and 30 quantiles at epsilon 1, on a lattice of 2^20 points."""
    found: list[Row] = []
    for size in (10**5,) if quick else (10**5, 10**6):
        values = np.clip(np.random.default_rng(3).normal(size=size), LOWER, UPPER)
        wall, process = medians(partial(np.sort, values), 3)
        found.append(
            {"who": "bare sort", "rows": size, "wall ms": wall * 1e3, "cpu ms": process * 1e3}
        )
        for m in (9, 30):
            found += _ours(values, m, 3 if quick else 5)
        found.append(_plain(values, 9))
    return found


def _ours(values: Array, m: int, runs: int) -> list[Row]:
    cells, below = points_of(values)
    at = tuple(Fraction(i, m + 1) for i in range(1, m + 1))
    methods: tuple[Method, ...] = ("joint", "recursive", "tree")
    found = []
    for method in methods:
        # As a question shares epsilon 1: a fifth for ranks, which a tree has without.
        of_ranks = None if method == "tree" else PureDP("0.2")
        cost = PureDP("1") if of_ranks is None else PureDP("0.8")
        axis_method = AxisMethod(method, at, POINTS, Unit(), cost, False, rank_cost=of_ranks)
        draw = partial(drawn_ranks, axis_method, cells, below)
        found.append(_row(f"sfumato, {method}", values.size, m, draw, at, runs))
    return found


def points_of(values: Array) -> tuple[Cells, Array]:
    """Return values on the lattice, and how many lie below each of its points."""
    points = ((values - LOWER) / (UPPER - LOWER) * POINTS).astype(np.int64)
    counts = np.bincount(np.minimum(points, POINTS - 1), minlength=POINTS)
    held = np.flatnonzero(counts)
    return Cells(held, counts[held], POINTS), np.concatenate([[0], np.cumsum(counts)])


def drawn_ranks(method: AxisMethod, cells: Cells, below: Array) -> Array:
    """How many values lie below the quantiles of one draw."""
    points, _ = method.draw_with_ranks(cells, current())
    return np.asarray(below[points])


def _plain(values: Array, m: int) -> Row:
    at = tuple(Fraction(i, m + 1) for i in range(1, m + 1))
    ordered = np.sort(values)
    return _row(
        "recursion by FFT, tails lost", values.size, m, partial(joint_ranks, ordered, at), at, 1
    )


def _row(
    who: str, size: int, m: int, draw: Callable[[], Array], at: tuple[Fraction, ...], runs: int
) -> Row:
    wall, process = medians(draw, runs)
    targets = size * np.array([float(q) for q in at])
    errors = [np.abs(draw() - targets) for _ in range(4 * runs)]
    tracemalloc.start()
    try:
        draw()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return {
        "who": who,
        "rows": size,
        "quantiles": m,
        "wall ms": wall * 1e3,
        "cpu ms": process * 1e3,
        "peak MiB": peak / 2**20,
        "rank error": float(np.mean(errors)),
        "worst of a draw": float(np.mean([error.max() for error in errors])),
    }


def joint_ranks(ordered: Array, at: tuple[Fraction, ...], epsilon: Fraction = Fraction(1)) -> Array:
    """One draw of JointExp on intervals of sorted values: the ranks of the chosen intervals.

    After Gillenwater, Joseph, Kulesza 2021, Alg. 1, in linear space, and without the term for
    several quantiles in one interval.
    """
    from scipy.signal import fftconvolve

    n = ordered.size
    rng = np.random.default_rng()
    widths = np.diff(np.concatenate([[LOWER], ordered, [UPPER]]))
    ends = [0.0, *map(float, at), 1.0]
    rate = float(epsilon) / (4 * (1 - min(b - a for a, b in pairwise(ends))))
    ranks = np.arange(n + 1)
    kernels = [np.exp(-rate * np.abs(ranks - n * (b - a))) for a, b in pairwise(ends)]
    alphas = [widths * kernels[0]]
    for kernel in kernels[1:-1]:
        alpha = widths * np.maximum(fftconvolve(alphas[-1], kernel)[: n + 1], 0)
        alphas.append(alpha / alpha.max())
    chosen: list[int] = []
    last = kernels[-1][::-1]
    for alpha, kernel in zip(reversed(alphas), reversed(kernels[:-1]), strict=True):
        weights = alpha[: len(last)] * last
        one = int(np.searchsorted(np.cumsum(weights), rng.random() * math.fsum(weights)))
        chosen.append(one)
        last = kernel[: one + 1][::-1]
    return np.array(chosen[::-1])
