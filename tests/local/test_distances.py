"""Distances: errors of floats stay below the margin, and what is settled keeps the law."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from sfumato.local.bpm import BPM
from sfumato.local.bpm import _sampler as _bpm_sampler
from sfumato.local.distances import DistanceLaw, gamma_below
from sfumato.random import PublicSeed

LAWS = {
    "gamma, spread": lambda: DistanceLaw(3, BPM(4, 1, 2).epsilon, BPM(4, 3, 2).L, 2),
    "gamma of one": lambda: DistanceLaw(2, BPM(4, 1, 2).epsilon, BPM(4, 3, 2).L, 1),
    "gamma, bounded": lambda: DistanceLaw(2, BPM(4, 1, 2).epsilon, BPM(4, 3, 2).L, 0),
    "gamma of many": lambda: DistanceLaw(3000, BPM(3000, 1, 2).epsilon, None, 0),
    "power": lambda: DistanceLaw(4, BPM(2, 1, 2).epsilon, BPM(2, "0.3", 2).L, 3),
    "power of one": lambda: DistanceLaw(1, BPM(2, 1, 2).epsilon, BPM(2, "0.01", 2).L, 0),
}


@pytest.mark.parametrize("name", LAWS)
def test_errors_of_floats_stay_below_the_margin(name: str) -> None:
    """The distance between both evaluations of a radius, in units of the bound that the margin is
    made of.
    """
    from decimal import localcontext

    from sfumato.local.constants import context
    from sfumato.local.reals import Level

    law, bits = LAWS[name](), PublicSeed(name)
    assert law.by_power == name.startswith("power")
    radii = law.propose(60, bits)
    found = np.flatnonzero(radii.accepted & ~radii.doubtful)
    assert found.size > 10
    for i in found:
        with localcontext(context(60)):
            exact = law.exact(radii.reals(i, bits), Level(96))
        assert exact is not None
        assert abs(float(exact) - radii.values[i]) <= law.error(radii.values[i : i + 1])[0] / 4


@pytest.mark.parametrize("name", LAWS)
def test_few_radii_are_tried_in_vain(name: str) -> None:
    radii = LAWS[name]().propose(20_000, PublicSeed(f"vain {name}"))
    assert radii.accepted.mean() > 0.2
    assert radii.doubtful.sum() <= 2


@pytest.mark.parametrize("reach", ["0.2", "1", "4"])
def test_radii_that_are_all_doubtful_have_the_same_law(
    reach: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every candidate is settled, and drawn afresh where decimals reject it; what floats propose
    has another law.
    """
    from scipy import stats

    monkeypatch.setattr("sfumato.local.distances._ACCEPT_MARGIN", 1e9)
    k, bits = BPM(3, reach, 1), PublicSeed(f"all doubtful {reach}")
    sampler = _bpm_sampler(k, 2, 0)
    assert sampler.distance.by_power == (reach == "0.2")
    assert sampler.distance.propose(100, bits).doubtful.all()
    count = 1500
    settled = np.abs(k.place(sampler.draw(np.zeros((count, 1)), bits))).ravel()
    proposed = sampler.distance.propose(count, bits).values
    law = stats.gamma(2, scale=1 / 3)
    for values, sound in (
        (settled, True),
        (settled * 1.3, False),
        *([(proposed, False)] if reach == "1" else []),
    ):
        pvalue = stats.kstest(
            values, lambda r: np.minimum(law.cdf(r) / law.cdf(float(reach)), 1)
        ).pvalue
        assert (pvalue > 1e-9) == sound


@pytest.mark.parametrize("m", [1, 2, 9, 64])
def test_the_chance_that_the_gamma_proposal_is_within_reach(m: int) -> None:
    for x in (0.01, 1.0, float(m), 3.0 * m):
        assert float(gamma_below(m, x)) == pytest.approx(special.gammainc(m, x), rel=1e-9)
