"""Marginals agree with each other, and consistent tables have no negative count."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf


def test_marginals_agree(releases: list[sf.HistogramRelease]) -> None:
    release = releases[0]
    ages = release.marginal("age")
    kinds = release.marginal("kind")
    assert ages.value.sum() == kinds.value.sum() == release.total().value == release.values.sum()
    assert (release.marginal(["kind", "age"]).value == release.values.T).all()
    assert (release.marginal(["age", "kind"]).low == release.interval()[0]).all()
    wide = release.marginal("kind", simultaneous=True)
    assert (wide.low < kinds.low).all()
    with pytest.raises(sf.UsageError, match="kind"):
        release.marginal("kinds")


def test_a_consistent_table_has_the_same_total_and_no_negative_count(
    releases: list[sf.HistogramRelease],
) -> None:
    for release in releases[:20]:
        table = release.consistent()
        assert table.dtype == np.int64
        assert table.min() >= 0
        assert table.sum() == max(0, release.values.sum())
        lifted = release.values[table > 0] - table[table > 0]
        # But for rounding, the projection takes the same from each cell that stays above 0.
        assert np.ptp(lifted) <= 1
