"""Pictures of risk against epsilon: bounds, and the success of an attacker."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from sfumato.charts import style
from sfumato.errors import UsageError

TIGHT = style.SERIES[0]
LOOSE = style.SERIES[1]


class Bounds(Protocol):
    """What a picture needs to know of a choice of epsilon."""

    @property
    def subject(self) -> str: ...
    @property
    def risk(self) -> float: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def upper_bound(self) -> float: ...
    @property
    def epsilons(self) -> Sequence[float]: ...
    @property
    def tight_curve(self) -> Sequence[float]: ...
    @property
    def loose_curve(self) -> Sequence[float]: ...


def draw(choice: Bounds, ax: Axes | None = None) -> Axes:
    """Draw the loose and the tight bound against epsilon.

    Parameters
    ----------
    choice : Choice, or anything with its curves
    ax : Axes or None
        None: on a new figure, ``ax.figure``.
    """
    return draw_panels([choice], None if ax is None else [ax])[0]


def draw_panels(choices: Sequence[Bounds], ax: style.Panels | None = None) -> list[Axes]:
    """Draw several choices, one panel each.

    Parameters
    ----------
    choices : sequence of Choice, or of anything with its curves
    ax : sequence of as many Axes, or None
        None: on a new figure, ``ax.figure``.
    """
    with style.house():
        panels = _panels(len(choices), ax)
        for panel, choice in zip(panels, choices, strict=True):
            _panel(panel, choice)
    return panels


def _panels(number: int, ax: style.Panels | None) -> list[Axes]:
    if ax is not None:
        given = style.panels_of(ax)
        if len(given) != number:
            raise UsageError(
                f"{number} panels on {len(given)} axes",
                "each column needs its own",
                "Give as many Axes, or none",
            )
        return given
    narrow = style.is_narrow(None)
    across = 1 if narrow else min(number, 3)
    down = -(-number // across)
    fig, first = style.figure(30 + 310 * down)
    if number == 1:
        return [first]
    first.remove()
    made = fig.subplots(down, across, squeeze=False, subplot_kw={"axes_class": style.Picture})
    for spare in made.flat[number:]:
        spare.remove()
    return list(made.flat[:number])


def _panel(ax: Axes, choice: Bounds) -> None:
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


def draw_success(
    epsilons: Sequence[float],
    curves: Mapping[str, Sequence[float]],
    ax: Axes | None = None,
    *,
    limit: float | None = None,
) -> Axes:
    """Draw an attacker's success against epsilon, one line a mechanism.

    Parameters
    ----------
    epsilons : sequence of float
    curves : dict of sequences of float, by label
        At most six.
    limit : float, optional
        A requirement, as a line.
    """
    if len(curves) > len(style.SERIES):
        raise UsageError(
            f"{len(curves)} curves",
            f"only {len(style.SERIES)} colours can be told apart",
            "Draw fewer in one picture",
        )
    with style.house():
        ax = ax or style.figure(340)[1]
        keys = [
            ax.plot(epsilons, curve, color=colour, label=style.plain(label))[0]
            for (label, curve), colour in zip(curves.items(), style.SERIES, strict=False)
        ]
        if limit is not None:
            keys.append(
                ax.axhline(limit, color=style.INK, linewidth=1, label=f"requirement {limit:.3g}")
            )
        ax.set(
            xlim=(float(np.min(epsilons)), float(np.max(epsilons))),
            ylim=(0, 1),
            xlabel="epsilon",
            ylabel="attacker's success",
        )
        style.legend(ax, keys)
    return ax
