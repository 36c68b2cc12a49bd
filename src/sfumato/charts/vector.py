"""Figures as SVG for a page, and as files, in the colours, sizes and fonts of all pictures.

The colour-blind can tell the colours apart. The same figure gives the same SVG to the last byte.
Coordinates are rounded to a hundredth of a point, which nobody can see.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from pathlib import Path
from typing import cast

import matplotlib as mpl
import numpy as np
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_svg import FigureCanvasSVG, RendererSVG
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.typing import ColorType, RcKeyType

from sfumato.basics import Array, tamed_lines
from sfumato.charts.geography import KM_PER_DEGREE

# --- colours, sizes and fonts ---------------------------------------------------------------------

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

PIXELS = 100  # per inch: sizes of figures are given in pixels
POINTS = 72  # per inch: coordinates of SVG are points
WIDE = 720
NARROW = 360

# The colours that a page may redraw in the dark, and what their properties are called in CSS.
COLOURS = dict(
    zip(
        (PAPER, INK, MUTED, RULE, FILL, UNKNOWN, UNKNOWN_HATCH, *SERIES),
        ("paper", "ink", "muted", "rule", "fill", "unknown", "hatch", *"123456"),
        strict=True,
    )
)

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
    return LinearSegmentedColormap.from_list(
        "density", mpl.colormaps["YlGnBu"](np.linspace(0.12, 1, 64))
    )


def luminance(rgb: Sequence[float]) -> float:
    """Relative luminance of a colour, as the contrast rules of the web (WCAG 2) define it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb[:3]]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(ink: ColorType, ground: ColorType) -> float:
    """Contrast of two colours, 1 to 21.

    >>> round(contrast("#000000", "#ffffff"))
    21
    """
    from matplotlib.colors import to_rgb

    darker, lighter = sorted((luminance(to_rgb(ink)), luminance(to_rgb(ground))))
    return (lighter + 0.05) / (darker + 0.05)


def text_on(background: ColorType | Array) -> str:
    """Black or white, whichever is easier to read: one of them always has a contrast above 4.5."""
    ground = (
        background
        if not isinstance(background, np.ndarray)
        else (background[0], background[1], background[2])
    )
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, ground))


# --- figures --------------------------------------------------------------------------------------

UNWANTED = (r"<!--.*?-->", r"<metadata>.*?</metadata>", r"<defs>\s*<style.*?</style>\s*</defs>")
LONG = 60  # points from which a line is written as steps
# What a page's script and its style sheet look for, by the ids that ``maps`` gives.
HOOKS = (
    (r'id="map"', 'class="map"'),
    (r'id="map:([^":]+):([^":]+):([^":]+):([^":]+)"', r'class="map" data-extent="\1 \2 \3 \4"'),
    (
        r'id="scale-bar:([^"]+)"',
        rf'class="scale-bar" data-unit="\1" data-per-degree="{KM_PER_DEGREE}"',
    ),
    (r'id="(scale-text|coast)"', r'class="\1"'),
)
AXES_OF_MAP = (
    (r'id="matplotlib\.axis_1"', 'class="map-x"'),
    (r'id="matplotlib\.axis_2"', 'class="map-y"'),
)


def svg(fig: Figure, title: str, description: str, *, name: str = "chart") -> str:
    """Print a figure as SVG to stand inside an HTML page: the same bytes for the same figure.

    Parameters
    ----------
    fig : Figure
    title, description : str
        What a reader who cannot see the picture is told.
    name : str
        Distinct for each picture on a page; it keeps their ids apart.

    Returns
    -------
    str
        An ``<svg role="img">`` element with no address of anything outside it.
    """
    text = _printed(fig)
    body = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    # A style sheet holds for the whole page. The two rules of this one stand in ``head`` instead.
    for unwanted in UNWANTED:
        body = re.sub(unwanted, "", body, flags=re.DOTALL)
    body = body.replace("xlink:href=", "href=")
    # The parts of a map have classes.
    for pattern, put in HOOKS + AXES_OF_MAP if 'id="map:' in body else HOOKS:
        body = re.sub(pattern, put, body)
    body = _compact(_own_ids(body, name))
    # A page may set the house colours: each becomes a CSS property, with itself as the default.
    # White text stands on a shade of a scale, which is the same in the dark, and stays white.
    body = re.sub(
        rf"(<text[^>]*fill: {PAPER})|({'|'.join(COLOURS)})\b",
        lambda match: match[1] or f"var(--chart-{COLOURS[match[2]]}, {match[2]})",
        body,
    )
    width, height = (round(inches * PIXELS) for inches in fig.get_size_inches())
    of_map = ' class="of-map"' if '<g class="map"' in body else ""
    head = (
        f'<svg role="img"{of_map} aria-labelledby="{name}-title {name}-desc" '
        f'viewBox="0 0 {width * 72 / PIXELS:g} {height * 72 / PIXELS:g}" '
        f'width="{width}" height="{height}" style="stroke-linejoin: round; stroke-linecap: butt">'
    )
    told = (
        f'<title id="{name}-title">{escape(title)}</title>\n'
        f'<desc id="{name}-desc">{escape(description)}</desc>'
    )
    return tamed_lines(f"{head}\n{told}\n{body}\n</svg>")


