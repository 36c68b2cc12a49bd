"""Pictures of running totals: what is drawn is what was released."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.charts import streams, style
from sfumato.testing import deterministic

SOURCE = sf.source(np.empty((0, 1)), sf.Domain(x=sf.Interval(0, 1)), name="t")


def made(counter, increments, events=None):
    with (
        deterministic(5),
        sf.Publisher(SOURCE, budget="1") as publisher,
        publisher.open(counter, epsilon="0.2") as stream,
    ):
        for i, increment in enumerate(increments):
            stream.push(increment, event=None if events is None else events[i])
        return stream.history()


DAYS = [f"2026-11-{day:02}" for day in range(1, 21)]


@pytest.mark.parametrize("width", [style.WIDE, style.NARROW])
def test_totals_and_bands(width):
    release = made(sf.Counter(30), range(20), DAYS)
    with style.sized(width):
        ax = release.plot()
    (line,) = ax.lines
    assert line.get_ydata().tolist() == release.values.tolist()
    for label, together in (("_individual", False), ("_simultaneous", True)):
        (band,) = (c for c in ax.collections if c.get_label() == label)
        low, high = release.interval("0.95", together)
        ys = band.get_paths()[0].vertices[:, 1]
        assert (ys.min(), ys.max()) == (low.min(), high.max())
    above, below = ax.figure.axes
    assert below.get_ylim()[0] == 0
    assert above.get_shared_x_axes().joined(above, below)


def test_many_categories_are_cut_to_a_few():
    labels = [f"label {i}" for i in range(9)]
    release = made(
        sf.Counter(5, by=sf.Categories(labels)),
        [{label: 300 * i for i, label in enumerate(labels)}] * 3,
    )
    ax = release.plot()
    assert len(ax.lines) == streams.FEW
    assert "of 9" in ax.get_legend().get_title().get_text()


def test_on_axes_that_are_given_and_without_steps():
    _, ax = style.figure(300)
    assert made(sf.Counter(5), [1, 2], ["x", "y"]).plot(ax) is ax
    assert ax.get_xlabel() == "step"
    assert made(sf.Counter(5), []).plot() is not None


@pytest.mark.parametrize(
    "cost", [{"epsilon": "1"}, {"rho": "0.5"}, {"epsilon": "1", "delta": "1e-6"}], ids=str
)
def test_errors_of_all_methods(cost):
    preview = sf.preview(sf.Counter(40), domain=SOURCE.domain, unit=SOURCE.unit, **cost)
    lines = {line.get_label(): line.get_ydata() for line in preview.plot().lines}
    assert lines["this counter"].max() == pytest.approx(preview.accuracy())
    assert lines["binary tree"].max() > lines["this counter"].max()


def test_a_page():
    release = made(sf.Counter(30, by=sf.Categories(["a", "b"])), [{"a": 5}] * 20, DAYS)
    from sfumato.reports.page import render

    text = render([release])
    assert text.count('<svg role="img"') == 2
    assert "Running total of events by category" in text
    assert "2026-11-20" in text
