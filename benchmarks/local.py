"""Local reports: how many are perturbed per second, and how long decoding takes.

The floor is to draw the same normals and gammas by numpy's own generator: d normals and one gamma
for each report, inexact and not private, in blocks that stay in the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.measuring import Chart, Row, seconds
from sfumato.local import BPM, MultivariateLaplace, decode

CHART = Chart("M/s cpu", ("what", "d"))
EPSILON = {1: 4, 2: 4, 8: 8, 64: 64, 256: 256}


def floor(count: int, d: int) -> object:
    """Draw the randomness of ``count`` reports by numpy."""
    generator = np.random.default_rng()
    rows = max(1, 2**15 // d)
    for _ in range(-(-count // rows)):
        generator.standard_normal((rows, d))
        generator.gamma(d, size=rows)
    return None


def perturbed(d: int, coordinates: int, runs: int) -> list[Row]:
    """Measure both mechanisms and the floor in turns, so that a slow spell meets all three.

    Ratios are medians over runs, too.
    """
    count = coordinates // d
    points = np.random.default_rng(0).random((count, d))
    mechanisms: dict[str, BPM | MultivariateLaplace] = {
        "BPM, L auto": BPM(EPSILON[d], "auto", d),
        "multivariate Laplace": MultivariateLaplace(EPSILON[d], d),
    }
    works: list[Callable[[], object]] = [
        partial(floor, count, d),
        *(partial(mechanism.perturb, points) for mechanism in mechanisms.values()),
    ]
    # Of shape (runs, works, 2). The first run is dropped: it loads what is loaded once.
    times = np.array([[seconds(work) for work in works] for _ in range(runs + 1)])[1:]
    rows: list[Row] = []
    for i, name in enumerate(mechanisms, 1):
        wall, process = np.median(times[:, i], axis=0).tolist()
        rows.append(
            {
                "what": f"perturb, {name}",
                "d": d,
                "reports": count,
                "M/s wall": count / wall / 1e6,
                "M/s cpu": count / process / 1e6,
                "of numpy's draws": float(np.median(times[:, i, 1] / times[:, 0, 1])),
            }
        )
    return rows


def decoded(d: int, count: int) -> Row:
    """Measure decoding the reports of four clusters."""
    rng = np.random.default_rng(d)
    centers = rng.uniform(0.15, 0.85, (4, d))
    points = centers[rng.integers(4, size=count)] + rng.normal(size=(count, d)) * 0.05
    mechanism = BPM(8, "auto", d)
    reports = mechanism.perturb(points)
    # The first call loads what is loaded once.
    decode(reports[:100], mechanism, 1, rng)
    wall, process = seconds(lambda: decode(reports, mechanism, 4, rng))
    return {"what": "decode", "d": d, "reports": count, "s wall": wall, "s cpu": process}


def rows(quick: bool = False) -> list[Row]:
    """Measure everything."""
    coordinates, runs = (2**18, 3) if quick else (2**21, 21)
    found = [row for d in EPSILON for row in perturbed(d, coordinates, runs)]
    return found + [decoded(d, 10**5 if quick else 10**6) for d in (2, 4)]
