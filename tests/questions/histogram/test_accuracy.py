"""How accurate, and which epsilon: the source's vectors, exact inverses, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit.runs import masses, support
from sfumato.mechanisms.noise import DiscreteLaplace, count_law
from sfumato.mechanisms.thresholds import key_law
from sfumato.questions.histogram.accuracy import MECHANISMS

CONTINUOUS, DISCRETE = ("laplace", "stability"), ("geometric", "truncated-geometric")


@pytest.mark.parametrize(
    ("mechanism", "asked", "expected"),
    [
        ("laplace", {"epsilon": 0.2, "alpha": 0.05}, 29.9573227355),
        ("stability", {"epsilon": 0.2, "delta": 1e-6}, 176.0439001208),
        ("laplace", {"epsilon": 0.1, "n_bins": 16}, 59.91464547),
        ("laplace", {"epsilon": 0.1, "n_bins": 1, "simultaneous": True}, 59.91464547),
        ("laplace", {"epsilon": 0.1, "n_bins": 16, "simultaneous": True}, 114.88772917),
        ("laplace", {"epsilon": 0.1, "n_bins": 100, "simultaneous": True}, 151.51243781),
        ("laplace", {"epsilon": "0.1", "neighbours": "add-remove"}, 29.957322735),
        ("geometric", {"epsilon": 0.1}, 60),
        ("geometric", {"epsilon": 0.2}, 30),
        ("geometric", {"epsilon": 0.5}, 12),
        ("geometric", {"epsilon": 1}, 6),
        ("truncated-geometric", {"epsilon": 1, "neighbours": "add-remove"}, 15),
    ],
)
def test_the_vectors(mechanism: str, asked: dict, expected: float) -> None:
    assert sf.histogram_accuracy(mechanism, **asked) == pytest.approx(expected, abs=1e-8)


def test_the_vectors_of_the_inverse() -> None:
    assert sf.histogram_epsilon("laplace", accuracy=0.5, alpha=0.05) == pytest.approx(
        11.9829290942, abs=1e-10
    )
    assert sf.histogram_epsilon("stability", accuracy=2, delta=1e-6) == pytest.approx(
        35.0087800242, abs=1e-10
    )


@pytest.mark.parametrize("mechanism", CONTINUOUS)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"neighbours": "add-remove"},
        {"n_bins": 40, "simultaneous": True},
        {"rows_per_person": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize("epsilon", [1e-3, 0.2, 1.0, 17.3])
def test_inverses_of_continuous_laws(mechanism: str, more: dict, epsilon: float) -> None:
    if mechanism == "stability" and more.get("rows_per_person"):
        pytest.skip("by the law that selects, which is discrete")
    accuracy = sf.histogram_accuracy(mechanism, epsilon=epsilon, **more)
    assert sf.histogram_epsilon(mechanism, accuracy=accuracy, **more) == pytest.approx(
        epsilon, rel=1e-12
    )


@pytest.mark.parametrize("mechanism", DISCRETE)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"neighbours": "add-remove"},
        {"n_bins": 40, "simultaneous": True},
        {"rows_per_person": 3},
    ],
    ids=str,
)
@pytest.mark.parametrize("accuracy", [7, 30, 121.5])
def test_inverses_of_discrete_laws_are_the_smallest(
    mechanism: str, more: dict, accuracy: float
) -> None:
    epsilon = sf.histogram_epsilon(mechanism, accuracy=accuracy, **more)
    assert sf.histogram_accuracy(mechanism, epsilon=epsilon, **more) <= accuracy
    assert sf.histogram_accuracy(mechanism, epsilon=epsilon * (1 - 1e-11), **more) > accuracy


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("rows", [1, 3, 50])
@pytest.mark.parametrize("epsilon", ["0.5", "1", "10"])
def test_stability_is_as_accurate_as_the_law_that_selects(
    neighbours: str, rows: int, epsilon: str
) -> None:
    more = {"neighbours": neighbours, "rows_per_person": rows}
    accuracy = sf.histogram_accuracy("stability", epsilon=epsilon, **more)
    assert (
        key_law(sf.ApproxDP(epsilon, "1e-6"), sf.Unit(**more), "stability").miss_probability(
            int(accuracy)
        )
        <= 0.05
    )
    least = sf.histogram_epsilon("stability", accuracy=accuracy, **more)
    assert least <= float(epsilon) * (1 + 1e-12)
    assert sf.histogram_accuracy("stability", epsilon=least * (1 + 1e-12), **more) <= accuracy


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("epsilon", ["0.13", "1", "4"])
def test_discrete_accuracy_is_that_of_the_noise_that_is_added(
    neighbours: str, epsilon: str
) -> None:
    unit = sf.Unit(neighbours=neighbours)
    law = count_law(sf.PureDP(epsilon), unit)
    assert isinstance(law, DiscreteLaplace)
    k, values = (
        sf.histogram_accuracy("geometric", epsilon=epsilon, neighbours=neighbours),
        support(law),
    )
    mass = masses(law, values)
    assert mass[np.abs(values) > k].sum() <= 0.05 < mass[np.abs(values) > k - 1].sum()
    keys = key_law(sf.ApproxDP(epsilon, "1e-6"), unit)
    a = sf.histogram_accuracy("truncated-geometric", epsilon=epsilon, neighbours=neighbours)
    assert a == keys.error_bound(0.05) >= keys.half_width(0.05)


@pytest.mark.parametrize(
    ("mechanism", "more"),
    [
        ("laplac", {}),
        ("laplace", {"alpha": 0}),
        ("laplace", {"alpha": 1}),
        ("laplace", {"alpha": 1.5}),
        ("laplace", {"alpha": float("nan")}),
        ("laplace", {"epsilon": 0}),
        ("laplace", {"epsilon": -1}),
        ("laplace", {"epsilon": "much"}),
        ("laplace", {"n_bins": 0}),
        ("laplace", {"n_bins": 2.5}),
        ("laplace", {"neighbours": "swap"}),
        ("stability", {"delta": 0}),
        ("stability", {"delta": 1}),
        ("truncated-geometric", {"delta": 0}),
        ("stability", {"delta": "1e-6", "n": 1000}),
        ("stability", {"delta": "1e-6", "n": 0}),
        ("geometric", {"epsilon": "1e-30"}),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(mechanism: str, more: dict) -> None:
    with pytest.raises(sf.UsageError) as refused:
        sf.histogram_accuracy(mechanism, **{"epsilon": 1} | more)
    assert all((refused.value.asked, refused.value.obstacle, refused.value.remedy))


def test_a_delta_that_a_stated_number_of_rows_allows() -> None:
    assert sf.histogram_accuracy("stability", epsilon=1, delta="9e-7", n=1000) > 1
    assert sf.histogram_accuracy("laplace", epsilon=1, n=10**6) > 1  # which uses no delta


def test_accuracies_that_no_epsilon_reaches() -> None:
    for mechanism, accuracy in (
        ("stability", 1),
        ("laplace", 0),
        ("geometric", -1),
        ("truncated-geometric", 0),
    ):
        with pytest.raises(sf.UsageError):
            sf.histogram_epsilon(mechanism, accuracy=accuracy)


def test_all_mechanisms_get_better_with_epsilon() -> None:
    for mechanism in MECHANISMS:
        found = [sf.histogram_accuracy(mechanism, epsilon=e) for e in (0.01, 0.1, 1, 10)]
        assert found == sorted(found, reverse=True)


def test_no_noise_at_all_is_an_accuracy_too():
    least = sf.histogram_epsilon("geometric", accuracy=0, neighbours="add-remove")
    assert sf.histogram_accuracy("geometric", epsilon=least, neighbours="add-remove") == 0
    assert (
        sf.histogram_accuracy("geometric", epsilon=least * (1 - 1e-9), neighbours="add-remove") == 1
    )
    with pytest.raises(sf.UsageError, match="above 0"):
        sf.histogram_epsilon("laplace", accuracy=0)


def test_an_epsilon_too_large_for_its_delta_says_so():
    with pytest.raises(sf.UsageError, match="larger delta, or a smaller epsilon"):
        sf.histogram_accuracy("truncated-geometric", epsilon=10_000)


def test_the_sources_call_runs_as_it_is_written() -> None:
    """histogram.getAccuracy(mechanism, n.bins, n, epsilon, delta = 10^-6, alpha = 0.05)."""
    accuracy = sf.histogram_accuracy
    laplace = accuracy("laplace", epsilon=0.2)
    assert accuracy("mechanismLaplace", 5, 2000, 0.2) == laplace
    assert accuracy("mechanismLaplace", 5, 2000, 0.2, 10**-6, 0.05) == laplace
    assert accuracy("laplace", 5, 2000, 0.2, alpha=0.01) == accuracy(
        "laplace", epsilon=0.2, alpha=0.01
    )
    stability = accuracy("mechanismStability", 5, 500, 0.2, 1e-6, 0.05)
    assert stability == accuracy("stability", epsilon=0.2)
    assert stability == pytest.approx(2 / 0.2 * math.log(1 / 0.05) + 2 / 0.2 * math.log(2e6) + 1)
    assert sf.histogram_epsilon("mechanismLaplace", 5, 2000, laplace) == pytest.approx(0.2)
    assert sf.histogram_epsilon("mechanismStability", 5, 500, stability) == pytest.approx(0.2)


@pytest.mark.parametrize(
    "call",
    [
        lambda: sf.histogram_accuracy("laplace"),
        lambda: sf.histogram_accuracy("laplace", 5, 100),
        lambda: sf.histogram_accuracy("mechanismExponential", 5, 100, 0.2),
        lambda: sf.histogram_accuracy("laplace", 0.2),
        lambda: sf.histogram_accuracy({"a": 1}, epsilon=0.2),
        lambda: sf.histogram_accuracy("mechanismStability", 5, 2000, 0.2),
        lambda: sf.histogram_epsilon("laplace", 5, 100),
    ],
)
def test_calls_that_cannot_be_answered(call: Callable[[], float]) -> None:
    with pytest.raises(sf.UsageError):
        call()
