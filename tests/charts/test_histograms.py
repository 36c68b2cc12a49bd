"""What is drawn is what was released.

The geometry of error bars equals the release's own intervals.
"""

from itertools import pairwise

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm
from matplotlib.patches import StepPatch
from matplotlib.text import Text

import sfumato as sf
from sfumato.charts import histograms, style
from sfumato.charts import scales as reduce
from sfumato.domain.domain import Categories, Domain


def _spans(ax, label, column):
    """Ends of all error bars of one kind, along the axis of counts: ndarray of shape (bars, 2)."""
    found = [c for c in ax.collections if isinstance(c, LineCollection) and c.get_label() == label]
    return np.concatenate(
        [[np.sort(segment[:, column]) for segment in c.get_segments()] for c in found]
    )


def _bands(ax, label):
    found = [p for p in ax.patches if isinstance(p, StepPatch) and p.get_label() == label]
    return np.concatenate(
        [np.stack([p.get_data().baseline, p.get_data().values], axis=1) for p in found]
    )


def _ends(release, simultaneous):
    return np.stack([end.T.reshape(-1) for end in release.interval("0.95", simultaneous)], axis=1)


@pytest.mark.parametrize("kind", [("_individual", False), ("_simultaneous", True)])
@pytest.mark.parametrize(
    ("axes", "bins", "column"),
    [
        ("delay", 24, 1),
        ("delay", [-60, 0, 10, 180], 1),
        ("carrier", None, 0),
        (["delay", "origin"], 12, 1),
        (["carrier", "origin"], None, 0),
    ],
)
def test_error_bars_are_the_intervals_of_the_release(histogram, axes, bins, column, kind):
    label, simultaneous = kind
    release = histogram(axes, bins)
    assert np.array_equal(_spans(release.plot(), label, column), _ends(release, simultaneous))


@pytest.mark.parametrize(
    ("label", "simultaneous"), [("_individual", False), ("_simultaneous", True)]
)
def test_bands_are_the_intervals_of_the_release(histogram, label, simultaneous):
    release = histogram("day")
    assert np.array_equal(_bands(release.plot(), label), _ends(release, simultaneous))


def test_bars_stand_between_the_edges_of_their_bins(histogram):
    release = histogram("delay", 24)
    bars = next(p for p in release.plot().patches if isinstance(p, StepPatch)).get_data()
    assert np.array_equal(bars.values, release.values)
    assert np.allclose(bars.edges, release.lattice.axes[0].edges())


def test_negative_counts_are_drawn_as_they_are(histogram):
    release = histogram("hour", rows=50, epsilon="0.02")
    ax = release.plot()
    assert release.values.min() < 0
    assert ax.get_ylim()[0] < release.values.min()


def test_dots_follow_the_order_of_the_domain(histogram):
    ax = histogram("carrier").plot()
    assert [text.get_text() for text in ax.get_yticklabels()] == [f"C{i}" for i in range(9)]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]


def test_series_are_named_and_coloured_apart(histogram):
    ax = histogram(["delay", "origin"], 12).plot()
    named = {text.get_text(): text.get_color() for text in ax.texts}
    assert named == dict(zip(["EWR", "JFK", "LGA"], style.SERIES, strict=False))


def test_series_are_named_in_their_own_order_from_the_top_down(histogram):
    ax = histogram(["delay", "origin"], 12).plot()
    heights = [text.xy[1] for text in ax.texts]
    assert [text.get_text() for text in ax.texts] == ["EWR", "JFK", "LGA"]
    assert np.all(np.diff(heights) < -0.03)


