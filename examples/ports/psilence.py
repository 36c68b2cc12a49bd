"""PSIlence's histograms: the call of ``histogram.getAccuracy``, and each statement of its page.

Run it with ``python examples/ports/psilence.py``. Each line shows the source's number, ours, and
whether they are the same or why ours differs.
"""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np
from beside import beside, holds
from scipy import integrate

import sfumato as sf

EPSILON, DELTA, ALPHA = 0.2, 1e-6, 0.05


def usage() -> None:
    """histogram.getAccuracy(mechanism, n.bins, n, epsilon, delta = 10^-6, alpha = 0.05)"""
    laplace = 2 / EPSILON * math.log(1 / ALPHA)
    beside(
        "a = 2 / epsilon * ln(1 / alpha)",
        laplace,
        sf.histogram_accuracy("mechanismLaplace", 5, 500, EPSILON, DELTA, ALPHA),
    )
    beside(
        "the same with the defaults of delta and alpha",
        laplace,
        sf.histogram_accuracy("mechanismLaplace", 5, 500, EPSILON),
    )
    beside(
        "the stability mechanism adds 2 / epsilon * ln(2 / delta) + 1",
        laplace + 2 / EPSILON * math.log(2 / DELTA) + 1,
        sf.histogram_accuracy("mechanismStability", 5, 500, EPSILON),
    )
    beside(
        "histogram.getParameters, the inverse",
        EPSILON,
        sf.histogram_epsilon("mechanismLaplace", 5, 500, laplace),
    )
    print(
        f"epsilon above one | should be between zero and one | {_above_one():.6g} | also accepted"
    )


def _above_one() -> float:
    return sf.histogram_accuracy("mechanismLaplace", 5, 500, 3)


def arguments() -> None:
    """Each argument does something here."""
    accuracy = sf.histogram_accuracy
    one = accuracy("mechanismLaplace", 1, None, EPSILON)
    ten = accuracy("mechanismLaplace", 10, None, EPSILON)
    beside("n.bins changes nothing for one bin", one, ten)
    every = accuracy("mechanismLaplace", 10, None, EPSILON, simultaneous=True)
    reason = "simultaneous=True asks for one accuracy that holds for all bins at once"
    beside("n.bins for ten bins at once", one, every, reason)
    try:
        accuracy("mechanismStability", 5, 2000, EPSILON)
    except sf.UsageError as refused:
        print(f"n = 2000 with delta = 10^-6 | accepted | refused | {refused.obstacle}")
    try:
        accuracy("mechanismStabilty", 5, 500, EPSILON)
    except sf.UsageError as refused:
        print(f"an unknown mechanism | no value | refused | {refused.obstacle}")


def derivation() -> None:
    """The steps of "Deriving the accuracy formula", with lambda = 2 / epsilon."""
    scale = 2 / EPSILON
    accuracy = sf.histogram_accuracy("mechanismLaplace", 1, None, EPSILON)

    def f(x: float) -> float:
        return 1 / (2 * scale) * math.exp(-abs(x) / scale)

    def g(y: float) -> float:
        return 1 / scale * math.exp(-y / scale)

    whole = integrate.quad(f, -60 * scale, 60 * scale, points=[0])[0]
    holds("f is a density", math.isclose(whole, 1, rel_tol=1e-9))
    holds("g folds f at 0", all(math.isclose(g(y), f(y) + f(-y)) for y in (0.5, 3, 20)))
    beside("alpha = Pr[Y > a]", ALPHA, integrate.quad(g, accuracy, math.inf)[0])


def released() -> None:
    """ "With probability 1 - alpha, the count of a bin will be within a of the true count." """
    rows = np.repeat(np.arange(5.0), 100)[:, None]
    domain = sf.Domain(x=sf.Interval(0, 5, step=1))
    with tempfile.TemporaryDirectory() as folder:
        source = sf.source(rows, domain, neighbours="replace", name="psilence")
        ledger = Path(folder) / "budget.db"
        with sf.Publisher(source, ledger=ledger, account="psilence", budget=20) as publisher:
            counts = publisher.release(sf.Histogram("x"), epsilon="0.2")
            draws = [
                publisher.release(sf.Histogram("x"), epsilon="0.2", fresh=True).values
                for _ in range(60)
            ]
    beside(
        "accuracy of a released bin",
        29.957322735539908,
        int(counts.accuracy()[0]),
        "the noise that is added is whole: 30 is the least whole number with Pr[Y > a] <= alpha",
    )
    within = np.mean(np.abs(np.array(draws) - 100) <= 30)
    # Of 300 counts 95% are 285. Fewer than 255 would occur with a probability below 1e-9.
    holds("counts of bins are within a of the truth", within >= 0.85)
    shown = sf.preview(
        sf.Histogram("x", selection="stability"),
        domain=sf.Domain(x=sf.Keys()),
        unit=sf.Unit(neighbours="replace"),
        epsilon="0.2",
        delta=DELTA,
    )
    formula = sf.histogram_accuracy("mechanismStability", 5, 500, EPSILON)
    holds("stability's accuracy includes its threshold", shown.accuracy() > formula - 2)


def logicals() -> None:
    """The mean and the median of a logical variable, from its histogram."""
    rows = {"x": [True] * 300 + [False] * 700}
    import pyarrow as pa

    with tempfile.TemporaryDirectory() as folder:
        source = sf.source(pa.table(rows), sf.Domain(x=sf.Categories([False, True])), name="l")
        ledger = Path(folder) / "budget.db"
        with sf.Publisher(source, ledger=ledger, account="l", budget=1) as publisher:
            release = publisher.release(sf.Histogram("x"), epsilon=1)
    holds(
        "the mean of a logical variable is its share of true", abs(release.mean().value - 0.3) < 0.1
    )
    beside("the median of a logical variable", 0, int(release.median().value))


if __name__ == "__main__":
    usage()
    arguments()
    derivation()
    released()
    logicals()
