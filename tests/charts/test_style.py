"""The house style: legible, deterministic, sealed."""

import itertools
import re

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.lines import Line2D

from sfumato.charts import style


def _figure():
    fig, ax = style.figure(200)
    ax.plot([0, 1], [0, 1], "o-", color=style.BASE)
    style.legend(ax, [style.hatched_key()], "A note.")
    style.unseen(ax)
    return fig


@pytest.mark.parametrize("colour", [style.INK, style.MUTED, *style.SERIES])
def test_text_colours_are_dark_enough_to_read(colour):
    assert style.contrast(colour, style.PAPER) >= 4.5


def test_series_differ_in_marker_as_well_as_in_colour():
    assert (
        len(set(style.SERIES)) == len(set(style.MARKERS)) == len(style.SERIES) == len(style.MARKERS)
    )


def test_muted_numbers_can_be_read_on_the_hatched_ground():
    assert style.contrast(style.MUTED, style.UNKNOWN) >= 4.5


@pytest.mark.parametrize("share", np.linspace(0, 1, 41))
def test_numbers_in_cells_can_be_read_on_every_shade(share):
    shade = mpl.colormaps[style.SEQUENTIAL](share)[:3]
    assert style.contrast(style.text_on(shade), shade) >= 4.5


def test_the_sequential_scale_darkens_evenly():
    shades = [style.luminance(mpl.colormaps[style.SEQUENTIAL](x)) for x in np.linspace(0, 1, 20)]
    assert all(a > b for a, b in itertools.pairwise(shades))


def test_svg_is_the_same_to_the_last_byte():
    assert style.svg(_figure(), "t", "d") == style.svg(_figure(), "t", "d")


def test_svg_ignores_the_users_own_settings():
    plain = style.svg(_figure(), "t", "d")
    with mpl.rc_context(
        {"axes.facecolor": "red", "font.size": 30, "svg.fonttype": "path", "axes.grid": False}
    ):
        assert style.svg(_figure(), "t", "d") == plain


def test_making_a_figure_changes_no_global_setting():
    before = dict(mpl.rcParams)
    style.svg(_figure(), "t", "d")
    assert dict(mpl.rcParams) == before


def test_svg_holds_no_address_no_date_and_no_comment():
    text = style.svg(_figure(), "t", "d")
    for unwanted in ("http", "xmlns", "xlink", "DOCTYPE", "<metadata", "<!--", "<style"):
        assert unwanted not in text


def test_svg_is_named_and_described_and_escapes_both():
    text = style.svg(_figure(), "<script>alert(1)</script>", 'a "b" & <c>', name="one")
    assert text.startswith('<svg role="img" aria-labelledby="one-title one-desc"')
    assert '<title id="one-title">&lt;script&gt;alert(1)&lt;/script&gt;</title>' in text
    assert '<desc id="one-desc">a &quot;b&quot; &amp; &lt;c&gt;</desc>' in text


def test_ids_belong_to_their_picture_and_every_reference_is_met():
    text = style.svg(_figure(), "t", "d", name="one")
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert all(found.startswith("one-") for found in ids)
    assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', text)) <= set(ids)


def test_labels_are_cut_and_cleaned():
    assert style.plain("a\x00b\nc") == "a b c"
    assert style.plain("x" * 100) == "x" * (style.LONGEST_LABEL - 1) + "…"


@pytest.mark.parametrize(
    ("value", "text"),
    [(-1234, "−1,234"), (0, "0"), (0.25, "0.25"), (1234.6, "1,235"), (1e6, "1,000,000")],
)
def test_numbers_are_printed_for_people(value, text):
    assert style.number(value) == text


@pytest.mark.parametrize("size", [1, 5, 12, 13, 365])
def test_thinning_keeps_within_the_room_there_is(size):
    assert 1 <= len(style.thin(size, 12)) <= 12


def test_a_page_may_set_the_house_colours_and_white_numbers_stay_white():
    fig, ax = style.figure(200)
    ax.plot([0, 1], [0, 1], "o-", color=style.BASE)
    ax.text(0.5, 0.5, "12", color="#ffffff")
    svg = style.svg(fig, "t", "d")
    assert f"var(--chart-1, {style.BASE})" in svg
    assert f"var(--chart-paper, {style.PAPER})" in svg
    (number,) = re.findall(r"<text[^>]*>12</text>", svg)
    assert "fill: #ffffff" in number
    bare = re.sub(r"var\([^)]*\)", "", svg).replace(number, "")
    assert not [colour for colour in style.COLOURS if colour in bare]


def test_a_legend_is_read_row_by_row():
    """matplotlib fills columns; so entries 1 to 5 in 3 columns stand as 1 2 3 over 4 5."""
    _, ax = style.figure(300)
    keys = [Line2D([], [], label=str(i)) for i in range(1, 6)]
    style.legend(ax, keys, columns=3)
    ax.figure.draw_without_rendering()
    boxes = {text.get_text(): text.get_window_extent() for text in ax.get_legend().get_texts()}
    in_reading_order = sorted(boxes, key=lambda each: (-round(boxes[each].y0), boxes[each].x0))
    assert in_reading_order == ["1", "2", "3", "4", "5"]
