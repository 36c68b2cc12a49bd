"""Exact noise beside its peers: samples a second, cold table, one draw, memory.

    python benchmarks/noise.py [--quick] [--json PATH]

Every figure is a median of at least five runs in this process. Wall time says what a user waits; processor time says what
the work costs when the machine is shared. OpenDP draws fewer samples, because it takes longer; numpy's ``laplace`` is in
floating point and not private: it stands here for speed only.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.random import Keystream, current, discrete, enclosure

SCALES = [Fraction(1, 10), Fraction(1), Fraction(100), Fraction(1000), Fraction(10**6)]
LAWS = ("laplace", "gaussian")
Row = dict[str, Any]


def medians(work: Callable[[], object], runs: int) -> tuple[float, float]:
    """Return the median wall and processor seconds of one call."""
    work()
    times = []
    for _ in range(runs):
        wall, process = time.perf_counter(), time.process_time()
        work()
        times.append((time.perf_counter() - wall, time.process_time() - process))
    return statistics.median(wall for wall, _ in times), statistics.median(process for _, process in times)


def draw(law: str, scale: Fraction, size: int) -> object:
    return discrete.laplace(scale, size, current()) if law == "laplace" else discrete.gaussian(scale**2, size, current())


def forget() -> None:
    discrete._sampler.cache_clear()
    enclosure.ladder.cache_clear()
    enclosure.exp_minus.cache_clear()


def cold(law: str, scale: Fraction) -> None:
    forget()
    draw(law, scale, 1)


def peak(law: str, scale: Fraction, size: int) -> int:
    """Return the bytes allocated at the peak beyond the answer itself, a cold table included."""
    forget()
    tracemalloc.start()
    try:
        draw(law, scale, size)
        return tracemalloc.get_traced_memory()[1] - 8 * size
    finally:
        tracemalloc.stop()


def ours(law: str, scale: Fraction, size: int, runs: int) -> Row:
    wall, process = medians(lambda: draw(law, scale, size), runs)
    table = medians(lambda: cold(law, scale), runs)
    one = medians(lambda: [draw(law, scale, 1) for _ in range(2000)], runs)
    return {
        "who": "sfumato",
        "law": law,
        "scale": float(scale),
        "samples": size,
        "M/s wall": size / wall / 1e6,
        "M/s cpu": size / process / 1e6,
        "cold ms": table[0] * 1e3,
        "cold cpu ms": table[1] * 1e3,
        "one us": one[0] / 2000 * 1e6,
        "one cpu us": one[1] / 2000 * 1e6,
        "peak MiB": peak(law, scale, size) / 2**20,
    }


def opendp(law: str, scale: Fraction, size: int, runs: int) -> list[Row]:
    try:
        import opendp.prelude as dp
    except ImportError:
        return []
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), (dp.l1_distance(T=int) if law == "laplace" else dp.l2_distance(T=float))
    measure = (dp.m.make_laplace if law == "laplace" else dp.m.make_gaussian)(*space, float(scale))
    zeros = [0] * size
    return [speed("opendp", law, scale, size, medians(lambda: measure(zeros), runs))]


def inexact(law: str, scale: Fraction, size: int, runs: int) -> Row:
    generator = np.random.default_rng()
    sample = generator.laplace if law == "laplace" else generator.normal
    return speed("numpy (inexact)", law, scale, size, medians(lambda: sample(0.0, float(scale), size), runs))


def speed(who: str, law: str, scale: Fraction, size: int, seconds: tuple[float, float]) -> Row:
    wall, process = (size / one / 1e6 for one in seconds)
    return {"who": who, "law": law, "scale": float(scale), "samples": size, "M/s wall": wall, "M/s cpu": process}


def keystream(runs: int) -> Row:
    stream = Keystream()

    def work() -> None:
        # Not kept: keeping them would time the system's page faults.
        for _ in range(512):
            stream.words(2**13)

    wall, process = medians(work, runs)
    return {"who": "AES-256-CTR", "law": "words", "samples": 2**22, "GB/s wall": 2**25 / wall / 1e9, "GB/s cpu": 2**25 / process / 1e9}


def rows(quick: bool = False) -> list[Row]:
    """Measure everything, one row a peer, law and scale."""
    runs, size, few = (5, 200_000, 1000) if quick else (9, 10**6, 20_000)
    found = [keystream(runs)]
    for law in LAWS:
        for scale in SCALES:
            found.append(ours(law, scale, size, runs))
            found += opendp(law, scale, few, 5)
            found.append(inexact(law, scale, size, runs))
    return found


def table(found: list[Row]) -> str:
    """Lay the rows out as text, one column a key."""
    heads = list(dict.fromkeys(key for row in found for key in row))
    lines = [heads, *([shown(row.get(head, "")) for head in heads] for row in found)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def shown(cell: object) -> str:
    return f"{cell:.3g}" if isinstance(cell, float) else str(cell)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller samples")
    parser.add_argument("--json", type=Path, help="also write the rows here")
    chosen = parser.parse_args()
    found = rows(chosen.quick)
    print(table(found))
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
