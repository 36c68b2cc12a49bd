"""How axes, bins and budgets are written as the text of an option."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.domain import Axis, Categories, Interval, Keys
from sfumato.errors import BoundsRequired, UsageError
from sfumato.numbers import float_of_text, positive, whole_of_text
from sfumato.privacy.measures import CentralMeasure, measure_of

if TYPE_CHECKING:
    from sfumato.histogram.bins import AxisBins


def parse_axes(texts: tuple[str, ...]) -> dict[str, Axis]:
    """Read --axis options.

    Parameters
    ----------
    texts : tuple of str
        NAME=LOW..HIGH, NAME=LOW..HIGH/STEP, NAME=a,b,c or NAME=*.

    Raises
    ------
    BoundsRequired
        If an axis has neither bounds nor labels.
    UsageError
        If an axis is given twice, or its step is not a number.

    >>> parse_axes(("hour=0..24/1", "kind=a,b"))["hour"].natural_cells
    24
    """
    axes: dict[str, Axis] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name or not values:
            raise BoundsRequired(
                f"--axis {text}",
                "an axis needs public bounds or labels",
                f"Write {name or 'age'}=0..100 or {name or 'kind'}=a,b,c",
            )
        if name in axes:
            raise UsageError(f"--axis {name}", "it is given twice", "Give each axis once")
        axes[name] = _axis(name, values)
    return axes


def _axis(name: str, text: str) -> Axis:
    if text == "*":
        return Keys()
    if ".." not in text:
        return Categories(tuple(label.strip() for label in text.split(",")))
    bounds, _, step_text = text.partition("/")
    lower, _, upper = bounds.partition("..")
    step = _step(name, step_text) if step_text else None
    return Interval(_bound(name, lower), _bound(name, upper), step=step)


def _bound(name: str, text: str) -> int | float | str:
    """A number, or else text that the domain reads as a date or time."""
    text = text.strip()
    whole = whole_of_text(text)
    number = float_of_text(text) if whole is None else whole
    if number is not None:
        return number
    if not text:
        raise BoundsRequired(
            f"--axis {name}", "one of its bounds is missing", f"Write {name}=LOW..HIGH"
        )
    return text


def _step(name: str, text: str) -> int | float:
    step = _bound(name, text)
    if isinstance(step, str):
        raise UsageError(
            f"--axis {name}", "its step is not a number", f"Write {name}=LOW..HIGH/STEP"
        )
    return step


def parse_bins(texts: tuple[str, ...]) -> AxisBins | dict[str, AxisBins] | None:
    """Read --bins options: a number, or NAME=NUMBER, or NAME=edge,edge,edge."""
    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return _bins(texts[0])
    named = (text.partition("=") for text in texts)
    return {name: _bins(bins) for name, _, bins in named}


def _bins(text: str) -> AxisBins:
    """A number of bins, or their edges."""
    if "," in text:
        return tuple(_bound("bins", edge) for edge in text.split(","))
    whole = whole_of_text(text)
    if whole is None:
        raise UsageError(
            f"--bins {text}",
            "it is neither a number nor a list of edges",
            "Write --bins 20 or --bins age=0,18,65,120",
        )
    return whole


def parse_widths(texts: tuple[str, ...]) -> float | dict[str, float] | None:
    """Read --width options: a number, or NAME=NUMBER."""
    if not texts:
        return None
    if len(texts) == 1 and "=" not in texts[0]:
        return float(positive(texts[0], "width"))
    named = (text.partition("=") for text in texts)
    return {name: float(positive(width, "width")) for name, _, width in named}


def parse_budget(budget: str | None, *, gaussian: bool) -> CentralMeasure | None:
    """Read --budget in the measure of the release.

    Parameters
    ----------
    budget : str or None
        EPSILON or EPSILON,DELTA; for Gaussian noise, RHO. None: the account exists already.
    gaussian : bool
        Whether the cost is given as --rho.
    """
    if budget is None:
        return None
    if gaussian:
        return measure_of("--budget", rho=budget)
    epsilon, comma, delta = budget.partition(",")
    return measure_of("--budget", epsilon=epsilon, delta=delta if comma else 0)
