"""Range counts of every partitioner, side by side.

    python -m benchmarks.studies.partitions [--draws 20] [--rows 4,5,real,6] [--resume]

Every figure is the mean relative error of 400 random boxes in per cent (``shapes``): the median
over draws of the noise, for small, medium and large boxes. Rows are added to
docs/evidence/partitions.json as they are measured. Then the table in docs/partitions.md and its
picture are written again. ``--write`` only writes them. ``--resume`` leaves out rows that were
measured with the same code of the partitioners and as many draws. ``--rows floor-6`` is the floor
with 10^6 rows alone. Parts of the table may be measured side by side.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias, TypedDict

import numpy as np

import sfumato as sf
from benchmarks.studies import shapes
from sfumato.answers.question import AnyQuestion
from sfumato.basics.numbers import Array
from sfumato.demo import cities_path, flights_path
from sfumato.domain.cube import Cube
from sfumato.domain.domain import Domain, Interval
from sfumato.privacy.measures import PureDP
from sfumato.privacy.unit import Unit
from sfumato.random.bits import current

ROOT = Path(__file__).parents[2]
FIGURES, PICTURE, PAGE = (
    ROOT / "docs/evidence/partitions.json",
    ROOT / "docs/evidence/partitions.png",
    ROOT / "docs/partitions.md",
)
SQUARE = Domain(x=Interval(0, 1), y=Interval(0, 1))
# The best of what was measured before this library, per cell of the table: uniform grid,
# adaptive grid, quad-tree, PrivTree.
REFERENCE: dict[str, dict[str, tuple[list[float] | None, ...]]] = {
    "uniform": {
        "clusters": ([62.6, 40.3, 3.20], [13.5, 7.84, 0.61], [2.17, 1.79, 0.11]),
        "roads": ([36.3, 6.15, 3.16], [7.30, 1.57, 0.80], [1.37, 0.37, 0.22]),
        "beta": ([12.8, 17.9, 1.99], [4.20, 6.36, 0.67], [1.32, 1.83, 0.24]),
        "floor": ([12.6, 2.22, 0.68], [2.88, 0.62, 0.18], [0.80, 0.19, 0.06]),
    },
    "adaptive grid": {
        "clusters": ([33.8, 23.9, 1.43], [3.84, 2.82, 0.14], [0.80, 0.56, 0.04]),
        "roads": ([30.0, 5.70, 2.30], [6.26, 1.12, 0.43], [0.96, 0.20, 0.08]),
        "beta": ([9.98, 9.39, 1.49], [2.92, 2.23, 0.33], [0.73, 0.78, 0.10]),
        "floor": ([16.3, 2.83, 0.81], [3.57, 0.56, 0.16], [0.75, 0.14, 0.05]),
    },
    "quad-tree": {
        "clusters": (None, None, [2.97, 1.46, 0.06]),
        "roads": (None, None, [2.02, 0.31, 0.12]),
        "beta": (None, None, [2.15, 1.77, 0.14]),
        "floor": (None, None, [1.38, 0.18, 0.04]),
    },
    "PrivTree": {
        "clusters": ([21.2, 18.8, 1.58], [3.85, 3.15, 0.30], [0.72, 0.64, 0.09]),
        "roads": ([31.3, 6.95, 2.25], [6.43, 1.49, 0.56], [1.46, 0.37, 0.12]),
        "beta": ([11.6, 10.2, 2.39], [3.01, 2.80, 0.57], [0.89, 0.73, 0.15]),
        "floor": ([18.3, 4.39, 1.74], [4.07, 1.01, 0.35], [1.44, 0.40, 0.17]),
    },
}


class Measured(TypedDict):
    """One partitioner on one table: medians over so many draws; an error for each size of box."""

    errors: list[float]
    cells: int
    seconds: float
    draws: int


Row: TypeAlias = dict[str, Measured]
"""All partitioners on one table, by name."""


class Page(TypedDict):
    """Figures of every row, and git's name of the partitioners' code behind them."""

    figures: dict[str, Row]
    code: dict[str, str]


def partitioners(rows: int) -> dict[str, AnyQuestion]:
    """The questions that are compared; depths follow the public size of the table."""
    depth = min(max(4, round(math.log2(rows / 40))), 11)
    levels = 2 * math.ceil(
        math.log2(rows / 10) / 2
    )  # of halvings: 10^6 rows get nine levels of a quad-tree, every second one counted
    weights = [
        1.5 ** (i / 4) if 4 <= i < levels and (levels - i) % 4 == 0 else 0
        for i in range(levels + 1)
    ]
    return {
        "uniform": sf.UniformPartitioner(),
        "adaptive grid": sf.AdaptiveGridPartitioner(),
        "quad-tree": sf.BinaryPartitioner(
            depth=levels,
            allocation=weights,
            shares=sf.Shares(release=1.5 ** (levels / 4), partition=0, threshold=sum(weights)),
        ),
        "PrivTree": sf.PrivTreePartitioner(),
        "kd-median": sf.MedianPartitioner(depth=depth),
        "multi-quantile": sf.MultiQuantilePartitioner(depth=depth // 2, fanout=4),
        "auto": sf.AutoPartitioner(),
    }


def tables(which: list[str]) -> Iterator[tuple[str, Array]]:
    """Names of rows and their points, on the unit square."""
    for word in which:
        if word == "real":
            yield "cities", _real(cities_path(), ("longitude", "latitude"), (-180, -90), (180, 90))
            yield "flights", _real(flights_path(), ("hour", "dep_delay"), (0, -60), (24, 240))
        else:
            kind, _, power = word.rpartition("-")
            for each in [kind] if kind else shapes.KINDS:
                yield f"{each}, 10^{power}", shapes.points(each, 10 ** int(power))


def _real(
    path: Path, columns: tuple[str, str], lower: tuple[float, float], upper: tuple[float, float]
) -> Array:
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=list(columns))
    points = np.stack(
        [np.asarray(table[name].to_pandas(), dtype=float) for name in columns], axis=1
    )
    points = points[~np.isnan(points).any(axis=1)]
    return np.asarray(np.clip((points - lower) / (np.array(upper) - lower), 0, 1 - 1e-9))


def measure(
    points: Array, draws: int, epsilon: float = 1.0, names: Sequence[str] | None = None
) -> Row:
    """Errors of every partitioner on one table, or of those that are named."""
    lattice = sf.UniformPartitioner().needs(SQUARE).lattice
    cells = np.stack(
        [axis.locate(points[:, i].copy()) for i, axis in enumerate(lattice.grids)], axis=1
    )
    coordinates, counts = Cube.of_cells(lattice, cells).occupied()
    cube = Cube(lattice, counts, coordinates)
    boxes = {size: shapes.workload(size) for size in shapes.SIZES}
    truth = {size: shapes.true_counts(points, box) for size, box in boxes.items()}
    found: Row = {}
    for name, question in partitioners(len(points)).items():
        if names is not None and name not in names:
            continue
        errors, seconds, sizes = [], [], []
        for _ in range(draws):
            started = time.process_time()
            release = question.answer(cube, Unit(), PureDP(epsilon), current())
            seconds.append(time.process_time() - started)
            assert isinstance(release, sf.Partition)
            sizes.append(len(release.counts))
            errors.append(
                [_error(release, boxes[size], truth[size], len(points)) for size in shapes.SIZES]
            )
        middle = np.median(errors, axis=0)
        found[name] = {
            "errors": middle.tolist(),
            "cells": int(np.median(sizes)),
            "seconds": float(np.median(seconds)),
            "draws": draws,
        }
        if names is None:
            errors_shown = " / ".join(short(error) for error in middle)
            cost = f"{found[name]['cells']:>8,} cells {found[name]['seconds']:.2f} s"
            print(f"  {name:15} {errors_shown:20} {cost}", flush=True)
    return found


def _error(release: sf.Partition, box: Array, truth: Array, n: int) -> float:
    estimate = release.count(
        x=(box[:, 0, 0], box[:, 1, 0]), y=(box[:, 0, 1], box[:, 1, 1]), exact=False
    )
    return 100 * shapes.relative_error(np.asarray(estimate.value), truth, n)


def short(error: float) -> str:
    """Write an error with three digits or so."""
    return f"{error:.1f}" if error >= 10 else f"{error:.2f}"


def write(figures: dict[str, Row]) -> None:
    """Put the table on its page, between its marks, and draw it."""
    names = list(partitioners(10**4))
    lines = [
        f"| shape, rows | {' | '.join(names)} | auto / best other |",
        "|---" * (len(names) + 2) + "|",
    ]
    for row, found in figures.items():
        best = min(mean(found[name]["errors"]) for name in names if name != "auto")
        cells = [" / ".join(short(e) for e in found[name]["errors"]) for name in names]
        lines.append(
            f"| {row} | {' | '.join(cells)} | {mean(found['auto']['errors']) / best:.2f} |"
        )
    lines += ["", *_against(figures)]
    start, end = "<!-- table: benchmarks/studies/partitions.py -->", "<!-- end of table -->"
    page = PAGE.read_text(encoding="utf-8")
    head, rest = page.split(start)
    PAGE.write_text(
        f"{head}{start}\n{chr(10).join(lines)}\n{end}{rest.split(end)[1]}", encoding="utf-8"
    )
    _draw(figures, names)


def _against(figures: dict[str, Row]) -> list[str]:
    """Geometric means over the three sizes, as ratios to the target figures."""
    lines = [
        "Ratio to the target figures, geometric mean over the three sizes "
        "(largest single cell in brackets):",
        "",
    ]
    lines += [
        "| shape, rows | uniform | adaptive grid | quad-tree | PrivTree | auto / best of them |",
        "|---|---|---|---|---|---|",
    ]
    for row, found in figures.items():
        kind, _, power = row.partition(", 10^")
        if not power:
            continue
        goals = {name: goal[kind][int(power) - 4] for name, goal in REFERENCE.items()}
        cells = [
            "" if goal is None else _ratio(found[name]["errors"], goal)
            for name, goal in goals.items()
        ]
        best = min((goal for goal in goals.values() if goal is not None), key=mean)
        lines.append(f"| {row} | {' | '.join(cells)} | {_ratio(found['auto']['errors'], best)} |")
    return lines


def mean(errors: list[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, errors)) / len(errors))


def _ratio(errors: list[float], goal: list[float]) -> str:
    ratios = [error / aim for error, aim in zip(errors, goal, strict=True)]
    return f"{mean(ratios):.2f} ({max(ratios):.2f})"


def _draw(figures: dict[str, Row], names: list[str]) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    rows = list(figures)
    figure, panels = plt.subplots(1, 3, figsize=(13, 0.38 * len(rows) + 1.6), sharey=True)
    marks = ["s", "D", "^", "v", "P", "X", "o"]
    for i, (ax, size) in enumerate(zip(panels, shapes.SIZES, strict=True)):
        for name, mark in zip(names, marks, strict=True):
            errors = [figures[row][name]["errors"][i] for row in rows]
            auto = name == "auto"
            ax.plot(
                errors,
                range(len(rows)),
                mark,
                ms=8 if auto else 6,
                color="#111111" if auto else None,
                label=name,
                zorder=3 if auto else 2,
            )
        ax.set(xscale="log", title=f"{size} boxes", xlabel="mean relative error, %")
        ax.grid(axis="y", color="#dddddd", zorder=0)
    panels[0].set_yticks(range(len(rows)), rows)
    panels[0].invert_yaxis()
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="lower center", ncol=len(names), frameon=False
    )
    figure.tight_layout(rect=(0, 0.5 / figure.get_size_inches()[1], 1, 1))
    figure.savefig(PICTURE, dpi=110)


def main() -> None:
    """Measure what is asked for, and write the page."""
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("--draws", type=int, default=20)
    asked.add_argument("--rows", default="4,5,real,6")
    asked.add_argument("--write", action="store_true")
    asked.add_argument("--resume", action="store_true")
    options = asked.parse_args()
    git = ["git", "rev-parse", "--short", "HEAD:src/sfumato/questions/partition"]
    code = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    for row, points in tables([] if options.write else options.rows.split(",")):
        page = known()
        if (
            options.resume
            and page["code"].get(row) == code
            and all(one["draws"] >= options.draws for one in page["figures"][row].values())
        ):
            continue
        print(row, f"({len(points):,} rows)", flush=True)
        measured = measure(points, options.draws)
        page = known()  # other rows may have been measured meanwhile
        page["figures"][row], page["code"][row] = measured, code
        FIGURES.write_text(json.dumps(page, indent=1) + "\n", encoding="utf-8")
    write(known()["figures"])


def known() -> Page:
    """Read the figures of every row that was measured."""
    if not FIGURES.exists():
        return {"figures": {}, "code": {}}
    page: Page = json.loads(FIGURES.read_text())
    return page


if __name__ == "__main__":
    main()
