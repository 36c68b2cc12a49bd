"""Reduce the land outlines of Natural Earth to the coastlines that maps are drawn with.

    npm pack world-atlas@2.0.2 && tar xzf world-atlas-2.0.2.tgz
    python tools/make_coastlines.py package/land-10m.json

Natural Earth is in the public domain. Every point that is kept has a rank, so that a map can leave
out what is too fine for it without computing anything: ``src/sfumato/charts/coastlines.md`` says
what the file holds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

FILE = Path(__file__).parent.parent / "src" / "sfumato" / "charts" / "coastlines.npz"
PER_DEGREE = 100
FINEST = 0.02  # degrees: points nearer to the line without them are left out
LEVELS = 10  # each has twice the tolerance of the one before
LEAST_POINTS = 4  # of a ring, with the first one repeated


def rings(topology: dict) -> list[np.ndarray]:
    """The rings of all polygons: float64 ndarrays of shape (points, 2), closed."""
    scale, shift = (np.array(topology["transform"][name]) for name in ("scale", "translate"))
    arcs = [np.cumsum(arc, axis=0) * scale + shift for arc in topology["arcs"]]
    found = []
    for shape in topology["objects"]["land"]["geometries"]:
        for polygon in shape["arcs"]:
            for ring in polygon:
                # A negative number stands for an arc that is walked backwards.
                parts = [arcs[i] if i >= 0 else arcs[~i][::-1] for i in ring]
                found.append(np.concatenate([parts[0], *(part[1:] for part in parts[1:])]))
    return found


def tolerances(ring: np.ndarray) -> np.ndarray:
    """For each point the largest tolerance at which Douglas and Peucker's method keeps it.

    A point is kept whenever the points between which it stands are, so the tolerances of parts are
    at most those of the whole.
    """
    kept = np.zeros(len(ring))
    far = int(np.argmax(((ring - ring[0]) ** 2).sum(axis=1)))
    span = float(np.sqrt(((ring[far] - ring[0]) ** 2).sum()))
    kept[[0, far, len(ring) - 1]] = span
    parts = [(0, far, span), (far, len(ring) - 1, span)]
    while parts:
        first, last, most = parts.pop()
        if last - first < 2:
            continue
        distance = _distances(ring[first + 1 : last], ring[first], ring[last])
        at = int(np.argmax(distance))
        value = min(most, float(distance[at]))
        middle = first + 1 + at
        kept[middle] = value
        if value >= FINEST:
            parts += [(first, middle, value), (middle, last, value)]
    return kept


def _distances(points: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Distances of points from a segment."""
    along = end - start
    length = float(along @ along)
    share = np.clip((points - start) @ along / length, 0, 1) if length else np.zeros(len(points))
    return np.sqrt(((points - start - share[:, None] * along) ** 2).sum(axis=1))


def reduce(all_rings: list[np.ndarray]) -> dict[str, np.ndarray]:
    """What is stored: steps from point to point, the rank of each point, and sizes of rings."""
    steps, ranks, sizes = [], [], []
    for ring in all_rings:
        kept = tolerances(ring)
        rank = np.floor(np.log2(np.maximum(kept, 1e-9) / FINEST)).clip(-1, LEVELS - 1)
        if (rank >= 0).sum() < LEAST_POINTS:
            continue
        whole = np.rint(ring[rank >= 0] * PER_DEGREE).astype(np.int32)
        rank = rank[rank >= 0]
        differs = np.append(True, np.any(np.diff(whole, axis=0) != 0, axis=1))
        whole, rank = whole[differs], rank[differs]
        if len(whole) < LEAST_POINTS:
            continue
        steps.append(np.diff(whole, axis=0, prepend=np.zeros((1, 2), np.int32)))
        ranks.append(rank)
        sizes.append(len(whole))
    stacked = np.concatenate(steps)
    return {
        "x": stacked[:, 0].astype(np.int32),
        "y": stacked[:, 1].astype(np.int32),
        "rank": np.concatenate(ranks).astype(np.int8),
        "size": np.array(sizes, np.int32),
    }


if __name__ == "__main__":
    source = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    made = reduce(rings(source))
    np.savez_compressed(FILE, **made)
    print(f"{len(made['size']):,} rings, {len(made['x']):,} points, {FILE.stat().st_size:,} bytes")