def test_counts_that_span_decades_have_a_logarithmic_axis(histogram):
    few = Domain(kind=Categories([f"{i:02}" for i in range(16)]))
    release = histogram("kind", rows=400_000, epsilon="1", domain=few)
    spread = np.geomspace(50, 100_000, 16).astype(np.int64)
    for counts, scale in ((spread, "log"), (spread - 100, "linear"), (spread // 2000, "linear")):
        ax = msgspec.structs.replace(release, counts=counts).plot()
        assert ax.get_xscale() == scale
        assert ("logarithmic scale" in ax.get_xlabel()) == (scale == "log")


def test_shades_that_span_decades_are_logarithmic(histogram):
    release = histogram(["carrier", "many"], rows=100)
    counts = np.geomspace(1, 100_000, release.counts.size).reshape(release.counts.shape)
    ax = msgspec.structs.replace(release, counts=counts.astype(np.int64)).plot()
    assert isinstance(ax.images[0].norm, LogNorm)
    assert not isinstance(histogram(["carrier", "delay"], 24).plot().images[0].norm, LogNorm)


def test_a_table_of_shades_shows_only_what_can_be_told_from_zero(histogram):
    release = histogram(["carrier", "delay"], 24)
    ax = release.plot()
    low, _ = release.interval()
    assert np.array_equal(np.ma.getmaskarray(ax.images[0].get_array()), low <= 0)
    told = ax.get_legend().get_title().get_text().replace("\n", " ")
    assert f"within ±{release.accuracy().max()} " in told
    assert f"within ±{release.accuracy(simultaneous=True).max()}." in told


def test_small_tables_of_shades_hold_their_numbers(histogram):
    release = histogram(["carrier", "hour"], 8)
    assert [text.get_text() for text in release.plot().texts] == [
        style.number(v) for v in release.values.reshape(-1)
    ]


def test_further_axes_are_added_up_and_the_picture_says_so(histogram):
    release = histogram(["carrier", "hour", "origin"])
    ax = release.plot()
    assert "Added up over origin." in ax.get_legend().get_title().get_text()
    summed = release.values.sum(axis=2)
    half = release.law.sum_half_width(np.array([3.0]), 0.05)[0]
    shown = ax.images[0].get_array()
    assert np.array_equal(shown.compressed(), summed[summed - half > 0])


def test_merged_bins_are_means_with_the_intervals_of_their_sums(histogram):
    release = histogram("delay", 1000)
    table = reduce.merge(histograms._table(release), [style.thin(1000, 400)], release.law)
    assert table.values.shape == (334,)
    assert table.values[0] == release.values[:3].mean()
    assert table.half[0] == pytest.approx(release.law.sum_half_width(np.array([3.0]), 0.05)[0] / 3)
    assert table.half[-1] == release.accuracy()[-1]
    assert "means of 3 neighbours" in release.plot().get_legend().get_title().get_text()


def test_long_lists_of_labels_show_the_largest_first_and_fold_the_rest(histogram):
    release = histogram("many")
    ax = release.plot()
    *shown, folded = [text.get_text() for text in ax.get_yticklabels()]
    order = np.argsort(-release.values, kind="stable")[: histograms.MOST_LABELS]
    assert shown == [f"label {i}" for i in order]
    assert folded == "and 110 more"
    (dots,) = [line for line in ax.lines if len(line.get_ydata()) == histograms.MOST_LABELS]
    assert np.array_equal(dots.get_xdata(), release.values[order])
    assert np.array_equal(dots.get_ydata(), np.arange(histograms.MOST_LABELS))
    assert ax.get_ylim()[0] == histograms.MOST_LABELS + 0.5
    assert "The largest come first." in ax.get_legend().get_title().get_text()


def test_texts_go_by_size_and_what_has_an_order_keeps_it(histogram):
    texts = [f"t{i:02}" for i in range(20)]
    domain = Domain(text=Categories(texts), year=Categories(list(range(2000, 2020))))
    shown = [text.get_text() for text in histogram("text", domain=domain).plot().get_yticklabels()]
    assert sorted(shown) == texts != shown
    years = [text.get_text() for text in histogram("year", domain=domain).plot().get_yticklabels()]
    assert years == [str(year) for year in range(2000, 2020)]


def test_many_labels_with_series_are_shades_with_marks(histogram):
    domain = Domain(
        kind=Categories([f"k{i:02}" for i in range(16)]), sex=Categories(["f", "m", "x"])
    )
    release = histogram(["kind", "sex"], domain=domain)
    ax = release.plot()
    low, _ = release.interval()
    assert np.array_equal(np.ma.getmaskarray(ax.images[0].get_array()), low <= 0)
    assert len(ax.texts) == 48
    assert not histogram(["carrier", "origin"]).plot().images


def test_wide_tables_are_merged(histogram):
    ax = histogram(["delay", "lon"], [450, 30]).plot()
    assert max(ax.images[0].get_array().shape) <= histograms.MOST_SLOTS


def test_dates_are_labelled_as_dates(histogram):
    fig = histogram("day").plot().figure
    assert ">2013<" in style.svg(fig, "t", "d")


def test_hostile_and_foreign_labels_are_drawn_as_text(histogram):
    labels = ["<script>alert(1)</script>", r"$\frac{$", "a -->", "東京 🙂", "x\x00y", "_hidden"]
    domain = Domain({"<b>": Categories(labels), "s": Categories(["<i>", "$"])})
    for axes in ("<b>", ["<b>", "s"]):
        text = style.svg(histogram(axes, domain=domain).plot().figure, "t", "d")
        assert "<script" not in text
        assert "&lt;script&gt;" in text
        assert "東京" in text


def test_an_axes_of_the_users_own_is_drawn_on(histogram):
    _, ax = style.figure(300, 500)
    assert histogram("delay", 10).plot(ax) is ax
    assert ax.get_xlabel() == "delay"


@pytest.mark.parametrize("width", [style.WIDE, style.NARROW])
@pytest.mark.parametrize("axes", ["when", ["delay", "origin"], ["carrier", "hour"]])
def test_nothing_is_clipped(histogram, axes, width):
    with style.sized(width), style.house():
        ax = histogram(axes, 12 if "delay" in axes else None).plot()
        fig = ax.figure
        fig.draw_without_rendering()
        box = fig.get_tightbbox()
    assert box.x0 >= -0.01
    assert box.y0 >= -0.01
    assert box.x1 <= fig.get_figwidth() + 0.01
    assert box.y1 <= fig.get_figheight() + 0.01


def test_shades_on_a_phone_keep_the_name_and_the_numbers_apart(histogram):
    domain = Domain(
        airline=Categories([f"A long name {i:02}" for i in range(16)]), delay=sf.Interval(-60, 180)
    )
    release = histogram(["airline", "delay"], [-60, 0, 15, 60, 180], 400_000, domain=domain)
    with style.sized(style.NARROW), style.house():
        ax = release.plot()
        fig = ax.figure
        fig.draw_without_rendering()
        box = fig.get_tightbbox()
        (bar,) = (other for other in fig.axes if other is not ax)
        numbers = [label.get_window_extent() for label in bar.get_xticklabels()]
    assert ax.get_xlabel() == "delay\n(bins of unequal width)"
    assert box.x1 <= fig.get_figwidth() + 0.01
    assert all(one.x1 < other.x0 for one, other in pairwise(numbers))


def test_svg_is_deterministic_and_small(histogram):
    one, two = (
        style.svg(histogram(["delay", "origin"], 12).plot().figure, "t", "d") for _ in range(2)
    )
    assert one == two
    assert len(one) < 60_000


@pytest.mark.parametrize("axis", ["delay", "day"])
def test_bins_by_records_show_rows_per_width(by_records, axis):
    """The area of a bar is its count, its error bar the interval over the bin's width."""
    release = by_records(axis)
    ax = release.plot()
    bars = next(p for p in ax.patches if isinstance(p, StepPatch)).get_data()
    assert np.allclose(bars.values * np.diff(bars.edges), release.values)
    assert np.allclose(
        _spans(ax, "_individual", 1), _ends(release, False) / np.diff(bars.edges)[:, None]
    )
    assert ax.get_ylabel() == ("rows per day" if axis == "day" else "rows per unit of delay")


@pytest.mark.parametrize(("width", "axes"), [(10, "age"), (2, "age"), (2, ["age", "kind"])])
def test_missing_numbers_beside_many_bins_are_told_and_not_drawn(width, axes) -> None:
    """Beside a few bins they are one of the labels; the table always has them."""
    domain = sf.Domain(age=sf.Interval(0, 100, missing=True), kind=sf.Categories(["a", "b"]))
    rows = pa.table({"age": [1.0, None, 55.0], "kind": ["a", "b", "a"]})
    with sf.Publisher(sf.source(rows, domain, name="t"), budget=100) as publisher:
        release = publisher.release(sf.Histogram(axes, width=width), epsilon=50)
    frame = release.to_frame()
    assert frame["age"].to_pylist()[-1] == "missing"
    assert (
        frame["age_lower"].null_count
        == frame["age_upper"].null_count
        == len(frame) // (100 // width + 1)
    )
    assert frame["age_lower"].to_pylist()[0] == 0
    ax = release.plot()
    texts = [text.get_text() for text in ax.get_yticklabels()]
    noted = " ".join(text.get_text() for text in ax.figure.findobj(Text))
    if width == 10:
        assert "missing" in texts
        assert "ot drawn" not in noted
    else:
        assert "missing" not in texts
        words = (
            'Not drawn: age "missing": 1 (1 to 1).' if axes == "age" else 'drawn: age "missing".'
        )
        assert words in noted.replace("\n", " ")


def test_many_months_run_from_left_to_right():
    """And cells that are no month are told, and not drawn."""
    span = sf.Month("when", "2010-01", "2019-12", other="another", missing="none")
    rows = pa.table({"when": pa.array([0, None, 16_000, 16_000], pa.int32()).cast(pa.date32())})
    with sf.Publisher(sf.source(rows, sf.Domain(month=span), name="t"), budget=100) as publisher:
        release = publisher.release(sf.Histogram("month"), epsilon=50)
    ax = release.plot()
    assert ax.get_xlabel() == "month"
    assert len(_bands(ax, "_individual")) == 120
    ticks = [text.get_text() for text in ax.get_xticklabels()]
    assert ticks == sorted(ticks)
    assert ticks[0] == "2010-01"
    noted = " ".join(" ".join(text.get_text().split()) for text in ax.figure.findobj(Text))
    assert 'Not drawn: month "another": 1 (1 to 1) and "none": 1 (1 to 1).' in noted


DAYS = pa.table(
    {"when": pa.array(np.arange(0, 365), pa.int32()).cast(pa.date32()), "x": [1.0] * 365}
)


@pytest.mark.parametrize(
    ("axis", "first", "joined"),
    [
        (sf.Month("when"), "Jan", True),
        (sf.Month("when", "1970-01", "1970-12"), "1970-01", True),
        (sf.Weekday("when"), "Mon", False),
        (sf.Weekday("when", missing="none"), "Mon", False),
        (sf.Year("when", 1969, 1971), "1969", True),
    ],
    ids=["months", "months of a year", "weekdays", "weekdays or none", "years"],
)
@pytest.mark.parametrize("question", [sf.Histogram("time"), sf.Mean("x", by="time")])
def test_times_run_from_left_to_right_and_a_line_joins_what_is_continuous(
    axis: object, first: str, joined: bool, question: sf.Question
) -> None:
    domain = sf.Domain({"time": axis, "x": sf.Interval(0, 2)})
    with sf.Publisher(sf.source(DAYS, domain, name="days"), budget=100) as publisher:
        release = publisher.release(question, epsilon=50)
    ax = release.plot()
    assert ax.get_xlabel() == "time"
    labels = [text.get_text() for text in ax.get_xticklabels()]
    assert labels[0] == first
    assert {text.get_rotation() for text in ax.get_xticklabels()} == {0.0}
    lines = [
        line for line in ax.get_lines() if line.get_linestyle() == "-" and len(line.get_xdata()) > 2
    ]
    assert bool(lines) == joined


def test_twelve_months_are_all_named() -> None:
    domain = sf.Domain(month=sf.Month("when"))
    with sf.Publisher(sf.source(DAYS, domain, name="days"), budget=100) as publisher:
        ax = publisher.release(sf.Histogram("month"), epsilon=50).plot()
    assert len(ax.get_xticklabels()) == 12
