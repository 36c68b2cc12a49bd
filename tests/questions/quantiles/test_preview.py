"""A preview says what the release then keeps."""

from __future__ import annotations

import sfumato as sf


def test_previews_promise_what_releases_keep(publisher):
    for question in (
        sf.Quantiles("x"),
        sf.Quantiles(["x", "y"], by="kind"),
        sf.Quantiles("x", method="tree"),
    ):
        preview = publisher.preview(question, epsilon="1", rows=6_000)
        release = publisher.release(question, epsilon="1")
        # The same law; equal values make a release better than its preview, never worse.
        assert preview.accuracy() == release.accuracy().max()
        assert preview.accuracy(simultaneous=True) == release.accuracy(simultaneous=True).max()
        assert preview.cells == release.values.size
        assert "rows" in str(preview)
    assert (
        publisher.preview(sf.Quantiles("x"), epsilon="2").accuracy()
        < publisher.preview(sf.Quantiles("x"), epsilon="1").accuracy()
    )


def test_answers_have_a_method_for_each_axis(publisher):
    question = sf.Quantiles(["x", "y"], at=[0.25, 0.5])
    preview = publisher.preview(question, epsilon="1")
    release = publisher.release(question, epsilon="1")
    assert len(preview.axis_methods) == 2
    assert list(release.axis_methods) == ["x", "y"]


def test_it_says_what_intervals_end_at(publisher):
    """Quantiles that are as far away as it says bound each other nearly always."""
    alone = publisher.preview(sf.Quantiles("x", at=[0.5]), epsilon="1", rows=6_000)
    assert "it can end at another value" in str(alone)
    assert "the interval is the whole axis" in str(alone)
    assert "at=[0.25, 0.5, 0.75] (command line: --at 0.25,0.5,0.75)" in str(alone)
    question = sf.Quantiles("x", at=[0.4, 0.5, 0.6])
    preview = publisher.preview(question, epsilon="1", rows=6_000)
    assert "too" not in next(line for line in preview.lines() if "each interval" in line)
    words = next(line for line in preview.lines() if "each interval" in line).split()
    share = float(words[words.index("away") + 1].strip("(%")) / 100
    assert 0 < share < 0.1
    low, high = publisher.release(question, epsilon="1").interval()
    assert (low[1], high[1]) != (-5, 5)
