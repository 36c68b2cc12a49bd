"""The price of trusting nobody, on one axis.

    python -m benchmarks.studies.trust [--draws 3] [--rows 4,5] [--write]

Clusters by a trusted curator (``sf.KMeans``), from reports with multivariate Laplace noise, and
from reports of BPM (``sf.PrivateKMeans``), on the same points with the same loss: the mean squared
distance to the nearest centre, over that of the best of ten runs of k-means without privacy.
Figures are medians over draws of the noise. Rows are added to docs/evidence/trust.json as they are
measured. Then the table in docs/trust.md and its picture are written again. ``--write`` only
writes them.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import numpy as np

import sfumato as sf
from benchmarks.clustering import cities
from sfumato.basics.kmeans import kmeans, sse
from sfumato.basics.numbers import Array
from sfumato.domain.cube import Cube
from sfumato.domain.domain import Domain, Interval
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.random.bits import current

ROOT = Path(__file__).parents[2]
FIGURES, PICTURE, PAGE = (
    ROOT / "docs/evidence/trust.json",
    ROOT / "docs/evidence/trust.png",
    ROOT / "docs/trust.md",
)
SQUARE = Domain(x=Interval(0, 1), y=Interval(0, 1))
CURATOR, LAPLACE, BPM = (
    "trusted curator, auto",
    "no curator, multivariate Laplace",
    "no curator, BPM",
)
WAYS = (CURATOR, LAPLACE, BPM)
EPSILONS = (1, 2, 4, 8)
LOCAL: dict[str, Literal["laplace", "bpm"]] = {LAPLACE: "laplace", BPM: "bpm"}


def blobs(n: int) -> tuple[Array, int]:
    """Three normal clusters in the unit square."""
    rng, centers = np.random.default_rng(1), np.array([[0.2, 0.25], [0.8, 0.3], [0.5, 0.85]])
    return np.clip(centers[rng.integers(3, size=n)] + rng.normal(size=(n, 2)) * 0.05, 0, 1), 3


def places(n: int) -> tuple[Array, int]:
    """Some of the world's cities: longitude and latitude, each scaled to the unit interval."""
    points = (cities().points + 1) / 2
    return points[np.random.default_rng(0).choice(len(points), n, replace=False)], 5


def found(way: str, points: Array, cube: Cube, k: int, epsilon: int) -> Array:
    """Centres of one draw of the noise, in the unit square."""
    if way == CURATOR:
        return sf.KMeans(k).answer(cube, Unit(), PureDP(epsilon), current()).centers
    return (
        sf.PrivateKMeans(n_clusters=k, epsilon=epsilon, mechanism=LOCAL[way])
        .fit(points)
        .cluster_centers_
    )


def measure(name: str, points: Array, k: int, draws: int) -> list[dict[str, object]]:
    """Loss ratios of every way at every epsilon on one table."""
    lattice = sf.KMeans(k).needs(SQUARE).lattice
    cube = Cube.of_cells(
        lattice,
        np.stack(
            [axis.locate(points[:, i].copy()) for i, axis in enumerate(lattice.grids)], axis=1
        ),
    )
    best, one = sse(points, kmeans(points, k, tries=10)), sse(points, points.mean(axis=0)[None])
    rows: list[dict[str, object]] = []
    for epsilon in EPSILONS:
        for way in WAYS:
            ratios = [
                sse(points, found(way, points, cube, k, epsilon)) / best for _ in range(draws)
            ]
            rows.append(
                {
                    "data": name,
                    "n": len(points),
                    "k": k,
                    "way": way,
                    "epsilon": epsilon,
                    "draws": draws,
                }
            )
            rows[-1] |= {
                "ratio": round(float(np.median(ratios)), 4),
                "worst": round(max(ratios), 4),
                "one centre": round(one / best, 2),
            }
            print(
                f"{name:8} {len(points):>7,} epsilon {epsilon} {way:34} {rows[-1]['ratio']:.3f}",
                flush=True,
            )
    return rows


