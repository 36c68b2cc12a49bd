"""Pictures of risk against epsilon: the tight and the loose bound."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from sfumato.answers import Panels
from sfumato.basics.numbers import Array
from sfumato.charts import style
from sfumato.risk import Choice

TIGHT = style.SERIES[0]
LOOSE = style.SERIES[1]


def draw(choice: Choice, ax: Axes | None) -> Axes:
    """Draw the loose and the tight bound against epsilon."""
    axes: Axes = draw_panels([choice], ax)[0]
    return axes


@style.house()
def draw_panels(choices: Sequence[Choice], ax: Panels | None) -> Array:
    """Draw several choices, one panel each; ``ax`` is a sequence of as many Axes, or None."""
    panels = style.panels(len(choices), ax, 310, across=3, margin=30)
    for panel, choice in zip(panels, choices, strict=True):
        _panel(panel, choice)
    return style.PanelArray.of(panels)


def _panel(ax: Axes, choice: Choice) -> None:
    keys = [ax.plot(choice.epsilons, choice.loose_curve, color=LOOSE, label="loose bound")[0]]
    if len(choice.tight_curve):
        keys.append(
            ax.plot(
                choice.epsilons,
                choice.tight_curve,
                color=TIGHT,
                label="tight bound: the worst posterior",
            )[0]
        )
    keys.append(
        ax.axhline(
            choice.risk, color=style.INK, linewidth=1, label=f"requirement {choice.risk:.3g}"
        )
    )
    for level, colour in ((choice.upper_bound, LOOSE), (choice.epsilon, TIGHT)):
        if math.isfinite(level) and (colour == LOOSE or len(choice.tight_curve)):
            ax.axvline(level, color=colour, linestyle="--", linewidth=1, zorder=1.5)
            keys.append(
                Line2D(
                    [], [], color=colour, linestyle="--", linewidth=1, label=f"epsilon {level:.4g}"
                )
            )
    highest = max([choice.risk, *choice.loose_curve, *choice.tight_curve])
    ax.set(
        xlim=(choice.epsilons[0], choice.epsilons[-1]),
        ylim=(0, min(1.0, 1.1 * highest)),
        xlabel="epsilon",
        ylabel="risk of disclosure",
    )
    columns = 2 if ax.get_position().width > 0.6 else 1
    style.legend(ax, keys, style.plain(choice.subject, 60), columns=columns)
