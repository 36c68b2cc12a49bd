"""Pictures of quantiles: a curve, a curve with a band, boxes.

Nothing is drawn that was not released.
"""

from pathlib import Path

import numpy as np
import pytest

from charts.conftest import _answer
from sfumato.answers.loading import load
from sfumato.charts import style
from sfumato.domain.domain import Categories, Domain, Interval
from sfumato.questions.quantiles import Quantiles

FIXTURES = Path(__file__).parents[1] / "fixtures" / "v0_2"
DOMAIN = Domain(
    delay=Interval(-60, 180),
    day=Interval("2013-01-01", "2014-01-01"),
    carrier=Categories([f"C{i}" for i in range(9)]),
    many=Categories([f"label {i}" for i in range(80)]),
)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (Quantiles("delay"), "share of rows below"),
        (Quantiles("day", at=[0.1, 0.9]), "share of rows below"),
        (Quantiles(["delay", "day"]), "share of rows below"),
        (Quantiles("delay", by="carrier"), "C8"),
        (Quantiles("day", at=[0.05, 0.25, 0.5, 0.75, 0.95], by="carrier"), "median"),
        (Quantiles("delay", at=[0.3], by="many"), "first 60 of 80"),
    ],
    ids=str,
)
def test_every_kind_is_drawn(question, said):
    release = _answer(question, DOMAIN, 4_000, "1")
    for width in (style.WIDE, style.NARROW):
        with style.sized(width):
            text = style.svg(release.plot().figure, "t", "d")
        assert said in text


def test_the_curve_goes_through_the_estimated_ranks():
    release = _answer(Quantiles("delay"), DOMAIN, 4_000, "1")
    ax = release.plot()
    drawn = [line.get_ydata() for line in ax.lines if len(line.get_ydata()) == 3]
    assert drawn
    for shares in drawn:
        assert shares == pytest.approx(release.ranks)
    low, high = release.rank_interval(simultaneous=True)
    lows = [band.get_paths()[0].vertices[:, 1].min() for band in ax.collections]
    highs = [band.get_paths()[0].vertices[:, 1].max() for band in ax.collections]
    assert lows == pytest.approx([0, *np.maximum.accumulate(low)])
    assert highs == pytest.approx([*np.minimum.accumulate(high[::-1])[::-1], 1])


def test_the_band_of_ranks_that_are_not_paid_for_needs_a_number_of_rows():
    release = load(FIXTURES / "quantiles.json")
    assert not release.plot().collections
    ax = release.plot(rows=4_000)
    assert len(ax.collections) == 4
    lows = [band.get_paths()[0].vertices[:, 1].min() for band in ax.collections]
    reach = release.accuracy(simultaneous=True) / 4_000
    assert "of 4,000 rows" in style.svg(ax.figure, "t", "d")
    assert lows == pytest.approx([0, *np.clip(np.array([0.25, 0.5, 0.75]) - reach, 0, 1)])
