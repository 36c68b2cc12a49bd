"""OpenDP's exact integer noise."""

from __future__ import annotations

import opendp.prelude as dp

from sfumato.bench.measuring import medians


def samples(law: str, scale: float, size: int) -> list[int]:
    """Draw noise alone, as noised zeros."""
    return list(_measure(law, scale)([0] * size))


def noise(law: str, scale: float, size: int, runs: int) -> tuple[float, float]:
    """Median wall and processor seconds of ``size`` samples."""
    measure, zeros = _measure(law, scale), [0] * size
    return medians(lambda: measure(zeros), runs)


def _measure(law: str, scale: float) -> dp.Measurement:
    dp.enable_features("contrib")
    space = (
        dp.vector_domain(dp.atom_domain(T=int)),
        (dp.l1_distance(T=int) if law == "laplace" else dp.l2_distance(T=float)),
    )
    return (dp.m.make_laplace if law == "laplace" else dp.m.make_gaussian)(*space, scale)
