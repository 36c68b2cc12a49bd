"""Pictures of error over time: what is drawn, on wide and narrow figures, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.charts import style
from sfumato.charts.streams import _envelope, draw_errors
from sfumato.errors import UsageError
from sfumato.streaming import BLTAggregator, EfficientTreeAggregator, TreeAggregator, plot_errors


@pytest.mark.parametrize("width", [style.WIDE, style.NARROW])
def test_one_line_a_method(width: int) -> None:
    kinds = {
        "tree": TreeAggregator(lambda: 0.0),
        "Honaker": EfficientTreeAggregator(lambda: 0.0),
        "BLT": BLTAggregator(lambda: 0.0, 3000),
    }
    with style.sized(width):
        ax, again = (plot_errors(kinds, 3000, rho="0.5") for _ in range(2))
    assert [line.get_label() for line in ax.lines] == list(kinds)
    assert ax.get_xscale() == "log"
    assert ax.get_ylim()[0] == 0
    assert style.svg(ax.figure, "t", "d") == style.svg(again.figure, "t", "d")


@pytest.mark.parametrize("steps", [1, 2, 256, 257, 5000])
def test_thinning_keeps_the_largest_and_the_least(steps: int) -> None:
    values = np.random.default_rng(1).random(steps)
    low, high, at = _envelope(values)
    assert (low.min(), high.max()) == (values.min(), values.max())
    assert at[0] == 1
    assert at[-1] <= steps
    assert len(at) <= 2000


def test_what_cannot_be_drawn() -> None:
    for wrong in (
        {},
        {"a": np.ones(2), "b": np.ones(3)},
        {str(i): np.ones(2) for i in range(7)},
        {"a": np.ones(0)},
    ):
        with pytest.raises(UsageError):
            draw_errors(wrong)
