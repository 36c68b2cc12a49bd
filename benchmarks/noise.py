"""Exact noise beside its peers: samples per second, the first draw, one draw, memory.

Every figure is a median of at least five runs in this process, OpenDP's in its own environment.
Wall time is what a user waits; processor time is what the work costs when the machine is shared.
OpenDP draws fewer samples, because it takes longer. numpy's ``laplace`` uses floating point and is
not private: it is here to compare speed only.
"""

from __future__ import annotations

import tracemalloc
from fractions import Fraction

import numpy as np

from benchmarks import peers
from benchmarks.measuring import Chart, Row, medians
from sfumato.random import Keystream, current, discrete
from sfumato.random import inversion as enclosure

CHART = Chart("M/s wall", ("who", "law", "scale"), others=("opendp", "numpy (inexact)"))
SCALES = [Fraction(1, 10), Fraction(1), Fraction(100), Fraction(1000), Fraction(10**6)]
LAWS = ("laplace", "gaussian")


def draw(law: str, scale: Fraction, size: int) -> object:
    """Draw samples of one of the laws."""
    return (
        discrete.laplace(scale, size, current())
        if law == "laplace"
        else discrete.gaussian(scale**2, size, current())
    )


def forget() -> None:
    """Drop the tables of samplers, so that the next draw makes them again."""
    discrete._sampler.cache_clear()
    enclosure.cumulative_law.cache_clear()
    enclosure.exp_minus.cache_clear()


def cold(law: str, scale: Fraction) -> None:
    """Draw one sample without a table."""
    forget()
    draw(law, scale, 1)


def peak(law: str, scale: Fraction, size: int) -> int:
    """The bytes allocated at the peak, the table included and the answer itself excluded."""
    forget()
    tracemalloc.start()
    try:
        draw(law, scale, size)
        return tracemalloc.get_traced_memory()[1] - 8 * size
    finally:
        tracemalloc.stop()


def ours(law: str, scale: Fraction, size: int, runs: int) -> Row:
    """Measure our sampler."""
    wall, process = medians(lambda: draw(law, scale, size), runs)
    first = medians(lambda: cold(law, scale), runs)
    one = medians(lambda: [draw(law, scale, 1) for _ in range(2000)], runs)
    return {
        "who": "sfumato",
        "law": law,
        "scale": float(scale),
        "samples": size,
        "M/s wall": size / wall / 1e6,
        "M/s cpu": size / process / 1e6,
        "cold ms": first[0] * 1e3,
        "cold cpu ms": first[1] * 1e3,
        "one us": one[0] / 2000 * 1e6,
        "one cpu us": one[1] / 2000 * 1e6,
        "peak MiB": peak(law, scale, size) / 2**20,
    }


def opendp(law: str, scale: Fraction, size: int, runs: int) -> list[Row]:
    """Measure OpenDP, if it is installed."""
    seconds = peers.ask(
        "opendp", "noise", tuple[float, float], law=law, scale=float(scale), size=size, runs=runs
    )
    return [speed("opendp", law, scale, size, seconds)] if seconds else []


def inexact(law: str, scale: Fraction, size: int, runs: int) -> Row:
    """Measure numpy."""
    generator = np.random.default_rng()
    sample = generator.laplace if law == "laplace" else generator.normal
    seconds = medians(lambda: sample(0.0, float(scale), size), runs)
    return speed("numpy (inexact)", law, scale, size, seconds)


def speed(who: str, law: str, scale: Fraction, size: int, seconds: tuple[float, float]) -> Row:
    """A row of samples per second."""
    wall, process = (size / one / 1e6 for one in seconds)
    return {
        "who": who,
        "law": law,
        "scale": float(scale),
        "samples": size,
        "M/s wall": wall,
        "M/s cpu": process,
    }


def keystream(runs: int) -> Row:
    """Measure the generator of random words."""
    stream = Keystream()

    def work() -> None:
        # The words are not kept: that would measure the page faults of the system.
        for _ in range(512):
            stream.words(2**13)

    wall, process = medians(work, runs)
    return {
        "who": "AES-256-CTR",
        "law": "words",
        "samples": 2**22,
        "GB/s wall": 2**25 / wall / 1e9,
        "GB/s cpu": 2**25 / process / 1e9,
    }


def rows(quick: bool = False) -> list[Row]:
    """Measure everything: a row for each peer, law and scale."""
    runs, size, peer_size = (5, 200_000, 1000) if quick else (9, 10**6, 20_000)
    found = [keystream(runs)]
    for law in LAWS:
        for scale in SCALES:
            found.append(ours(law, scale, size, runs))
            found += opendp(law, scale, peer_size, 5)
            found.append(inexact(law, scale, size, runs))
    return found if peers.python("opendp") else [*found, {"who": peers.absent("opendp")}]
