"""What local mechanisms share: accuracy, promises, and points that are clamped, never quoted."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from sfumato.random import PublicSeed, override
from support.canary import overheard


@pytest.mark.parametrize(
    "mechanism",
    [sf.BPM(6, "0.8", 2), sf.BPM(3, "auto", 3), sf.MultivariateLaplace(3, 2)],
    ids=lambda m: m.title,
)
def test_debiased_means_are_unbiased_and_as_spread_as_stated(
    mechanism: sf.BPM | sf.MultivariateLaplace,
) -> None:
    corner = np.zeros(mechanism.dimension)
    with override(PublicSeed(mechanism.title)):
        reports = mechanism.perturb(np.tile(corner, (200_000, 1)))
    found = mechanism.debias(reports.mean(axis=0))
    error = (mechanism.variance / mechanism.dimension / len(reports)) ** 0.5
    assert np.abs(found - corner).max() < 6.5 * error
    spread = float(((mechanism.debias(reports) - corner) ** 2).sum(axis=1).mean())
    assert spread == pytest.approx(mechanism.variance, rel=0.03)


def test_the_unbounded_limit_and_the_physical_limit() -> None:
    for d in (2, 3, 8):
        bpm, laplace = sf.BPM(2, "auto", d), sf.MultivariateLaplace(2, d)
        assert laplace.variance == d * (d + 1) / 4
        assert laplace.variance < bpm.variance <= 1.05 * laplace.variance
        assert bpm.limit(100) == d * d / 400
        assert laplace.variance / 100 == pytest.approx((d + 1) / d * bpm.limit(100))
        assert bpm.reports_needed(0.1) == int(np.ceil(bpm.variance * 100))


def test_what_a_mechanism_promises() -> None:
    bpm = sf.BPM(2, "0.3", 2)
    assert bpm.ldp_level == pytest.approx(0.6)
    assert sf.BPM(2, 5, 4).ldp_level == pytest.approx(4.0)
    assert bpm.guarantee.measure == sf.MetricDP(2)
    assert "epsilon = 2 per unit of euclidean distance" in bpm.guarantee.sentence()
    assert "signal" in str(bpm)
    for made in (bpm, sf.MultivariateLaplace(2, 2)):
        block = " ".join(str(type(made).__doc__).split())
        for line in str(made.proof).splitlines():
            heading, _, sentence = line.partition(": ")
            if heading != "Source":
                assert sentence.rstrip(".") in block


@pytest.mark.parametrize(
    "make",
    [
        lambda: sf.BPM(0, 1, 2),
        lambda: sf.BPM(-1, 1, 2),
        lambda: sf.BPM(1, 0, 2),
        lambda: sf.BPM(1, -1, 2),
        lambda: sf.BPM(1, "wide", 2),
        lambda: sf.BPM(float("nan"), 1, 2),
        lambda: sf.BPM(1, float("inf"), 2),
        lambda: sf.BPM(1, 1, 0),
        lambda: sf.BPM(1, 1, 2.5),
        lambda: sf.BPM(1, 1, 10**6),
        lambda: sf.MultivariateLaplace(0, 2),
        lambda: sf.MultivariateLaplace(1, True),
        lambda: sf.BPM(1, 1, 2).perturb([1, 2, 3]),
        lambda: sf.BPM(1, 1, 2).perturb([[float("nan"), 0]]),
        lambda: sf.BPM(1, 1, 2).perturb("points"),
        lambda: sf.BPM(1, 1, 2).perturb([[0, 0]], method="fast"),
        lambda: sf.BPM(1, 1, 2).reports_needed(0),
        lambda: sf.BPM(1, 1, 2).check_cells([[0, 2**16]]),
        lambda: sf.BPM(1, 1, 2).check_cells([[0.5, 1]]),
    ],
)
def test_bad_parameters(make: object) -> None:
    with pytest.raises(sf.UsageError):
        make()  # type: ignore[operator]


def test_values_are_clamped_and_never_quoted() -> None:
    bpm = sf.BPM(400, "auto", 2)
    assert np.abs(bpm.perturb([[1e300, -7.0]]) - [[1, 0]]).max() < 0.3
    secret = 0.7312984561
    for call in (
        lambda: bpm.perturb([[secret, float("nan")]]),
        lambda: bpm.perturb([secret]),
        lambda: bpm.perturb([[secret, 1, 2]]),
        lambda: bpm.perturb([[secret, "x"]]),
        lambda: sf.PrivateKMeans(n_clusters=2, epsilon=2).fit([[secret, 0.5]]),
    ):
        assert overheard(secret, call) == []


def test_one_point_gives_one_report() -> None:
    for mechanism in (sf.BPM(2, 1, 2), sf.MultivariateLaplace(2, 2)):
        assert mechanism.perturb([0.5, 0.5]).shape == (2,)
        assert mechanism.perturb(np.zeros((0, 2))).shape == (0, 2)
