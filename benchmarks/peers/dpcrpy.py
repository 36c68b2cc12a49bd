"""dpcrpy's counters: they add the data and the noise, and draw from numpy's global generator."""

from __future__ import annotations

from dpcrpy import BinMech, Honaker
from dpcrpy.framework.noiMech import GaussNoiMech

from benchmarks.measuring import medians

KINDS = {"tree": BinMech, "efficient tree": Honaker}


def stepping(method: str, steps: int, runs: int) -> tuple[float, float]:
    """Median wall and processor seconds of ``steps`` steps."""
    return medians(lambda: _walk(KINDS[method], steps), runs)


def _walk(kind: type[BinMech], steps: int) -> None:
    counter = kind(kOrder=steps.bit_length(), noiMech=GaussNoiMech(sigma0=1.0))
    for _ in range(steps):
        counter.dpRelease(0.0)
