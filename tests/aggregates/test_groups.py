"""The groups of a mean: all rows, one axis, several axes, and bins."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from aggregates.wards import LARGE, TABLE
from sfumato.testing import deterministic


def test_all_rows_are_one_group(publisher: sf.Publisher) -> None:
    with deterministic(3):
        release = publisher.release(sf.Mean("age"), epsilon=LARGE)
    assert release.values.shape == ()
    assert float(release.values) == pytest.approx(
        float(np.mean(np.asarray(TABLE["age"]))), abs=0.01
    )
    assert release.group_names == ["all rows"]
    assert release.title == "Mean of age"


def test_groups_of_two_axes_and_of_bins(publisher: sf.Publisher) -> None:
    with deterministic(3):
        release = publisher.release(sf.Mean("wage", by=["ward", "day"]), epsilon=LARGE)
    assert release.values.shape == (3, 31)
    assert len(release.group_names) == 93
    assert release.to_frame().num_rows == 93
    ages = publisher.release(sf.Sum("wage", by="age"), epsilon="1")
    assert ages.values.shape == (121,)
