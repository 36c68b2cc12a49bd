"""Pictures of rows per person, and of the limit to take."""

from __future__ import annotations

import numpy as np
import pytest

import sfumato as sf
from questions.persons.tables import lognormal, release_of
from sfumato.charts import style


@pytest.mark.parametrize("width", [style.WIDE, style.NARROW])
@pytest.mark.parametrize("most_rows", [100, None])
def test_what_limits_leave_out(width: int, most_rows: int | None) -> None:
    release = release_of(np.minimum(lognormal(500), 100), most_rows)
    with style.sized(width):
        ax = release.plot()
        assert ax.get_xscale() == "log"
        assert ax.get_ylabel() == ("rows kept" if most_rows else "persons with more rows")
        assert style.svg(ax.figure, "persons", "persons").count("<svg") == 1  # type: ignore[arg-type]
    given = style.figure(300)[1]
    assert release.plot(given) is given


@pytest.mark.parametrize("width", [style.WIDE, style.NARROW])
def test_the_limit_to_take_is_marked(width: int) -> None:
    release = release_of(np.minimum(lognormal(5000), 100))
    advice = sf.recommend(release, sf.Histogram("hour"), epsilon="0.5")
    with style.sized(width):
        ax = advice.plot()
    legend = ax.get_legend()
    assert legend is not None
    assert f"limit to take: {advice.limit}" in [text.get_text() for text in legend.get_texts()]
    assert ax.get_ylim()[1] >= advice.error