def _printed(fig: Figure) -> str:
    """What matplotlib prints, drawn once: ``savefig`` draws twice, the first time for layout."""
    target = io.StringIO()
    # Printing gives the figure another canvas and 72 dots an inch; it is not ours to change.
    canvas = fig.canvas
    dpi = fig.dpi
    width, height = fig.get_size_inches().tolist()
    try:
        with house():
            fig.set_dpi(POINTS)
            written = RendererSVG(
                POINTS * width,
                POINTS * height,
                target,
                image_dpi=dpi,
                metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")),
            )
            renderer = MixedModeRenderer(fig, width, height, dpi, written)
            _Printer(fig, renderer)
            fig.draw(cast("RendererBase", renderer))  # it has all that one has
            renderer.finalize()
    finally:
        fig.set_canvas(canvas)
        fig.set_dpi(dpi)
    return target.getvalue()


class _Printer(FigureCanvasSVG):
    """The canvas of a figure while it is printed, which the layout measures by its renderer.

    Texts are measured once then: matplotlib keeps the sizes for each renderer.
    """

    def __init__(self, fig: Figure, renderer: MixedModeRenderer) -> None:
        super().__init__(fig)
        self._renderer = renderer

    def get_renderer(self) -> MixedModeRenderer:
        """Return what prints the figure, and measures its parts before."""
        return self._renderer


def _compact(body: str) -> str:
    body = re.sub(r"(base64,)([^\"]*)", lambda m: m[1] + re.sub(r"\s+", "", m[2]), body)
    body = re.sub(r'(\sd=")([^"]*)', lambda m: m[1] + _path(m[2]), body)
    long = r'(\s(?:x|y|transform)=")([\d. -]+\.\d{3,}|rotate\([^)]*\))'
    body = re.sub(long, lambda m: m[1] + _rounded(m[2]), body)
    body = re.sub(r' transform="rotate\(-0 [^"]*\)"', "", body)
    return re.sub(r"\s*\n\s*", "\n", body).strip()


def _rounded(text: str) -> str:
    """Return a text with its numbers in hundredths."""
    return re.sub(r"-?\d+\.\d+", lambda m: _shortest(float(m[0])), text)


def _shortest(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".").replace("-0.", "-.") or "0"


def _path(text: str) -> str:
    """A path with rounded coordinates; a long line of many points as steps from point to point."""
    text = " ".join(text.split())
    if text.count("L") > LONG and not re.search("[CQz]", text):
        return _steps(text)
    return re.sub(r" ?([A-Za-z]) ?", r"\1", _rounded(text))


def _steps(text: str) -> str:
    """Lines in hundredths from point to point, so that rounding does not add up."""
    parts = []
    at = (0, 0)
    for kind, x, y in re.findall(r"([ML]) (\S+) (\S+)", text):
        to = (round(100 * float(x)), round(100 * float(y)))
        step = (to[0] - at[0], to[1] - at[1])
        if kind == "M":
            parts.append(f"M{_shortest(to[0] / 100)} {_shortest(to[1] / 100)}l")
        elif step != (0, 0):
            parts.append(f"{_shortest(step[0] / 100)} {_shortest(step[1] / 100)} ")
        at = to
    return "".join(parts).strip().replace(" -", "-").replace(" M", "M")


def _own_ids(body: str, name: str) -> str:
    """Drop ids that nothing refers to, and number the others under the picture's own name."""
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', body))
    order = [name_of_id for name_of_id in re.findall(r'\bid="([^"]+)"', body) if name_of_id in used]
    new = {old: f"{name}-{i}" for i, old in enumerate(dict.fromkeys(order))}
    body = re.sub(r'\sid="([^"]+)"', lambda m: f' id="{new[m[1]]}"' if m[1] in new else "", body)
    return re.sub(r'(url\(#|href="#)([^")]+)', lambda m: m[1] + new.get(m[2], m[2]), body)


def png(fig: Figure) -> bytes:
    """Print a figure as PNG."""
    target = io.BytesIO()
    with house():
        # Else the file names the version of matplotlib, and a new one would change the bytes.
        fig.savefig(target, format="png", dpi=2 * PIXELS, metadata={"Software": None})
    return target.getvalue()


def save(fig: Figure, path: Path) -> None:
    """Write a figure into a file whose ending names the format: the same bytes for the same figure.

    A picture says by itself when it was drawn. Beside a receipt, which says when the charge was
    made, that would tell how long the data took to read.
    """
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with (
        house(),
        mpl.rc_context({"svg.fonttype": "path"}),
    ):  # a picture of its own may be opened where the font is missing
        fig.savefig(path, metadata=undated.get(path.suffix.lower()))
