"""The limit to take leads to hardly more error than the best one, and says what it rests on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import sfumato as sf
from persons.tables import flights, lognormal, pareto, release_of
from sfumato.arrays import Array

HOURS = sf.Histogram("hour")
MOST_ROWS = 4096
DRAWS = 20


def error_ratios(
    rows: Array, epsilon: str, most_rows: int = MOST_ROWS, draws: int = DRAWS
) -> Array:
    """The error of the recommended limit, as a multiple of the best limit's, for many draws."""
    limits = np.arange(1, most_rows + 1)
    # For every limit r, the sum over persons of the rows from r on.
    beyond = len(rows) - np.searchsorted(np.sort(rows), np.arange(most_rows), side="right")
    lost = np.append(np.cumsum(beyond[::-1])[::-1][1:], 0)
    errors = lost / 24 + limits / 0.5
    found = []
    for seed in range(draws):
        release = release_of(rows, most_rows, epsilon, seed)
        found.append(errors[sf.recommend(release, HOURS, epsilon="0.5").limit - 1])
    return np.array(found) / errors.min()


@pytest.mark.parametrize("rows", [pareto(10_000), lognormal(10_000)], ids=["pareto", "lognormal"])
def test_its_error_is_nearly_that_of_the_best_limit(rows: Array) -> None:
    rows = np.minimum(rows, MOST_ROWS)
    assert np.quantile(error_ratios(rows, "0.3"), 0.9) <= 1.15
    ratios = error_ratios(rows, "0.05")
    assert np.median(ratios) <= 1.15
    assert np.quantile(ratios, 0.9) <= 2


def test_it_says_what_it_rests_on() -> None:
    found = sf.recommend(release_of(lognormal(5000)), HOURS, epsilon="0.5")
    curve = found.curve.to_pydict()
    at = curve["limit"].index(found.limit)
    assert found.error == pytest.approx(curve["lost"][at] + curve["noise"][at])
    assert found.error <= 1.03 * min(curve["error"])
    assert found.unit == sf.Unit(found.limit, person="rider")
    assert f"rows_per_person={found.limit}" in str(found)
    assert "spends" not in str(found)
    assert found.plot().get_ylabel() == "error per number"


def test_a_smaller_epsilon_of_the_question_asks_for_a_lower_limit() -> None:
    release = release_of(lognormal(5000))
    limits = [
        sf.recommend(release, HOURS, epsilon=epsilon).limit for epsilon in ("5", "0.5", ".05")
    ]
    assert limits == sorted(limits, reverse=True)
    assert limits[0] > limits[-1]


def test_the_noise_is_that_of_the_cost() -> None:
    release = release_of(lognormal(5000))
    pure = sf.recommend(release, HOURS, epsilon="0.5")
    gaussian = sf.recommend(release, HOURS, rho="0.125")
    assert pure.noise[9] == pytest.approx(20)
    assert gaussian.noise[9] == pytest.approx(20 * np.sqrt(2 / np.pi))


def test_a_domain_of_ones_own_replaces_that_of_the_release() -> None:
    release = release_of(lognormal(5000))
    other = sf.Domain(ward=sf.Categories(["a", "b"]))
    assert sf.recommend(release, sf.Histogram("ward"), epsilon=1, domain=other).cells == 2
    assert sf.recommend(release, HOURS, epsilon=1).cells == 24


@pytest.mark.parametrize(
    ("question", "domain", "message"),
    [
        (sf.Histogram("ward"), None, "no axis of that name"),
        (sf.Persons(), None, "does not count rows"),
        (sf.Histogram("shop"), sf.Domain(shop=sf.Keys()), "not known beforehand"),
        ("hour", None, "for one question"),
    ],
)
def test_what_has_no_limit_to_recommend_is_refused(
    question: object, domain: sf.Domain | None, message: str
) -> None:
    with pytest.raises(sf.UsageError, match=message):
        sf.recommend(
            release_of(lognormal(100)),
            question,  # type: ignore[arg-type]
            epsilon=1,
            delta="1e-6",
            domain=domain,
        )


def test_it_needs_an_answer_about_persons_with_a_bound() -> None:
    with pytest.raises(sf.UsageError, match="without a bound"):
        sf.recommend(release_of(lognormal(100), most_rows=None), HOURS, epsilon=1)
    with pytest.raises(sf.UsageError, match="from the rows of each person"):
        sf.recommend("release", HOURS, epsilon=1)  # type: ignore[arg-type]


@pytest.mark.deep
def test_errors_of_recommended_limits(evidence: Callable[[str, object], None]) -> None:
    """Flights, and 10^4 persons of two laws: 1,000 draws at each epsilon of the answer."""
    populations = {
        "flights": (flights(), 1000),
        "Pareto(1.5)": (pareto(10_000), MOST_ROWS),
        "lognormal(1, 1)": (lognormal(10_000), MOST_ROWS),
    }
    figures: dict[str, dict[str, float]] = {}
    for name, (rows, most_rows) in populations.items():
        for epsilon in ("0.3", "0.05"):
            ratios = error_ratios(np.minimum(rows, most_rows), epsilon, most_rows, 1000)
            figures[f"{name}, epsilon {epsilon}"] = {
                "median": round(float(np.median(ratios)), 3),
                "nine of ten": round(float(np.quantile(ratios, 0.9)), 3),
                "largest": round(float(ratios.max()), 3),
            }
    evidence("errors_of_recommended_limits", {"over the best limit's": figures})
    for name, found in figures.items():
        if name.endswith("0.3"):
            assert found["nine of ten"] <= 1.15
        assert found["median"] <= 1.15
        assert found["nine of ten"] <= 2
