"""How much smaller the error is than when epsilon is divided between sums and counts."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from sfumato.aggregates.basis import Basis
from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.random.bits import PublicSeed

ROWS, POINTS, TRIALS = 2000, 2**16, 20_000
DATA: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "uniform": lambda rng: rng.random(ROWS),
    "beta(1, 19)": lambda rng: rng.beta(1, 19, ROWS),
    "normal about .5": lambda rng: np.clip(rng.normal(0.5, 0.1, ROWS), 0, 1),
    "beta(9, 1)": lambda rng: rng.beta(9, 1, ROWS),
}


def noise(scale: int, size: int, name: str) -> np.ndarray:
    return (
        DiscreteLaplace(Fraction(scale)).sample(TRIALS * size, PublicSeed(name)).reshape(TRIALS, -1)
    )


def errors(x: np.ndarray) -> dict[str, float]:
    """Mean squared errors at epsilon 1, of one release in 20,000."""
    at = np.rint(x * POINTS).astype(np.int64)
    mean, variance = at.mean() / POINTS, at.var() / POINTS**2
    pair, quadratic = Basis("pair", POINTS), Basis("quadratic", POINTS)
    two = pair.functions(at).sum(axis=0) + noise(pair.unity, 2, "two")
    three = quadratic.functions(at).sum(axis=0) + noise(quadratic.unity, 3, "three")
    split = np.array([at.sum() / POINTS, ROWS]) + noise(2 * POINTS, 2, "split") / POINTS
    thirds = noise(3 * POINTS, 3, "thirds") / POINTS
    rows = ROWS + thirds[:, 0]
    first = (at.sum() / POINTS + thirds[:, 1]) / rows
    second = ((at / POINTS) ** 2).sum() + thirds[:, 2]
    share = three @ quadratic.weights / three.sum(axis=1)
    squared = {
        "mean, sum and count": (split[:, 0] / split[:, 1] - mean) ** 2,
        "mean, pair": (two @ pair.weights / two.sum(axis=1) - mean) ** 2,
        "mean, quadratic": (share - mean) ** 2,
        "variance, three sums": (second / rows - first**2 - variance) ** 2,
        "variance, quadratic": (three @ quadratic.squares / three.sum(axis=1) - share**2 - variance)
        ** 2,
    }
    return {name: float(each.mean()) for name, each in squared.items()}


@pytest.mark.deep
def test_one_noise_for_all_sums_beats_a_split(evidence: Callable[[str, object], None]) -> None:
    found = {}
    for name, draw in DATA.items():
        error = errors(draw(np.random.default_rng(1)))
        found[name] = {
            "mean": round(error["mean, sum and count"] / error["mean, pair"], 1),
            "variance": round(error["variance, three sums"] / error["variance, quadratic"], 1),
            "quadratic over pair": round(error["mean, quadratic"] / error["mean, pair"], 2),
        }
        assert found[name]["mean"] > 4
        assert found[name]["variance"] > 10
        assert found[name]["quadratic over pair"] < 1.3
    evidence(
        "gain_of_means", {"rows": ROWS, "epsilon": 1, "squared errors, split over ours": found}
    )
