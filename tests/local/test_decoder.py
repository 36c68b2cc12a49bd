"""From reports to clusters: centres, their errors, and their intervals."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.special import stdtrit

import sfumato as sf
from local.rehearsals import TRUE_CENTERS, law, people, rehearsed, reported
from sfumato.basics.kmeans import assign
from sfumato.local import decode
from sfumato.local.decoder import FREEDOM, _centred, _Known
from sfumato.random import PublicSeed, override
from support.statistics import covers

CENTERS = np.array([[0.2, 0.25], [0.8, 0.3], [0.5, 0.85]])


def blobs(
    n: int, spread: float, seed: int, centers: np.ndarray = CENTERS
) -> tuple[np.ndarray, np.ndarray]:
    """Points, and the means of what was drawn of each cluster."""
    rng = np.random.default_rng(seed)
    which = rng.integers(len(centers), size=n)
    points = np.clip(centers[which] + rng.normal(size=(n, centers.shape[1])) * spread, 0, 1)
    return points, np.array([points[which == j].mean(axis=0) for j in range(len(centers))])


def perturbed(
    mechanism: sf.BPM | sf.MultivariateLaplace, points: np.ndarray, seed: int
) -> np.ndarray:
    with override(PublicSeed(f"{mechanism.title} {seed}")):
        return mechanism.perturb(points)


def paired(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Which found centre is nearest to each true one."""
    return assign(true, found)


@pytest.mark.parametrize(
    "mechanism",
    [sf.BPM(32, "auto", 2), pytest.param(sf.MultivariateLaplace(32, 2), marks=pytest.mark.deep)],
    ids=lambda m: m.title,
)
def test_centres_are_within_twice_the_physical_limit(mechanism: sf.BPM) -> None:
    """Clusters lie more than four noise radii d / epsilon apart; points of a cluster nearly
    coincide.
    """
    errors = []
    for seed in range(2):
        points, true = blobs(3_000, 0.005, seed)
        found = decode(
            perturbed(mechanism, points, seed), mechanism, 3, np.random.default_rng(seed)
        )
        errors.append(((found.centers[paired(found.centers, true)] - true) ** 2).sum(axis=1).mean())
    assert np.mean(errors) <= 2 * mechanism.limit(1_000)


@pytest.mark.deep
def test_errors_of_centres_beside_the_limit(evidence: Callable[[str, object], None]) -> None:
    """Clusters at least four noise radii d / epsilon apart; mean squared error over d^2 /
    (epsilon^2 n), n the reports of one cluster.
    """
    figures = []
    for d, epsilons in ((2, (16, 32)), (4, (24, 48))):
        true_centers = (
            CENTERS
            if d == 2
            else np.array([[0.2, 0.2, 0.3, 0.3], [0.8, 0.3, 0.7, 0.2], [0.4, 0.8, 0.2, 0.8]])
        )
        for epsilon in epsilons:
            mechanism = sf.BPM(epsilon, "auto", d)
            for each in (1_000, 10_000):
                for spread in (0.005, 0.02):
                    errors = []
                    for seed in range(5):
                        points, true = blobs(3 * each, spread, seed, true_centers)
                        found = decode(
                            perturbed(mechanism, points, seed),
                            mechanism,
                            3,
                            np.random.default_rng(seed),
                        )
                        errors.append(
                            ((found.centers[paired(found.centers, true)] - true) ** 2)
                            .sum(axis=1)
                            .mean()
                        )
                    ratio = float(np.mean(errors) / mechanism.limit(each))
                    figures.append(
                        {
                            "d": d,
                            "epsilon": epsilon,
                            "reports each": each,
                            "spread": spread,
                            "over the limit": round(ratio, 3),
                        }
                    )
    evidence("local-centres", figures)
    assert max(row["over the limit"] for row in figures) <= 2


def test_the_same_reports_and_seed_give_the_same_clusters() -> None:
    mechanism = sf.BPM(8, "auto", 2)
    reports = perturbed(mechanism, blobs(1_500, 0.05, 0)[0], 0)
    one, two = (decode(reports, mechanism, 3, np.random.default_rng(4)) for _ in range(2))
    assert np.array_equal(one.centers, two.centers)
    assert ((one.centers >= 0) & (one.centers <= 1)).all()
    assert (np.diff(one.weights) <= 0).all()


def test_one_cluster_and_one_dimension() -> None:
    mechanism = sf.MultivariateLaplace(6, 1)
    points = np.full((4_000, 1), 0.3)
    found = decode(perturbed(mechanism, points, 0), mechanism, 1, np.random.default_rng(0))
    assert abs(found.centers[0, 0] - 0.3) < 0.02


