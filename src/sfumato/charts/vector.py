"""Figures as SVG for a page, and as files.

The same figure gives the same SVG to the last byte. Coordinates are rounded to a hundredth of a
point, which nobody can see.
"""

from __future__ import annotations

import io
import re
from html import escape
from pathlib import Path

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from sfumato.basics.text import tamed_lines
from sfumato.charts.geography import KM_PER_DEGREE
from sfumato.charts.palette import COLOURS, PAPER, PIXELS, house

UNWANTED = (r"<!--.*?-->", r"<metadata>.*?</metadata>", r"<defs>\s*<style.*?</style>\s*</defs>")
DATED = ("Date", "Creator", "Format", "Type")
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
    for unwanted in UNWANTED:
        body = re.sub(unwanted, "", body, flags=re.DOTALL)
    body = _hooked(body.replace("xlink:href=", "href="))
    body = _redrawable(_compact(_own_ids(body, name)))
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
    canvas, dpi = fig.canvas, fig.dpi
    try:
        with house():
            FigureCanvasSVG(fig).print_svg(target, metadata=dict.fromkeys(DATED))
    finally:
        fig.set_canvas(canvas)
        fig.set_dpi(dpi)
    return target.getvalue()


def _hooked(body: str) -> str:
    """Name the parts of a map by classes; other pictures stay as they are."""
    hooks = HOOKS if 'id="map:' not in body else HOOKS + AXES_OF_MAP
    for found, put in hooks:
        body = re.sub(found, put, body)
    return body


def _compact(body: str) -> str:
    """The same picture in fewer bytes."""
    body = re.sub(r"(base64,)([^\"]*)", lambda m: m[1] + re.sub(r"\s+", "", m[2]), body)
    body = re.sub(r'(\sd=")([^"]*)', lambda m: m[1] + _path(m[2]), body)
    body = re.sub(r'(\s(?:x|y|transform)=")([\d. -]+\.\d{3,}|rotate\([^)]*\))', _rounded, body)
    body = re.sub(r' transform="rotate\(-0 [^"]*\)"', "", body)
    return re.sub(r"\s*\n\s*", "\n", body).strip()


def _rounded(found: re.Match[str]) -> str:
    return found[1] + re.sub(r"-?\d+\.\d+", lambda m: _shortest(float(m[0])), found[2])


def _shortest(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".").replace("-0.", "-.") or "0"


def _path(text: str) -> str:
    """A path with rounded coordinates; a long line of many points as steps from point to point."""
    text = " ".join(text.split())
    if text.count("L") > LONG and not re.search("[CQz]", text):
        return _steps(text)
    text = re.sub(r"-?\d+\.\d+", lambda m: _shortest(float(m[0])), text)
    return re.sub(r" ?([A-Za-z]) ?", r"\1", text)


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


def _redrawable(body: str) -> str:
    """Let a page set the house colours: each becomes a CSS property, with itself as the default.

    White text stands on a shade of a scale, which is the same in the dark, and stays white.
    """
    known = "|".join(COLOURS)
    return re.sub(
        rf"(<text[^>]*fill: {PAPER})|({known})\b",
        lambda found: found[1] or f"var(--chart-{COLOURS[found[2]]}, {found[2]})",
        body,
    )


def _own_ids(body: str, name: str) -> str:
    """Drop ids that nothing refers to, and number the others under the picture's own name."""
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', body))
    order = [found for found in re.findall(r'\bid="([^"]+)"', body) if found in used]
    new = {old: f"{name}-{i}" for i, old in enumerate(dict.fromkeys(order))}
    body = re.sub(r'\sid="([^"]+)"', lambda m: f' id="{new[m[1]]}"' if m[1] in new else "", body)
    return re.sub(r'(url\(#|href="#)([^")]+)', lambda m: m[1] + new.get(m[2], m[2]), body)


def png(fig: Figure) -> bytes:
    """Print a figure as PNG."""
    target = io.BytesIO()
    with house():
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
