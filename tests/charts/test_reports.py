"""Pictures of reports are sealed and fit a phone."""

from __future__ import annotations

import numpy as np

import sfumato as sf
from sfumato.charts import style
from sfumato.charts.local import draw_clusters, draw_reports
from sfumato.local.table import sweep


def test_pictures_are_sealed_and_fit_a_phone() -> None:
    rng = np.random.default_rng(0)
    for width in (style.WIDE, style.NARROW):
        with style.sized(width):
            figures = [
                sf.BPM(4, "0.5", 2).plot(reports=5_000).figure,
                sweep(epsilon=4, dimension=2, points=8).plot().figure,
                draw_clusters(rng.random((500, 2)), None, rng.random((3, 2)), rng.random((500, 2)))[
                    0
                ].figure,
                draw_reports(rng.random((50, 1)), None, rng.random((3, 1))).figure,
            ]
        for figure in figures:
            assert "http" not in style.svg(figure, "t", "d")
