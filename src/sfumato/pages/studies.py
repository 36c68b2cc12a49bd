"""What is shown of a decision, or of clusters of reports: a picture, figures and sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup

from sfumato.charts import style
from sfumato.charts.style import Panels


@dataclass(frozen=True)
class Study:
    """What the template shows of a choice, a window, a recommended limit or clusters of reports.

    Attributes
    ----------
    anchor, title : str
    charts : tuple of Markup
        The picture for a page, and the one for a phone.
    figures : tuple of (figure, meaning)
    sentences : tuple of (sentence, items)
        Items are shown as a list under their sentence.
    notes : tuple of str
        What has to be said where the result is quoted.
    columns, rows : tuples of text
        A table; empty where there is none.
    warning : str
        Why the section is not private; empty where it is.
    """

    anchor: str
    title: str
    charts: tuple[Markup, ...]
    figures: tuple[tuple[str, str], ...]
    sentences: tuple[tuple[str, tuple[str, ...]], ...]
    notes: tuple[str, ...]
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    warning: str = ""


def drawn(plot: Callable[[], Panels], title: str, text: str, anchor: str) -> tuple[Markup, ...]:
    """The picture for a page, and the same for a phone. ``text`` describes it in words."""
    made = []
    for width, name in ((style.WIDE, "wide"), (style.NARROW, "narrow")):
        with style.sized(width):
            (ax, *_) = style.panels_of(plot())
        made.append(Markup(style.svg(style.figure_of(ax), title, text, name=f"{anchor}-{name}")))
    return tuple(made)
