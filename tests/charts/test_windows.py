"""Pictures of windows."""

import pytest

import sfumato as sf
from risk.opening import FIFTY, TWO, opened
from sfumato.charts import style


@pytest.mark.parametrize("width", [style.WIDE, style.NARROW])
def test_pictures(width):
    with style.sized(width):
        for window in (opened(), opened([FIFTY, TWO], risk=sf.Risk(advantage=0.01))):
            ax = window.plot()
            words = " ".join(text.get_text() for text in ax.get_legend().get_texts())
            assert ("the window" in words) == window.feasible
            assert f"floor: {window.kind.letter} {window.ends[0]}" in words
            assert style.svg(ax.figure, "window", "window").count("<svg") == 1
    given = opened().plot().figure.subplots()
    assert opened().plot(given) is given
