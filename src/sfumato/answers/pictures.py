"""The picture of an answer, which is found by its name: pictures stand above what they show.

matplotlib is loaded only when something is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from pkgutil import resolve_name
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import matplotlib.axes

    from sfumato.basics import Array

# For annotations: other rooms import it from here.
Axes: TypeAlias = "matplotlib.axes.Axes"

# Axes to draw on: one, or as many as there are panels.
Panels: TypeAlias = "Axes | Sequence[Axes] | Array"


def drawn(kind: str, shown: object, ax: Panels | None, *given: object) -> Axes:
    """Draw something by a function of ``sfumato.charts``, and return the Axes.

    Parameters
    ----------
    kind : str
        The function, such as "maps.draw".
    shown : Release, or what else the function draws
    ax : matplotlib Axes or None
        None: on a new figure.
    *given
        What else the function takes.
    """
    axes: Axes = resolve_name(f"sfumato.charts.{kind}")(shown, ax, *given)
    return axes


def drawn_panels(kind: str, shown: object, ax: Panels | None, *given: object) -> Array:
    """Draw something on several panels, as ``drawn`` does, and return an ndarray of Axes."""
    panels: Array = resolve_name(f"sfumato.charts.{kind}")(shown, ax, *given)
    return panels
