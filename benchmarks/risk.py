"""Choosing epsilon: seconds and memory, beside the source's enumeration and beside a bare sort.

The source compares every pair of worlds in Python. It is run here on the largest universe for which
it ends within seconds. Each of our figures comes from a process of its own, so that its peak memory
is its own.
"""

from __future__ import annotations

import itertools
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.measuring import Chart, Row, seconds
from sfumato.basics.numbers import Array

CHART = Chart(
    "s cpu", ("who", "universe", "n", "size", "query"), others=("source, one bound", "bare sort")
)
ROOT = Path(__file__).parents[1]
QUERIES = ("mean", "median", "sum", "var")


def universe(kind: str, n: int) -> Array:
    """Records of one kind."""
    rng = np.random.default_rng(11)
    match kind:
        case "even":
            return np.arange(n) / n
        case "whole":
            return rng.integers(0, 1000, n)
        case "normal":
            return rng.normal(size=n)
    return rng.lognormal(size=n)


def one(kind: str, n: int, size: int, query: str) -> Row:
    """Measure one search in this process; importing is not counted."""
    from sfumato import risk
    from sfumato.errors import SfumatoError

    records = universe(kind, n)
    risk.optimal_epsilon([1, 2, 3, 4], 3, "mean")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall = time.perf_counter()
    process = time.process_time()
    try:
        found = risk.optimal_epsilon(records, size, query)
        # A dict is returned for several columns only.
        assert not isinstance(found, dict)
        epsilon: float | str = found
    except SfumatoError as refusal:
        epsilon = type(refusal).__name__
    row: Row = {
        "who": "sfumato",
        "universe": kind,
        "n": n,
        "size": size,
        "query": query,
        "epsilon": epsilon,
    }
    row |= {"s wall": time.perf_counter() - wall, "s cpu": time.process_time() - process}
    return row | {
        "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
        "before MB": before * 1024 / 1e6,
    }


def apart(*case: object) -> Row:
    """Measure in a fresh process."""
    found = subprocess.run(
        [sys.executable, "-m", "benchmarks.risk", json.dumps(case)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(found.stdout))


def source(n: int, size: int) -> Row:
    """One evaluation of the source's tight bound, of about twenty that its search takes."""
    records = universe("normal", n)

    def bound() -> float:
        worlds = [np.mean(world) for world in itertools.combinations(records, size)]
        sums = (sum(np.exp(-abs(here - there)) for there in worlds) for here in worlds)
        return max(float(1 / one) for one in sums)

    wall, process = seconds(bound)
    return {
        "who": "source, one bound",
        "universe": "normal",
        "n": n,
        "size": size,
        "query": "mean",
        "s wall": wall,
        "s cpu": process,
    }


def sort(n: int) -> Row:
    """A sort of the records, which any method needs at least."""
    records = universe("normal", n)
    wall, process = seconds(lambda: np.sort(records))
    return {"who": "bare sort", "universe": "normal", "n": n, "s wall": wall, "s cpu": process}


def rows(quick: bool = False) -> list[Row]:
    """Measure everything: a row for each universe and query."""
    n = 10**5 if quick else 10**7
    found = [source(10, 5) if quick else source(12, 6), sort(n)]
    for kind in ("normal", "even") if quick else ("normal", "lognormal", "even", "whole"):
        found += [apart(kind, n, n - 1, query) for query in QUERIES]
    found += [apart("normal", n + 1, n, "median")]
    found += [
        apart(kind, 24, 12, query) for kind in ("normal", "whole") for query in (*QUERIES, "std")
    ]
    return found


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(one(*json.loads(sys.argv[1]))))
    else:
        for line in rows():
            print(line)
