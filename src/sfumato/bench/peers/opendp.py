"""OpenDP's exact integer noise."""

from __future__ import annotations

import opendp.prelude as dp

from sfumato.bench.measuring import medians


def samples(law: str, scale: float, size: int) -> list[int]:
    """Samples of the noise alone: zeros with noise."""
    return list(_measure(law, scale)([0] * size))


def noise(law: str, scale: float, size: int, runs: int) -> tuple[float, float]:
    """Median wall and processor seconds of ``size`` samples."""
    measure = _measure(law, scale)
    zeros = [0] * size
    return medians(lambda: measure(zeros), runs)


def _measure(law: str, scale: float) -> dp.Measurement:
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if law == "laplace":
        return dp.m.make_laplace(domain, dp.l1_distance(T=int), scale)
    return dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale)
