"""Partitions of unity add up to M, give back a value and its square, and beat a split budget."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from sfumato.mechanisms.noise import DiscreteLaplace
from sfumato.questions.aggregates.values import FINE, Basis, basis_within
from sfumato.random import PublicSeed


@pytest.mark.parametrize("name", ["pair", "quadratic", "hats"])
@pytest.mark.parametrize("points", [1, 2, 3, 120, 2**16])
@pytest.mark.parametrize("multiple", [1, 7])
def test_functions_add_up_and_give_back_the_value(name: str, points: int, multiple: int) -> None:
    basis = Basis(name, points, multiple)
    x = np.unique(np.linspace(0, points, 200).astype(np.int64))
    found = basis.functions(x)
    assert (found >= 0).all()
    assert (found.sum(axis=1) == basis.unity).all()
    for value, row in zip(x.tolist(), found.tolist(), strict=True):
        weighted = sum(Fraction(w) * f for w, f in zip(basis.weights.tolist(), row, strict=True))
        # The knots of hats are exact integers; divided by R they are rounded to doubles.
        expected = Fraction(value, points) * basis.unity
        assert abs(weighted - expected) <= (1e-15 * expected if name == "hats" else 0)
    if name == "quadratic":
        squares = [Fraction(value, points) ** 2 * basis.unity for value in x.tolist()]
        assert squares == [row[2] for row in found.tolist()]


def test_one_row_moves_the_sums_by_exactly_m_in_l1_and_at_most_m_in_l2() -> None:
    for basis in (Basis("pair", 8), Basis("quadratic", 8), Basis("hats", 8)):
        found = basis.functions(np.arange(9)).astype(float)
        assert np.abs(found).sum(axis=1).tolist() == [basis.unity] * 9
        assert np.sqrt((found**2).sum(axis=1)).max() == basis.unity


def test_two_rows_that_replace_each_other_move_the_sums_by_at_most_root_2_m_in_l2() -> None:
    for basis in (Basis("pair", 8), Basis("quadratic", 8), Basis("hats", 8)):
        found = basis.functions(np.arange(9)).astype(float)
        apart = found[:, None, :] - found[None, :, :]
        assert np.sqrt((apart**2).sum(axis=2)).max() == pytest.approx(np.sqrt(2) * basis.unity)


def test_the_pair_and_hats_have_no_squares() -> None:
    for name in ("pair", "hats"):
        with pytest.raises(ValueError, match="second moments"):
            _ = Basis(name, 3).squares


@pytest.mark.parametrize("points", [1, 2, 3, 7, 120, 129, 1000, 2**16, 2**20 - 1])
def test_knots_of_hats_double_and_end_at_most_an_eighth_beyond_the_range(points: int) -> None:
    knots = Basis("hats", points).knots
    assert knots[0] == 0
    assert (knots[2:] == 2 * knots[1:-1]).all()
    assert points <= knots[-1] <= points * 9 / 8
    assert len(knots) >= 2


@pytest.mark.parametrize("name", ["pair", "quadratic", "hats"])
@pytest.mark.parametrize("points", [1, 2, 120, 2**16])
@pytest.mark.parametrize("unity", [0, 1, 3, 100, 2**20, 2**48])
def test_a_basis_stays_within_the_unity_that_its_noise_allows(
    name: str, points: int, unity: int
) -> None:
    found = basis_within(name, points, unity)
    if found is None:
        assert unity < 1
        return
    assert found.unity <= unity
    assert found.points <= points
    coarser = found.points < points
    # Hats need an M of about half of R. Their R is at most the M that is allowed.
    assert not coarser or name == "hats" or Basis(name, found.points + 1).unity > unity
    # Where there is room, noise is finer than 2^-16 of a row.
    assert found.unity >= min(FINE, unity // 2)


ROWS = 2000
POINTS = 2**16
TRIALS = 20_000
DATA: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "uniform": lambda rng: rng.random(ROWS),
    "beta(1, 19)": lambda rng: rng.beta(1, 19, ROWS),
    "normal about .5": lambda rng: np.clip(rng.normal(0.5, 0.1, ROWS), 0, 1),
    "beta(9, 1)": lambda rng: rng.beta(9, 1, ROWS),
}


def noise(scale: int, size: int, name: str) -> np.ndarray:
    law = DiscreteLaplace(Fraction(scale))
    return law.sample(TRIALS * size, PublicSeed(name)).reshape(TRIALS, -1)


def errors(x: np.ndarray) -> dict[str, float]:
    """Mean squared errors at epsilon 1, of one release in 20,000."""
    at = np.rint(x * POINTS).astype(np.int64)
    mean = at.mean() / POINTS
    variance = at.var() / POINTS**2
    pair = Basis("pair", POINTS)
    quadratic = Basis("quadratic", POINTS)
    two = pair.functions(at).sum(axis=0) + noise(pair.unity, 2, "two")
    three = quadratic.functions(at).sum(axis=0) + noise(quadratic.unity, 3, "three")
    split = np.array([at.sum() / POINTS, ROWS]) + noise(2 * POINTS, 2, "split") / POINTS
    thirds = noise(3 * POINTS, 3, "thirds") / POINTS
    rows = ROWS + thirds[:, 0]
    first = (at.sum() / POINTS + thirds[:, 1]) / rows
    second = ((at / POINTS) ** 2).sum() + thirds[:, 2]
    share = three @ quadratic.weights / three.sum(axis=1)
    off = {
        "mean, sum and count": split[:, 0] / split[:, 1] - mean,
        "mean, pair": two @ pair.weights / two.sum(axis=1) - mean,
        "mean, quadratic": share - mean,
        "variance, three sums": second / rows - first**2 - variance,
        "variance, quadratic": three @ quadratic.squares / three.sum(axis=1) - share**2 - variance,
    }
    return {name: float((each**2).mean()) for name, each in off.items()}


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
