"""Where noise on fine steps could not be drawn, steps are coarser."""

from __future__ import annotations

import sfumato as sf
from aggregates.wards import DOMAIN, TABLE
from sfumato.aggregates.values import COARSE_STEPS


def test_where_noise_would_be_too_large_values_are_rounded_more(publisher: sf.Publisher) -> None:
    release = publisher.release(sf.Variance("wage"), epsilon="0.00001")
    assert 1 <= release.scale.points < COARSE_STEPS
    assert release.scale.rounded
    assert float(release.law.scale) <= 2**48
    many = sf.source(TABLE, DOMAIN, rows_per_person=400, name="wards")
    finest = sf.Publisher(many, budget=1).release(sf.Variance("age"), epsilon="0.00000001")
    assert finest.scale.rounded
    assert finest.scale.points < 120
