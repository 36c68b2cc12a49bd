"""Bars of a benchmark: one measured figure for each thing compared, in one run."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from sfumato.charts import style

SPREAD = 30  # from the least figure to the greatest, beyond which bars grow by powers of ten
ROW, FRAME = 22, 64  # pixels


def draw(
    names: Sequence[str], figures: Sequence[float], unit: str, title: str, ours: Sequence[bool]
) -> Figure:
    """Draw one bar a figure, our own in the house colour.

    Parameters
    ----------
    names : sequence of str
    figures : sequence of float
        Positive.
    unit : str
        What is measured, as the axis says it.
    title : str
    ours : sequence of bool
        Which of them are ours; the others are peers and floors.
    """
    fig, ax = style.figure(FRAME + ROW * len(names))
    with style.house():
        colours = [style.BASE if own else style.FILL for own in ours]
        ax.barh(range(len(names)), figures, color=colours, height=0.7)
        ax.set_yticks(range(len(names)), [style.plain(name, 60) for name in names])
        ax.invert_yaxis()
        ax.grid(visible=False, axis="y")
        ax.tick_params(axis="y", length=0)
        if max(figures) > SPREAD * min(figures):
            ax.set_xscale("log")
            ax.set_xlim(min(figures) / 3, max(figures) * 4)
        else:
            ax.set_xlim(0, 1.12 * max(figures))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: style.number(value)))
        for i, figure in enumerate(figures):
            ax.annotate(
                style.number(float(f"{figure:.3g}")),
                (figure, i),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                color=style.INK,
            )
        ax.set_xlabel(unit)
        fig.suptitle(title, x=0.01, ha="left", fontsize=9.6)
    return fig
