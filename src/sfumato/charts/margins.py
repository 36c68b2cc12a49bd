"""Room around a picture for its names, numbers and keys, measured once where there is one panel.

The layout engine of matplotlib measures twice, and solves a system of constraints for what are four
numbers in most pictures. Maps, whose panels keep their proportions, and several panels are left to
it.
"""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.transforms import ScaledTranslation

# Inches around everything.
PAD = 0.04
# Inches left of the panel, below, right of it and above, in most pictures.
#
# Margins are measured where the panel has about its final size, and so its final numbers.
USUAL = (0.6, 0.45, 0.1, 0.5)


class Margins(ConstrainedLayoutEngine):
    """Place the one panel of a figure by its margins; lay out others as matplotlib does.

    Parameters
    ----------
    once : bool
        Whether the figure is drawn once, for a page, and nobody changes it afterwards.
    """

    def __init__(self, *, once: bool = False) -> None:
        super().__init__(w_pad=PAD, h_pad=PAD)
        self._once = once

    def execute(self, fig: Figure) -> None:
        """Place the panels of a figure that is about to be drawn."""
        # One panel alone, which may have any proportions.
        panel = fig.axes[0] if len(fig.axes) == 1 else None
        if panel is None or fig.subfigs or fig.legends or fig.texts:
            super().execute(fig)
            return
        is_free = panel.get_subplotspec() is not None and panel.get_aspect() == "auto"
        if not is_free or not panel.get_in_layout() or not _placed(fig, panel, self._once):
            super().execute(fig)


def _placed(fig: Figure, panel: Axes, once: bool) -> bool:
    """Place a panel so that all that belongs to it fits on the figure; False: there is no room."""
    width, height = fig.get_size_inches().tolist()
    _place(panel, USUAL, width, height)
    drawn = panel.get_tightbbox(for_layout_only=True)
    if drawn is None:
        return False
    left, below, right, above = USUAL
    x0, y0, x1, y1 = (pixels / fig.dpi for pixels in drawn.extents)
    margins = (left - x0, below - y0, right + x1 - width, above + y1 - height)
    left, below, right, above = (max(margin, 0) + PAD for margin in margins)
    if left + right >= width or below + above >= height:
        return False
    if once:
        _keep_names(fig, panel)
    _place(panel, (left, below, right, above), width, height)
    return True


def _keep_names(fig: Figure, panel: Axes) -> None:
    """Keep the names of axes as far from the panel as they are; else drawing measures all anew."""
    across, _ = panel.yaxis.label.get_position()
    _, up = panel.xaxis.label.get_position()
    for axis, (x, y), apart in (
        (panel.xaxis, (0.5, 0), (0, up - panel.bbox.y0)),
        (panel.yaxis, (0, 0.5), (across - panel.bbox.x0, 0)),
    ):
        left, below = (pixels / fig.dpi for pixels in apart)
        shift = ScaledTranslation(left, below, fig.dpi_scale_trans)
        axis.set_label_coords(x, y, transform=panel.transAxes + shift)


def _place(
    panel: Axes, margins: tuple[float, float, float, float], width: float, height: float
) -> None:
    left, below, right, above = margins
    panel.set_position(
        (
            left / width,
            below / height,
            1 - (left + right) / width,
            1 - (below + above) / height,
        )
    )
    # A panel that is placed by hand is left out of every later layout, also after it has changed.
    panel.set_in_layout(True)
