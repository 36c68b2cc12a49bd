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
