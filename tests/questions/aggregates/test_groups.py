"""The groups of a mean: all rows, one axis, several axes, and bins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from questions.aggregates.wards import LARGE, TABLE
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


KEYED = sf.Domain(shop=sf.Keys(), kind=sf.Categories(["a", "b"]), x=sf.Interval(0, 11, step=1))


def keyed_publisher() -> sf.Publisher:
    """Three shops: of 2,000 rows, of 1,000, and of one."""
    shops = ["large"] * 2000 + ["small"] * 1000 + ["tiny"]
    table = pa.table(
        {
            "shop": shops,
            "kind": ["ab"[i % 2] for i in range(len(shops))],
            "x": [{"large": 3.0, "small": 7.0, "tiny": 9.0}[shop] for shop in shops],
        }
    )
    return sf.Publisher(sf.source(table, KEYED, name="shops"), budget=sf.ApproxDP(100, "1e-3"))


def test_keys_are_selected_by_their_rows_and_the_rest_of_epsilon_is_for_the_sums() -> None:
    publisher = keyed_publisher()
    with deterministic(1):
        release = publisher.release(sf.Mean("x", by="shop"), epsilon="4", delta="1e-6")
    assert release.group_names == ["large", "small"]
    assert release.values == pytest.approx([3, 7], abs=0.1)
    assert np.rint(release.counts) == pytest.approx([2000, 1000], abs=20)
    assert release.cost == sf.ApproxDP(4, "1e-6")
    assert "keys are selected by" in release.guarantee.mechanism
    known = publisher.release(sf.Mean("x", by="kind"), epsilon="2")
    assert release.law == known.law
    low, high = release.interval("0.999")
    assert (low <= [3, 7]).all()
    assert (high >= [3, 7]).all()


def test_keys_go_with_other_groups_several_values_and_chosen_clips(tmp_path: Path) -> None:
    publisher = keyed_publisher()
    with deterministic(2):
        question = sf.Sum("x", by=["kind", "shop"], clip="auto")
        release = publisher.release(question, epsilon="4", delta="1e-6")
    assert release.values.shape == (2, 2)
    assert release.values[:, 0] == pytest.approx([3000, 3000], rel=0.1)
    assert sf.load(release.save(tmp_path / "r.json")) == release


def test_what_keys_cannot_do_is_refused_before_the_charge() -> None:
    publisher = keyed_publisher()
    question = sf.Mean("x", by="shop")
    with pytest.raises(sf.UsageError, match="needs a delta"):
        publisher.release(question, epsilon="1")
    with pytest.raises(sf.UsageError, match="needs a delta"):
        publisher.preview(question, rho="1")
    preview = publisher.preview(question, epsilon="1", delta="1e-6", rows=3000)
    assert "a key held by" in str(preview)
    with pytest.raises(sf.UsageError, match="how many groups are shown"):
        preview.accuracy()
    total = publisher.preview(sf.Sum("x", by="shop"), epsilon="1", delta="1e-6")
    assert total.accuracy() > 0


def test_without_a_key_that_has_enough_rows_nothing_is_shown() -> None:
    table = pa.table({"shop": ["a", "b"], "kind": ["a", "a"], "x": [1.0, 2.0]})
    publisher = sf.Publisher(sf.source(table, KEYED, name="few"), budget=sf.ApproxDP(1, "1e-3"))
    with deterministic(1):
        release = publisher.release(sf.Mean("x", by="shop"), epsilon="1", delta="1e-9")
    assert release.values.shape == (0,)
    assert release.to_frame().num_rows == 0
