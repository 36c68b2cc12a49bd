"""Colours, sizes and fonts of all pictures: the colour-blind can tell the colours apart."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from sfumato.basics.numbers import Array

if TYPE_CHECKING:
    from matplotlib.typing import ColorType, RcKeyType

PAPER = "#ffffff"
INK = "#1d2430"
MUTED = "#525c6b"
RULE = "#d9dde3"
BASE = "#0b5a94"  # the one colour of a chart with one series
FILL = "#c5dcee"  # its light companion, under error bars
SERIES = ("#0b5a94", "#b3470b", "#0f766e", "#8a3a86", "#6b5600", "#3f4650")
MARKERS = ("o", "s", "^", "D", "v", "P")
SEQUENTIAL = "cividis_r"  # perceptual, safe for the colour-blind; darker is more
UNKNOWN = "#eceef1"  # where a count cannot be told from 0
UNKNOWN_HATCH = "#b9c0ca"
TEXT_COLOURS = (INK, MUTED, *SERIES)

PIXELS = 100  # per inch: sizes of figures are given in pixels
WIDE = 720
NARROW = 360

COLOURS = dict(
    zip(
        (PAPER, INK, MUTED, RULE, FILL, UNKNOWN, UNKNOWN_HATCH, *SERIES),
        ("paper", "ink", "muted", "rule", "fill", "unknown", "hatch", *"123456"),
        strict=True,
    )
)
"""The colours that a page may redraw in the dark, and what their properties are called in CSS."""

_HOUSE: dict[RcKeyType, object] = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.dpi": PIXELS,
    "figure.facecolor": PAPER,
    "font.family": ["DejaVu Sans"],
    "font.size": 8.64,  # points: 12 pixels
    "grid.color": RULE,
    "grid.linewidth": 0.7,
    "hatch.linewidth": 0.8,
    "lines.linewidth": 1.4,
    "svg.fonttype": "none",
    "svg.hashsalt": "sfumato",
    "svg.image_inline": True,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
}


_in_house: ContextVar[bool] = ContextVar("sfumato_in_house", default=False)


@contextmanager
def house() -> Iterator[None]:
    """Put the house style in force for a block, whatever the user's own settings are."""
    if _in_house.get():
        yield
        return
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=r"Glyph .* missing from"
        )  # the reader's own fonts draw the text of an SVG
        mpl.rcdefaults()
        mpl.rcParams.update(_HOUSE)
        token = _in_house.set(True)
        try:
            yield
        finally:
            _in_house.reset(token)


def density_map() -> LinearSegmentedColormap:
    """The shades of a map: from pale, which is near nothing, to dark.

    Its steps are even to the eye and safe for the colour-blind. A page turns it around in the dark.
    """
    shades = mpl.colormaps["YlGnBu"](np.linspace(0.12, 1, 64))
    return LinearSegmentedColormap.from_list("density", shades)


def luminance(rgb: Sequence[float]) -> float:
    """Relative luminance of a colour, as the contrast rules of the web (WCAG 2) define it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: ColorType, other: ColorType) -> float:
    """Contrast of two colours, 1 to 21.

    >>> round(contrast("#000000", "#ffffff"))
    21
    """
    from matplotlib.colors import to_rgb

    darker, lighter = sorted((luminance(to_rgb(one)), luminance(to_rgb(other))))
    return (lighter + 0.05) / (darker + 0.05)


def text_on(background: ColorType | Array) -> str:
    """Black or white, whichever is easier to read: one of them always has a contrast above 4.5."""
    ground = (
        background
        if not isinstance(background, np.ndarray)
        else (background[0], background[1], background[2])
    )
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, ground))