def write(rows: list[dict[str, object]]) -> None:
    """Put the table on its page, between its marks, and draw it."""
    lines = [
        "| data | rows | epsilon | " + " | ".join(WAYS) + " | one centre for all |",
        "|---" * (len(WAYS) + 4) + "|",
    ]
    cells = {(row["data"], row["n"], row["epsilon"], row["way"]): row for row in rows}
    for data, n, epsilon in dict.fromkeys(key[:3] for key in cells):
        here = [cells[data, n, epsilon, way] for way in WAYS]
        ratios = " | ".join(f"{row['ratio']:.3f}" for row in here)
        lines.append(f"| {data} | {n:,} | {epsilon} | {ratios} | {here[0]['one centre']:.1f} |")
    start, end = "<!-- table: benchmarks/studies/trust.py -->", "<!-- end of table -->"
    head, rest = PAGE.read_text(encoding="utf-8").split(start)
    PAGE.write_text(
        f"{head}{start}\n{chr(10).join(lines)}\n{end}{rest.split(end)[1]}", encoding="utf-8"
    )
    draw(cells)


def draw(cells: Mapping[tuple[object, object, object, object], dict[str, object]]) -> None:
    """What each way loses beyond k-means without privacy, against epsilon."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    tables = sorted({key[:2] for key in cells}, key=str)
    figure, panels = plt.subplots(1, len(tables), figsize=(3.3 * len(tables), 4), sharey=True)
    for ax, (data, n) in zip(np.atleast_1d(panels), tables, strict=True):
        for way, mark, colour in zip(WAYS, "oDs", ("#111111", "#c05621", "#2b6cb0"), strict=True):
            extra = [100 * (cells[data, n, epsilon, way]["ratio"] - 1) for epsilon in EPSILONS]  # type: ignore[operator]
            ax.plot(
                EPSILONS,
                np.maximum(extra, 0.01),
                mark,
                ls="-",
                color=colour,
                mfc="white" if way == LAPLACE else colour,
                label=way,
            )
        alone = 100 * (float(cells[data, n, EPSILONS[0], CURATOR]["one centre"]) - 1)  # type: ignore[arg-type]
        ax.axhline(alone, color="#888888", ls=":", label="one centre for all: nothing learnt")
        ax.set(xscale="log", yscale="log", xlabel="epsilon", title=f"{data}, {n:,} people")
        ax.set_xticks(EPSILONS, [str(epsilon) for epsilon in EPSILONS])
        ax.minorticks_off()
        ax.grid(axis="y", color="#dddddd")
    first = np.atleast_1d(panels)[0]
    top = math.ceil(math.log10(max(100.0 * float(row["one centre"]) for row in cells.values())))  # type: ignore[arg-type]
    ticks = [10.0**power for power in range(-2, top + 1)]
    first.set_yticks(ticks, ["0.01 or less", *(f"{tick:g}" for tick in ticks[1:])])
    first.set_ylabel("loss beyond no privacy, %")
    figure.legend(*first.get_legend_handles_labels(), loc="lower center", ncol=2, frameon=False)
    figure.tight_layout(rect=(0, 0.14, 1, 1))
    figure.savefig(PICTURE, dpi=110)


def main() -> None:
    """Measure what is asked for, and write the page."""
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("--draws", type=int, default=3)
    asked.add_argument("--rows", default="4,5", help="powers of ten")
    asked.add_argument("--write", action="store_true")
    options = asked.parse_args()
    rows: list[dict[str, object]] = (
        json.loads(FIGURES.read_text())["figures"] if FIGURES.exists() else []
    )
    for power in () if options.write else options.rows.split(","):
        for name, make in (("blobs", blobs), ("cities", places)):
            points, k = make(10 ** int(power))
            rows = [
                row for row in rows if (row["data"], row["n"]) != (name, len(points))
            ] + measure(name, points, k, options.draws)
            commit = subprocess.run(
                ["git", "describe", "--always"],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
            FIGURES.write_text(
                json.dumps({"commit": commit, "figures": rows}, indent=1) + "\n", encoding="utf-8"
            )
    write(rows)


if __name__ == "__main__":
    main()
