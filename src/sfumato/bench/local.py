"""Local reports: perturbed a second, beside drawing the same normals and gammas with numpy, and decoded in how many seconds.

The floor is numpy's own generator: d normals and one gamma a report, inexact and not private, in blocks that stay in the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from sfumato.bench.measuring import Chart, Row, seconds
from sfumato.local import BPM, MultivariateLaplace, decode

CHART = Chart("M/s cpu", ("what", "d"))
EPSILON = {1: 4, 2: 4, 8: 8, 64: 64, 256: 256}


def floor(count: int, d: int) -> object:
    """What a report's randomness costs at least."""
    generator, rows = np.random.default_rng(), max(1, 2**15 // d)
    for _ in range(-(-count // rows)):
        generator.standard_normal((rows, d))
        generator.gamma(d, size=rows)
    return None


def perturbed(d: int, coordinates: int, runs: int) -> list[Row]:
    """Both mechanisms beside the floor, in turns, so that a slow spell of the machine meets all three; ratios are medians of runs."""
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
    times = np.array([[seconds(work) for work in works] for _ in range(runs + 1)])[1:]
    rows: list[Row] = []
    for place, name in enumerate(mechanisms, 1):
        wall, process = np.median(times[:, place], axis=0).tolist()
        ratio = float(np.median(times[:, place, 1] / times[:, 0, 1]))
        row = {
            "what": f"perturb, {name}",
            "d": d,
            "reports": count,
            "M/s wall": count / wall / 1e6,
            "M/s cpu": count / process / 1e6,
        }
        rows.append(row | {"of numpy's draws": ratio})
    return rows


def decoded(d: int, count: int) -> Row:
    """Blobs, perturbed and decoded."""
    rng = np.random.default_rng(d)
    centers = rng.uniform(0.15, 0.85, (4, d))
    points = centers[rng.integers(4, size=count)] + rng.normal(size=(count, d)) * 0.05
    mechanism = BPM(8, "auto", d)
    reports = mechanism.perturb(points)
    decode(reports[:100], mechanism, 1, rng)  # loads what is loaded once
    wall, process = seconds(lambda: decode(reports, mechanism, 4, rng))
    return {"what": "decode", "d": d, "reports": count, "s wall": wall, "s cpu": process}


def rows(quick: bool = False) -> list[Row]:
    """Measure everything."""
    coordinates, runs = (2**18, 3) if quick else (2**21, 21)
    found = [row for d in EPSILON for row in perturbed(d, coordinates, runs)]
    return found + [decoded(d, 10**5 if quick else 10**6) for d in (2, 4)]