@pytest.mark.parametrize("k", [0, -1, 2.5, True, 11])
def test_bad_numbers_of_clusters(k: object) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(sf.UsageError):
        decode(np.zeros((10, 2)), sf.BPM(2, 1, 2), k, rng)  # type: ignore[arg-type]


@pytest.mark.parametrize("spread", [0.02, 0.08])
def test_centres_of_a_known_law_are_as_near_as_they_say(spread: float) -> None:
    """The points that the server draws have an error of their own, which no number of reports makes
    smaller.
    """
    known, within, off = _Known(law(2, spread, 1e-14), None, 1.0), [], []
    for seed in range(6):
        found = _centred(known, np.random.default_rng(seed))
        order = assign(TRUE_CENTERS[2], found.centers)
        away = found.centers[order] - TRUE_CENTERS[2]
        within.append(np.abs(away) <= stdtrit(FREEDOM, 0.975) * found.center_errors[order])
        off.append(away)
    assert covers(int(np.sum(within)), np.size(within), 0.95)
    # Independent draws would be off by spread / sqrt(persons drawn of each cluster).
    assert np.sqrt(np.mean(np.square(off))) < 0.5 * spread / np.sqrt(24_000 / 3)


def test_the_half_width_is_that_of_a_standard_error_from_few_laws() -> None:
    points = people(1_500, 2, 0.05, 0)
    found = sf.PrivateKMeans(n_clusters=3, epsilon=16, random_state=0)
    found.fit_reports(reported(sf.BPM(16, "auto", 2), points, 0))
    assert found._decoded is not None
    low, high = found.intervals("0.9")
    assert np.allclose((high - low) / 2, stdtrit(FREEDOM, 0.95) * found._decoded.center_errors)
    assert found.in_model_


def test_naive_centres_have_no_model() -> None:
    reports = reported(sf.BPM(16, "auto", 2), people(300, 2, 0.05, 1), 1)
    assert (
        sf.PrivateKMeans(n_clusters=3, epsilon=16, method="naive").fit_reports(reports).in_model_
        is None
    )


@pytest.mark.deep
@pytest.mark.parametrize(
    ("d", "epsilon", "n", "spread", "shape", "trials"),
    [
        (2, 16, 1_000, 0.05, "normal", range(500)),
        (
            2,
            16,
            1_000,
            0.05,
            "normal",
            range(500, 1_000),
        ),  # a thousand in two parts, each of a few minutes
        (2, 8, 3_000, 0.05, "normal", range(200)),
        (4, 24, 1_000, 0.05, "normal", range(200)),
        (2, 16, 100_000, 0.08, "normal", range(100)),
        (2, 16, 10_000, 0.05, "tail", range(100)),
        (4, 24, 10_000, 0.05, "tail", range(100)),
    ],
)
def test_coverage_of_local_centres(
    d: int,
    epsilon: int,
    n: int,
    spread: float,
    shape: str,
    trials: range,
    evidence: Callable[[str, object], None],
) -> None:
    """All coordinates; the bound is for one of them in each trial, since those of one trial are not
    independent.
    """
    within, widths, marked, single = [], [], 0, 0
    for trial in trials:
        found, half, in_model = rehearsed(people(n, d, spread, trial, shape), epsilon, trial)
        within.append(found)
        widths.append(half)
        marked += not in_model
        single += bool(found.ravel()[trial % found.size])
    part = f"_{trials.start}" if trials.start else ""
    evidence(
        f"coverage_of_local_centres_{d}_{epsilon}_{n}_{shape}{part}",
        {
            "d": d,
            "epsilon": epsilon,
            "reports": n,
            "spread": spread,
            "clusters": shape,
            "trials": len(trials),
            "coverage": round(float(np.mean(within)), 3),
            "one coordinate of each fit": round(single / len(trials), 3),
            "half-width": round(float(np.mean(widths)), 5),
            "marked": marked / len(trials),
        },
    )
    assert covers(single, len(trials), 0.95)
    if shape == "normal":
        assert marked <= 0.05 * len(trials)
    else:
        assert marked >= 0.1 * len(trials)


PAGE = Path(__file__).parents[2] / "docs" / "local.md"


def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(
        r"```python\n(.*?)```\n(?:.*?)```text\n(.*?)```",
        PAGE.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    assert len(blocks) == 2
    names: dict[str, object] = {}
    for code, printed in blocks:
        exec(compile(code, PAGE.name, "exec"), names)
        assert capsys.readouterr().out == printed
